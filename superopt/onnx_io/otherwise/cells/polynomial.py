"""Values as polynomials of others: what is made by sums, differences and products of numbers each, however spelled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

import onnx_ir as ir

from superopt.onnx_io.otherwise.cells.rows import Rows
from superopt.onnx_io.said import is_a

Polynomial: TypeAlias = "Mapping[tuple[ir.Value, ...], float]"
"""What each product of values, which are sorted, is multiplied by; the product of none is 1."""

DEEPEST = 3
"""So many operators, one behind the other, are looked into."""


def polynomial(rows: Rows, value: ir.Value, given: Collection[ir.Value], deepest: int = DEEPEST) -> Polynomial:
    """A value as a polynomial of `given` ones and of what is no sum, difference or product."""
    node = value.producer()
    if value in given or node is None or not deepest or not is_a(node, "Add", "Sub", "Mul", "Neg"):
        number = rows.number(value)
        return {(value,): 1.0} if number is None else {(): number}
    one, *others = [polynomial(rows, v, given, deepest - 1) for v in node.inputs if v is not None]
    if node.op_type == "Neg":
        return _sum({}, one, -1.0)
    if node.op_type == "Mul":
        return _product(one, others[0])
    return _sum(one, others[0], -1.0 if node.op_type == "Sub" else 1.0)


def operands(value: ir.Value, deepest: int = DEEPEST) -> Iterator[ir.Value]:
    """What sums, differences and products that a value is made by read."""
    node = value.producer()
    if node is None or not deepest or not is_a(node, "Add", "Sub", "Mul", "Neg"):
        return
    for read in node.inputs:
        if read is not None:
            yield read
            yield from operands(read, deepest - 1)


def _sum(one: Polynomial, other: Polynomial, times: float) -> Polynomial:
    made = dict(one)
    for key, number in other.items():
        made[key] = made.get(key, 0.0) + times * number
    return {key: number for key, number in made.items() if number}


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    made = dict[tuple[ir.Value, ...], float]()
    for a, number in one.items():
        for b, times in other.items():
            key = product_of(*a, *b)
            made[key] = made.get(key, 0.0) + number * times
    return {key: number for key, number in made.items() if number}


def product_of(*values: ir.Value) -> tuple[ir.Value, ...]:
    """What a product of values is known by."""
    return tuple(sorted(values, key=lambda v: v.name or ""))
