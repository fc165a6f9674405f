"""Values that have to be changed together, and the nodes that make numbers of bytes around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from superopt.onnx_io.said import is_a, text


def takes_in(values: set[ir.Value], first: ir.Value, around: Callable[[ir.Value], list[ir.Value] | None]) -> bool:
    """Take in a value, and one after the other what has to be changed with it, as is told of what is `around` each;
    whether all of that can be: nothing of it comes from without the graph of the first, or is read there.
    """
    left, home = [first], first.producer()
    while left:
        value = left.pop()
        if value in values:
            continue
        values.add(value)
        nodes = [value.producer(), *(user for user, _ in value.uses())]
        is_inner = home is not None and all(node is not None and node.graph is home.graph for node in nodes)
        more = around(value) if is_inner and not value.is_graph_output() else None
        if more is None:
            return False
        left += more
    return True


def all_of(found: Sequence[list[ir.Value] | None]) -> list[ir.Value] | None:
    """All that was found; None where something could not be."""
    known = [values for values in found if values is not None]
    return [value for values in known for value in values] if len(known) == len(found) else None


def dequantizing(node: ir.Node, which: int) -> ir.Node | None:
    """What makes numbers of bytes in the same graph for one of the places at which a node reads."""
    value = node.inputs[which]
    maker = None if value is None else value.producer()
    return maker if is_a(maker, "DequantizeLinear") and maker.graph is node.graph else None


def pads_with_one(node: ir.Node) -> bool:
    """Whether all that a padding puts around is the same."""
    return text(node, "mode", "constant") == "constant"
