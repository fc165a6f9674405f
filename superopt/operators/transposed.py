"""Transposed convolution: the linear map that is the transpose of a convolution's."""

from __future__ import annotations

import itertools

import numpy as np

from superopt.arithmetic import Array, Carrier
from superopt.dim import Dim, Shape, at_most, divides, product, require
from superopt.operators.declare import Declared, NotUnderstood, Source, attr, concrete, operator
from superopt.operators.layout import Expand
from superopt.operators.pointwise import Add
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
        """`(h − 1)·s + d·(i − 1) + 1 + more − pads` along each of the two window axes."""
        require(len(x) == 4 == len(k), f"conv_transpose: input and kernel have four axes each, not {x} and {k}")
        require(x[1] == k[0], f"conv_transpose: channels differ: x is {x}, kernel is {k}")
        require(divides(self.group, x[1]), f"conv_transpose: {x[1]} channels do not fall into {self.group} groups")
        sizes = []
        for axis in range(2):
            reach = self.dilations[axis] * (k[axis + 2] - 1) + 1 + self.more[axis]
            cut = self.pads[axis] + self.pads[axis + 2]
            full = (x[axis + 2] - 1) * self.strides[axis] + reach
            require(at_most(cut + 1, full), f"conv_transpose: pads {self.pads} leave nothing of {x}, kernel {k}")
            sizes.append(full - cut)
        return (x[0], k[1] * self.group, *sizes)

    def eval(self, ring: Carrier, x: Array, k: Array) -> Array:  # type: ignore[override]
        """A matrix product for each place in the kernel, added where it falls."""
        group, (n, c, h, w), o = concrete((self.group,), "conv_transpose")[0], x.shape, k.shape[1]
        strides, dilations, pads = (concrete(v, "conv_transpose") for v in (self.strides, self.dilations, self.pads))
        _, _, *sizes = concrete(self.shape(x.shape, k.shape), "conv_transpose")
        full = np.zeros((n, group * o, sizes[0] + pads[0] + pads[2], sizes[1] + pads[1] + pads[3]), ring.dtype)
        columns = x.reshape(n, group, c // group, h * w)
        for i, j in itertools.product(*map(range, k.shape[2:])):
            weights = k[:, :, i, j].reshape(1, group, c // group, o).transpose(0, 1, 3, 2)
            part = ring.matmul(weights, columns).reshape(n, group * o, h, w)
            place = tuple(
                slice(a * d, a * d + (size - 1) * s + 1, s)
                for a, d, size, s in zip((i, j), dilations, (h, w), strides, strict=True)
            )
            full[(slice(None), slice(None), *place)] = ring.add(full[(slice(None), slice(None), *place)], part)
        return full[:, :, pads[0] : pads[0] + sizes[0], pads[1] : pads[1] + sizes[1]]

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each place of the kernel and input."""
        return 2 * product(shapes[0]) * product(shapes[1][1:])

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Two window axes; the bias is an `add`."""
        x, k, bias = (*node.inputs, None)[:3]
        given = node.attributes
        if x is None or k is None or x.type.rank != 4:
            raise NotUnderstood("only transposed convolutions with two window axes are declared")
        if "output_shape" in given or given.get("auto_pad", b"NOTSET") not in (b"NOTSET", "NOTSET"):
            raise NotUnderstood("the pads follow from the shape that is asked for")
        strides, dilations, more = (
            tuple(given.get(n, (d, d))) for n, d in (("strides", 1), ("dilations", 1), ("output_padding", 0))
        )
        y = make(cls(strides, tuple(given.get("pads", (0,) * 4)), dilations, int(given.get("group", 1)), more), (x, k))
        return y if bias is None else make(Add(), (y, make(Expand((1,), y.shape), (bias,))))
