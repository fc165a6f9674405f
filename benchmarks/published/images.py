"""Networks of pictures and of films that are chains of layers, or chains of residual blocks.

ResNet-18 and ResNet-50 (He et al. 2016), ResNeXt-50 32×4d (Xie et al. 2017), VGG-19 (Simonyan & Zisserman 2015),
SqueezeNet 1.1 (Iandola et al. 2016), CSRNet (Li et al. 2018) and a ResNet-18 of three dimensions (Tran et al. 2018).
"""

from __future__ import annotations

from functools import partial

from benchmarks.published.layers import BRANCH, THROUGH_RELU, Layers

DEPTHS_18, DEPTHS_50 = (2, 2, 2, 2), (3, 4, 6, 3)


def _start(s: Layers, batch: int) -> str:
    """A picture of 224×224, and what all residual networks make of it first."""
    x = s.relu(s.input("x", batch, 3, 224, 224), 64, 7, 2)
    return s.pool("MaxPool", x, 3, 2, 1)


def resnet18(s: Layers, batch: int) -> str:
    """ResNet-18: blocks of two 3×3 convolutions."""
    return s.classifier(_stages(s, _start(s, batch), (3, 3), (1, 1)), 1000)


def resnet3d18(s: Layers, batch: int) -> str:
    """ResNet3D-18: as ResNet-18, in three dimensions, on 16 frames of 112×112; 400 kinds of action."""
    x = s.relu(s.input("x", batch, 3, 16, 112, 112), 64, (3, 7, 7), (1, 2, 2))
    return s.classifier(_stages(s, x, (3, 3, 3), (1, 1, 1)), 400)


def _stages(s: Layers, x: str, kernel: tuple[int, ...], point: tuple[int, ...]) -> str:
    for stage, depth in enumerate(DEPTHS_18):
        o = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            deep = s.layer(s.relu(x, o, kernel, stride), o, kernel, gain=THROUGH_RELU * BRANCH)
            beside = s.layer(x, o, point, stride, gain=1.0) if stride > 1 else x
            x = s("Relu", s("Add", deep, beside))
    return x


def _bottlenecks(s: Layers, batch: int, width: int, groups: int) -> str:
    """Blocks of 1×1, 3×3 and 1×1 convolutions, the middle one of `width` channels in the first stage."""
    x = _start(s, batch)
    for stage, depth in enumerate(DEPTHS_50):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            deep = s.relu(s.relu(x, width << stage), width << stage, 3, stride, groups=groups)
            deep = s.layer(deep, 256 << stage, gain=THROUGH_RELU * BRANCH)
            beside = x if block else s.layer(x, 256 << stage, 1, stride, gain=1.0)
            x = s("Relu", s("Add", deep, beside))
    return s.classifier(x, 1000)


resnet50 = partial(_bottlenecks, width=64, groups=1)
resnext50 = partial(_bottlenecks, width=128, groups=32)


def vgg19(s: Layers, batch: int) -> str:
    """VGG-19: 3×3 convolutions and poolings, then three matrix products; no normalization."""
    x = s.input("x", batch, 3, 224, 224)
    for o, depth in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(depth):
            x = s.relu(x, o, 3)
        x = s.pool("MaxPool", x, 2, 2)
    x = s("Relu", s.dense(s("Flatten", x), 512 * 7 * 7, 4096, THROUGH_RELU))
    return s.dense(s("Relu", s.dense(x, 4096, 4096, THROUGH_RELU)), 4096, 1000)


def squeezenet(s: Layers, batch: int) -> str:
    """SqueezeNet 1.1: each module squeezes its channels, then spreads them by 1×1 and 3×3 convolutions."""
    x = s.relu(s.input("x", batch, 3, 224, 224), 64, 3, 2, padded=False)
    for narrow, wide in ((16, 64), (32, 128), (48, 192), (64, 256)):
        # Maps are halved before each pair of modules, but for the last.
        x = x if narrow == 64 else s.pool("MaxPool", x, 3, 2)
        for _ in range(2):
            squeezed = s.relu(x, narrow)
            x = s("Concat", s.relu(squeezed, wide), s.relu(squeezed, wide, 3), axis=1)
    return s("Flatten", s("GlobalAveragePool", s.relu(x, 1000)))


def csrnet(s: Layers, batch: int) -> str:
    """CSRNet: the front of VGG-16, then 3×3 convolutions over every second pixel; how many people are where."""
    x = s.input("x", batch, 3, 112, 112)
    for o, depth in ((64, 2), (128, 2), (256, 3), (512, 3)):
        x = x if o == 64 else s.pool("MaxPool", x, 2, 2)
        for _ in range(depth):
            x = s.relu(x, o, 3)
    for o in (512, 512, 512, 256, 128, 64):
        x = s.relu(x, o, 3, dilation=2)
    return s.layer(x, 1)
