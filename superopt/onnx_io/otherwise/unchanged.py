"""Models with nodes that move something to where it is: left out, as runtimes copy it.

`torch.cat` of a cache that was empty and what is put into it is exported as a Concat of one input: with recent versions
of transformers each step of a decoder so copies all that it knows of a text or a sound. Masks are expanded to the shape
that they have, or cut to their own length, by sizes that are computed while the model runs. Of 1,500 places of six
heads of 64 onnxruntime 1.32 takes 190 µs for such a copy, twice as long as for their product with a query. So is a
rectifier left out whose slope was learned until it bends nothing (VanillaNet; Chen et al. 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, real
from superopt.onnx_io.surgery import bury, let_go
from superopt.term import Term

_MOVING = ("Concat", "Expand", "Pad", "Slice", "Tile")
"""What moves or repeats elements, and makes a copy also where these stay."""


def unchanged(program: Program) -> dict[int, Put]:
    """How to leave nodes out that give what they are given, by their places; not what the model gives itself."""
    found, made = dict[int, Put](), program.made
    for place, node in enumerate(program.model.graph):
        same = _same(program, made, node)
        if same is not None and len(node.outputs) == 1 and not node.outputs[0].is_graph_output():
            found[place] = partial(_put, same)
    return found


def _same(program: Program, made: Mapping[str, Term], node: ir.Node) -> str | None:
    """What a node reads and gives as it is, by name."""
    names = [value.name or "" for value in node.inputs if value is not None]
    if is_a(node, "LeakyRelu"):
        return names[0] if real(node, "alpha", 0.01) == 1.0 else None
    result = made.get(node.outputs[0].name or "") if is_a(node, *_MOVING) else None
    return next((name for name in names if result is not None and program.values.get(name) is result), None)


def _put(name: str, draft: Draft, node: ir.Node) -> bool:
    """Let what reads a node read the input of this name."""
    given = next((value for value in node.inputs if value is not None and value.name == name), None)
    if given is None:  # another has changed it
        return False
    node.outputs[0].replace_all_uses_with(given)
    read = let_go(node)
    draft.model.graph.remove(node)
    bury(draft.model, dict.fromkeys(read))
    return True
