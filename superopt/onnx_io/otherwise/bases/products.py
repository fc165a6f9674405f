"""Sums of functions of numbers, each times a constant, as layers, einsums and reductions spell them."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.otherwise.linear import is_linear
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import reduction, shape_of
from superopt.onnx_io.said import is_a, number, text
from superopt.relations import are_equal, is_one

MOST_NODES = 16
"""What is added up is told by no more."""


class Weighed(NamedTuple):
    """A value that has numbers and functions along its last two axes, and constants: of the shape `split`, in which
    `order` tells the axes that go with one axis in front, if there are `layers`, with numbers, with functions, and with
    what the result has last; all 1 where there are none. They are multiplied by `factors`, of numbers and results.
    """

    of: ir.Value
    weights: ir.Value | None
    split: tuple[int, ...]
    order: tuple[int, ...] = (0, 1, 2)
    layers: bool = False
    factors: tuple[tuple[str, ir.Value], ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those of the constants in that order."""
        return tuple(self.split[a] for a in self.order)


class Sum(NamedTuple):
    """The sum of what is weighed, which node gives it, by which nodes in all, its shape, and what is added."""

    by: ir.Node
    terms: list[Weighed]
    nodes: list[ir.Node]
    shape: Shape
    more: ir.Value | None = None


def sum_of(program: Program, node: ir.Node) -> Sum | None:
    """What a node sums up; None of others."""
    to = shape_of(program, node.outputs[0]) if is_a(node, "Einsum", "Gemm", "MatMul", "ReduceSum") else None
    if to is None:
        return None
    if is_a(node, "ReduceSum"):
        return _reduced(program, node, to)
    if is_a(node, "Einsum"):
        one = _einsum(program, node, apart=False)
        return None if one is None else Sum(node, [one], [node], to)
    return _layer(program, node, to)


def _layer(program: Program, node: ir.Node, to: Shape) -> Sum | None:
    """A linear layer of numbers and functions that were joined."""
    flat, matrix, *more = node.inputs
    view = None if flat is None else flat.producer()
    if view is None or matrix is None or not is_a(view, "Reshape", "Flatten") or not is_linear(program, node, len(to)):
        return None
    of, joined, last = view.inputs[0], shape_of(program, flat), to[-1]
    shape = shape_of(program, of)
    sizes = None if shape is None or len(shape) < 3 else ints(shape[-2:])
    if of is None or joined is None or sizes is None or not isinstance(last, int):
        return None
    if not are_equal(joined[-1], product(sizes)):
        return None
    turned = bool(number(node, "transB", 0))
    split, order = ((last, *sizes), (1, 2, 0)) if turned else ((*sizes, last), (0, 1, 2))
    return Sum(node, [Weighed(of, matrix, split, order)], [view, node], to, *more)


def _einsum(program: Program, node: ir.Node, apart: bool) -> Weighed | None:
    """A sum over axes of a value that are its last two, and perhaps its first; or, `apart`, over its last, for each
    number that the axis before has.
    """
    names, result = _equation(node) or ([], "")
    for (of, own), (weights, theirs) in zip(names, names[::-1], strict=True):
        shape, split = shape_of(program, of), ints(shape_of(program, weights) or ())
        if not program.is_constant(weights) or shape is None or not split or len(own) < 3:
            continue
        gone, last = [a for a in own if a not in result], [a for a in theirs if a not in own]
        gone = [own[-2], *gone] if apart else gone
        first = own[: len(gone) - 2]
        kept = own[len(first) : -2]
        if gone != [*first, *own[-2:]] or len(first) > 1 or len(last) != 1 or not kept:
            continue
        is_sum = result == kept + (own[-2] if apart else "") + last[0] and sorted(theirs) == sorted((*gone, *last))
        # what runtimes would repeat is none of as many numbers
        if is_sum and all(are_equal(split[theirs.index(a)], shape[own.index(a)]) for a in gone):
            return Weighed(of, weights, split, tuple(theirs.index(a) for a in (*gone, *last)), bool(first))
    return None


def _equation(node: ir.Node) -> tuple[list[tuple[ir.Value, str]], str] | None:
    """The two inputs of an einsum with their axes, and those of its result; none of which is there twice."""
    equation = text(node, "equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    inputs, names = [v for v in node.inputs if v is not None], left.split(",")
    if not arrow or len(inputs) != 2 or len(names) != 2 or "." in equation:
        return None
    if any(len(set(part)) != len(part) for part in (*names, result)):
        return None
    return list(zip(inputs, names, strict=True)), result


def _reduced(program: Program, node: ir.Node, to: Shape) -> Sum | None:
    """A sum along the axis of numbers, of what is summed up along that of functions, or along both."""
    what = reduction(program, node, "ReduceSum")
    rank = 0 if what is None else len(what.shape)
    if what is None or rank < 3:
        return None
    if what.axes == (rank - 2, rank - 1):
        return _of_products(program, node, what.of, to)
    sizes, nodes = ints(what.shape[-2:]), [node]
    terms = None if what.axes != (rank - 2,) or sizes is None else _terms(program, what.of, (), nodes, sizes)
    return Sum(node, terms, nodes, to) if terms else None


def _of_products(program: Program, node: ir.Node, value: ir.Value, to: Shape) -> Sum | None:
    """Functions times constants for each result, which has an axis of its own before those of numbers and functions."""
    inner = value.producer()
    for of, by in (inner.inputs, inner.inputs[::-1]) if is_a(inner, "Mul") else ():
        shape, split = shape_of(program, of), shape_of(program, by)
        if of is None or by is None or shape is None or split is None or not program.is_constant(by):
            continue
        last = ints(split[-3:])
        is_alone = all(map(is_one, split[:-3])) and len(shape) > 3 and is_one(shape[-3]) and len(split) <= len(shape)
        if inner is not None and is_alone and last is not None and last[1:] == shape[-2:]:
            return Sum(node, [Weighed(of, by, last, (1, 2, 0))], [inner, node], to)
    return None


def _terms(
    program: Program,
    value: ir.Value,
    factors: tuple[tuple[str, ir.Value], ...],
    nodes: list[ir.Node],
    sizes: tuple[int, ...],
) -> list[Weighed] | None:
    """What is added up for each number and result, with what it is multiplied by; None of what is something else. The
    nodes on the way are added to those that are given.
    """
    node, shape, known = value.producer(), shape_of(program, value), len(nodes)
    found: list[Weighed] | None = None
    if node is not None and known < MOST_NODES:
        nodes.append(node)
        if is_a(node, "Einsum"):
            one = _einsum(program, node, apart=True)
            is_whole = one is not None and (one.sizes[0], one.sizes[2]) == sizes
            found = [one._replace(factors=factors)] if one is not None and is_whole else None
        elif is_a(node, "Add"):
            every = [_terms(program, v, factors, nodes, sizes) for v in node.inputs if v is not None]
            parts = [part for part in every if part is not None]
            found = [term for part in parts for term in part] if len(parts) == len(every) else None
        elif (times := _times(program, node)) is not None:
            found = _terms(program, times[0], (*factors, (node.op_type, times[1])), nodes, sizes)
    if found is None:
        del nodes[known:]
    if found is None and shape is not None and len(shape) > 2 and is_one(shape[-1]) and shape[-2] == sizes[0]:
        return [Weighed(value, None, (sizes[0], 1, sizes[1]), factors=factors)]
    return found


def _times(program: Program, node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """What is multiplied by, or divided by, constants that are the same for all rows."""
    orders = (node.inputs, node.inputs[::-1]) if is_a(node, "Mul") else (node.inputs,) if is_a(node, "Div") else ()
    for of, by in orders:
        shape = shape_of(program, by)
        is_held = program.is_constant(by) and shape is not None
        if of is not None and by is not None and is_held and shape is not None and all(map(is_one, shape[:-2])):
            return of, by
    return None


def ints(dims: Shape) -> tuple[int, ...] | None:
    """Sizes, if all are numbers."""
    return tuple(d for d in dims if isinstance(d, int)) if all(isinstance(d, int) for d in dims) else None
