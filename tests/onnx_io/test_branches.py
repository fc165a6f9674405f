"""Branches are taken out as models and put in again."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.errors import SuperoptError
from superopt.onnx_io import Branch, check, lifted, load, spliced, splicing, understand
from tests.merged import conditional, merged
from tests.models import normalized, weight
from tests.onnx_io.networks import run

IMAGE = np.random.default_rng(0).standard_normal((1, 3, 28, 28)).astype(np.float32)
THEN, ELSE = Branch(1, "then_branch"), Branch(1, "else_branch")


def test_a_branch_is_a_model_of_its_own_with_the_outer_ones_weights() -> None:
    program = understand(load(merged()))
    found = lifted(program, THEN)
    assert found is not None
    check(found)
    made = ir.to_proto(found)
    assert [i.name for i in made.graph.input] == ["image"]
    assert {w.name for w in made.graph.initializer} == {"k", "b", "last"}
    np.testing.assert_array_equal(run(made, {"image": IMAGE})[0], run(normalized(), {"image": IMAGE})[0])


def test_constants_that_nodes_give_are_weights_of_a_branch() -> None:
    source = conditional("c = Squeeze(flag) n = Constant<value = float[1] {3}>()", then="a = Mul(x, n)")
    found = lifted(understand(load(source)), Branch(2, "then_branch"))
    assert found is not None
    assert list(found.graph.initializers) == ["n"]


def test_copies_of_weights_are_the_weights() -> None:
    source = conditional("c = Squeeze(flag)", then="w = Identity(k) a = Mul(x, w)", other="b = Identity(k)")
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([3, 4]), "k"))
    program = understand(load(source))
    then, other = (lifted(program, branch) for branch in (THEN, ELSE))
    assert then is not None
    assert other is not None
    assert [n.op_type for n in then.graph] == ["Mul"]
    assert [n.op_type for n in other.graph] == ["Identity"]


@pytest.mark.parametrize(
    ("inputs", "then"),
    [("bool[1] flag, seq(float[2]) s", "i = Constant<value = int64 {0}>() a = SequenceAt(s, i)")],
)
def test_a_branch_that_reads_what_is_no_tensor_is_no_model(inputs: str, then: str) -> None:
    program = understand(load(conditional("c = Squeeze(flag)", inputs, then)))
    assert lifted(program, THEN) is None
    assert lifted(program, ELSE) is not None


def test_sizes_that_are_symbols_keep_their_names() -> None:
    program = understand(load(merged(normalized("N", size="side"), normalized("N", size="side"))))
    found = lifted(program, THEN)
    assert found is not None
    assert [str(d) for d in found.graph.inputs[0].shape or ()] == ["N", "3", "side", "side"]


@pytest.mark.parametrize("small", [0, 2**16], ids=["outside", "inside"])
def test_branches_put_in_again_compute_what_they_did(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splicing, "SMALL", small)
    other = normalized()
    other.graph.initializer[2].CopyFrom(onnx.numpy_helper.from_array(weight(8, 64, 1, 1, seed=5), "last2"))
    other.graph.node[-1].input[1] = "last2"
    source = merged(other=other)
    program = understand(load(source))
    models = {branch: lifted(program, branch) for branch in (THEN, ELSE)}
    found = spliced(program, {branch: m for branch, m in models.items() if m is not None})
    check(found)
    made = ir.to_proto(found)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    for flag in (True, False):
        feeds = {"image": IMAGE, "flag": np.array([flag])}
        np.testing.assert_array_equal(run(made, feeds)[0], run(source, feeds)[0])


def test_a_weight_that_one_branch_alone_reads_goes_there_and_a_shared_one_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splicing, "SMALL", 0)
    other = normalized()
    other.graph.initializer[2].name = other.graph.node[-1].input[1] = "last2"
    program = understand(load(merged(other=other)))
    found = lifted(program, ELSE)
    assert found is not None
    made = ir.to_proto(spliced(program, {ELSE: found}))
    assert {w.name for w in made.graph.initializer} == {"k", "b", "last"}
    (inner,) = (a.g for a in made.graph.node[1].attribute if a.name == "else_branch")
    assert len(inner.initializer) == 1


def test_names_within_a_branch_are_none_of_the_outer_models() -> None:
    """One that is made new in a branch may be that of a value beside it."""
    source = conditional("c = Squeeze(flag) t = Abs(x)", then="u = Neg(x) a = Exp(u)", other="b = Neg(t)")
    program = understand(load(source))
    branch = Branch(2, "then_branch")
    found = lifted(program, branch)
    assert found is not None
    found.graph[0].outputs[0].name = "t"
    made = ir.to_proto(spliced(program, {branch: found}))
    onnx.checker.check_model(made, full_check=True)
    feeds = {"x": np.float32([1, 2]), "flag": np.array([True])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(source, feeds)[0])


def test_a_domain_that_a_branch_alone_imports_is_the_models() -> None:
    program = understand(load(merged()))
    then = lifted(program, THEN)
    assert then is not None
    then.opset_imports["com.example"] = 3
    assert dict(spliced(program, {THEN: then}).opset_imports) == {**program.model.opset_imports, "com.example": 3}


def test_a_branch_of_another_opset_or_with_other_inputs_is_refused() -> None:
    program = understand(load(merged()))
    newer, renamed = load(normalized(opset=18)), load(normalized())
    renamed.graph.inputs[0].name = "flagged"
    for wrong in (newer, renamed):
        with pytest.raises(SuperoptError, match="a branch"):
            spliced(program, {THEN: wrong})
