"""Laws of what moves elements: how re-layouts and broadcasts compose, cancel and pass each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.declare import CATALOGUE
from superopt.operators.laws.law import Law, Scope, composed, sizes, tensor
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.padding import Pad
from superopt.operators.picks import Every, Slice, Take
from superopt.operators.pointwise import Div, Mul
from superopt.term import Term, variable


def layout(scope: Scope) -> Iterator[Law]:
    """How re-layouts compose, cancel and pass each other."""
    for rank in scope.ranks:
        yield from _of_rank(rank)
    yield from _picks(scope)
    for first, second in scope.reshapes:
        for third, fourth in scope.reshapes:
            if second == third:
                x = tensor("x", first)
                inner, outer = Reshape(sizes("to", second)), Reshape(sizes("then", fourth))
                yield Law("reshape-reshape", outer(inner(x)), outer(x))
    for perm in scope.perms:
        yield from _transposes(perm, scope)


@cache
def _of_rank(rank: int) -> list[Law]:
    with assuming():
        return [*_at(rank)]


def _at(rank: int) -> Iterator[Law]:
    """Concat, slice, reshape and pad of tensors of a rank."""
    x, y, z, w = (tensor(n, rank) for n in "xyzw")
    for a in range(rank):
        c, d = Concat(a), x.shape[a]
        s, m, e = (symbol(n) for n in ("start", "middle", "stop"))
        yield Law("concat-assoc", c(c(x, y), z), c(x, c(y, z)))
        yield Law("concat-slices", c(Slice(a, s, m)(x), Slice(a, m, e)(x)), Slice(a, s, e)(x))
        yield Law("slice-all", Slice(a, 0, d)(x), x)
        yield Law("slice-left", Slice(a, s, e)(c(x, y)), Slice(a, s, e)(x))
        yield Law("slice-right", Slice(a, s, e)(c(x, y)), Slice(a, s - d, e - d)(y))
        p, q = symbol("start2"), symbol("stop2")
        yield Law("slice-slice", Slice(a, p, q)(Slice(a, s, e)(x)), Slice(a, s + p, s + q)(x))
        for b in range(rank):
            if a != b:
                yield Law("concat-concat", c(Concat(b)(x, y), Concat(b)(z, w)), Concat(b)(c(x, z), c(y, w)))
                yield Law("slice-concat", Slice(b, s, e)(c(x, y)), c(Slice(b, s, e)(x), Slice(b, s, e)(y)))
                softmax = CATALOGUE["softmax"](b)  # type: ignore[call-arg]
                yield Law("softmax-concat", softmax(c(x, y)), c(softmax(x), softmax(y)))
                yield Law("softmax-slice", softmax(Slice(a, s, e)(x)), Slice(a, s, e)(softmax(x)))
                yield Law("slice-swap", Slice(a, s, e)(Slice(b, p, q)(x)), Slice(b, p, q)(Slice(a, s, e)(x)))
    yield Law("reshape-same", Reshape(x.shape)(x), x)
    zero = (0,) * (2 * rank)
    if rank:
        yield Law("pad-nothing", Pad(zero)(x), x)
        one, two = sizes("pads", 2 * rank), sizes("more", 2 * rank)
        for a in range(rank):
            beside = tuple(0 if i % rank == a else d for i, d in enumerate(one))
            pad, cut = Pad(beside), Slice(a, symbol("start"), symbol("stop"))
            yield Law("pad-concat", pad(Concat(a)(x, y)), Concat(a)(pad(x), pad(y)))
            yield Law("pad-slice", pad(cut(x)), cut(pad(x)))
            low = symbol("low")
            yield Law("slice-pad", Slice(a, low, low + x.shape[a])(padded(x, a)), x)
        yield Law("pad-pad", Pad(two)(Pad(one)(x)), Pad(tuple(a + b for a, b in zip(one, two, strict=True)))(x))


def padded(x: Term, axis: int) -> Term:
    """Zeros before and after a term, along one axis."""
    rank = x.type.rank
    widths = {axis: symbol("low"), axis + rank: symbol("high")}
    return Pad(tuple(widths.get(i, 0) for i in range(2 * rank)))(x)


def _picks(scope: Scope) -> Iterator[Law]:
    """What takes some elements along an axis passes what is done along others."""
    for rank in scope.ranks:
        x, y = tensor("x", rank), tensor("y", rank)
        picks = list(picked(scope, rank))
        for f in picks:
            for b in range(rank):
                if b != f.axis:
                    s = (symbol("start"), symbol("stop"))
                    yield Law(f"{f.name}-concat", f(Concat(b)(x, y)), Concat(b)(f(x), f(y)))
                    yield Law(f"{f.name}-slice", f(Slice(b, *s)(x)), Slice(b, *s)(f(x)))
            for g in picks:
                if g.axis > f.axis:
                    yield Law(f"{f.name}-pick", f(g(x)), g(f(x)))


def picked(scope: Scope, rank: int) -> Iterator[Every | Take]:
    """The operators of a scope that take some elements along an axis."""
    yield from (Every(a, symbol("step")) for a in range(rank) if "every" in scope.operators)
    for name, structure in sorted(scope.structures, key=str):
        if name == "take" and structure[0] < rank:
            yield Take(*structure)


def _transposes(perm: tuple[int, ...], scope: Scope) -> Iterator[Law]:
    rank = len(perm)
    x, y, move = tensor("x", rank), tensor("y", rank), Transpose(perm)
    if perm == tuple(range(rank)):
        yield Law("transpose-same", move(x), x)
    for first in scope.perms:
        if len(first) == rank:
            yield Law("transpose-transpose", move(Transpose(first)(x)), Transpose(composed(first, perm))(x))
    for to, axis in enumerate(perm):
        s = (symbol("start"), symbol("stop"))
        yield Law("transpose-concat", move(Concat(axis)(x, y)), Concat(to)(move(x), move(y)))
        yield Law("transpose-slice", move(Slice(axis, *s)(x)), Slice(to, *s)(move(x)))
        if "softmax" in CATALOGUE:
            softmax = CATALOGUE["softmax"]
            yield Law("transpose-softmax", move(softmax(axis)(x)), softmax(to)(move(x)))  # type: ignore[call-arg]
    before = sizes("pads", 2 * rank)
    after = (*(before[p] for p in perm), *(before[rank + p] for p in perm))
    yield Law("transpose-pad", move(Pad(before)(x)), Pad(after)(move(x)))
    for axes, r in scope.expands:
        if r == rank:
            v, to_sizes = tensor("x", len(axes)), sizes("to", rank)
            places = [perm.index(a) for a in axes]
            order = tuple(sorted(range(len(axes)), key=places.__getitem__))
            turned = v if list(order) == sorted(order) else Transpose(order)(v)
            moved = Expand(tuple(sorted(places)), tuple(to_sizes[p] for p in perm))
            yield Law("transpose-expand", move(Expand(axes, to_sizes)(v)), moved(turned))


def broadcasts(scope: Scope) -> Iterator[Law]:
    """Repetition: along an axis of the input it moves, along a new one it only changes the count."""
    for axes, rank in scope.expands:
        x, y, to = tensor("x", len(axes)), tensor("y", len(axes)), sizes("to", rank)
        spread = Expand(axes, to)
        if axes == tuple(range(rank)):
            yield Law("expand-same", Expand(axes, x.shape)(x), x)
        for a in range(rank):
            s, e = symbol("start"), symbol("stop")
            cut = Expand(axes, tuple(e - s if i == a else d for i, d in enumerate(to)))
            more = Expand(axes, tuple(symbol("more") if i == a else d for i, d in enumerate(to)))
            sum_ = Expand(axes, tuple(d + symbol("more") if i == a else d for i, d in enumerate(to)))
            if a in axes:
                k = axes.index(a)
                yield Law("expand-slice", Slice(a, s, e)(spread(x)), cut(Slice(k, s, e)(x)))
                yield Law("expand-concat", Concat(a)(spread(x), more(y)), sum_(Concat(k)(x, y)))
                wide = padded(spread(x), a)
                yield Law("expand-pad", wide, Expand(axes, wide.shape)(padded(x, k)))
            else:
                yield Law("expand-slice", Slice(a, s, e)(spread(x)), cut(x))
                yield Law("expand-concat", Concat(a)(spread(x), more(x)), sum_(x))
        yield from _padded_factors(axes, rank)
        yield from _repeated_before(axes, rank, scope)
        for inner, r in scope.expands:
            if r == len(axes):
                v = tensor("x", len(inner))
                both = Expand(tuple(axes[i] for i in inner), to)
                yield Law("expand-expand", spread(Expand(inner, sizes("inner", r))(v)), both(v))


def _repeated_before(axes: tuple[int, ...], rank: int, scope: Scope) -> Iterator[Law]:
    """What is repeated along axes before its own stays so where these are parted or joined."""
    kept = len(axes)
    if axes == tuple(range(rank - kept, rank)) and kept < rank:
        x = tensor("x", kept)
        for first, second in scope.reshapes:
            if first == rank and second > kept:
                then = (*sizes("then", second - kept), *x.shape)
                spread = Expand(axes, (*sizes("to", rank - kept), *x.shape))(x)
                after = Expand(tuple(range(second - kept, second)), then)(x)
                yield Law("expand-reshape", Reshape(then)(spread), after)


def _padded_factors(axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """Zeros stay zeros under factors that are repeated along all axes that are padded."""
    if rank:
        pad = Pad(tuple(0 if i % rank in axes else d for i, d in enumerate(sizes("pads", 2 * rank))))
        x = tensor("x", rank)
        by, wide = variable("y", tuple(x.shape[a] for a in axes)), pad(x)
        for of in (Mul(), Div()):
            yield Law("pad-factor", pad(of(x, Expand(axes, x.shape)(by))), of(wide, Expand(axes, wide.shape)(by)))
