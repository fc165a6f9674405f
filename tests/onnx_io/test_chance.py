"""Outputs that are others each time are known, wherever the operator that draws them stands."""

from __future__ import annotations

import onnx
import pytest

from superopt.onnx_io import left_to_chance, load, understand

HEADER = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'
CALLED = """<domain: "own", opset_import: ["": 17, "own": 1]> outer (a) => (b) { b = own.inner(a) }
            <domain: "own", opset_import: ["": 17]> inner (a) => (b) { b = %s }"""

CHOOSING = """<domain: "own", opset_import: ["": 17]> choose <branch> (a) => (b) { d = Constant<value = bool {1}>()
              b = If<then_branch: graph = @branch, else_branch = other () => (float[2] e) {
                e = Constant<value_floats = [0.0, 0.0]>() }>(d) }"""


def _branch(body: str) -> str:
    branches = (
        f"then_branch = then () => (float[2] t) {{ t = {body} }}",
        "else_branch = other () => (float[2] e) { e = Identity(x) }",
    )
    return f"If<{', '.join(branches)}>(c)"


DRAWN = {
    "a node": ("z = RandomNormalLike(x)", "", ["z"]),
    "a node before it": ("n = RandomUniformLike(x) z = Add(n, x)", "", ["z"]),
    "a node with a seed": ("z = RandomNormalLike<seed = 1.0>(x)", "", []),
    "a branch": (f"z = {_branch('RandomNormalLike(x)')}", "", ["z"]),
    "a branch of a branch": (f"z = {_branch(_branch('Bernoulli(x)'))}", "", ["z"]),
    "a function of a function": ("z = own.outer(x)", CALLED % "RandomNormalLike(a)", ["z"]),
    "a branch that a function is called with": (
        "z = own.choose<branch = then () => (float[2] t) { t = RandomNormal<shape = [2]>() }>(x)",
        CHOOSING,
        ["z"],
    ),
    "a function that draws nothing": ("z = own.outer(x)", CALLED % "Identity(a)", []),
}


@pytest.mark.parametrize("where", DRAWN)
def test_chance_is_known_in(where: str) -> None:
    body, functions, drawn = DRAWN[where]
    text = f"g (float[2] x, bool c) => (float[2] y, float[2] z) {{ y = Relu(x) {body} }}"
    source = onnx.parser.parse_model(f"{HEADER} {text} {functions}")
    assert left_to_chance(understand(load(source))) == drawn
