"""Models whose time goes into what stands before a network or behind it, as those have that are shipped whole.

A picture that is scaled in the model, its channels last (as image pipelines are baked in before MobileNets, Howard et
al. 2017), spectra of sound before a recognizer's first layers (as of Whisper, Radford et al. 2022), and a transformer
network of pictures, whose last convolution, of 9 by 9, gives three channels (Johnson et al. 2016).
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.sketch import Sketch


def scaled(s: Sketch) -> onnx.ModelProto:
    """A picture of 224 by 224, its channels last, scaled, and the first half of MobileNet, of 0.5 times the width."""
    x = s.input("x", 1, 224, 224, 3)
    mean, spread = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    centred = s("Sub", s("Div", x, s.number(255.0)), s.weight(np.array(mean, np.float32)))
    x = s("Transpose", s("Div", centred, s.weight(np.array(spread, np.float32))), perm=(0, 3, 1, 2))
    x, c = s("Relu", s.norm(s.conv(x, 3, 16, 3, strides=[2, 2]), 16)), 16
    for o, step in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2)):
        x = s("Relu", s.norm(s.conv(x, c, c, 3, groups=c, strides=[step, step]), c))
        x, c = s("Relu", s.norm(s.conv(x, c, o), o)), o
    return s.model(s.linear(s("Flatten", s("GlobalAveragePool", x)), 256, 100))


def spectra(s: Sketch) -> onnx.ModelProto:
    """A second of sound in frames of 25 ms, each 10, the logarithms of 80 bands, and the two convolutions of Whisper's
    smallest encoder.
    """
    window = s.weight(np.hanning(400).astype(np.float32))
    frames = s("STFT", s.input("x", 1, 16000, 1), s.weight(np.array(160)), window, onesided=1)
    power = s("ReduceSum", s("Mul", frames, frames), s.ints(-1), keepdims=0)
    bands = s("MatMul", power, s.weight(np.abs(s.rng.standard_normal((201, 80))).astype(np.float32)))
    x = s("Transpose", s("Log", s("Add", bands, s.number(1e-5))), perm=(0, 2, 1))
    x = s("Gelu", s.conv(x, 80, 384, 3, rank=1), approximate="none")
    x = s("Gelu", s.conv(x, 384, 384, 3, rank=1, strides=[2]), approximate="none")
    return s.model(s("Transpose", x, perm=(0, 2, 1)), opset=20)


def styled(s: Sketch) -> onnx.ModelProto:
    """A picture of 256 by 256 in another style: reduced twice, two residual blocks, enlarged twice, three channels."""

    def norm(x: str, c: int) -> str:
        return s("InstanceNormalization", x, s.draw(c, scale=0.1, offset=1.0), s.draw(c, scale=0.1))

    def layer(x: str, c: int, o: int, kernel: int, step: int = 1) -> str:
        return s("Relu", norm(s.conv(x, c, o, kernel, strides=[step, step]), o))

    x = layer(layer(layer(s.input("x", 1, 3, 256, 256), 3, 16, 9), 16, 32, 3, 2), 32, 64, 3, 2)
    for _ in range(2):
        x = s("Add", x, norm(s.conv(layer(x, 64, 64, 3), 64, 64, 3), 64))
    for c, o in ((64, 32), (32, 16)):
        big = s("Resize", x, "", s.weight(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
        x = layer(big, c, o, 3)
    return s.model(s.conv(x, 16, 3, 9))
