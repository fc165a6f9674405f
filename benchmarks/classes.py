"""Models of classes that published networks leave out, at true sizes, with random weights: where rewriting pays.

A decoder head that resizes and concatenates (SegFormer, Xie et al. 2021), a re-parameterizable network in its training
form (RepVGG-A0, Ding et al. 2021), unmerged adapters (LoRA, Hu et al. 2022), 1-D audio (QuartzNet, Kriman et al. 2020),
a generator of transposed convolutions (DCGAN, Radford et al. 2016), super-resolution (ESPCN, Shi et al. 2016; a network
on a picture resized first, as SRCNN, Dong et al. 2014), an attention layer and a gelu written out, channel shuffles
(ShuffleNet V2, Ma et al. 2018), a pipeline of scikit-learn, what exporters leave in single steps (`unfused.py`), what
stands before and behind networks (`ends.py`), and 16-bit floats (`halves.py`).
`python -m benchmarks.classes OUTDIR [NAME...]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx

from benchmarks.ends import scaled, spectra, styled
from benchmarks.halves import half
from benchmarks.networks import write_some
from benchmarks.sketch import Sketch, attention, gelu
from benchmarks.unfused import unfused_keras, unfused_llama, unfused_mobilenet


def head(s: Sketch) -> onnx.ModelProto:
    """SegFormer-B0's head on a picture of 512×512: four maps, each to 256 channels, resized, joined, mixed."""
    maps = []
    for i, (c, size) in enumerate(((32, 128), (64, 64), (160, 32), (256, 16))):
        x = s.conv(s.input(f"x{i}", 1, c, size, size), c, 256)
        scales = s.weight(np.array([1, 1, 128 / size, 128 / size], np.float32))
        resized = s("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
        maps.append(resized if size < 128 else x)
    mixed = s("Relu", s.norm(s.conv(s("Concat", *maps[::-1], axis=1), 1024, 256), 256))
    return s.model(s.conv(mixed, 256, 150))


def repvgg(s: Sketch) -> onnx.ModelProto:
    """RepVGG-A0 as it is trained: each layer 3×3, 1×1 and identity, each with its normalization."""
    x, c = s.input("x", 1, 3, 224, 224), 3
    for depth, o in ((1, 48), (2, 48), (4, 96), (14, 192), (1, 1280)):
        for layer in range(depth):
            step = [2, 2] if layer == 0 else [1, 1]
            three = s.norm(s.conv(x, c, o, 3, strides=step), o, of=3)
            total = s("Add", three, s.norm(s.conv(x, c, o, strides=step), o, of=3))
            x = s("Relu", total if layer == 0 else s("Add", total, s.norm(x, c, of=3)))
            c = o
    pooled = s("Flatten", s("GlobalAveragePool", x))
    return s.model(s.linear(pooled, c, 1000))


def adapters(s: Sketch) -> onnx.ModelProto:
    """Two feed-forward layers of BERT's size with adapters of rank 16 beside each product."""
    x = s.input("x", 1, 128, 768)
    for _ in range(2):
        for c, o in ((768, 3072), (3072, 768)):
            down = s("MatMul", x, s.draw(c, 16, scale=c**-0.5))
            up = s("MatMul", down, s.draw(16, o, scale=0.25))
            scaled = s("Mul", up, s.number(2.0))
            x = s("Add", s.linear(x, c, o), scaled)
            x = s("Relu", x) if o > c else x
    return s.model(x)


def audio(s: Sketch) -> onnx.ModelProto:
    """QuartzNet's separable blocks on four seconds of sound: depthwise over time, then point-wise."""
    x = s.input("x", 1, 64, 400)
    x, c = s("Relu", s.norm(s.conv(x, 64, 256, 33, rank=1, strides=[2]), 256)), 256
    for o, kernel in ((256, 33), (256, 39), (512, 51), (512, 63)):
        beside = s.norm(s.conv(x, c, o, rank=1), o)
        for i in range(3):
            x = s.norm(s.conv(s.conv(x, c, c, kernel, rank=1, groups=c), c, o, rank=1), o)
            x, c = s("Relu", s("Add", x, beside) if i == 2 else x), o
    return s.model(s.conv(x, 512, 29, rank=1))


def gan(s: Sketch) -> onnx.ModelProto:
    """DCGAN's generator of pictures of 64×64."""
    x, c = s.input("x", 1, 100, 1, 1), 100
    for i, o in enumerate((512, 256, 128, 64, 3)):
        w = s.draw(c, o, 4, 4, scale=math.sqrt(2 / (c * (16 if i == 0 else 4))))
        more: dict[str, Any] = {} if i == 0 else {"strides": [2, 2], "pads": [1] * 4}
        x, c = s("ConvTranspose", x, w, **more), o
        x = s("Tanh", x) if o == 3 else s("Relu", s.norm(x, o))
    return s.model(x)


def espcn(s: Sketch) -> onnx.ModelProto:
    """ESPCN: three convolutions, then channels to pixels, three times as wide and high."""
    x = s("Tanh", s.conv(s.input("x", 1, 1, 224, 224), 1, 64, 5))
    x = s.conv(s("Tanh", s.conv(x, 64, 32, 3)), 32, 9, 3)
    return s.model(s("DepthToSpace", x, blocksize=3, mode="CRD"))


def upscaled(s: Sketch) -> onnx.ModelProto:
    """A decoder that doubles its map, then mixes channels, as U-Nets with resizes do."""
    x, c = s.input("x", 1, 256, 32, 32), 256
    for o in (128, 64, 32):
        big = s("Resize", x, "", s.weight(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
        x, c = s("Relu", s.norm(s.conv(s("Relu", s.norm(s.conv(big, c, o), o)), o, o, 3), o)), o
    return s.model(s.conv(x, c, 3))


def transformer(s: Sketch) -> onnx.ModelProto:
    """Two layers of BERT's size as older exporters wrote them: attention, layer norm and gelu of single steps."""
    x = s.input("x", 1, 128, 768)

    def layer_norm(x: str) -> str:
        centred = s("Sub", x, s("ReduceMean", x, axes=[-1]))
        variance = s("ReduceMean", s("Pow", centred, s.number(2.0)), axes=[-1])
        scaled = s("Div", centred, s("Sqrt", s("Add", variance, s.number(1e-5))))
        return s("Add", s("Mul", scaled, s.draw(768, scale=0.1, offset=1)), s.draw(768, scale=0.1))

    for _ in range(2):
        x = layer_norm(s("Add", attention(s, x, (1, 128, 768), heads=12), x))
        x = layer_norm(s("Add", s.linear(gelu(s, s.linear(x, 768, 3072)), 3072, 768), x))
    return s.model(x)


def halved(s: Sketch) -> onnx.ModelProto:
    """The same in 16 bits, as GPUs are given it."""
    return half(transformer(s))


def shufflenet_v2(s: Sketch) -> onnx.ModelProto:
    """ShuffleNet V2 ×1 after its stem: split, separable, concat, and a shuffle of channels as reshapes."""
    x, c = s.input("x", 1, 24, 56, 56), 24

    def shuffled(x: str, c: int, size: int) -> str:
        apart = s("Reshape", x, s.ints(1, 2, c // 2, size, size))
        return s("Reshape", s("Transpose", apart, perm=(0, 2, 1, 3, 4)), s.ints(1, c, size, size))

    def branch(x: str, c: int, half: int, step: int) -> str:
        narrow = s("Relu", s.norm(s.conv(x, c, half), half))
        deep = s.norm(s.conv(narrow, half, half, 3, groups=half, strides=[step, step]), half)
        return s("Relu", s.norm(s.conv(deep, half, half), half))

    for o, depth, size in ((116, 4, 28), (232, 8, 14), (464, 4, 7)):
        half = o // 2
        left = s.norm(s.conv(x, c, c, 3, groups=c, strides=[2, 2]), c)
        left = s("Relu", s.norm(s.conv(left, c, half), half))
        x, c = shuffled(s("Concat", left, branch(x, c, half, 2), axis=1), o, size), o
        for _ in range(depth - 1):
            low, high = (s("Slice", x, s.ints(a), s.ints(a + half), s.ints(1)) for a in (0, half))
            x = shuffled(s("Concat", low, branch(high, half, half, 1), axis=1), o, size)
    return s.model(s("GlobalAveragePool", s("Relu", s.conv(x, 464, 1024))))


def pruned(s: Sketch) -> onnx.ModelProto:
    """MobileNetV2's inverted residuals, without normalizations, of as many channels as pruning left."""
    x, c = s.input("x", 1, 19, 56, 56), 19
    for wide, o, step in ((83, 27, 2), (118, 27, 1), (123, 45, 2), (205, 45, 1), (189, 45, 1), (214, 77, 1)):
        y = s("Clip", s.conv(x, c, wide), s.number(0.0), s.number(6.0))
        y = s("Clip", s.conv(y, wide, wide, 3, groups=wide, strides=[step, step]), s.number(0.0), s.number(6.0))
        y = s.conv(y, wide, o)
        x, c = s("Add", x, y) if c == o and step == 1 else y, o
    return s.model(s("GlobalAveragePool", s("Relu", s.conv(x, c, 501))))


def pipeline(s: Sketch) -> onnx.ModelProto:
    """A pipeline of scikit-learn as skl2onnx writes it: imputer, scaler, then a linear model of ten classes."""
    x = s.input("x", 1000, 64)
    rng = s.rng
    x = s("Imputer", x, domain="ai.onnx.ml", imputed_value_floats=rng.standard_normal(64).tolist())
    offset, scale = rng.standard_normal(64).tolist(), rng.uniform(0.5, 2, 64).tolist()
    x = s("Scaler", x, domain="ai.onnx.ml", offset=offset, scale=scale)
    more = {"coefficients": rng.standard_normal(640).tolist(), "intercepts": rng.standard_normal(10).tolist()}
    x = s("LinearRegressor", x, domain="ai.onnx.ml", targets=10, **more)
    return s.model(s("Softmax", x, axis=-1), (1000, 10), ml=True)


CLASSES: dict[str, Callable[[Sketch], onnx.ModelProto]] = {
    made.__name__: made
    for made in (
        head, repvgg, adapters, audio, gan, espcn, upscaled, transformer, shufflenet_v2, pruned, pipeline,
        unfused_keras, unfused_llama, unfused_mobilenet, scaled, spectra, styled, halved,
    )
}  # fmt: skip


def model(name: str, seed: int = 0) -> onnx.ModelProto:
    """The model of a class, of `CLASSES`."""
    return CLASSES[name](Sketch(seed))


if __name__ == "__main__":
    write_some("models of single classes", {name: partial(model, name) for name in CLASSES})
