"""Nodes are put otherwise in one copy, of which ONNX's check decides."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from superopt.errors import Undecided, left_undone
from superopt.onnx_io import load, replacing, understand
from superopt.onnx_io.files import checked
from superopt.onnx_io.replacing import Draft, of_nodes, replaced
from superopt.onnx_io.surgery import replace_node
from tests.onnx_io.models import model

CHAIN = "g (float[n, 4] x) => (float[n, 4] y) { a = Exp(x) b = Tanh(a) c = Relu(b) d = Neg(c) y = Abs(d) }"


def put(op_type: str) -> replacing.Put:
    """Puts another operator where a node is."""

    def other(draft: Draft, node: ir.Node) -> bool:
        made = ir.Node("", op_type, [node.inputs[0]])
        draft.model.graph.insert_before(node, made)
        replace_node(draft.model, node, made.outputs)
        return True

    return other


@pytest.mark.parametrize("refused", range(5))
def test_a_form_that_is_refused_keeps_no_other_as_it_is(refused: int) -> None:
    source, changed = load(model(CHAIN)), set[int]()
    left = {place: put("Nothing" if place == refused else "Sign") for place in range(5)}
    while (made := replaced(source, left)) is not None:
        source = made
        changed = {i for i, node in enumerate(source.graph) if node.op_type == "Sign"}
        left = {place: other for place, other in left.items() if place not in changed}
    assert changed == {0, 1, 2, 3, 4} - {refused}


def test_a_form_that_nobody_foresaw_keeps_no_other_as_it_is() -> None:
    def unforeseen(draft: Draft, node: ir.Node) -> bool:
        draft.model.graph.insert_before(node, ir.Node("", "Nothing", [node.inputs[0]]))
        return bool(node.attributes["axis"])

    made = replaced(load(model(CHAIN)), {0: put("Sign"), 1: unforeseen, 3: put("Sign")})
    assert made is not None
    assert "Sign" in [node.op_type for node in made.graph]
    assert "Nothing" not in [node.op_type for node in made.graph]


@pytest.mark.parametrize("error", [KeyError("a form"), Undecided("a size that is not told apart")])
def test_a_node_that_cannot_be_read_takes_no_other_along(error: Exception) -> None:
    def read(node: ir.Node) -> str | None:
        if node.op_type == "Relu":
            raise error
        return node.op_type if node.op_type != "Neg" else None

    assert of_nodes(understand(load(model(CHAIN))), read) == {0: "Exp", 1: "Tanh", 4: "Abs"}


def test_what_nobody_foresaw_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def mistaken(draft: Draft, node: ir.Node) -> bool:
        raise KeyError(node.op_type)

    with caplog.at_level("INFO", "superopt"):
        assert replaced(load(model(CHAIN)), {1: mistaken}) is None
        with left_undone("a way"):
            raise TypeError("a mistake")
        with left_undone("another"):
            raise Undecided("a size that is not told apart")
    assert caplog.messages == ["node 1 stays as it is: KeyError: 'Tanh'", "a way is left undone: TypeError: a mistake"]


def test_what_another_left_unread_is_not_replaced_too() -> None:
    def constant(draft: Draft, node: ir.Node) -> bool:
        made = ir.Node("", "Relu", [draft.model.graph.inputs[0]])
        draft.model.graph.insert_before(node, made)
        replace_node(draft.model, node, made.outputs)
        return True

    made = replaced(load(model(CHAIN)), {3: constant, 1: put("Sign")})
    assert made is not None
    assert [node.op_type for node in made.graph] == ["Relu", "Abs"]


def test_all_that_is_written_otherwise_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[2, 3, 5, 7] x, float[2, 4, 6, 2] g, float[9, 4] z, float[7, 4] r)
        => (float[2, 3, 4, 6] y, float[9, 4] w) {
        y = GridSample<align_corners = 1>(x, g)
        i = Constant<value = int64[7, 1] {8, 0, 3, 1, 6, 2, 5}>()
        s = Shape(r) e = Expand(i, s) w = ScatterElements<reduction = "add">(z, e, r) }"""
    made = list[ir.Model]()

    def counted(draft: ir.Model) -> ir.Model:
        made.append(draft)
        return checked(draft)

    monkeypatch.setattr(replacing, "checked", counted)
    kinds = {node.op_type for node in understand(load(model(text, 18))).model.graph}
    assert {"Mul", "ScatterND"} <= kinds
    assert len(made) == 1
