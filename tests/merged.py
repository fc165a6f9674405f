"""Models of which an input says which branch runs, as exporters merge two decoders into one file."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from tests.models import normalized
from tests.onnx_io.models import model

PREFIX = {"then_branch": "yes.", "else_branch": "no."}


def merged(then: onnx.ModelProto | None = None, other: onnx.ModelProto | None = None) -> onnx.ModelProto:
    """Two models of the same inputs and outputs, normalized ones by default, as branches; weights are the outer
    model's, those of one name once.
    """
    parts = {"then_branch": then or normalized(), "else_branch": other or normalized()}
    given = parts["then_branch"]
    graphs = {name: _branch(part, PREFIX[name]) for name, part in parts.items()}
    node = helper.make_node("If", ["condition"], [o.name for o in given.graph.output], name="which", **graphs)
    weights = {w.name: w for part in parts.values() for w in part.graph.initializer}
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [1])
    squeezed = helper.make_node("Squeeze", ["flag"], ["condition"])
    graph = helper.make_graph(
        [squeezed, node], "merged", [*given.graph.input, flag], given.graph.output, list(weights.values())
    )
    made = helper.make_model(graph, opset_imports=given.opset_import, ir_version=given.ir_version)
    helper.set_model_props(made, {"owner": "someone"})
    return made


def by_rate(given: onnx.ModelProto) -> onnx.ModelProto:
    """The same, where the first branch is for an input `rate` of 16000."""
    made = onnx.ModelProto.FromString(given.SerializeToString())
    made.graph.node[0].CopyFrom(helper.make_node("Equal", ["rate", "sixteen"], ["condition"]))
    made.graph.initializer.append(helper.make_tensor("sixteen", TensorProto.INT64, [], [16000]))
    made.graph.input[-1].CopyFrom(helper.make_tensor_value_info("rate", TensorProto.INT64, []))
    return made


def _branch(part: onnx.ModelProto, prefix: str) -> onnx.GraphProto:
    """A branch whose outputs are of other names than those of the node that holds it."""
    ends = {o.name: f"{prefix}{o.name}" for o in part.graph.output}
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in part.graph.node]
    for node in nodes:
        node.output[:] = [ends.get(name, name) for name in node.output]
        node.input[:] = [ends.get(name, name) for name in node.input]
    outputs = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in part.graph.output]
    for output in outputs:
        output.name = ends[output.name]
    return helper.make_graph(nodes, prefix, [], outputs)


def conditional(
    condition: str, inputs: str = "bool[1] flag", then: str = "a = Neg(x)", other: str = "b = Exp(x)"
) -> onnx.ModelProto:
    """A model that gives −x where its `condition` makes a `c` that holds, and the exponential of x where not."""
    return model(f"""g (float[2] x, {inputs}) => (float[2] y) {{ {condition} y = If (c) <
      then_branch = p () => (float[2] a) {{ {then} }}, else_branch = q () => (float[2] b) {{ {other} }}> }}""")
