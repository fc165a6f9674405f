"""Laws of reductions: how they pass re-layouts, sums and factors, and each other."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.dim import symbol
from superopt.operators.declare import CATALOGUE
from superopt.operators.law import Law, Scope, tensor
from superopt.operators.layout import Concat, Expand, Slice, Transpose
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.reductions import Reduction
from superopt.term import make, variable


def reductions(scope: Scope) -> Iterator[Law]:
    """At the axes and ranks of a scope."""
    for name, axes, rank in sorted(scope.reductions):
        cls = CATALOGUE[name]
        assert issubclass(cls, Reduction)
        yield from _along(cls, axes, rank)
        if cls.linear:
            yield from _linear(cls, axes, rank)
        for perm in scope.perms:
            if len(perm) == rank:
                yield _transposed(cls, axes, perm)
        for other, more, inner in sorted(scope.reductions):
            if other == name and cls.joins is not None and inner == rank - len(axes):
                kept = [a for a in range(rank) if a not in axes]
                both = cls.of(tuple(sorted([*axes, *(kept[a] for a in more)])))
                x = tensor("x", rank)
                yield Law(f"{name}-{name}", cls.of(more)(cls.of(axes)(x)), both(x))


def _along(cls: type[Reduction], axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """Concat and slice pass along an axis that stays; along one that goes, parts are joined."""
    f, x, y = cls.of(axes), tensor("x", rank), tensor("y", rank)
    kept = [a for a in range(rank) if a not in axes]
    for out, a in enumerate(kept):
        s = (symbol("start"), symbol("stop"))
        yield Law(f"{cls.name}-concat", f(Concat(a)(x, y)), Concat(out)(f(x), f(y)))
        yield Law(f"{cls.name}-slice", f(Slice(a, *s)(x)), Slice(out, *s)(f(x)))
    for a in axes if cls.joins is not None else ():
        assert cls.joins is not None
        yield Law(f"{cls.name}-concat-joined", f(Concat(a)(x, y)), make(CATALOGUE[cls.joins](), (f(x), f(y))))


def _linear(cls: type[Reduction], axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """Sums pass, and factors that are equal along what is reduced."""
    f, x, y = cls.of(axes), tensor("x", rank), tensor("y", rank)
    yield Law(f"{cls.name}-add", f(Add()(x, y)), Add()(f(x), f(y)))
    kept = tuple(a for a in range(rank) if a not in axes)
    v, number, whole = variable("v", tuple(x.shape[a] for a in kept)), variable("a", ()), f(x)
    for by in (Mul(), Div()):
        yield Law(
            f"{cls.name}-scale", f(by(x, Expand((), x.shape)(number))), by(whole, Expand((), whole.shape)(number))
        )
        if kept:
            yield Law(f"{cls.name}-factor", f(by(x, Expand(kept, x.shape)(v))), by(whole, v))


def _transposed(cls: type[Reduction], axes: tuple[int, ...], perm: tuple[int, ...]) -> Law:
    """Of transposed elements it is transposed, if at all, of what stays."""
    x = tensor("x", len(perm))
    order = [perm[a] for a in range(len(perm)) if a not in axes]
    whole = cls.of(tuple(sorted(perm[a] for a in axes)))(x)
    turned = tuple(sorted(order).index(a) for a in order)
    right = whole if turned == tuple(range(len(turned))) else Transpose(turned)(whole)
    return Law(f"transpose-{cls.name}", cls.of(axes)(Transpose(perm)(x)), right)
