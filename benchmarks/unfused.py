"""Networks as exporters leave them, norms and activations in single steps: true forms and sizes, random weights.

torch's older exporter writes layer norm, GPT-2's gelu (`gelu_new` of transformers) and, before opset 14, hard swish by
what they are made of; its newer one does so with RMS norm, and the root under one is a `Reciprocal`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from benchmarks.sketch import Shape, Sketch

ROWS = 128


def unfused_gpt(s: Sketch) -> onnx.ModelProto:
    """Two layers of nanoGPT's width of 384, as torch.onnx writes GPT-2 at opset 14: by its older exporter."""
    c, heads = 384, 6
    x = s.input("x", 1, ROWS, c)
    may_look = s.weight(np.tril(np.ones((1, 1, ROWS, ROWS), bool)))

    def layer_norm(x: str) -> str:
        centred = s("Sub", x, s("ReduceMean", x, axes=[-1]))
        variance = s("ReduceMean", s("Pow", centred, s.number(2.0)), axes=[-1])
        scaled = s("Div", centred, s("Sqrt", s("Add", variance, s.number(1e-5))))
        return s("Add", s("Mul", scaled, s.draw(c, scale=0.1, offset=1)), s.draw(c, scale=0.1))

    def gelu_new(x: str) -> str:
        cubic = s("Add", x, s("Mul", s("Pow", x, s.number(3.0)), s.number(0.044715)))
        bend = s("Add", s("Tanh", s("Mul", cubic, s.number(math.sqrt(2 / math.pi)))), s.number(1.0))
        return s("Mul", s("Mul", x, s.number(0.5)), bend)

    for _ in range(2):
        y = layer_norm(x)
        q, k, v = (by_heads(s, s.linear(y, c, c), heads, perm) for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        scores = s("Div", s("MatMul", q, k), s.number(math.sqrt(c / heads)))
        masked = s("Where", may_look, scores, s.number(float(np.finfo(np.float32).min)))
        joined = by_rows(s, s("MatMul", s("Softmax", masked, axis=3), v), c)
        x = s("Add", s.linear(joined, c, c), x)
        x = s("Add", x, s.linear(gelu_new(s.linear(layer_norm(x), c, 4 * c)), 4 * c, c))
    return s.model(x, opset=14)


def unfused_llama(s: Sketch) -> onnx.ModelProto:
    """Two layers of SmolLM-135M, as torch.onnx writes them at opset 18: by its newer exporter."""
    c, heads, shared, width, wide = 576, 9, 3, 64, 1536
    x, mask = s.input("x", 1, ROWS, c), s.input("mask", 1, 1, ROWS, ROWS)
    angles = np.outer(np.arange(ROWS), 10000.0 ** -(np.arange(0, width, 2) / width))
    cos, sin = (s.weight(np.tile(f(angles), (1, 2))[None, None].astype(np.float32)) for f in (np.cos, np.sin))
    every = s.ints(1, heads, ROWS, width)

    def rms_norm(x: str) -> str:
        mean = s("ReduceMean", s("Pow", x, s.number(2.0)), s.ints(-1))
        root = s("Reciprocal", s("Sqrt", s("Add", mean, s.number(1e-5))))
        return s("Mul", s.draw(c, scale=0.1, offset=1), s("Mul", x, root))

    def turned(x: str) -> str:
        half = [s("Slice", x, s.ints(a), s.ints(a + width // 2), s.ints(3)) for a in (0, width // 2)]
        return s("Add", s("Mul", x, cos), s("Mul", s("Concat", s("Neg", half[1]), half[0], axis=3), sin))

    def product(x: str, a: int, b: int) -> str:
        return s("MatMul", x, s.draw(a, b, scale=a**-0.5))

    def repeated(x: str) -> str:
        apart = s("Unsqueeze", x, s.ints(2))
        wider = s("Expand", apart, s.ints(1, shared, heads // shared, ROWS, width))
        return s("Reshape", wider, every)

    for _ in range(2):
        y = rms_norm(x)
        q = turned(by_heads(s, product(y, c, c), heads))
        k, v = (by_heads(s, product(y, c, shared * width), shared) for _ in range(2))
        k, v = repeated(turned(k)), repeated(v)
        scores = s("Mul", s("MatMul", q, s("Transpose", k, perm=(0, 1, 3, 2))), s.number(width**-0.5))
        weights = s("Softmax", s("Add", scores, mask), axis=-1)
        x = s("Add", x, product(by_rows(s, s("MatMul", weights, v), c), c, c))
        y = rms_norm(x)
        gate = product(y, c, wide)
        both = s("Mul", s("Mul", gate, s("Sigmoid", gate)), product(y, c, wide))
        x = s("Add", x, product(both, wide, c))
    return s.model(x, opset=18)


def unfused_mobilenet(s: Sketch) -> onnx.ModelProto:
    """MobileNetV3-Large (Howard et al. 2019) after its stem, as torch.onnx writes it before opset 14."""
    x, c, size = s.input("x", 1, 16, 56, 56), 16, 56

    def bounded(x: str) -> str:
        return s("Clip", s("Add", x, s.number(3.0)), s.number(0.0), s.number(6.0))

    def hard_swish(x: str) -> str:
        return s("Div", s("Mul", x, bounded(x)), s.number(6.0))

    def squeezed(x: str, c: int) -> str:
        small = s("Relu", s.conv(s("GlobalAveragePool", x), c, c // 4))
        return s("Mul", x, s("Div", bounded(s.conv(small, c // 4, c)), s.number(6.0)))

    layers: Sequence[tuple[int, int, int, bool, bool, int]] = (
        (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (3, 240, 80, False, True, 2),
        (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1),
        (3, 672, 112, True, True, 1), (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1),
    )  # fmt: skip
    for kernel, wide, o, squeezes, swishes, step in layers:
        y = s.norm(s.conv(x, c, wide), wide)
        y = hard_swish(y) if swishes else s("Relu", y)
        y = s.norm(s.conv(y, wide, wide, kernel, groups=wide, strides=[step, step]), wide)
        y = hard_swish(y) if swishes else s("Relu", y)
        y = s.norm(s.conv(squeezed(y, wide) if squeezes else y, wide, o), o)
        x, c, size = s("Add", x, y) if (c, step) == (o, 1) else y, o, size // step
    return s.model(hard_swish(s.norm(s.conv(x, c, 960), 960)), opset=11)


def by_heads(s: Sketch, x: str, heads: int, perm: Shape = (0, 2, 1, 3)) -> str:
    """Rows of channels with the heads on an axis of their own."""
    return s("Transpose", s("Reshape", x, s.ints(1, ROWS, heads, -1)), perm=perm)


def by_rows(s: Sketch, x: str, c: int) -> str:
    """Heads side by side again."""
    return s("Reshape", s("Transpose", x, perm=(0, 2, 1, 3)), s.ints(1, ROWS, c))
