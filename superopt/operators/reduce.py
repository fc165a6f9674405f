"""Operators that reduce windows or axes: pooling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator, reads
from superopt.operators.declared import Declared
from superopt.operators.layout import reshaped
from superopt.operators.nodes import Emitter, NotUnderstood, Source, concrete, present
from superopt.operators.reductions import Largest, Mean
from superopt.operators.windows import explicit_pads, window_sizes, windows
from superopt.term import Term, make


class Pool(Declared):
    """Base of the two pools over windows: attributes in ONNX's form, shape rule, reading."""

    kernel: Shape
    strides: Shape
    pads: Shape
    dilations: Shape

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """Channels stay; windows as in a convolution, none of them wholly in the padding."""
        window = window_sizes(self.name, x, self.kernel, self.strides, self.pads, self.dilations)
        for axis in range(len(self.kernel)):
            for pad in (self.pads[axis], self.pads[axis + len(self.kernel)]):
                reach = self.dilations[axis] * (self.kernel[axis] - 1)
                require(at_most(pad, reach), f"{self.name}: pads {self.pads} reach past the window {self.kernel}")
            step = self.dilations[axis]
            if not (isinstance(step, int) and step == 1):  # the gaps of a dilated window could step over a small image
                require(at_most(step, x[axis + 2]), f"{self.name}: {x} fits between the taps, {step} apart")
        return (*x[:2], *window)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """One operation for each place of the window."""
        return product(result) * product(self.kernel)

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Any number of window axes; where sizes are rounded up, padding at the end makes up for it."""
        (x,), given = present(node.inputs, 1), node.attributes
        kernel = tuple(given["kernel_shape"])
        ones = (1,) * len(kernel)
        strides, dilations = (tuple(given.get(n, ones)) for n in ("strides", "dilations"))
        pads = explicit = explicit_pads(node, x.shape, kernel, strides, dilations)
        if given.get("auto_pad", "NOTSET").startswith("SAME") and any(d != 1 for d in dilations):
            raise NotUnderstood("auto_pad of dilated windows: runtimes differ")
        if given.get("storage_order", 0):
            raise NotUnderstood("column-major storage order")
        if given.get("ceil_mode", 0):
            pads = _rounded_up(x.shape, kernel, strides, pads, dilations)
            if given.get("count_include_pad", 0) and pads != explicit:
                raise NotUnderstood("ceil_mode rounds a size up, and counts the padding")
        if pads != explicit and any(isinstance(p, int) and p >= k for p, k in zip(pads, kernel * 2, strict=True)):
            raise NotUnderstood(f"the pads {pads} that make up for it reach past the window {kernel}")
        return cls._made(x, kernel, strides, pads, dilations, given)

    @classmethod
    def _made(
        cls, x: Term, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape, given: Mapping[str, Any]
    ) -> Term:
        return make(cls(kernel, strides, pads, dilations), (x,))  # type: ignore[call-arg]


@operator("maxpool", onnx="MaxPool")
class MaxPool(Pool):
    """`y[n,c,p,q] = max_ij x[n,c,p·s+i·d,q·s+j·d]`; padding is never the maximum."""

    keeps = frozenset({"nonnegative"})
    needs = frozenset({"order"})
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law relu-maxpool (given (?x n c h w))
      (= (relu (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x))
         (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (relu ?x))))
    (law maxpool-shift (given (?x n c h w) (?y c))
      (= (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (add ?x (expand (1) ?y)))
         (add (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x) (expand (1) ?y))))
    (law maxpool-scale (given (?x n c h w) (?y c)) (if (nonnegative ?y))
      (= (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (mul ?x (expand (1) ?y)))
         (mul (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x) (expand (1) ?y))))
    (law maxpool-point (given (?x n c 1 1)) (if (= a (+ p u 1)) (= b (+ q v 1)))
      (= (maxpool (a b) :strides (s t) :pads (p q u v) ?x) ?x))
    (law maxpool-twice (given (?x n c h w))
      (= (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (add ?x ?x))
         (add (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x)
              (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x))))
    """
    kernel: Shape = attr(size=True, least=1, sample=[(3, 3)], onnx="kernel_shape")
    strides: Shape = attr(default=(1, 1), size=True, least=1, sample=[(2, 2)], onnx="strides")
    pads: Shape = attr(default=(0, 0, 0, 0), size=True, sample=[(1, 1, 1, 1)], onnx="pads")
    dilations: Shape = attr(default=(1, 1), size=True, least=1, onnx="dilations")

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The largest of each window's elements that are not padding."""
        places = windows(x, self.kernel, self.strides, self.pads, self.dilations, ring.constant(0))
        inside = windows(
            np.ones_like(x, dtype=bool), self.kernel, self.strides, self.pads, self.dilations, np.asarray(False)
        )
        return ring.largest(np.stack([v for _, v in places]), (0,), np.stack([v for _, v in inside]))

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Dilations only where there are any: they came with opset 10."""
        given = {"kernel_shape": list(self.kernel), "strides": list(self.strides), "pads": list(self.pads)}
        return out.node(
            "MaxPool", inputs, given if set(self.dilations) == {1} else {**given, "dilations": list(self.dilations)}
        )


@operator("avgpool", onnx="AveragePool")
class AvgPool(Pool):
    """`y[n,c,p,q] = mean_ij x[n,c,p·s+i·d,q·s+j·d]`, over the whole window or what of it is not padding."""

    keeps = frozenset({"nonnegative"})
    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law avgpool-shift (given (?x n c h w) (?y c))
      (= (avgpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (add ?x (expand (1) ?y)))
         (add (avgpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x) (expand (1) ?y))))
    (law avgpool-whole (given (?x n c h w))
      (= (avgpool (a b) :strides (s t) :dilations (d e) ?x)
         (avgpool (a b) :strides (s t) :dilations (d e) :whole 1 ?x)))
    (law avgpool-conv (given (?x n c h w))
      (= (avgpool (i j) :strides (s t) :pads (p q u v) :dilations (d e) :whole 1 ?x)
         (conv :strides (s t) :pads (p q u v) :dilations (d e) :group c ?x
           (expand (2 3) (c 1 i j) (reshape (i j) (mean (0) (band (* i j))))))))
    (law avgpool-point (given (?x n c 1 1)) (if (= a (+ p u 1)) (= b (+ q v 1)))
      (= (avgpool (a b) :strides (s t) :pads (p q u v) ?x) ?x))
    (law avgpool-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (avgpool (i j) :strides (s t) :pads (p q u v) :dilations (e f) (conv :group g ?x ?k))
         (conv :group g (avgpool (i j) :strides (s t) :pads (p q u v) :dilations (e f) ?x) ?k)))
    """
    kernel: Shape = attr(size=True, least=1, sample=[(3, 3)], onnx="kernel_shape")
    strides: Shape = attr(default=(1, 1), size=True, least=1, sample=[(2, 2)], onnx="strides")
    pads: Shape = attr(default=(0, 0, 0, 0), size=True, sample=[(1, 1, 1, 1)], onnx="pads")
    dilations: Shape = attr(default=(1, 1), size=True, least=1, onnx="dilations")
    whole: int = attr(default=0, onnx="count_include_pad")

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The sum of each window over the number of elements that count."""
        where = (self.kernel, self.strides, self.pads, self.dilations)
        total = ring.total(np.stack([v for _, v in windows(x, *where, ring.constant(0))]), (0,))
        counted = [v for _, v in windows(np.ones_like(x, dtype=np.int64), *where, np.asarray(self.whole))]
        count = np.sum(counted, axis=0)
        return ring.div(total, ring.constant(1) * count)

    def to_onnx(self, out: Emitter, *inputs: str) -> str:
        """Dilations came with opset 19, counting the padding with opset 7."""
        given = {"kernel_shape": list(self.kernel), "strides": list(self.strides), "pads": list(self.pads)}
        if self.whole:
            given["count_include_pad"] = [1]
        attributes = {k: v[0] if k == "count_include_pad" else v for k, v in given.items()}
        if set(self.dilations) != {1}:
            attributes["dilations"] = list(self.dilations)
        return out.node("AveragePool", inputs, attributes)

    @classmethod
    def _made(
        cls, x: Term, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape, given: Mapping[str, Any]
    ) -> Term:
        whole = int(given.get("count_include_pad", 0))
        # Where nothing is padded both ways of counting are one; the canonical form counts what is there.
        return make(cls(kernel, strides, pads, dilations, whole if any(p != 0 for p in pads) else 0), (x,))


@operator("global_avgpool", onnx="GlobalAveragePool")
class GlobalAvgPool(Declared):
    """`y[n,c,0,0] = mean_hw x[n,c,h,w]`."""

    needs = frozenset({"div"})
    linear = (0,)
    zero = True
    named_axes = "n c (h) (w) -> n c (h) (w)"
    laws = """
    (law global_avgpool-conv-point (given (?x n c h w) (?k o d 1 1))
      (= (global_avgpool (conv :group g ?x ?k)) (conv :group g (global_avgpool ?x) ?k)))
    (law global_avgpool-point (given (?x n c 1 1)) (= (global_avgpool ?x) ?x))
    (law global_avgpool-shift (given (?x n c h w) (?y c))
      (= (global_avgpool (add ?x (expand (1) ?y))) (add (global_avgpool ?x) (expand (1) ?y))))
    """

    def shape(self, x: Shape) -> Shape:  # type: ignore[override]
        """One element a channel."""
        require(len(x) == 4, f"global_avgpool: the input has four axes, not {x}")
        return (*x[:2], 1, 1)

    def eval(self, ring: Carrier, x: Array) -> Array:  # type: ignore[override]
        """The sum over the count."""
        total = ring.total(x, (2, 3))[:, :, None, None]
        return ring.div(total, np.broadcast_to(ring.constant(x.shape[2] * x.shape[3]), total.shape))

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """One addition an element."""
        return product(shapes[0])


@reads("GlobalAveragePool")
def global_average(node: Source) -> Term:
    """Over two axes, or any other number of them."""
    (x,) = present(node.inputs, 1)
    return make(GlobalAvgPool(), (x,)) if x.type.rank == 4 else _globally(Mean, x)


@reads("GlobalMaxPool")
def global_largest(node: Source) -> Term:
    """The largest of each channel."""
    return _globally(Largest, *present(node.inputs, 1))


def _globally(reduction: type[Mean] | type[Largest], x: Term) -> Term:
    axes = tuple(range(2, x.type.rank))
    return reshaped(make(reduction(axes), (x,)), (*x.shape[:2], *(1 for _ in axes))) if axes else x


def _rounded_up(x: Shape, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape) -> Shape:
    """The pads with which sizes that are rounded down are what they were when rounded up."""
    axes, more = len(kernel), []
    for axis in range(axes):
        sizes = (x[axis + 2], pads[axis], pads[axis + axes], dilations[axis] * (kernel[axis] - 1), strides[axis])
        size, before, after, reach, step = concrete(sizes, "ceil_mode")
        more.append(-(size + before + after - reach - 1) % step)
    return (*pads[:axes], *(p + m for p, m in zip(pads[axes:], more, strict=True)))
