"""Terms, sizes and shape rules as the solver sees them.

One sort per rank; for each axis of a rank a function that gives the size; for each operator at given ranks a function
of its sizes and inputs. What is well formed is stated as an *equivalence*: an application is well formed exactly when
its inputs are and its shape rule's condition holds. Quantities that are not linear (products of sizes, divisions by a
size) are left uninterpreted where z3 would need non-linear reasoning: that loses proofs, never soundness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import z3

from superopt.demands import assuming
from superopt.dim import Condition, Dim, Expr, Floor, Shape, Symbol, product, symbol
from superopt.operators.declared import Declared
from superopt.operators.facts import given_facts
from superopt.term import Term, Type, variable

Z3: Any = z3
"""z3 has no types; everything that passes through it is checked by the solver, not by the type checker."""

Ints = Mapping[str, Any]


@dataclass(frozen=True)
class Head:
    """An operator at given ranks: what has one function symbol in the solver."""

    operator: str
    structure: tuple[Any, ...]
    sizes: int
    ranks: tuple[int, ...]
    rank: int

    def __str__(self) -> str:
        return f"{self.operator}{list(self.structure)}:{self.ranks}->{self.rank}/{self.sizes}"


def head_of(term: Term) -> Head:
    """The head of a term that is not a variable."""
    op = term.operator
    assert isinstance(op, Declared)
    ranks = tuple(i.type.rank for i in term.inputs)
    return Head(op.name, op.structure(), len(op.sizes()), ranks, term.type.rank)


@dataclass(frozen=True)
class Function:
    """A function symbol. Its arguments have its sorts: z3's own call makes sure of each, which took longer than all."""

    symbol: Any
    form: Any

    def __call__(self, *arguments: Any) -> Any:
        """The application to arguments."""
        context = self.symbol.ctx
        asts = (Z3.Ast * len(arguments))(*[a.ast for a in arguments])
        return self.form(Z3.Z3_mk_app(context.ref(), self.symbol.ast, len(arguments), asts), context)


def _symbol(name: str, *sorts: Any) -> Function:
    """A function symbol from its sorts, the result's last."""
    form = {Z3.IntSort(): Z3.ArithRef, Z3.BoolSort(): Z3.BoolRef}.get(sorts[-1], Z3.ExprRef)
    return Function(Z3.Function(name, *sorts), form)


@cache
def sort(rank: int) -> Any:
    """The sort of all tensors of a rank, the ill formed among them."""
    return Z3.DeclareSort(f"T{rank}")


@cache
def size_function(rank: int, axis: int) -> Function:
    """The size of a tensor along an axis."""
    return _symbol(f"size{rank}_{axis}", sort(rank), Z3.IntSort())


@cache
def well_formed(rank: int) -> Function:
    """The predicate that a tensor is well formed."""
    return _symbol(f"wf{rank}", sort(rank), Z3.BoolSort())


@cache
def fact(kind: str, rank: int) -> Function:
    """The predicate that all elements of a tensor are what one of `FACTS` says."""
    return _symbol(f"{kind}{rank}", sort(rank), Z3.BoolSort())


@cache
def function(head: Head) -> Any:
    """The function symbol of an operator at given ranks."""
    inputs = [Z3.IntSort()] * head.sizes + [sort(r) for r in head.ranks]
    return _symbol(str(head), *inputs, sort(head.rank)) if inputs else Z3.Const(str(head), sort(head.rank))


@cache
def _of_two(name: str, *, holds: bool = False) -> Function:
    """A function symbol of two integers: of one, or of whether something holds.

    It is made when it is asked for: z3's own context takes 16 MB, and who trusts rules that were proved needs none.
    """
    return _symbol(name, Z3.IntSort(), Z3.IntSort(), Z3.BoolSort() if holds else Z3.IntSort())


def _quotient(numerator: Any, denominator: Any) -> Any:
    return _of_two("quotient")(numerator, denominator)


def _multiple(number: Any, of: Any) -> Any:
    return _of_two("divides", holds=True)(number, of)


def _product(left: Any, right: Any) -> Any:
    return _of_two("product")(left, right)


def encode_dim(dim: Dim, ints: Ints) -> Any:
    """A size over the solver's integers. Products of symbols are nested `product`s in one order of factors."""
    if isinstance(dim, int):
        return Z3.IntVal(dim)
    parts = []
    for monomial, coefficient in dim.terms:
        factors = [_encode_atom(atom, ints) for atom in monomial]
        value = None
        for factor in sorted(factors, key=str) if len(factors) > 1 else factors:
            value = factor if value is None else _product(value, factor)
        parts.append(Z3.IntVal(coefficient) if value is None else value if coefficient == 1 else coefficient * value)
    return parts[0] if len(parts) == 1 else Z3.Sum(parts)


def _encode_atom(atom: Symbol | Floor, ints: Ints) -> Any:
    if isinstance(atom, Symbol):
        return ints[atom.name]
    numerator = encode_dim(atom.numerator, ints)
    if isinstance(atom.denominator, int):
        return numerator / atom.denominator  # z3's division of integers rounds down for positive divisors
    return _quotient(numerator, encode_dim(atom.denominator, ints))


def encode_condition(condition: Condition, ints: Ints) -> Any:
    """A relation between sizes."""
    left, right = encode_dim(condition.left, ints), encode_dim(condition.right, ints)
    match condition.relation:
        case "=":
            return left == right
        case "<=":
            return left <= right
        case "!=":
            return left != right
        case "divides":
            return right % condition.left == 0 if isinstance(condition.left, int) else _multiple(left, right)


def encode_term(term: Term, tensors: Mapping[Term, Any], ints: Ints, known: dict[Term, Any] | None = None) -> Any:
    """A term over the solver's tensors and integers."""
    if term in tensors:
        return tensors[term]
    known = {} if known is None else known
    if term not in known:
        op = term.operator
        assert isinstance(op, Declared)
        inputs = [encode_term(i, tensors, ints, known) for i in term.inputs]
        arguments = [encode_dim(d, ints) for d in op.sizes()] + inputs
        known[term] = _applied(head_of(term), arguments)
    return known[term]


@cache
def all_sizes_positive(rank: int) -> list[Any]:
    """Every size of a well formed tensor is at least 1."""
    x = Z3.Const("x", sort(rank))
    sizes = [size_function(rank, axis)(x) for axis in range(rank)]
    return (
        [Z3.ForAll([x], Z3.Implies(well_formed(rank)(x), Z3.And([s >= 1 for s in sizes])), patterns=sizes)]
        if rank
        else []
    )


@cache
def arithmetic_axioms() -> list[Any]:
    """The little that is known of the uninterpreted: division by one; products commute, cancel and are positive."""
    a, b, c = Z3.Ints("a b c")
    cancels = Z3.Implies(Z3.And(a >= 1, _product(a, b) == _product(a, c)), b == c)
    return [
        Z3.ForAll([a, b], Z3.Implies(b == 1, _quotient(a, b) == a), patterns=[_quotient(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == 1, _multiple(a, b)), patterns=[_multiple(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == b, _multiple(a, b)), patterns=[_multiple(a, b)]),
        Z3.ForAll([a, b], _product(a, b) == _product(b, a), patterns=[_product(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(a == 1, _product(a, b) == b), patterns=[_product(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(Z3.And(a >= 1, b >= 1), _product(a, b) >= 1), patterns=[_product(a, b)]),
        Z3.ForAll([a, b], Z3.Implies(Z3.And(a >= 1, _product(a, b) == a), b == 1), patterns=[_product(a, b)]),
        Z3.ForAll([a, b, c], cancels, patterns=[Z3.MultiPattern(_product(a, b), _product(a, c))]),
    ]


def distributes(dim: Dim, ints: Ints) -> list[Any]:
    """That a product with a size that is a sum is the sum of the products."""
    parts = [Expr((part,)) for part in dim.terms if part[0]] if isinstance(dim, Expr) else []
    if len(parts) < 2:
        return []
    a, whole = Z3.Int("any factor"), encode_dim(dim, ints)  # no symbol of a rule is called so
    number = dim - sum(parts[1:], parts[0])
    products = [_product(a, encode_dim(p, ints)) for p in parts] + [a * encode_dim(number, ints)]
    return [Z3.ForAll([a], _product(a, whole) == Z3.Sum(products), patterns=[_product(a, whole)])]


def total(shape: Shape, ints: Ints) -> Any:
    """That the product of sizes, one after the other as shape rules take it, is what it is in normal form."""
    value = Z3.IntVal(1)
    for i, dim in enumerate(shape):
        value = _product(value, encode_dim(dim, ints)) if i else encode_dim(dim, ints)
    return value == encode_dim(product(shape), ints)


def fact_axioms(example: Term) -> list[Any]:
    """What is known of the elements of what the example's operator gives: always, or where it is of its inputs."""
    head, op = head_of(example), example.operator
    assert isinstance(op, Declared)
    if head not in _facts:
        arguments = [Z3.Int(f"a{i}") for i in range(head.sizes)]
        inputs = [Z3.Const(f"x{i}", sort(r)) for i, r in enumerate(head.ranks)]
        whole = _applied(head, [*arguments, *inputs])
        bodies = [fact(kind, head.rank)(whole) for kind in sorted(given_facts(op))]
        for kind in sorted(op.keeps) if inputs else ():
            known = [fact(kind, rank)(x) for rank, x in zip(head.ranks, inputs, strict=True)]
            bodies.append(Z3.Implies(Z3.And(known), fact(kind, head.rank)(whole)))
        _facts[head] = [_everywhere([*arguments, *inputs], body, whole) for body in bodies]
    return _facts[head]


_facts: dict[Head, list[Any]] = {}


def _applied(head: Head, arguments: list[Any]) -> Any:
    return function(head)(*arguments) if arguments else function(head)


def _everywhere(arguments: list[Any], body: Any, trigger: Any) -> Any:
    return Z3.ForAll(arguments, body, patterns=[trigger]) if arguments else body


def typing_axiom(example: Term) -> Any:
    """When an application of the example's operator is well formed (an equivalence), and which sizes it then has."""
    return _typing_axiom(head_of(example), type(example.operator), example.operator)


_typing: dict[Head, Any] = {}


def _typing_axiom(head: Head, cls: type, op: Any) -> Any:
    if head not in _typing:
        names = [f"a{i}" for i in range(head.sizes)]
        inputs = [variable(f"x{i}", [symbol(f"x{i}_{j}") for j in range(r)]) for i, r in enumerate(head.ranks)]
        general = op.with_sizes([symbol(n) for n in names])
        with assuming() as conditions:
            type_: Type = general.type_of(tuple(i.type for i in inputs))
        tensors = {v: Z3.Const(v.label, sort(v.type.rank)) for v in inputs}
        ints = {n: Z3.Int(n) for n in names}
        ints |= {
            f"x{i}_{j}": size_function(r, j)(tensors[inputs[i]]) for i, r in enumerate(head.ranks) for j in range(r)
        }
        _typing[head] = _equivalence(head, tensors, ints, names, conditions, type_)
    return _typing[head]


def _equivalence(
    head: Head, tensors: Mapping[Term, Any], ints: Ints, names: list[str], conditions: list[Condition], type_: Type
) -> Any:
    arguments = [*(ints[n] for n in names), *tensors.values()]
    whole = _applied(head, arguments)
    good = [well_formed(v.type.rank)(c) for v, c in tensors.items()] + [encode_condition(c, ints) for c in conditions]
    sizes = [size_function(head.rank, j)(whole) == encode_dim(d, ints) for j, d in enumerate(type_.shape)]
    wf = well_formed(head.rank)(whole)
    body = Z3.And(wf == Z3.And(good), Z3.Implies(wf, Z3.And(sizes)))
    return _everywhere(arguments, body, whole)
