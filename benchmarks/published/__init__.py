"""The networks that TASO, TENSAT and PET are measured on, at their sizes, with random weights.

`python -m benchmarks.published build/published [NAME...] [--batch 1 16]` writes them; what is there already is kept.

Sizes are those of the systems' own repositories, and where these leave something out, of the papers that describe the
networks. TASO (`examples/`): ResNet-50, ResNeXt-50 32×4d of 224×224, Inception-v3 of 299×299, NasNet-A, NasRNN of five
steps of 512. TENSAT (`src/`, `model/`): the same NasNet-A with its beginning, SqueezeNet 1.1 and VGG-19 of 224×224. PET
(`src/Test/dilation_test.cpp`, `benchmark/models/scripts/`, and its artifact's scripts): ResNet-18 of 224×224, CSRNet
whose dilated part sees maps of 14×14, as after a picture of 112×112, BERT of 12 layers, 12 heads and 512 tokens of
width 768. Films of 16 frames of 112×112 are those of torchvision's video networks; PET's repository has no ResNet3D.

Where the systems leave out what a network needs to be one, it is put in. TASO's ResNet-50 begins after the first
layers, and none of its networks has a classifier, as here only NasNet-A has none. TASO's BERT does not use what its
attention gives, and PET's has no layer norm: here it is BERT-base's encoder. PET's CSRNet is the dilated part alone.
PET gives Inception-v3 pictures of 330×330. TASO's NasRNN starts from a constant; here the state is an input.

Batch normalizations are folded into the convolutions before them, as torch's exporter does where it exports for
inference, and as none of the three systems has any: each convolution has a bias. `benchmarks.classes` has networks
with separate ones.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

from benchmarks.published.cells import inception_v3, nasnet_a
from benchmarks.published.images import csrnet, resnet3d18, resnet18, resnet50, resnext50, squeezenet, vgg19
from benchmarks.published.layers import Layers
from benchmarks.published.sequences import bert, nasrnn

PUBLISHED: dict[str, Callable[[Layers, int], str]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "resnext50": resnext50,
    "nasnet_a": nasnet_a,
    "nasrnn": nasrnn,
    "bert": bert,
    "squeezenet": squeezenet,
    "vgg19": vgg19,
    "inception_v3": inception_v3,
    "csrnet": csrnet,
    "resnet3d18": resnet3d18,
}
"""By name, what draws a network for a batch and says which value comes out."""
BATCHES = (1, 16)


def counted(name: str, batch: int = 1) -> tuple[Layers, onnx.ModelProto]:
    """A network whose weights have shapes and no values, and what it was made with."""
    layers = Layers()
    return layers, layers.unchecked(PUBLISHED[name](layers, batch))


def write(name: str, batch: int, folder: Path, seed: int = 0) -> Path:
    """Write a network, with its weights in a file beside it, unless it is there already.

    Weights are the same for all batches. Of a network that is not written to its end, no `.onnx` remains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{batch}.onnx"
    if path.exists():
        return path
    data, begun = path.with_suffix(".onnx.data"), path.with_suffix(".part.onnx")
    with data.open("wb") as file:
        layers = Layers(seed, file, data.name)
        model = layers.unchecked(PUBLISHED[name](layers, batch))
    begun.write_bytes(model.SerializeToString())
    try:
        onnx.checker.check_model(begun, full_check=True)
        begun.rename(path)
    finally:
        begun.unlink(missing_ok=True)
    return path
