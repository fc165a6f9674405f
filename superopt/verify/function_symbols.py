"""The sorts and function symbols that the solver has of tensors.

One sort per rank; for each axis of a rank a function that gives the size; for each operator at given ranks a function
of its sizes and inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import z3

from superopt.operators.declared import Declared
from superopt.term import Term

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


def quotient_of(numerator: Any, denominator: Any) -> Any:
    """The quotient of two integers, rounded down, of which the solver knows what it is told."""
    return _of_two("quotient")(numerator, denominator)


def multiple_of(number: Any, of: Any) -> Any:
    """That one integer divides another, likewise."""
    return _of_two("divides", holds=True)(number, of)


def product_of(left: Any, right: Any) -> Any:
    """The product of two integers, likewise."""
    return _of_two("product")(left, right)


def applied(head: Head, arguments: list[Any]) -> Any:
    """The application of an operator at given ranks to its sizes and inputs."""
    return function(head)(*arguments) if arguments else function(head)
