"""Attention in which a constant mask hides keys from queries: computed of those that it does not hide.

Decoders hide what comes later (Vaswani et al. 2017), local attention what is far (Beltagy, Peters and Cohan 2020), and
what is packed or streamed what belongs to another part: half of all scores, or nearly all. Exporters write all of them,
and a constant of great negative numbers, so that their shares are 0. Here queries stand in blocks, each with no more
keys than it sees: the shares that are left out are 0 exactly, of all scores that are no 10⁸ apart.

A softmax of hidden scores also takes long: its exponentials are denormal numbers, which an Intel Xeon (family 6, model
167) computes in 2.5 ns each, and others in 0.4. Attention of 12 heads among 512 tokens takes onnxruntime 1.32 14.6 ms
there, and 7.3 in blocks; among 1,024, of which each sees 128, 79 and 12.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.otherwise.attention.blocks import Block, worth
from superopt.onnx_io.otherwise.attention.hiding import hidden
from superopt.onnx_io.otherwise.attention.scores import Scores, sliced
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of


def hidden_keys(program: Program) -> dict[int, Put]:
    """How to compute attention in blocks, by the places of the products of shares and values."""
    if opset_of(program.model) < 10:  # a slice is told by attributes there
        return {}
    found = of_nodes(program, lambda node: _blocks(program, node) if is_a(node, "MatMul") else None)
    return dict.fromkeys(found, partial(_put, program))


def _blocks(program: Program, node: ir.Node) -> tuple[Scores, list[Block]] | None:
    """The scores that a product of values is of, and its blocks; None of others, and where these are not worth it."""
    shares = node.inputs[0]
    known = [program.term(v) for v in (*node.inputs[1:], *node.outputs) if v is not None]
    given, ranks = known[-1], [term.type.rank for term in known if term is not None]
    if shares is None or given is None or len(ranks) < 2 or min(ranks) < 2:
        return None
    scores = Scores(program, shares)
    unseen = hidden(scores) if scores.is_read and _is_alone(scores, node) else None
    stack = program.values[shares.name or ""].shape[:-2] if unseen is not None else ()
    blocks = None if unseen is None else worth(unseen, stack, given.shape)
    return None if blocks is None else (scores, blocks)


def _is_alone(scores: Scores, end: ir.Node) -> bool:
    """Whether nothing else reads what stands between."""
    values = [v for node in scores.nodes for v in node.outputs]
    readers = [user for v in values for user, _ in v.uses()]
    return not any(v.is_graph_output() for v in values) and all(n is end or n in scores.nodes for n in readers)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let attention be computed in blocks of queries, one after the other."""
    found, (shares, values) = _blocks(program, node), node.inputs
    if found is None or shares is None or values is None:  # what another one changed
        return False
    scores, blocks = found
    made, rows, (_, keys) = draft.nodes("seen"), [], scores.size or (0, 0)
    for block in blocks:
        some = scores.part(made, shares, block, {})
        rows.append(made.node("MatMul", [some, sliced(made, values, -2, block.keys, keys)]))
    rank = program.values[node.outputs[0].name or ""].type.rank
    joined = made.joined(rows, rank - 2)
    return draft.replace(node, made, [joined])
