"""Every declared operator applied to inputs of symbolic sizes, in all its structures at ranks up to four."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cache, partial

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators import CATALOGUE
from superopt.operators.argmax import ArgMax
from superopt.operators.attention.dot_product import Attention, MaskedAttention
from superopt.operators.attention.flat_heads import AttentionOfFlatRows, MaskedAttentionOfFlatRows
from superopt.operators.attention.grouped import GroupedAttention, MaskedGroupedAttention
from superopt.operators.attention.heads import AttentionOfRows, MaskedAttentionOfRows
from superopt.operators.attention.rotary import Rotary
from superopt.operators.clip import Clip
from superopt.operators.columns import Columns, Elements
from superopt.operators.composite_reductions import LogSum, LogSumExp, Norm1, Norm2, SumSquare
from superopt.operators.constant import Band, Count, Matrix, Scalar
from superopt.operators.conv import Conv
from superopt.operators.fourier import Dft, Stft
from superopt.operators.instances import small_instances
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.lookups import Lookups
from superopt.operators.matmul import MatMul
from superopt.operators.nearest import Nearest
from superopt.operators.normalize import BatchNorm, Gemm, Lrn, Softmax
from superopt.operators.norms import GroupNorm, InstanceNorm, LayerNorm, LogSoftmax, RmsNorm
from superopt.operators.padding import MODES, Pad, PadAround
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pipelines import Imputer, Normalizer, Scaler
from superopt.operators.places import PLACES
from superopt.operators.rearrange import Gather
from superopt.operators.reduce import AvgPool, GlobalAvgPool, MaxPool
from superopt.operators.reductions import Largest, Mean, Reduction, Smallest, Sum
from superopt.operators.resampling import Cubic, Weighing
from superopt.operators.rows import Rows
from superopt.operators.symbolic import conditions
from superopt.operators.transposed import ConvTranspose
from superopt.operators.waves import Waves
from superopt.term import Term, variable

RANKS = range(1, 5)
REDUCTIONS = (Sum, Mean, Largest, Smallest, SumSquare, Norm1, Norm2, LogSum, LogSumExp)
WINDOW = (("s", "t"), ("p", "q", "u", "v"), ("d", "e"))


@cache
def general_terms(name: str) -> tuple[Term, ...]:
    """The operator in all its structures, over variables x, y, z … whose sizes are symbols. Raises `KeyError` for an
    operator that is neither point-wise nor listed here.
    """
    cls = CATALOGUE[name]
    with assuming():
        if cls.pointwise:
            return tuple(cls()(*(_var("xyz"[i], rank) for i in range(cls.arity))) for rank in range(5))
        return tuple(_LISTED[name]())


@cache
def examples(term: Term, count: int, seed: int = 0) -> tuple[Term, ...]:
    """A general term at small sizes; many claims are about the same. Fails where there are none."""
    found = tuple(example for (example,) in small_instances((term,), conditions(term), count, seed))
    assert found, f"no shape fits {term}"
    return found


def _transposes() -> Iterator[Term]:
    for rank in RANKS:
        yield from (Transpose(perm)(_var("x", rank)) for perm in itertools.permutations(range(rank)))


def _reshapes() -> Iterator[Term]:
    for a, b in itertools.product(RANKS, RANKS):
        yield Reshape(_dims("to", b))(_var("x", a))


def _rows() -> Iterator[Term]:
    for rank in RANKS:
        yield from (Rows(axis)(_var("x", rank)) for axis in range(rank + 1))


def _in_pairs() -> Iterator[Term]:
    yield from (variable("i", (*_dims("i", rank), 2)) for rank in range(3))


def _dft() -> Iterator[Term]:
    for rank, parts, inverse in itertools.product((1, 2, 3), (1, 2), (0, 1)):
        x = variable("x", (*_dims("x", rank), parts))
        for axis in range(rank):
            yield Dft(axis, inverse)(x)
            if parts == 1 and not inverse:
                yield Dft(axis, onesided=1)(x)


def _expands() -> Iterator[Term]:
    for rank in RANKS:
        for count in range(rank + 1):
            for axes in itertools.combinations(range(rank), count):
                yield Expand(axes, _dims("to", rank))(_var("x", count))


def _along_axes() -> Iterator[tuple[int, int]]:
    yield from ((rank, axis) for rank in RANKS for axis in range(rank))


def _convolutions() -> Iterator[Term]:
    s, p, d = (tuple(map(symbol, names)) for names in WINDOW)
    yield Conv(s, p, d, 1)(_var("x", 4), _var("y", 4))
    yield Conv(s, p, d, symbol("group"))(_var("x", 4), _var("y", 4))
    yield Conv(_dims("s", 3), _dims("p", 6), _dims("d", 3))(_var("x", 5), _var("y", 5))


def _transposed() -> Iterator[Term]:
    s, p, d = (tuple(map(symbol, names)) for names in WINDOW)
    yield ConvTranspose(s, p, d, 1, (symbol("a"), symbol("b")))(_var("x", 4), _var("y", 4))
    yield ConvTranspose(s, p, d, symbol("group"))(_var("x", 4), _var("y", 4))
    for rank in (3, 5):
        more = [_dims(n, c * (rank - 2)) for n, c in (("s", 1), ("p", 2), ("d", 1), ("m", 1))]
        yield ConvTranspose(*more[:3], 1, more[3])(_var("x", rank), _var("y", rank))


def _masked_attention() -> Iterator[Term]:
    yield from (MaskedAttention(0.5, truth)(*(_var(n, 4) for n in "xyzm")) for truth in (0, 1))


def _pools() -> Iterator[tuple[tuple[Dim, ...], ...]]:
    s, p, d = (tuple(map(symbol, names)) for names in WINDOW)
    yield (_dims("kernel", 2), s, p, d)
    yield (_dims("kernel", 3), _dims("s", 3), _dims("p", 6), _dims("d", 3))


def _gemms() -> Iterator[Term]:
    for a, b in itertools.product((0, 1), (0, 1)):
        yield Gemm(0.5, 2.0, a, b)(_var("x", 2), _var("y", 2), _var("z", 2))


def _batchnorm() -> Iterable[Term]:
    return [BatchNorm()(_var("x", rank), *(_var(n, 1) for n in "abcd")) for rank in (2, 3, 4)]


def _reductions(cls: type[Reduction]) -> Iterator[Term]:
    for rank in RANKS:
        for count in range(1, rank + 1):
            for axes in itertools.combinations(range(rank), count):
                yield cls(axes)(_var("x", rank))  # type: ignore[call-arg]


def _over_last(cls: type[LayerNorm] | type[RmsNorm]) -> Iterator[Term]:
    for rank, axis in _along_axes():
        more = ("y", "z")[: cls.arity - 1]
        yield cls(axis)(_var("x", rank), *(_var(n, rank - axis) for n in more))


def _rotary() -> Iterator[Term]:
    batch, heads, rows, half = map(symbol, ("batch", "heads", "rows", "half"))
    x = variable("x", (batch, heads, rows, 2 * half))
    yield Rotary()(x, *(variable(n, (batch, rows, half)) for n in "cs"))


_LISTED = {
    **{cls.name: partial(_reductions, cls) for cls in REDUCTIONS},
    "conv_transpose": _transposed,
    "cubic": lambda: [Cubic(_dims("to", 2), by)(_var("x", 4)) for by in PLACES],
    "nearest": lambda: [Nearest(_dims("to", r - 2))(_var("x", r)) for r in (3, 4, 5)],
    "interpolate": lambda: [Interpolate(_dims("to", r - 2), by)(_var("x", r)) for r in (3, 4, 5) for by in PLACES],
    "attention": lambda: [Attention(0.5)(*(_var(n, 4) for n in "xyz"))],
    "masked_attention": _masked_attention,
    "grouped_attention": lambda: [GroupedAttention(0.5)(*(_var(n, 4) for n in "xyz"))],
    "masked_grouped_attention": lambda: [MaskedGroupedAttention(0.5)(*(_var(n, 4) for n in "xyzm"))],
    "attention_of_rows": lambda: [AttentionOfRows(symbol("heads"), 0.5)(*(_var(n, 3) for n in "xyz"))],
    "masked_attention_of_rows": lambda: [
        MaskedAttentionOfRows(symbol("heads"), 0.5)(*(_var(n, 3) for n in "xyz"), _var("m", 4))
    ],
    "attention_of_flat_rows": lambda: [
        AttentionOfFlatRows(symbol("heads"), symbol("batch"), 0.5)(*(_var(n, 2) for n in "xyz"))
    ],
    "masked_attention_of_flat_rows": lambda: [
        MaskedAttentionOfFlatRows(symbol("heads"), symbol("batch"), 0.5)(*(_var(n, 2) for n in "xyz"), _var("m", 4))
    ],
    "every": lambda: [Every(axis, symbol("step"))(_var("x", rank)) for rank, axis in _along_axes()],
    "clip": lambda: [Clip()(_var("x", rank), _var("y", 0), _var("z", 0)) for rank in (1, 3)],
    "gather": lambda: [Gather(axis)(_var("x", rank), _var("i", r)) for rank, axis in _along_axes() for r in range(3)],
    "lookups": lambda: [Lookups((2, 3))(variable("x", (5, symbol("width"))), i) for i in _in_pairs()],
    "columns": lambda: [Columns(i)(_var("x", rank)) for rank in (2, 3) for i in ((0,), (1, 0, 1))],
    "elements": lambda: [Elements(axis)(_var("x", rank), _var("i", rank)) for rank, axis in _along_axes()],
    "take": lambda: [Take(axis, i)(_var("x", rank)) for rank, axis in _along_axes() for i in ((0,), (1, 0, 1))],
    "layernorm": lambda: _over_last(LayerNorm),
    "rmsnorm": lambda: _over_last(RmsNorm),
    "rotary": _rotary,
    "instancenorm": lambda: [InstanceNorm()(_var("x", r), _var("a", 1), _var("b", 1)) for r in (3, 4)],
    "groupnorm": lambda: [GroupNorm(g)(_var("x", r), _var("a", 1), _var("b", 1)) for g in (1, 2) for r in (3, 4)],
    "argmax": lambda: [ArgMax(axis)(_var("x", rank)) for rank, axis in _along_axes()],
    "scaler": lambda: [Scaler()(_var("x", 2), _var("a", 1), _var("b", 1))],
    "imputer": lambda: [op(_var("x", 2), _var("a", 1)) for op in (Imputer(), Imputer(1, 2.0))],
    "normalizer": lambda: [Normalizer(norm)(_var("x", 2)) for norm in ("L1", "L2")],
    "log_softmax": lambda: [LogSoftmax(axis)(_var("x", rank)) for rank, axis in _along_axes()],
    "transpose": _transposes,
    "reshape": _reshapes,
    "rows": _rows,
    "expand": _expands,
    "concat": lambda: [Concat(axis)(_var("x", rank), _var("y", rank)) for rank, axis in _along_axes()],
    "slice": lambda: [Slice(axis, symbol("start"), symbol("stop"))(_var("x", rank)) for rank, axis in _along_axes()],
    "pad": lambda: [Pad(_dims("pads", 2 * rank))(_var("x", rank)) for rank in RANKS],
    "pad_around": lambda: [PadAround(_dims("pads", 2 * r), mode)(_var("x", r)) for r in RANKS for mode in MODES],
    "matmul": lambda: [MatMul()(_var("x", rank), _var("y", rank)) for rank in (2, 3, 4)],
    "conv": _convolutions,
    "maxpool": lambda: [MaxPool(*sizes)(_var("x", 2 + len(sizes[0]))) for sizes in _pools()],
    "avgpool": lambda: [AvgPool(*s, whole)(_var("x", 2 + len(s[0]))) for s in _pools() for whole in (0, 1)],
    "global_avgpool": lambda: [GlobalAvgPool()(_var("x", 4))],
    "softmax": lambda: [Softmax(axis)(_var("x", rank)) for rank, axis in _along_axes()],
    "batchnorm": _batchnorm,
    "lrn": lambda: [Lrn(size, 1.5, beta, 2.0)(_var("x", 4)) for size in (1, 2, 3) for beta in (0.25, 0.5, 0.75, 1.0)],
    "gemm": _gemms,
    "scalar": lambda: [Scalar(0.1)()],
    "matrix": lambda: [Matrix(2, (1, -2, 3, 0, 5, 7))()],
    "count": lambda: [Count(symbol("n"), symbol("start"))()],
    "waves": lambda: [Waves(symbol("n"), symbol("m"), parts, back)() for parts in (1, 2) for back in (0, 1)],
    "dft": _dft,
    "stft": lambda: [Stft(symbol("s"), o)(variable("x", (*_dims("x", 2), 1)), _var("w", 1)) for o in (0, 1)],
    "weighing": lambda: [Weighing(symbol("m"), symbol("n"), by, a)() for by in PLACES for a in (0.0, -0.75)],
    "band": lambda: [Band(symbol("n"), symbol("a"), symbol("b"))()],
}


def _var(name: str, rank: int) -> Term:
    return variable(name, _dims(name, rank))


def _dims(name: str, count: int) -> tuple[Dim, ...]:
    return tuple(symbol(f"{name}{i}") for i in range(count))
