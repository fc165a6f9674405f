"""Networks as exporters leave them, norms and activations in single steps: true forms and sizes, random weights.

These are forms that onnxruntime does not fuse by itself: layer norm and gelu of TensorFlow, RMS norm of torch (the root
under one is a `Reciprocal` in its newer exporter), and hard swish and hard sigmoid as torch wrote them before opset 14.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from benchmarks.sketch import Sketch


def unfused_keras(s: Sketch) -> onnx.ModelProto:
    """Two layers of GPT-2's form and BERT-mini's width of 256 (Turc et al. 2019), as tf2onnx writes them.

    TensorFlow computes a layer norm as one factor and one summand, and makes a product of the third power.
    """
    c, heads, rows = 256, 4, 128
    x = s.input("x", 1, rows, c)
    unseen = s.weight(np.triu(np.full((1, 1, rows, rows), -1e9, np.float32), 1))

    def layer_norm(x: str) -> str:
        mean = s("ReduceMean", x, axes=[-1])
        difference = s("Sub", x, mean)
        variance = s("ReduceMean", s("Mul", difference, difference), axes=[-1])
        root = s("Reciprocal", s("Sqrt", s("Add", variance, s.number(1e-5))))
        factor = s("Mul", root, s.draw(c, scale=0.1, offset=1))
        return s("Add", s("Mul", x, factor), s("Sub", s.draw(c, scale=0.1), s("Mul", mean, factor)))

    def gelu(x: str) -> str:
        cubic = s("Add", x, s("Mul", s("Mul", x, s("Mul", x, x)), s.number(0.044715)))
        bend = s("Add", s("Tanh", s("Mul", cubic, s.number(math.sqrt(2 / math.pi)))), s.number(1.0))
        return s("Mul", s("Mul", x, s.number(0.5)), bend)

    for _ in range(2):
        y = layer_norm(x)
        q, k, v = (by_heads(s, s.linear(y, c, c), heads) for _ in range(3))
        product = s("MatMul", q, s("Transpose", k, perm=(0, 1, 3, 2)))
        scores = s("Add", s("Mul", product, s.number(math.sqrt(heads / c))), unseen)
        joined = by_rows(s, s("MatMul", s("Softmax", scores, axis=3), v), c)
        x = s("Add", s.linear(joined, c, c), x)
        x = s("Add", x, s.linear(gelu(s.linear(layer_norm(x), c, 4 * c)), 4 * c, c))
    return s.model(x, opset=15)


def unfused_llama(s: Sketch) -> onnx.ModelProto:
    """The six layers of stories15M (Llama's form, llama2.c) for one token after 127, as torch.onnx writes them."""
    c, heads, width, wide, past = 288, 6, 48, 768, 127
    x, cos, sin = s.input("x", 1, 1, c), s.input("cos", 1, 1, 1, width), s.input("sin", 1, 1, 1, width)

    def rms_norm(x: str) -> str:
        mean = s("ReduceMean", s("Pow", x, s.number(2.0)), s.ints(-1))
        root = s("Reciprocal", s("Sqrt", s("Add", mean, s.number(1e-5))))
        return s("Mul", s.draw(c, scale=0.1, offset=1), s("Mul", x, root))

    def turned(x: str) -> str:
        half = [s("Slice", x, s.ints(a), s.ints(a + width // 2), s.ints(3)) for a in (0, width // 2)]
        return s("Add", s("Mul", x, cos), s("Mul", s("Concat", s("Neg", half[1]), half[0], axis=3), sin))

    def product(x: str, a: int, b: int) -> str:
        return s("MatMul", x, s.draw(a, b, scale=a**-0.5))

    for layer in range(6):
        y = rms_norm(x)
        q, k, v = (by_heads(s, product(y, c, c), heads) for _ in range(3))
        kept = [s.input(f"{name}{layer}", 1, heads, past, width) for name in ("keys", "values")]
        k, v = s("Concat", kept[0], turned(k), axis=2), s("Concat", kept[1], v, axis=2)
        scores = s("MatMul", turned(q), s("Transpose", k, perm=(0, 1, 3, 2)))
        weights = s("Softmax", s("Mul", scores, s.number(width**-0.5)), axis=-1)
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


def by_heads(s: Sketch, x: str, heads: int) -> str:
    """Rows of channels with the heads on an axis of their own."""
    return s("Transpose", s("Reshape", x, s.ints(0, 0, heads, -1)), perm=(0, 2, 1, 3))


def by_rows(s: Sketch, x: str, c: int) -> str:
    """Heads side by side again."""
    return s("Reshape", s("Transpose", x, perm=(0, 2, 1, 3)), s.ints(0, 0, c))
