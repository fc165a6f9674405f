"""Models with nodes that move something to where it is: left out, as runtimes copy it.

`torch.cat` of a cache that was empty and what is put into it is exported as a Concat of one input: with recent versions
of transformers each step of a decoder so copies all that it knows of a text or a sound. Masks are expanded to the shape
that they have, or cut to their own length, by sizes that are computed while the model runs. Of 1,500 places of six
heads of 64 onnxruntime 1.32 takes 190 µs for such a copy, twice as long as for their product with a query. So is a
rectifier left out whose slope was learned until it bends nothing (VanillaNet; Chen et al. 2023).
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a, real
from superopt.onnx_io.surgery import bury, let_go

_MOVING = ("Concat", "Expand", "Pad", "Slice", "Tile")
"""What moves or repeats elements, and makes a copy also where these stay."""


def unchanged(program: Program) -> dict[int, Put]:
    """How to leave nodes out that give what they are given, by their places; not what the model gives itself."""
    nodes = ((place, node) for place, node in enumerate(program.model.graph) if is_a(node, *_MOVING, "LeakyRelu"))
    made, found = program.made, dict[int, Put]()
    for place, node in nodes:
        result = made.get(node.outputs[0].name or "")
        names = [value.name or "" for value in node.inputs if value is not None]
        if is_a(node, "LeakyRelu"):
            same = names if real(node, "alpha", 0.01) == 1.0 else []
        else:
            same = [name for name in names if result is not None and program.values.get(name) is result]
        if same and len(node.outputs) == 1 and not node.outputs[0].is_graph_output():
            found[place] = partial(_put, same[0])
    return found


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
