"""`superopt inspect`: counts, shares and reasons, and what is said where a model cannot be run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

from benchmarks.halves import half
from superopt import inspection
from superopt.cost.flops import flops
from superopt.cost.profile import RUNS
from superopt.inspection import Group, Inspection, inspect_model
from superopt.onnx_io import facts, load, understand
from tests.commands import Ran, assert_refused, files, superopt
from tests.models import model, normalized, one_relu, weight, with_weights_beside
from tests.test_cli_refusals import UNREADABLE, unreadable

pytestmark = pytest.mark.usefixtures("timings")  # so that nobody waits for the user's own lock for measuring

Command = Callable[..., Ran]
SHAPE = [1, 4, 8, 8]


def chain(*nodes: NodeProto, shape: Sequence[int | str] = SHAPE, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Nodes from x to y, with a vector s of the channels."""
    ends = [(n, kind, shape) for n in "xy"]
    return model(nodes, ends[:1], ends[1:], {"s": np.ones(4, np.float32)}, opset=21, ir=10)


def with_a_branch() -> onnx.ModelProto:
    """A node that is understood, and an If, which is opaque, with nodes in its branches."""
    ends = [helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 1, 256, 256])]
    twice = [helper.make_node("MatMul", ["r", "r"], ["u"]), helper.make_node("MatMul", ["u", "r"], ["t"])]
    then = helper.make_graph(twice, "then", [], ends)
    otherwise = helper.make_graph([helper.make_node("Neg", ["r"], ["t"])], "otherwise", [], ends)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("If", ["b"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    given = [("x", TensorProto.FLOAT, [1, 1, 256, 256]), ("b", TensorProto.BOOL, [])]
    return model(nodes, given, [("y", TensorProto.FLOAT, [1, 1, 256, 256])])


def inspected(proto: onnx.ModelProto, folder: Path, timed: bool = True) -> Inspection:
    onnx.save(proto, folder / "m.onnx")
    return inspect_model(folder / "m.onnx", timed)


def group(found: Inspection, operator: str) -> Group:
    (one,) = [g for g in found.groups if g.operator == operator]
    return one


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    return inspected(normalized(), tmp_path_factory.mktemp("inspected"))


def test_every_node_is_counted_once_and_under_its_operator(convolutions: Inspection) -> None:
    assert {g.operator: (g.nodes, g.understood, g.opaque) for g in convolutions.groups} == {
        "Conv": (2, 2, 0),
        "LRN": (1, 1, 0),
        "Relu": (1, 1, 0),
    }
    assert (convolutions.whole.nodes, convolutions.known.nodes) == (4, 4)


def test_the_operations_of_a_convolution_are_those_of_its_sums(convolutions: Inspection) -> None:
    places, bias = 28 * 28, 64
    expected = 2 * places * 64 * 3 * 9 + bias * places + 2 * places * 8 * 64
    assert group(convolutions, "Conv").flops == expected


def test_shares_of_all_operators_are_the_whole(convolutions: Inspection) -> None:
    assert sum(g.flops_share or 0 for g in convolutions.groups) == pytest.approx(1)
    assert sum(g.time_share or 0 for g in convolutions.groups) == pytest.approx(1)
    assert convolutions.known.flops_share == 1.0
    assert 1 <= convolutions.runs <= RUNS[1]


def test_a_slow_operator_of_few_operations_is_seen_by_its_time(convolutions: Inspection) -> None:
    """The runtime computes an LRN slowly: by operations it is small, by time the largest."""
    lrn = group(convolutions, "LRN")
    assert lrn.flops_share is not None
    assert lrn.time_share is not None
    assert lrn.time_share > 2 * lrn.flops_share
    assert convolutions.groups[0] is lrn


def test_what_only_weights_take_is_no_operation(tmp_path: Path) -> None:
    """At inference, a batch normalization is one factor and one summand."""
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"])
    assert group(inspected(chain(node), tmp_path, timed=False), "BatchNormalization").flops == 2 * 4 * 8 * 8


def test_a_composite_operator_takes_what_its_shortest_definition_takes(tmp_path: Path) -> None:
    proto = chain(helper.make_node("LRN", ["x"], ["y"], size=3))
    program = understand(load(proto))
    (term,) = program.steps[0].terms
    alternatives = [flops([m]) for m in term.operator.definitions(*term.inputs)]  # type: ignore[attr-defined]
    assert len(alternatives) > 1
    assert group(inspected(proto, tmp_path, timed=False), "LRN").flops == min(alternatives)


def test_opaque_nodes_count_as_one_operation_an_element(tmp_path: Path) -> None:
    half = chain(helper.make_node("Relu", ["x"], ["y"]), kind=TensorProto.BFLOAT16)
    found = group(inspected(half, tmp_path), "Relu")
    assert (found.opaque, found.flops) == (1, 4 * 8 * 8)
    assert found.reasons == {"element type bfloat16 of 'x'": 1}


def test_a_branch_is_timed_with_the_node_that_takes_it_and_once(tmp_path: Path) -> None:
    found = inspected(with_a_branch(), tmp_path)
    branch, relu = group(found, "If"), group(found, "Relu")
    assert branch.reasons == {"it has subgraphs": 1}
    assert None not in (branch.time_share, relu.time_share)
    assert (branch.time_share or 0) + (relu.time_share or 0) == pytest.approx(1)
    assert found.added_seconds == 0


def test_what_the_runtime_runs_in_the_place_of_a_node_is_told(tmp_path: Path) -> None:
    """It has no kernel for a group normalization, and runs the body of its function: nodes that are not the model's."""
    norm = helper.make_node("GroupNormalization", ["x", "s", "s"], ["n"], num_groups=2)
    found = inspected(chain(norm, helper.make_node("Relu", ["n"], ["y"])), tmp_path)
    assert (group(found, "GroupNormalization").untimed, found.whole.untimed) == (1, 1)
    assert found.added_seconds
    assert (group(found, "Relu").time_share or 1) < 1


def test_understood_nodes_that_the_runtime_replaces_make_the_time_a_lower_bound(
    inside: Command, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Mish", ["r"], ["y"])]
    found = inspected(chain(*nodes), tmp_path)
    assert (found.known.nodes, found.known.untimed) == (2, 1)
    assert ", at least " in inside("inspect", "m.onnx", cwd=tmp_path).out


def test_nodes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    heavy, light = helper.make_node("LRN", ["x"], ["n"], size=3), helper.make_node("Relu", ["n"], ["y"])
    heavy.name = light.name = "same"
    found = inspected(chain(heavy, light), tmp_path)
    assert found.whole.untimed == 0
    assert None not in (group(found, "LRN").seconds, group(found, "Relu").seconds)


def test_weights_beside_a_model_are_found(tmp_path: Path) -> None:
    found = inspect_model(with_weights_beside(tmp_path / "from"))
    assert (found.not_timed, found.whole.untimed) == (None, 0)


def unknown_to_the_runtime() -> onnx.ModelProto:
    ours = one_relu()
    ours.graph.node[0].domain = "of.our.own"
    ours.opset_import.append(helper.make_opsetid("of.our.own", 1))
    return ours


def test_a_model_that_cannot_be_run_is_shown_without_time_and_why(inside: Command, tmp_path: Path) -> None:
    onnx.save(unknown_to_the_runtime(), tmp_path / "m.onnx")
    ran = inside("inspect", "m.onnx", cwd=tmp_path)
    assert ran.code == 0
    assert ran.err.startswith("superopt: time is not shown: onnxruntime cannot load the model: ")
    assert ran.err.count("\n") == 1
    assert "of.our.own.Relu" in ran.out
    assert "0 of 1 nodes understood (0.0 %), at most 0.0 % of flops\n" in ran.out


def test_a_model_of_16_bits_is_told_of_as_the_runtime_computes_it(inside: Command, tmp_path: Path) -> None:
    found = inspected(half(normalized()), tmp_path)
    assert found.in_32_bits
    assert set(group(found, "LRN").reasons) == set(group(found, "Conv").reasons) == set()
    assert found.not_timed is None
    assert "16-bit floats are computed in 32 bits" in inside("inspect", "m.onnx", "--no-time", cwd=tmp_path).out


def test_where_time_is_not_asked_for_nothing_is_run(inside: Command, tmp_path: Path) -> None:
    onnx.save(unknown_to_the_runtime(), tmp_path / "m.onnx")
    ran = inside("inspect", "m.onnx", "--no-time", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")


def test_json_has_every_reason_and_the_table_the_most_frequent(inside: Command, tmp_path: Path) -> None:
    names = ["x", *"abcde", "y"]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)]
    onnx.save(chain(*nodes, kind=TensorProto.BFLOAT16), tmp_path / "m.onnx")
    printed: dict[str, Any] = json.loads(inside("inspect", "m.onnx", "--json", "--no-time", cwd=tmp_path).out)
    found = Inspection.model_validate(printed)
    assert group(found, "Relu").reasons == {f"element type bfloat16 of '{n}'": 1 for n in names[:-1]}
    table = inside("inspect", "m.onnx", "--no-time", cwd=tmp_path).out
    assert "element type bfloat16 of 'x'" in table
    assert "3 other reasons, which --json tells" in table


def test_it_is_run_as_a_user_runs_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    proto = chain(helper.make_node("Conv", ["x", "k"], ["y"]), shape=["N", 4, 8, 8])
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight(4, 4, 1, 1), "k"))
    onnx.save(proto, tmp_path / "m.onnx")
    before = files(tmp_path)
    ran = superopt("inspect", "m.onnx", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "1 of 1 nodes understood (100.0 %), 100.0 % of flops, 100.0 % of time\n" in ran.out
    assert files(tmp_path) == before


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert inspected(normalized(), tmp_path).not_timed is None
    assert inspected(unknown_to_the_runtime(), tmp_path).not_timed is not None
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_invalid_model_is_refused_by_name(inside: Command, kind: str, tmp_path: Path) -> None:
    unreadable(kind, tmp_path)
    assert_refused(inside("inspect", "m.onnx", cwd=tmp_path), 3, "m.onnx")


def test_a_model_that_is_not_there_is_wrong_usage(inside: Command, tmp_path: Path) -> None:
    assert_refused(inside("inspect", "nowhere.onnx", cwd=tmp_path), 2, "nowhere.onnx")


def test_help_teaches_what_the_columns_mean(inside: Command, tmp_path: Path) -> None:
    ran = inside("inspect", "--help", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    for word in ("opaque", "flops", "profiler", "--no-time", "--json", "Exit codes"):
        assert word in ran.out


@pytest.mark.parametrize("size", [2**63 - 1, 10**6])
def test_an_input_that_no_machine_holds_is_said_and_not_drawn(size: int, tmp_path: Path) -> None:
    found = inspected(chain(helper.make_node("Relu", ["x"], ["y"]), shape=[size, size]), tmp_path)
    assert found.known.nodes == 1
    assert found.not_timed is not None
    assert f'input "x" of shape [{size}, {size}] does not fit in memory' in found.not_timed


@pytest.mark.parametrize("timed", [True, False])
def test_symbolic_sizes_are_taken_as_likely_ones_and_told(timed: bool, tmp_path: Path) -> None:
    ends = [("x", TensorProto.FLOAT, ["N", 3, "H", "W"]), ("y", TensorProto.FLOAT, ["N", 4, "H2", "W2"])]
    node = helper.make_node("Conv", ["x", "k"], ["y"])
    onnx.save(model([node], ends[:1], ends[1:], {"k": weight(4, 3, 3, 3)}), tmp_path / "m.onnx")
    found = inspect_model(tmp_path / "m.onnx", timed)
    assert found.assumed == {"x": "1,3,224,224"}
    assert found.whole.flops == 2 * 27 * 4 * 222 * 222
    assert (found.whole.seconds is not None) == timed


def test_a_model_that_never_ends_is_inspected_without_its_time(
    endless: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "LONGEST_S", 2.0)
    found = inspected(endless, tmp_path)
    assert found.not_timed == "it did not end within 2 s"
    assert group(found, "Loop").seconds is None


def test_weights_in_nodes_that_give_constants_count_as_weights(tmp_path: Path) -> None:
    given = normalized()
    weights = list(given.graph.initializer)
    del given.graph.initializer[:]
    for w in reversed(weights):
        given.graph.node.insert(0, helper.make_node("Constant", [], [w.name], value=w))
    assert facts(load(given)).bytes == facts(load(normalized())).bytes > 0
