"""Transposed convolution: the linear map that is the transpose of a convolution's."""

from __future__ import annotations

import itertools

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.nodes import NotUnderstood, Source, concrete
from superopt.operators.pointwise import Add
from superopt.operators.windows import demand_kernel
from superopt.relations import divides
from superopt.term import Term, make


@operator("conv_transpose", onnx="ConvTranspose")
class ConvTranspose(Declared):
    """`y[n,o,p·s+i·d,q·s+j·d] += x[n,c,p,q] · k[c,o,i,j]`, less the pads; channels fall into groups."""

    linear = (0, 1)
    zero = True
    strides: Shape = attr(default=(1, 1), size=True, least=1, onnx="strides")
    pads: Shape = attr(default=(0, 0, 0, 0), size=True, onnx="pads")
    dilations: Shape = attr(default=(1, 1), size=True, least=1, onnx="dilations")
    group: Dim = attr(default=1, size=True, least=1, onnx="group")
    more: Shape = attr(default=(0, 0), size=True, onnx="output_padding")
    """Further zeros after the result."""

    def shape(self, x: Shape, k: Shape) -> Shape:  # type: ignore[override]
        """`(h − 1)·s + d·(i − 1) + 1 + more − pads` along each window axis, of which there are one to three."""
        axes = len(self.strides)
        require(len(x) == len(k) == axes + 2, f"conv_transpose: {x} and {k} are not for {axes} window axes")
        lengths = (len(self.pads), len(self.dilations), len(self.more))
        require(lengths == (2 * axes, axes, axes), f"conv_transpose: {self} is not for {axes} window axes")
        require(x[1] == k[0], f"conv_transpose: channels differ: x is {x}, kernel is {k}")
        require(divides(self.group, x[1]), f"conv_transpose: {x[1]} channels do not fall into {self.group} groups")
        sizes = []
        for axis in range(axes):
            full = full_size(x[axis + 2], k[axis + 2], self.strides[axis], self.dilations[axis]) + self.more[axis]
            cut = self.pads[axis] + self.pads[axis + axes]
            require(at_most(cut + 1, full), f"conv_transpose: pads {self.pads} leave nothing of {x}, kernel {k}")
            sizes.append(full - cut)
        return (x[0], k[1] * self.group, *sizes)

    def eval(self, ring: Carrier, x: Array, k: Array) -> Array:  # type: ignore[override]
        """A matrix product for each place in the kernel, added where it falls."""
        group, (n, c, *image), o = concrete((self.group,), "conv_transpose")[0], x.shape, k.shape[1]
        strides, dilations, pads = (concrete(v, "conv_transpose") for v in (self.strides, self.dilations, self.pads))
        _, _, *sizes = concrete(self.shape(x.shape, k.shape), "conv_transpose")
        axes = len(sizes)
        room = [size + a + b for size, a, b in zip(sizes, pads[:axes], pads[axes:], strict=True)]
        full = np.zeros((n, group * o, *room), ring.dtype)
        columns, kernel = x.reshape(n, group, c // group, -1), k.transpose(*range(2, k.ndim), 0, 1)
        for place in itertools.product(*map(range, k.shape[2:])):
            weights = kernel[place].reshape(1, group, c // group, o).transpose(0, 1, 3, 2)
            part = ring.matmul(weights, columns).reshape(n, group * o, *image)
            falls = tuple(
                slice(a * d, a * d + (size - 1) * s + 1, s)
                for a, d, size, s in zip(place, dilations, image, strides, strict=True)
            )
            full[(slice(None), slice(None), *falls)] = ring.add(full[(slice(None), slice(None), *falls)], part)
        return full[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(pads[:axes], sizes, strict=True)))]

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each place of the kernel and input."""
        return 2 * product(shapes[0]) * product(shapes[1][1:])

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """One to three window axes; the bias is an `add`."""
        x, k, bias = (*node.inputs, None)[:3]
        given = node.attributes
        if x is None or k is None or x.type.rank not in (3, 4, 5):
            raise NotUnderstood("only transposed convolutions with one to three window axes are declared")
        axes = x.type.rank - 2
        demand_kernel(node, k.shape[2:])
        strides, dilations, more = (
            tuple(given.get(n, (d,) * axes)) for n, d in (("strides", 1), ("dilations", 1), ("output_padding", 0))
        )
        pads = _pads(node, x.shape, k.shape, strides, dilations, more)
        y = make(cls(strides, pads, dilations, int(given.get("group", 1)), more), (x, k))
        return y if bias is None else make(Add(), (y, make(Expand((1,), y.shape), (bias,))))


def full_size(size: Dim, kernel: Dim, stride: Dim, dilation: Dim) -> Dim:
    """How far the elements of an axis reach, before pads are cut off."""
    return (size - 1) * stride + dilation * (kernel - 1) + 1


def _pads(node: Source, x: Shape, k: Shape, strides: Shape, dilations: Shape, more: Shape) -> Shape:
    """The pads of a node; with `output_shape` or `auto_pad` those that give the sizes that are asked for."""
    axes, mode = len(x) - 2, node.attributes.get("auto_pad", "NOTSET")
    wanted = node.attributes.get("output_shape")
    if wanted is None and not mode.startswith("SAME"):
        return tuple(node.attributes.get("pads", (0,) * (2 * axes))) if mode == "NOTSET" else (0,) * (2 * axes)
    before, after = [], []
    for axis in range(axes):
        full = full_size(x[axis + 2], k[axis + 2], strides[axis], dilations[axis]) + more[axis]
        to = x[axis + 2] * strides[axis] if wanted is None else wanted[axis - axes]
        (total,) = concrete((full - to,), "conv_transpose to given sizes")
        if total < 0:
            raise NotUnderstood(f"conv_transpose of {x} to more than it reaches")
        small = total // 2
        before.append(small if mode == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return (*before, *after)
