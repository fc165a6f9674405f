"""Laws: equations between terms that hold for all sizes at which both sides are well formed.

Most follow from what the declarations state: what is point-wise moves through every re-layout, what is linear through
sums and factors, what has named axes through cuts along them. The rest is written as text in the declarations. A law is
given at the ranks, axes and permutations of a `Scope`, since the solver's sorts are ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from superopt.dim import assuming, symbol
from superopt.errors import ParseError
from superopt.operators.declare import CATALOGUE, Declared, is_shipped
from superopt.operators.layout import Concat, Expand, Reshape, Slice, Transpose
from superopt.operators.padding import Pad
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.reader import read_term, term_sexp
from superopt.term import Term, subterms, variable, variables
from superopt.text import Atom, Form, form, read, show


@dataclass(frozen=True)
class Law:
    """`left = right` wherever both are well formed. `name` is shared by a law's instances at all ranks and axes."""

    name: str
    left: Term
    right: Term

    def __str__(self) -> str:
        given = form("given", *(form(f"?{v.label}", *map(str, v.shape)) for v in variables(self.left, self.right)))
        equation = form("=", term_sexp(self.left), term_sexp(self.right))
        return show(form("law", self.name, given, equation))


@dataclass(frozen=True)
class Scope:
    """What occurs in some terms, as far as laws depend on it: operators, ranks, permutations, broadcasts, re-shapes."""

    operators: frozenset[str]
    ranks: frozenset[int]
    perms: frozenset[tuple[int, ...]]
    expands: frozenset[tuple[tuple[int, ...], int]]
    reshapes: frozenset[tuple[int, int]]


def scope_of(*roots: Term) -> Scope:
    """The scope of terms; closed under composition of their permutations and of re-shapes."""
    terms = list(subterms(*roots))
    perms = {t.operator.perm for t in terms if isinstance(t.operator, Transpose)}
    perms |= {_compose(p, q) for p in perms for q in perms if len(p) == len(q)}
    reshapes = {(t.inputs[0].type.rank, t.type.rank) for t in terms if isinstance(t.operator, Reshape)}
    reshapes |= {(a, d) for a, b in reshapes for c, d in reshapes if b == c}
    return Scope(
        frozenset(t.operator.name for t in terms if not t.is_variable),
        frozenset(t.type.rank for t in terms),
        frozenset(perms),
        frozenset((t.operator.axes, t.type.rank) for t in terms if isinstance(t.operator, Expand)),
        frozenset(reshapes),
    )


@cache
def laws_in(scope: Scope) -> list[Law]:
    """All laws at the ranks, permutations and broadcasts of a scope, of which one side uses its operators only."""
    with assuming():
        found = [law for source in (_pointwise, _linear, _axes, _layout, _expands, _written) for law in source(scope)]
    return [law for law in found if any(_names(side) <= scope.operators for side in (law.left, law.right))]


def written_laws() -> tuple[tuple[str, Form], ...]:
    """The laws in the declarations, as text: name and form."""
    return tuple((name, sexp) for _, name, sexp in declared_laws())


@cache
def declared_laws() -> tuple[tuple[type[Declared], str, Form], ...]:
    """The laws in the declarations, as text: whose declaration it is, name and form."""
    found = []
    for cls in CATALOGUE.values():
        for sexp in read(cls.laws, f"laws of {cls.name}"):
            if not isinstance(sexp, Form) or sexp.head != "law" or len(sexp.items) != 4:
                raise ParseError(f"{sexp.place}: expected (law name (given …) (= left right))")
            found.append((cls, str(sexp.items[1].value), sexp))  # type: ignore[union-attr]
    return tuple(found)


def forget_laws() -> None:
    """Read the laws of the declarations anew when they are asked for next: the catalogue has changed."""
    declared_laws.cache_clear()
    laws_in.cache_clear()


def _written(scope: Scope) -> Iterator[Law]:
    own = any(not is_shipped(cls) for name, cls in CATALOGUE.items() if name in scope.operators)
    for cls, name, sexp in declared_laws():
        if not own and not is_shipped(cls):
            continue  # what is proved of superopt's own operators rests on no file of the user's
        given, equation = sexp.items[2], sexp.items[3]
        assert isinstance(given, Form)
        assert isinstance(equation, Form)
        any_rank = show(given).count("*") > 0
        for rank in sorted(scope.ranks) if any_rank else [0]:
            names = dict(_given(declaration, rank) for declaration in given.items[1:])
            left, right = (read_term(side, names) for side in equation.items[1:])
            yield Law(name, left, right)


def _given(sexp: Atom | Form, rank: int) -> tuple[str, Term]:
    assert isinstance(sexp, Form)
    label, dims = sexp.head[1:], [str(i.value) for i in sexp.items[1:] if isinstance(i, Atom)]
    return label, _var(label, rank) if dims == ["*"] else variable(label, map(symbol, dims))


def _pointwise(scope: Scope) -> Iterator[Law]:
    """F of re-laid-out inputs is the re-laid-out f."""
    for cls in _declared(scope, lambda c: c.pointwise):
        f = cls()
        for rank in scope.ranks:
            x, y = (tuple(_var(n, rank) for n in names[: cls.arity]) for names in ("xzu", "ywv"))
            for axis in range(rank):
                c, s = Concat(axis), Slice(axis, symbol("start"), symbol("stop"))
                yield Law(f"{cls.name}-concat", f(*(c(a, b) for a, b in zip(x, y, strict=True))), c(f(*x), f(*y)))
                yield Law(f"{cls.name}-slice", f(*map(s, x)), s(f(*x)))
            movers: list[Declared] = [Transpose(p) for p in scope.perms if len(p) == rank]
            movers += [Reshape(_sizes("to", b)) for a, b in scope.reshapes if a == rank]
            movers += [Expand(axes, _sizes("to", r)) for axes, r in scope.expands if len(axes) == rank]
            movers += [Pad(_sizes("pads", 2 * rank))] if cls.zero and rank else []
            for move in movers:
                yield Law(f"{cls.name}-{move.name}", f(*map(move, x)), move(f(*x)))
        if cls.commutative:
            for rank in scope.ranks:
                a, b = _var("x", rank), _var("y", rank)
                yield Law(f"{cls.name}-commutes", f(a, b), f(b, a))


def _linear(scope: Scope) -> Iterator[Law]:
    """Sums and common factors move through each linear input. (Re-layouts have theirs from `_pointwise`.)"""
    for cls in _declared(
        scope, lambda c: bool(c.linear) and not issubclass(c, Transpose | Reshape | Slice | Pad | Expand)
    ):
        for op, ranks in _typical(cls, scope):
            inputs = [_var("xy"[i], rank) for i, rank in enumerate(ranks)]
            for i in cls.linear:

                def at(term: Term, i: int = i, op: Declared = op, inputs: list[Term] = inputs) -> Term:
                    return op(*(term if j == i else t for j, t in enumerate(inputs)))

                x, z = inputs[i], _var("z", ranks[i])
                yield Law(f"{cls.name}-add", at(Add()(x, z)), Add()(at(x), at(z)))
                if not cls.pointwise:
                    a, whole = variable("a", ()), at(x)
                    for by in (Mul(), Div()):
                        scaled = by(x, Expand((), x.shape)(a))
                        yield Law(f"{cls.name}-scale", at(scaled), by(whole, Expand((), whole.shape)(a)))


def _axes(scope: Scope) -> Iterator[Law]:
    """What happens along a named axis: concat, slice and factors by position move through, or meet in a sum."""
    for cls in _declared(scope, lambda c: bool(c.named_axes)):
        for op, ranks in _typical(cls, scope):
            places, result = _axis_places(cls.named_axes, ranks)
            names = dict.fromkeys(n for p in (*places, result) for n in p if not n.startswith("("))
            for name in names:
                yield from _axis_laws(op, [p.index(name) if name in p else None for p in places], result, name, ranks)


def _axis_laws(
    op: Declared, at: list[int | None], result: list[str], name: str, ranks: tuple[int, ...]
) -> Iterator[Law]:
    inputs = [_var("xy"[i], rank) for i, rank in enumerate(ranks)]
    others = [_var("zw"[i], rank) if at[i] is not None else inputs[i] for i, rank in enumerate(ranks)]
    whole = replace(op, **op.undivided.get(name, {}))  # type: ignore[type-var]
    joined = [t if a is None else Concat(a)(t, o) for t, o, a in zip(inputs, others, at, strict=True)]
    if name in result:
        out = result.index(name)
        yield Law(f"{op.name}-concat", whole(*joined), Concat(out)(whole(*inputs), whole(*others)))
        s = (symbol("start"), symbol("stop"))
        cut = [t if a is None else Slice(a, *s)(t) for t, a in zip(inputs, at, strict=True)]
        yield Law(f"{op.name}-slice", whole(*cut), Slice(out, *s)(whole(*inputs)))
    else:
        yield Law(f"{op.name}-concat-sum", whole(*joined), Add()(whole(*inputs), whole(*others)))
    yield from _factor_laws(op if name in result else whole, inputs, at, result, name)


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


def _layout(scope: Scope) -> Iterator[Law]:
    """How re-layouts compose, cancel and pass each other."""
    for rank in scope.ranks:
        x, y, z, w = (_var(n, rank) for n in "xyzw")
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
                    yield Law("slice-swap", Slice(a, s, e)(Slice(b, p, q)(x)), Slice(b, p, q)(Slice(a, s, e)(x)))
        yield Law("reshape-same", Reshape(x.shape)(x), x)
        zero = (0,) * (2 * rank)
        if rank:
            yield Law("pad-nothing", Pad(zero)(x), x)
            one, two = _sizes("pads", 2 * rank), _sizes("more", 2 * rank)
            yield Law("pad-pad", Pad(two)(Pad(one)(x)), Pad(tuple(a + b for a, b in zip(one, two, strict=True)))(x))
    for first, second in scope.reshapes:
        for third, fourth in scope.reshapes:
            if second == third:
                x = _var("x", first)
                inner, outer = Reshape(_sizes("to", second)), Reshape(_sizes("then", fourth))
                yield Law("reshape-reshape", outer(inner(x)), outer(x))
    for perm in scope.perms:
        yield from _transposes(perm, scope)


def _transposes(perm: tuple[int, ...], scope: Scope) -> Iterator[Law]:
    rank = len(perm)
    x, y, move = _var("x", rank), _var("y", rank), Transpose(perm)
    if perm == tuple(range(rank)):
        yield Law("transpose-same", move(x), x)
    for first in scope.perms:
        if len(first) == rank:
            yield Law("transpose-transpose", move(Transpose(first)(x)), Transpose(_compose(first, perm))(x))
    for to, axis in enumerate(perm):
        s = (symbol("start"), symbol("stop"))
        yield Law("transpose-concat", move(Concat(axis)(x, y)), Concat(to)(move(x), move(y)))
        yield Law("transpose-slice", move(Slice(axis, *s)(x)), Slice(to, *s)(move(x)))
        if "softmax" in CATALOGUE:
            softmax = CATALOGUE["softmax"]
            yield Law("transpose-softmax", move(softmax(axis)(x)), softmax(to)(move(x)))  # type: ignore[call-arg]
    before = _sizes("pads", 2 * rank)
    after = (*(before[p] for p in perm), *(before[rank + p] for p in perm))
    yield Law("transpose-pad", move(Pad(before)(x)), Pad(after)(move(x)))
    for axes, r in scope.expands:
        if r == rank:
            v, to_sizes = _var("x", len(axes)), _sizes("to", rank)
            places = [perm.index(a) for a in axes]
            order = tuple(sorted(range(len(axes)), key=places.__getitem__))
            turned = v if list(order) == sorted(order) else Transpose(order)(v)
            moved = Expand(tuple(sorted(places)), tuple(to_sizes[p] for p in perm))
            yield Law("transpose-expand", move(Expand(axes, to_sizes)(v)), moved(turned))


def _expands(scope: Scope) -> Iterator[Law]:
    """Repetition: along an axis of the input it moves, along a new one it only changes the count."""
    for axes, rank in scope.expands:
        x, y, to = _var("x", len(axes)), _var("y", len(axes)), _sizes("to", rank)
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
            else:
                yield Law("expand-slice", Slice(a, s, e)(spread(x)), cut(x))
                yield Law("expand-concat", Concat(a)(spread(x), more(x)), sum_(x))
        for inner, r in scope.expands:
            if r == len(axes):
                v = _var("x", len(inner))
                both = Expand(tuple(axes[i] for i in inner), to)
                yield Law("expand-expand", spread(Expand(inner, _sizes("inner", r))(v)), both(v))


def _typical(cls: type[Declared], scope: Scope) -> Iterator[tuple[Declared, tuple[int, ...]]]:
    """An operator with symbols for its sizes, at the ranks of its inputs that the scope has."""
    values: dict[str, Any] = {}
    for f in cls.fields:
        if f.facts.size:
            shown = f.default if isinstance(f.default, tuple) else (f.facts.sample or [None])[0]
            values[f.name] = _sizes(f.name, len(shown)) if isinstance(shown, tuple) else symbol(f.name)
        elif f.name != "axis":
            values[f.name] = f.default
    if cls.pointwise:
        for rank in scope.ranks:
            yield cls(), (rank,) * cls.arity
    elif cls.named_axes:
        ranks = tuple(len(part.split()) for part in cls.named_axes.split("->")[0].split(","))
        for extra in range(3 if cls.batched else 1):
            if all(r + extra in scope.ranks for r in ranks):
                yield cls(**values), tuple(r + extra for r in ranks)


def _axis_places(axes: str, ranks: tuple[int, ...]) -> tuple[list[list[str]], list[str]]:
    left, right = axes.split("->")
    places, result = [p.split() for p in left.split(",")], right.split()
    batch = [f"batch{i}" for i in range(ranks[0] - len(places[0]))]
    return [[*batch, *p] for p in places], [*batch, *result]


def _declared(scope: Scope, wanted: Callable[[type[Declared]], bool]) -> list[type[Declared]]:
    return [cls for name, cls in CATALOGUE.items() if wanted(cls) and name in scope.operators]


def _names(term: Term) -> frozenset[str]:
    return frozenset(t.operator.name for t in subterms(term) if not t.is_variable)


def _var(name: str, rank: int) -> Term:
    return variable(name, _sizes(name, rank))


def _sizes(name: str, count: int) -> tuple[Any, ...]:
    return tuple(symbol(f"{name}{i}") for i in range(count))


def _compose(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of transposing by `first`, then by `second`."""
    return tuple(first[a] for a in second)
