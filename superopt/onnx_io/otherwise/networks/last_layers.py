"""The last layers of networks whose results are added up, perhaps weighed: what of them is a product of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.otherwise.linear import PRODUCTS
from superopt.onnx_io.otherwise.networks.alike import Alike


class Last(NamedTuple):
    """What weighs, where something does, what a last product of networks gives, with a bias, before it is added up."""

    nodes: list[ir.Node]
    product: ir.Node
    bias: ir.Value | None
    gates: Alike | None


def last_of(nodes: Sequence[ir.Node], read: Mapping[ir.Value, Alike]) -> Last | None:
    """The last layer of the first network, by its nodes, and what each network reads of its own."""
    taken, gates, bias, node = [nodes[-1]], None, None, nodes[-1]
    if read:
        if (weighed := _weighed(node, read)) is None:
            return None
        gates, node = next(iter(read.values())), weighed
        taken.append(node)
    if node.op_type == "Add":
        if (apart := _apart(node, nodes)) is None:
            return None
        node, bias = apart
        taken.append(node)
    if node not in nodes or node.op_type not in PRODUCTS or (bias is not None and len(node.inputs) > 2):
        return None
    if any(user not in taken for n in taken[1:] for user, _ in n.outputs[0].uses()):
        return None
    return Last(taken, node, bias if len(node.inputs) < 3 else node.inputs[2], gates)


def _weighed(node: ir.Node, read: Mapping[ir.Value, Alike]) -> ir.Node | None:
    """The node that gives what another one weighs by what is read."""
    others = [v for v in node.inputs if v not in read] if node.op_type == "Mul" else []
    return others[0].producer() if len(others) == 1 and others[0] is not None else None


def _apart(node: ir.Node, nodes: Sequence[ir.Node]) -> tuple[ir.Node, ir.Value | None] | None:
    """The one product of a network in a sum, and what is added to it."""
    both = [(v.producer(), w) for v, w in zip(node.inputs, node.inputs[::-1], strict=True) if v is not None]
    products = [(n, w) for n, w in both if n is not None and n in nodes and n.op_type in PRODUCTS]
    return products[0] if len(products) == 1 else None
