"""For each operator, how its inputs and attributes are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from benchmarks.random_values import LARGEST_RANK, NUMBERS, TRUTH, WHOLE, Values, ints
from superopt.errors import ShapeError
from superopt.operators.constant import Scalar
from superopt.operators.padding import MODES
from superopt.operators.places import PLACES
from superopt.term import Term, make

_LEAST_RANK = 1
"""Of what is reshaped to, padded and expanded to: a vector of no sizes is empty, and what reads one is opaque."""
Built: TypeAlias = tuple[tuple[Term, ...], dict[str, Any]]


def _anything(d: Values, least: int = 0) -> Term:
    return d.any(least, dtype=str(d.rng.choice(["", TRUTH, WHOLE], p=[0.8, 0.1, 0.1])))


def _transpose(d: Values) -> Built:
    x = _anything(d)
    return (x,), {"perm": ints(d.rng.permutation(x.type.rank))}


def _rows(d: Values) -> Built:
    x = _anything(d)
    return (x,), {"axis": d.integer(0, x.type.rank)}


def _reshape(d: Values) -> Built:
    x = _anything(d)
    rest, to = int(np.prod(ints(x.shape))), list[int]()
    for _ in range(d.integer(0, 4)):
        to.append(int(d.rng.choice([n for n in range(1, 6) if rest % n == 0])))
        rest //= to[-1]
    to += [rest] if rest > 1 or len(to) < _LEAST_RANK or d.rng.random() < 0.3 else []
    return (x,), {"to": ints(d.rng.permutation(to))}


def _concat(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    other = tuple(d.integer(1, 4) if a == axis and d.rng.random() < 0.5 else s for a, s in enumerate(x.shape))
    y = d.like(other, x.type.dtype)
    return ((x, y) if d.rng.random() < 0.5 else (y, x)), {"axis": axis}


def _slice(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    size = ints(x.shape)[axis]
    start = d.integer(0, size - 1)
    return (x,), {"axis": axis, "start": start, "stop": d.integer(start + 1, size)}


def _pad(d: Values) -> Built:
    x = _anything(d, _LEAST_RANK)
    return (x,), {"pads": d.several(2 * x.type.rank, 0, 2)}


def _pad_around(d: Values) -> Built:
    inputs, given = _pad(d)
    return inputs, {**given, "mode": str(d.rng.choice(MODES))}


def _expand(d: Values) -> Built:
    x, to = _anything(d), [d.integer(1, 5) for _ in range(LARGEST_RANK)]
    rank = d.integer(max(x.type.rank, _LEAST_RANK), LARGEST_RANK)
    axes = ints(sorted(d.rng.choice(rank, x.type.rank, replace=False)))
    fit = dict(zip(axes, x.shape, strict=True))
    return (x,), {"axes": axes, "to": tuple(fit.get(a, s) for a, s in enumerate(to[:rank]))}


def _take(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    return (x,), {"axis": axis, "indices": ints(d.rng.integers(0, ints(x.shape)[axis], d.integer(1, 4)))}


def _matmul(d: Values) -> Built:
    x = d.any(2)
    y = d.like((*x.shape[:-2], x.shape[-1], d.integer(1, 5)), x.type.dtype)
    return (x, y), {}


def _window(d: Values, count: int) -> dict[str, Any]:
    return {"strides": d.several(count, 1, 2), "pads": d.several(2 * count, 0, 2), "dilations": d.several(count, 1, 2)}


def _conv(d: Values) -> Built:
    x = d.any(4, 5)
    channels, axes = ints(x.shape)[1], x.type.rank - 2
    group = int(d.rng.choice([g for g in range(1, 6) if channels % g == 0]))
    kernel = (group * d.integer(1, 3), channels // group, *(d.integer(1, 3) for _ in range(axes)))
    return (x, d.like(kernel, x.type.dtype)), {**_window(d, axes), "group": group}


def _conv_transpose(d: Values) -> Built:
    x = d.any(3)
    channels, axes = ints(x.shape)[1], x.type.rank - 2
    group = int(d.rng.choice([g for g in range(1, 6) if channels % g == 0]))
    given = {**_window(d, axes), "group": group}
    # ONNX asks that further zeros be fewer than the stride or the dilation.
    more = [max(s, e) - 1 for s, e in zip(given["strides"], given["dilations"], strict=True)]
    kernel = (channels, *(d.integer(1, 3) for _ in range(axes + 1)))
    return (x, d.like(kernel, x.type.dtype)), {**given, "more": tuple(d.integer(0, m) for m in more)}


def _interpolate(d: Values) -> Built:
    x = d.any(3)
    to = tuple(d.integer(1, 3 * size) for size in ints(x.shape[2:]))
    return (x,), {"to": to, "by": str(d.rng.choice(PLACES))}


def _nearest(d: Values) -> Built:
    x = d.any(3)
    to = tuple(d.integer(1, 3 * size) for size in ints(x.shape[2:]))
    for size, wanted in zip(ints(x.shape[2:]), to, strict=True):
        shared = math.gcd(size, wanted)
        if size != wanted and shared > 1 and (size // shared).bit_count() > 1:
            raise ShapeError("of sizes that are numbers none is read where rounding decides which element is nearest")
    return (x,), {"to": to}


def _cubic(d: Values) -> Built:
    x = d.any(4, 4)
    to = tuple(d.integer(1, 3 * size) for size in ints(x.shape[2:]))
    return (x,), {"to": to, "by": str(d.rng.choice(PLACES)), "a": -0.5, "within": d.integer(0, 1)}


def _waves(d: Values) -> Built:
    return (), {"n": d.integer(1, 6), "to": d.integer(1, 6), "parts": d.integer(1, 2), "back": d.integer(0, 1)}


def _dft(d: Values) -> Built:
    x = d.any(1, LARGEST_RANK - 1)
    parts = d.integer(1, 2)
    inverse = d.integer(0, 1)
    onesided = d.integer(0, 1) if parts == 1 and not inverse else 0
    rows = d.like((*x.shape, parts), x.type.dtype)
    return (rows,), {"axis": d.integer(0, x.type.rank - 1), "inverse": inverse, "onesided": onesided}


def _stft(d: Values) -> Built:
    x = d.any(2, 2)
    signal = d.like((*x.shape, 1), x.type.dtype)
    window = d.like((d.integer(1, ints(x.shape)[1]),), x.type.dtype)
    return (signal, window), {"step": d.integer(1, 3), "onesided": d.integer(0, 1)}


def _weighing(d: Values) -> Built:
    return (), {"to": d.integer(1, 6), "n": d.integer(1, 6), "by": str(d.rng.choice(PLACES)), "a": -0.75}


def _gather(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    size = ints(x.shape)[axis]
    return (x, d.indices(d.several(d.integer(0, 2), 1, 4), size)), {"axis": axis}


def _elements(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    sizes = list(ints(x.shape))
    size, sizes[axis] = sizes[axis], d.integer(1, 4)
    return (x, d.indices(tuple(sizes), size)), {"axis": axis}


def _every(d: Values) -> Built:
    x = _anything(d, 1)
    axis = d.integer(0, x.type.rank - 1)
    return (x,), {"axis": axis, "step": d.integer(1, 3)}


def _attention(d: Values) -> Built:
    q = d.any(4, 4)
    keys = (*q.shape[:2], d.integer(1, 5), q.shape[3])
    values = (*keys[:3], d.integer(1, 5))
    return (q, d.like(keys, q.type.dtype), d.like(values, q.type.dtype)), {}


def _masked_attention(d: Values) -> Built:
    (q, k, v), _ = _attention(d)
    truth, shape = d.integer(0, 1), (*q.shape[:3], k.shape[2])
    mask = d.leaf(shape, TRUTH) if truth else d.like(shape, q.type.dtype)
    if truth and not d.feed[mask].any(-1).all():
        raise ShapeError("onnxruntime gives no number where ONNX says 0: in a row that attends to nothing")
    return (q, k, v, mask), {"truth": truth}


def _grouped_attention(d: Values) -> Built:
    (q, k, v), _ = _attention(d)
    heads = d.integer(1, 3) * ints(k.shape)[1]
    return (d.like((q.shape[0], heads, *q.shape[2:]), q.type.dtype), k, v), {}


def _masked_grouped_attention(d: Values) -> Built:
    (q, k, v), _ = _grouped_attention(d)
    return (q, k, v, d.like((*q.shape[:3], k.shape[2]), q.type.dtype)), {}


def _rotary(d: Values) -> Built:
    batch, heads, rows, half = d.several(4, 1, 3)
    x, table = (batch, heads, rows, 2 * half), (batch, rows, half)
    return tuple(d.like(shape, "float32") for shape in (x, table, table)), {}  # ONNX has none of doubles


def _attention_of_rows(d: Values) -> Built:
    (q, k, v), _ = _attention(d)
    heads = d.integer(1, 3)
    flat = [d.like((t.shape[0], t.shape[2], heads * t.shape[3]), q.type.dtype) for t in (q, k, v)]
    return tuple(flat), {"heads": heads}


def _masked_attention_of_rows(d: Values) -> Built:
    (q, k, v), given = _attention_of_rows(d)
    return (q, k, v, d.like((q.shape[0], given["heads"], q.shape[1], k.shape[1]), q.type.dtype)), given


def _attention_of_flat_rows(d: Values) -> Built:
    stacked, given = _attention_of_rows(d)
    flat = [d.like((t.shape[0] * t.shape[1], t.shape[2]), t.type.dtype) for t in stacked]
    return tuple(flat), {**given, "batch": stacked[0].shape[0]}


def _masked_attention_of_flat_rows(d: Values) -> Built:
    (q, k, v), given = _attention_of_flat_rows(d)
    rows, batch = [ints(t.shape)[0] for t in (q, k)], int(given["batch"])
    mask = (batch, given["heads"], *(r // batch for r in rows))
    return (q, k, v, d.like(mask, q.type.dtype)), given


def _pool(d: Values) -> Built:
    x = d.any(3)
    count = x.type.rank - 2
    return (x,), {**_window(d, count), "kernel": tuple(d.integer(1, 3) for _ in range(count))}


def _along(d: Values) -> Built:
    x = d.any(1)
    return (x,), {"axis": d.integer(0, x.type.rank - 1)}


def _over_last(d: Values, more: int) -> Built:
    (x,), given = _along(d)
    return (x, *(d.like(x.shape[given["axis"] :], x.type.dtype) for _ in range(more))), given


def _by_channel(d: Values, least: int, more: int) -> Built:
    x = d.any(least)
    if least > 2 and max(ints(x.shape[2:])) == 1:
        raise ShapeError("one element less its mean is rounding alone")
    return (x, *(d.like(x.shape[1:2], x.type.dtype) for _ in range(more))), {}


def _batchnorm(d: Values) -> Built:
    (*others, variance), given = _by_channel(d, 2, 4)
    return (*others, d.positive(variance)), given


def _groupnorm(d: Values) -> Built:
    inputs, given = _by_channel(d, 3, 2)
    channels = ints(inputs[0].shape)[1]
    return inputs, {**given, "groups": int(d.rng.choice([g for g in range(1, 6) if channels % g == 0]))}


def _lrn(d: Values) -> Built:
    """ONNX's reference evaluator sums over channels below the size of the batch only, so there are as many of both."""
    x = d.any(4, 4) if d.rng.random() < 0.5 else d.leaf((n := d.integer(1, 5), n, *d.several(2, 1, 5)), d.floating())
    if x.shape[0] != x.shape[1]:
        raise ShapeError("lrn: batch and channels differ")
    return (x,), {"size": d.integer(1, 5)}


def _gemm(d: Values) -> Built:
    a = d.any(2, 2)
    trans = (d.integer(0, 1), d.integer(0, 1))
    m, k = a.shape[::-1] if trans[0] else a.shape
    n = d.integer(1, 5)
    b, c = d.like((n, k) if trans[1] else (k, n), a.type.dtype), d.like((m, n), a.type.dtype)
    return (a, b, c), {"trans_a": trans[0], "trans_b": trans[1]}


def _clip(d: Values) -> Built:
    x = d.any()
    bounds = [make(Scalar(s * float(d.rng.choice(NUMBERS)))) for s in (-1.0, 1.0)]
    return (x, *(b if d.rng.random() < 0.7 else d.like((), x.type.dtype) for b in bounds)), {}


def _band(d: Values) -> Built:
    return (), {"n": d.integer(1, 5), "below": d.integer(0, 3), "above": d.integer(0, 3)}


def _matrix(d: Values) -> Built:
    columns = d.integer(1, 4)
    return (), {"columns": columns, "entries": ints(d.rng.integers(-3, 4, columns * d.integer(1, 4)))}


BUILD: dict[str, Callable[[Values], Built]] = {
    "transpose": _transpose,
    "reshape": _reshape,
    "rows": _rows,
    "concat": _concat,
    "slice": _slice,
    "pad": _pad,
    "pad_around": _pad_around,
    "expand": _expand,
    "take": _take,
    "gather": _gather,
    "elements": _elements,
    "every": _every,
    "interpolate": _interpolate,
    "nearest": _nearest,
    "cubic": _cubic,
    "attention": _attention,
    "masked_attention": _masked_attention,
    "grouped_attention": _grouped_attention,
    "masked_grouped_attention": _masked_grouped_attention,
    "attention_of_rows": _attention_of_rows,
    "masked_attention_of_rows": _masked_attention_of_rows,
    "attention_of_flat_rows": _attention_of_flat_rows,
    "masked_attention_of_flat_rows": _masked_attention_of_flat_rows,
    "scalar": lambda d: ((), {}),
    "band": _band,
    "waves": _waves,
    "dft": _dft,
    "stft": _stft,
    "weighing": _weighing,
    "matrix": _matrix,
    "count": lambda d: ((), {"n": d.integer(1, 5), "start": d.integer(0, 3)}),
    "matmul": _matmul,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "clip": _clip,
    "maxpool": _pool,
    "avgpool": _pool,
    "global_avgpool": lambda d: ((d.any(4, 4),), {}),
    "softmax": _along,
    "log_softmax": _along,
    "batchnorm": _batchnorm,
    "lrn": _lrn,
    "gemm": _gemm,
    "layernorm": lambda d: _over_last(d, 2),
    "rmsnorm": lambda d: _over_last(d, 1),
    "rotary": _rotary,
    "instancenorm": lambda d: _by_channel(d, 3, 2),
    "groupnorm": _groupnorm,
}
"""The inputs and the attributes of the operators that are neither point-wise nor reductions."""
