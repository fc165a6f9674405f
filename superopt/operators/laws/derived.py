"""Laws derived from what declarations state: that they are point-wise, linear, or have named axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from superopt.dim import symbol
from superopt.operators.declared import Declared
from superopt.operators.differences import Neg
from superopt.operators.laws.law import Law, Scope, declared, sizes, tensor
from superopt.operators.laws.layout import padded, picked
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Div, Mul
from superopt.term import Term, variable


def pointwise(scope: Scope) -> Iterator[Law]:
    """F of re-laid-out inputs is the re-laid-out f."""
    for cls in declared(scope, lambda c: c.pointwise):
        f = cls()
        for rank in scope.ranks:
            x, y = (tuple(tensor(n, rank) for n in names[: cls.arity]) for names in ("xzu", "ywv"))
            for axis in range(rank):
                c, s = Concat(axis), Slice(axis, symbol("start"), symbol("stop"))
                yield Law(f"{cls.name}-concat", f(*(c(a, b) for a, b in zip(x, y, strict=True))), c(f(*x), f(*y)))
                yield Law(f"{cls.name}-slice", f(*map(s, x)), s(f(*x)))
            movers: list[Declared] = [Transpose(p) for p in scope.perms if len(p) == rank]
            movers += [Reshape(sizes("to", b)) for a, b in scope.reshapes if a == rank]
            movers += [Expand(axes, sizes("to", r)) for axes, r in scope.expands if len(axes) == rank]
            movers += [Pad(sizes("pads", 2 * rank))] if cls.zero and rank else []
            movers += picked(scope, rank)
            for move in movers:
                yield Law(f"{cls.name}-{move.name}", f(*map(move, x)), move(f(*x)))
        if cls.commutative:
            for rank in scope.ranks:
                a, b = tensor("x", rank), tensor("y", rank)
                yield Law(f"{cls.name}-commutes", f(a, b), f(b, a))


def linear(scope: Scope) -> Iterator[Law]:
    """Sums and common factors move through each linear input. (Re-layouts have theirs from `layout.py`.)"""
    for cls in declared(
        scope, lambda c: bool(c.linear) and not issubclass(c, Transpose | Reshape | Slice | Pad | Expand)
    ):
        for op, ranks in _typical(cls, scope):
            inputs = [tensor("xy"[i], rank) for i, rank in enumerate(ranks)]
            for i in cls.linear:

                def at(term: Term, i: int = i, op: Declared = op, inputs: list[Term] = inputs) -> Term:
                    return op(*(term if j == i else t for j, t in enumerate(inputs)))

                x, z = inputs[i], tensor("z", ranks[i])
                yield Law(f"{cls.name}-add", at(Add()(x, z)), Add()(at(x), at(z)))
                if not cls.pointwise:
                    yield Law(f"{cls.name}-neg", at(Neg()(x)), Neg()(at(x)))
                    a, whole = variable("a", ()), at(x)
                    for by in (Mul(), Div()):
                        scaled = by(x, Expand((), x.shape)(a))
                        yield Law(f"{cls.name}-scale", at(scaled), by(whole, Expand((), whole.shape)(a)))


def named_axes(scope: Scope) -> Iterator[Law]:
    """What happens along a named axis: concat, slice, zeros around and factors by position move through, or meet in a
    sum.
    """
    for cls in declared(scope, lambda c: bool(c.named_axes)):
        for op, ranks in _typical(cls, scope):
            places, result = _axis_places(cls.named_axes, ranks)
            names = dict.fromkeys(n for p in (*places, result) for n in p if not n.startswith("("))
            for name in names:
                yield from _axis_laws(op, [p.index(name) if name in p else None for p in places], result, name, ranks)


def _axis_laws(
    op: Declared, at: list[int | None], result: list[str], name: str, ranks: tuple[int, ...]
) -> Iterator[Law]:
    inputs = [tensor("xy"[i], rank) for i, rank in enumerate(ranks)]
    others = [tensor("zw"[i], rank) if at[i] is not None else inputs[i] for i, rank in enumerate(ranks)]
    whole = replace(op, **op.undivided.get(name, {}))  # type: ignore[type-var]
    joined = [t if a is None else Concat(a)(t, o) for t, o, a in zip(inputs, others, at, strict=True)]
    if name in result:
        out = result.index(name)
        yield Law(f"{op.name}-concat", whole(*joined), Concat(out)(whole(*inputs), whole(*others)))
        s = (symbol("start"), symbol("stop"))
        cut = [t if a is None else Slice(a, *s)(t) for t, a in zip(inputs, at, strict=True)]
        yield Law(f"{op.name}-slice", whole(*cut), Slice(out, *s)(whole(*inputs)))
        if any(at[i] is not None for i in op.linear):
            wide = [t if a is None else padded(t, a) for t, a in zip(inputs, at, strict=True)]
            yield Law(f"{op.name}-zeros", whole(*wide), padded(whole(*inputs), out))
    else:
        yield Law(f"{op.name}-concat-sum", whole(*joined), Add()(whole(*inputs), whole(*others)))
        yield from _pad_sum_laws(whole, inputs, at)
    yield from _factor_laws(op if name in result else whole, inputs, at, result, name)


def _pad_sum_laws(op: Declared, inputs: list[Term], at: list[int | None]) -> Iterator[Law]:
    """Where one of two is zero, nothing is added: what the other has there may be cut off."""
    for i, axis in enumerate(at):
        if axis is not None and i in op.linear:
            low, size = symbol("low"), inputs[i].shape[axis]
            wide, cut = list(inputs), list(inputs)
            wide[i] = padded(inputs[i], axis)
            for j, a in enumerate(at):
                if j != i and a is not None:
                    cut[j] = Slice(a, low, low + size)(inputs[j])
            yield Law(f"{op.name}-zeros-sum", op(*wide), op(*cut))


def _factor_laws(op: Declared, inputs: list[Term], at: list[int | None], result: list[str], name: str) -> Iterator[Law]:
    """A factor for each position along an axis, in any one place where the axis occurs, is the same."""
    v = variable("v", (symbol("size"),))
    for by in (Mul(), Div()):
        forms = []
        for i, a in enumerate(at):
            if a is not None and i in op.linear:
                scaled = by(inputs[i], Expand((a,), inputs[i].shape)(v))
                forms.append(op(*(scaled if j == i else t for j, t in enumerate(inputs))))
        if name in result and forms:
            plain = op(*inputs)
            forms.append(by(plain, Expand((result.index(name),), plain.shape)(v)))
        for other in forms[1:]:
            yield Law(f"{op.name}-factor", forms[0], other)


def _typical(cls: type[Declared], scope: Scope) -> Iterator[tuple[Declared, tuple[int, ...]]]:
    """An operator with symbols for its sizes, and the other attributes and the ranks that the scope has."""
    if cls.pointwise:
        for rank in scope.ranks:
            yield cls(), (rank,) * cls.arity
    elif cls.named_axes:
        ranks = tuple(len(part.split()) for part in cls.named_axes.split("->")[0].split(","))
        for extra in range(3 if cls.batched else 1):
            if all(r + extra in scope.ranks for r in ranks):
                for op in _structured(cls, scope):
                    yield op, tuple(r + extra for r in ranks)


def _structured(cls: type[Declared], scope: Scope) -> Iterator[Declared]:
    values: dict[str, Any] = {}
    others = [f for f in cls.fields if not f.facts.size]
    for f in cls.fields:
        if f.facts.size:
            shown = f.default if isinstance(f.default, tuple) else (f.facts.sample or [None])[0]
            values[f.name] = sizes(f.name, len(shown)) if isinstance(shown, tuple) else symbol(f.name)
    found = {structure for name, structure in scope.structures if name == cls.name}
    for structure in sorted(found | {tuple(f.default for f in others)}, key=str):
        yield cls(**values, **{f.name: value for f, value in zip(others, structure, strict=True)})


def _axis_places(axes: str, ranks: tuple[int, ...]) -> tuple[list[list[str]], list[str]]:
    left, right = axes.split("->")
    places, result = [p.split() for p in left.split(",")], right.split()
    batch = [f"batch{i}" for i in range(ranks[0] - len(places[0]))]
    return [[*batch, *p] for p in places], [*batch, *result]
