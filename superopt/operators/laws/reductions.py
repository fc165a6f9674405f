"""Laws of reductions: how they pass re-layouts, sums and factors, and each other."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.dim import symbol
from superopt.operators.constant import Scalar
from superopt.operators.declare import CATALOGUE
from superopt.operators.differences import Neg
from superopt.operators.laws.law import Law, Scope, sizes, tensor
from superopt.operators.layout import Concat, Expand, Transpose
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Div, Mul, Relu
from superopt.operators.reductions import Largest, Mean, Reduction, Smallest, Sum
from superopt.term import Fact, Term, make, variable


def reductions(scope: Scope) -> Iterator[Law]:
    """At the axes and ranks of a scope."""
    for name, axes, rank in sorted(scope.reductions):
        cls = CATALOGUE[name]
        assert issubclass(cls, Reduction)
        yield from _along(cls, axes, rank)
        if cls.linear:
            yield from _linear(cls, axes, rank)
        if cls.of_equal_is_each:
            kept = _kept(axes, rank)
            x = tensor("x", len(kept))
            yield Law(f"{name}-expand", cls.of(axes)(Expand(kept, sizes("to", rank))(x)), x)
        if cls.monotone:
            yield from _monotone(cls, axes, rank)
        if cls is Mean:
            yield from _of_halves(axes, rank)
            x = tensor("x", rank)
            yield Law("sum-mean", Sum(axes)(Expand(_kept(axes, rank), x.shape)(Mean(axes)(x))), Sum(axes)(x))
        if len(axes) == 1 and "softmax" in scope.operators:
            yield from _of_softmax(cls, axes[0], rank)
        for perm in scope.perms:
            if len(perm) == rank:
                yield _transposed(cls, axes, perm)
        yield from _nested(cls, axes, rank, scope)


def _kept(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(a for a in range(rank) if a not in axes)


def _spread(x: Term, like: Term) -> Term:
    """A number at every place of a tensor; of one without axes, the number."""
    return Expand((), like.shape)(x) if like.shape else x


def _nested(cls: type[Reduction], axes: tuple[int, ...], rank: int, scope: Scope) -> Iterator[Law]:
    """What is reduced again: along all axes at once; a mean of sums is a sum of means."""
    x, kept = tensor("x", rank), _kept(axes, rank)
    for other, more, inner in sorted(scope.reductions):
        if inner != rank - len(axes) or not more:
            continue
        first = tuple(kept[a] for a in more)
        if other == cls.name and cls.nests:
            both = cls.of(tuple(sorted([*axes, *first])))
            yield Law(f"{cls.name}-{cls.name}", cls.of(more)(cls.of(axes)(x)), both(x))
        elif cls is Sum and other == Mean.name:
            then = tuple(_kept(first, rank).index(a) for a in axes)
            yield Law("mean-sum", Mean(more)(Sum(axes)(x)), Sum(then)(Mean(first)(x)))


def _along(cls: type[Reduction], axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """Concat and slice pass along an axis that stays; along one that goes, parts are joined."""
    f, x, y = cls.of(axes), tensor("x", rank), tensor("y", rank)
    for out, a in enumerate(_kept(axes, rank)):
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
    yield Law(f"{cls.name}-neg", f(Neg()(x)), Neg()(f(x)))
    kept = _kept(axes, rank)
    v, number, whole = variable("v", tuple(x.shape[a] for a in kept)), variable("a", ()), f(x)
    for by in (Mul(), Div()):
        yield Law(f"{cls.name}-scale", f(by(x, Expand((), x.shape)(number))), by(whole, _spread(number, whole)))
        if kept:
            yield Law(f"{cls.name}-factor", f(by(x, Expand(kept, x.shape)(v))), by(whole, v))


def _monotone(cls: type[Reduction], axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """What grows with its argument passes; what falls makes the other extreme of it."""
    f, x, kept = cls.of(axes), tensor("x", rank), _kept(axes, rank)
    other: type[Reduction] = Smallest if cls is Largest else Largest
    whole = f(x)
    yield Law(f"{cls.name}-neg", f(Neg()(x)), Neg()(other.of(axes)(x)))
    yield Law(f"{cls.name}-relu", f(Relu()(x)), Relu()(whole))
    yield Law(f"{cls.name}-twice", f(Add()(x, x)), Add()(whole, whole))
    v, number = variable("v", tuple(x.shape[a] for a in kept)), variable("a", ())
    for by, at, wide in ((v, kept, v), (number, (), _spread(number, whole))):
        spread = Expand(at, x.shape)(by)
        yield Law(f"{cls.name}-shift", f(Add()(x, spread)), Add()(whole, wide))
        nonnegative = (Fact("nonnegative", by),)
        yield Law(f"{cls.name}-scale", f(Mul()(x, spread)), Mul()(whole, wide), facts=nonnegative)
        if not kept:
            break  # both are numbers


def _of_halves(axes: tuple[int, ...], rank: int) -> Iterator[Law]:
    """The mean of two parts: in any order, and that of their means where they are equally large."""
    f, x, y = Mean(axes), tensor("x", rank), tensor("y", rank)
    alike, half = variable("y", x.shape), _spread(Scalar(0.5)(), f(x))
    for a in axes:
        yield Law("mean-swap", f(Concat(a)(x, y)), f(Concat(a)(y, x)))
        yield Law("mean-twice", f(Concat(a)(x, x)), f(x))
        yield Law("mean-halves", f(Concat(a)(x, alike)), Mul()(Add()(f(x), f(alike)), half))


def _of_softmax(cls: type[Reduction], axis: int, rank: int) -> Iterator[Law]:
    """Parts of a whole add up to 1; so their mean is one number at each size."""
    x, softmax = tensor("x", rank), CATALOGUE["softmax"](axis)  # type: ignore[call-arg]
    f, spread = cls.of((axis,)), Expand((), x.shape)
    whole = f(softmax(x))
    if cls is Sum:
        yield Law("sum-softmax", whole, _spread(Scalar(1.0)(), whole))
    if cls is Mean:
        yield Law("mean-softmax", whole, f(softmax(spread(Scalar(0.0)()))))


def _transposed(cls: type[Reduction], axes: tuple[int, ...], perm: tuple[int, ...]) -> Law:
    """Of transposed elements it is transposed, if at all, of what stays."""
    x = tensor("x", len(perm))
    order = [perm[a] for a in range(len(perm)) if a not in axes]
    whole = cls.of(tuple(sorted(perm[a] for a in axes)))(x)
    turned = tuple(sorted(order).index(a) for a in order)
    right = whole if turned == tuple(range(len(turned))) else Transpose(turned)(whole)
    return Law(f"transpose-{cls.name}", cls.of(axes)(Transpose(perm)(x)), right)
