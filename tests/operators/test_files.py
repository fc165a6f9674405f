"""Operators in files of the user's: declared once, refused in one line, and no matter for superopt's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx.parser
import pytest

from superopt.arithmetic.field import FIELD
from superopt.cost.domains import unfolded
from superopt.enumerate.family_text import load_family, with_operators
from superopt.enumerate.generate import generate
from superopt.errors import UsageError
from superopt.onnx_io import Program, load, rewritten, standalone, understand
from superopt.operators import CATALOGUE, READERS, NotUnderstood
from superopt.operators.declared import Declared
from superopt.operators.files import apart, declare_files
from superopt.operators.pointwise import Mul, Relu
from superopt.rules.digests import laws_hash, operators_hash
from superopt.rules.format import load_rules, parse_file, print_file
from superopt.search.cutting.pieces import cut_into_pieces
from superopt.search.rewriting.rewrites import rewrites_of
from superopt.term import Graph, variable
from superopt.verify.check import verify
from superopt.verify.prove import Proved
from superopt.verify.trusted import seal, sealed, trusted_rules

HEAD = """
import numpy as np
from superopt.arithmetic.carrier import Array
from superopt.operators.activations import Activation
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.pointwise import Mul, Relu, UnaryReal
"""
SQUARED = (
    HEAD
    + '''
@operator("squared_relu", onnx="SquaredRelu", domain="com.example")
class SquaredRelu(Activation):
    """`y = max(x, 0)²`."""
    enumerated = True
    needs = frozenset({"order"})
    laws = "(law squared (given (?x *)) (= (squared_relu ?x) (mul (relu ?x) (relu ?x))))"

    def definition(self, *inputs):
        return Mul()(Relu()(inputs[0]), Relu()(inputs[0]))
'''
)
SECRET = (
    HEAD
    + '''
@operator("secret", onnx="Secret", domain="com.example")
class Secret(UnaryReal):
    """`y = ?`."""
    needs = frozenset({"exp"})
    laws = """
    (law secret (given (?x *)) (= (secret (secret ?x)) (secret ?x)))
    (law wrong (given (?x *)) (= (relu (tanh ?x)) (tanh ?x)))
    """

    def real(self, x):
        return np.cosh(x)
'''
)
USES = parse_file("(rule r (given (?x n)) (from (relu (relu ?x))) (to (relu ?x)))").rules
FOLD = "(rule fold (given (?x n)) (from (mul (relu ?x) (relu ?x))) (to (squared_relu ?x)))"
UNFOLD = "(rule unfold (given (?x n)) (from (squared_relu ?x)) (to (mul (relu ?x) (relu ?x))))"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test declares, no other test knows."""
    with apart():
        yield


def declared(folder: Path, text: str, name: str = "mine.py") -> type[Declared]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return declare_files([path])[-1]


def program(body: str, domains: str = ', "com.example" : 1') -> Program:
    text = f'<ir_version: 9, opset_import: ["" : 18{domains}]> g (float[4] x) => (float[4] y) {{ {body} }}'
    return understand(load(onnx.parser.parse_model(text)))


def test_a_file_is_declared_once(tmp_path: Path) -> None:
    first = declared(tmp_path, SQUARED)
    assert declare_files([tmp_path / "mine.py", tmp_path / "x" / ".." / "mine.py"]) == [first]
    assert CATALOGUE["squared_relu"] is first
    assert READERS["com.example", "SquaredRelu"] == first.from_onnx


LONE = '@operator("lone", onnx="Lone", domain="d")\nclass Lone('


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (\n", "mine.py:1: '(' was never closed"),
        ("\nimport nothing_like_it\n", "mine.py:2: ModuleNotFoundError"),
        ("import sys\nsys.exit(0)\n", "mine.py:2: SystemExit"),
        ("x = 1\n", "mine.py: declares no operator"),
        (SQUARED.replace("squared_relu", "relu"), "mine.py:9: operator relu is declared twice"),
        (SQUARED.replace(', domain="com.example"', "").replace("SquaredRelu", "Relu"), "mine.py: Relu is declared"),
        (SQUARED.replace("(mul (relu", "(mull (relu"), "laws of squared_relu:1:50: unknown operator mull"),
        (SQUARED.replace('?x))))"', '?x)))"'), "is never closed"),
        (SQUARED.replace("Relu()(inputs[0]))", "nobody)"), "mine.py:17: NameError"),
        (SQUARED.replace('"""`y', '"""y'), "its docstring opens with its formula"),
        (HEAD + LONE + 'Declared):\n    """`y`."""\n', "it needs a shape rule"),
        (HEAD + LONE + 'Activation):\n    """`y`."""\n', "has no definition"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line_and_leaves_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    names, readers = dict(CATALOGUE), dict(READERS)
    with pytest.raises(UsageError) as refused:
        declared(tmp_path, text)
    assert said in str(refused.value)
    assert str(tmp_path / "mine.py") in str(refused.value)
    assert (names, readers) == (CATALOGUE, READERS)
    declared(tmp_path, SQUARED)  # corrected, it is taken


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.py: cannot be read: No such file"):
        declare_files([tmp_path / "no.py"])


def test_superopts_own_rules_keep_their_seal_and_rules_that_use_the_file_have_its(tmp_path: Path) -> None:
    before = operators_hash(), laws_hash(), seal(USES)
    declared(tmp_path, SQUARED)
    assert (operators_hash(), laws_hash(), seal(USES)) == before
    (tmp_path / "of.rules").write_text(print_file(sealed(parse_file(UNFOLD).rules, {})), encoding="utf-8")
    told: list[str] = []
    trusted_rules([tmp_path / "of.rules"], lambda stage, done: told.append(stage))
    assert not told
    (tmp_path / "other").mkdir()
    declared(tmp_path / "other", SECRET)  # more may be declared than there was
    assert len(trusted_rules([tmp_path / "of.rules"], lambda stage, done: told.append(stage))) == 1
    assert told


def test_a_law_of_a_file_proves_nothing_about_superopts_own_operators(tmp_path: Path) -> None:
    (wrong,) = parse_file("(rule w (given (?x n)) (from (relu (tanh ?x))) (to (tanh ?x)))").rules
    declared(tmp_path, SECRET)
    assert not isinstance(verify(wrong), Proved)
    (right,) = parse_file("(rule s (given (?x n)) (from (secret (secret ?x))) (to (secret ?x)))").rules
    assert seal([right]) != seal([])


def test_a_rule_about_an_operator_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    (tmp_path / "of.rules").write_text(UNFOLD, encoding="utf-8")
    with pytest.raises(UsageError, match="unknown operator squared_relu"):
        load_rules(tmp_path / "of.rules")


def test_the_family_has_it_beside_the_core_and_workers_know_it(tmp_path: Path) -> None:
    declared(tmp_path, SQUARED)
    core, own = load_family("core"), ["squared_relu"]
    assert [str(p) for p in with_operators(core, [], own).operators] == [*map(str, core.operators), *own]
    family = with_operators(core, ["squared_relu", "relu", "mul"], own)
    alone, shared = (generate(family, 2, workers=n).rules for n in (1, 2))
    assert "squared_relu-relu-to-squared_relu" in [r.name for r in alone]
    assert alone == shared


def test_it_is_written_where_the_model_imports_its_domain(tmp_path: Path) -> None:
    squared = declared(tmp_path, SQUARED)
    for domains in (', "com.example" : 1', ""):
        found = program("y = Relu(x)", domains)
        new = {"y": squared()(found.values["x"])}
        if domains:
            assert [n.domain for n in rewritten(found, new, {}).graph] == ["com.example"]
        else:
            with pytest.raises(NotUnderstood, match=r"does not import the domain com\.example"):
                rewritten(found, new, {})


def test_terms_alone_import_its_domain(tmp_path: Path) -> None:
    x = variable("x", (4,))
    made = standalone(Graph((x,), (declared(tmp_path, SQUARED)()(x),)), 18)
    assert {i.domain for i in made.opset_import} == {"", "com.example"}
    assert [(n.domain, n.op_type) for n in made.graph.node] == [("com.example", "SquaredRelu")]


def test_another_operator_of_the_domain_is_opaque(tmp_path: Path) -> None:
    declared(tmp_path, SQUARED)
    assert program("y = com.example.Other(x)").summary.opaque == {
        "Other": {"operator Other of the domain com.example is not declared": 1}
    }


def test_it_costs_what_its_definition_costs(tmp_path: Path) -> None:
    squared, x = declared(tmp_path, SQUARED), variable("x", (4,))
    positive = Relu()(x)
    twice = Graph((x,), (squared()(squared()(x)),))
    square = Mul()(positive, positive)
    assert unfolded(twice).outputs == (Mul()(Relu()(square), Relu()(square)),)


def test_one_without_a_definition_is_in_no_piece(tmp_path: Path) -> None:
    declared(tmp_path, SECRET)
    found = program("a = Relu(x) b = com.example.Secret(a) y = Relu(b)")
    assert found.summary.opaque == {}
    assert [piece.names for piece in cut_into_pieces(found)] == [("a",), ("y",)]


def test_no_rule_brings_it_in(tmp_path: Path) -> None:
    declared(tmp_path, SQUARED)
    rules = parse_file(f"{FOLD}\n{UNFOLD}").rules
    assert [r.name for r in rewrites_of(rules, [])] == ["unfold"]


def test_the_value_is_the_definitions(tmp_path: Path) -> None:
    squared = declared(tmp_path, SQUARED)()
    x = FIELD.constant(3.0)
    relu = Relu().eval(FIELD, x)
    assert squared.eval(FIELD, x) == FIELD.mul(relu, relu)
