"""Operator by operator: the nodes on which a generated rule fires, and those, almost the same, on which it must not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnxscript.rewriter import MatchingTracer

from superopt.rules.format import parse_file
from tests.onnx_io.models import model
from tests.rules.generated import demand_equal, imported, rewritten

RULES = """
(rule scaled (given (?x n c h w) (?k o c i j) (?v o))
  (from (mul (conv :strides (s t) :pads (p q u a) :dilations (d f) ?x ?k) (expand (1) ?v)))
  (to (conv :strides (s t) :pads (p q u a) :dilations (d f) ?x (mul ?k (expand (0) ?v)))))
(rule summed (given (?x n c h w) (?k o c i j) (?l o c i j))
  (from (add (conv :strides (s t) :pads (p q u v) ?x ?k) (conv :strides (s t) :pads (p q u v) ?x ?l)))
  (to (conv :strides (s t) :pads (p q u v) ?x (add ?k ?l))))
(rule shared (given (?x n c h w) (?k o c i j) (?l e c i j))
  (from (conv ?x ?k) (conv ?x ?l))
  (where (?y (conv ?x (concat 0 ?k ?l))))
  (to (slice 1 0 o ?y) (slice 1 o (+ o e) ?y)))
(rule associated (given (?x m k) (?y k n) (?z n r))
  (from (matmul (matmul ?x ?y) ?z)) (to (matmul ?x (matmul ?y ?z))))
(rule gathered (given (?x n c) (?y n c) (?z))
  (from (add (add ?x (expand () ?z)) ?y)) (to (add (add ?x ?y) (expand () ?z))))
(rule factored (given (?x n c) (?y c) (?z c))
  (from (mul (mul ?x (expand (1) ?y)) (expand (1) ?z))) (to (mul ?x (expand (1) (mul ?y ?z)))))
(rule ungathered (given (?x n c) (?y c) (?z c))
  (from (mul ?x (expand (1) (mul ?y ?z)))) (to (mul (mul ?x (expand (1) ?y)) (expand (1) ?z))))
(rule flattened (given (?x n c h))
  (from (relu (reshape (n (* c h)) ?x))) (to (reshape (n (* c h)) (relu ?x))))
(rule largest (given (?x n c h w))
  (from (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (relu ?x)))
  (to (relu (maxpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x))))
(rule mean (given (?x n c h w) (?y))
  (from (avgpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) (mul ?x (expand () ?y))))
  (to (mul (avgpool (a b) :strides (s t) :pads (p q u v) :dilations (d e) ?x) (expand () ?y))))
(rule absorbed (given (?x n c h w) (?k o c i j))
  (from (conv (pad (0 0 a b 0 0 y z) ?x) ?k)) (to (conv :pads (a b y z) ?x ?k)))
(rule turned (given (?x n c)) (from (transpose (1 0) (transpose (1 0) ?x))) (to ?x))
(rule cut (given (?x n c) (?y n d)) (from (slice 1 0 c (concat 1 ?x ?y))) (to ?x))
(rule softer (given (?x n c)) (from (softmax 1 (transpose (1 0) ?x))) (to (transpose (1 0) (softmax 0 ?x))))
(rule leaked (given (?x n c)) (from (leaky_relu (transpose (1 0) ?x))) (to (transpose (1 0) (leaky_relu ?x))))
(rule joined (given (?x n c) (?y m c)) (from (concat 0 (relu ?x) (relu ?y))) (to (relu (concat 0 ?x ?y))))
(rule bent (given (?x n c)) (if (nonnegative ?x)) (from (relu ?x)) (to ?x))
(rule inverted (given (?x n c) (?y n c)) (if (nonzero ?y)) (from (div (mul ?x ?y) ?y)) (to ?x))
(rule even (given (?x n c)) (if (divides 2 n)) (from (relu (relu ?x))) (to (relu ?x)))
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = imported(parse_file(RULES).rules, tmp_path_factory.mktemp("generated"))
    assert not module.REFUSED
    return module


@dataclass(frozen=True)
class Case:
    """A rule and a model; a rule that need not gain applies once."""

    rule: str
    why: str
    gaining: bool
    model: onnx.ModelProto


_HEAD = re.compile(
    r"(?P<rule>\w+)(?P<gaining> gaining)?(?: opset (?P<opset>\d+))?: (?P<i>.*) => (?P<o>.*?)(?: with (?P<w>.*))?"
)


def cases(path: Path) -> list[Case]:
    """The cases of a file: a comment, then the rule, the tensors and the weights, then a node a line."""
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n")[1:]:
        comments = [line[2:] for line in block.splitlines() if line.startswith("; ")]
        head, *nodes = (line.strip() for line in block.splitlines() if not line.startswith("; "))
        read = _HEAD.fullmatch(head)
        assert read, head
        outputs = ", ".join(o if " " in o else f"float[] {o}" for o in read["o"].split(", "))
        made = model(f"g ({read['i']}) => ({outputs}) {{ {' '.join(nodes)} }}", int(read["opset"] or 17))
        rng = np.random.default_rng(1)
        for name, shape in re.findall(r"(\w+)\(([\d,]*)\)", read["w"] or ""):
            weight = rng.uniform(0.5, 1.5, [int(d) for d in shape.split(",") if d]).astype(np.float32)
            made.graph.initializer.append(numpy_helper.from_array(weight, name))
        found.append(Case(read["rule"], " ".join(comments) or " ".join(nodes), bool(read["gaining"]), made))
    return found


FIRES = cases(Path(__file__).with_name("fires.txt"))
DOES_NOT_FIRE = cases(Path(__file__).with_name("does_not_fire.txt"))


@pytest.mark.parametrize("case", FIRES, ids=attrgetter("why"))
def test_a_rule_fires_and_keeps_the_outputs(generated: Any, case: Case) -> None:
    rules = generated.rule_set(case.rule, gaining=case.gaining, times=100 if case.gaining else 1)
    count, after = rewritten(case.model, rules)
    assert count == 1
    demand_equal(case.model, after)


@pytest.mark.parametrize("case", DOES_NOT_FIRE, ids=attrgetter("why"))
def test_a_rule_does_not_fire(generated: Any, case: Case) -> None:
    count, _ = rewritten(case.model, generated.rule_set(case.rule, gaining=case.gaining, times=1))
    assert count == 0
    if "(" in case.why:
        seen, reason = MatchingTracer(), case.why.partition("(")[2].removesuffix(")")
        as_written = generated.rule_set(case.rule, gaining=case.gaining, times=1, commute=False)
        as_written.apply_to_model(ir.from_proto(onnx.shape_inference.infer_shapes(case.model)), tracer=seen)
        (best,) = seen.best_matches_map.values()
        assert reason in {m.match_result.reason.removeprefix(f"{case.rule}: ") for m in best}


def test_each_rule_here_is_seen_to_fire() -> None:
    assert {case.rule for case in FIRES} == {rule.name for rule in parse_file(RULES).rules}


def test_weights_of_one_tensor_are_one_weight(generated: Any) -> None:
    """Also where two names stand for it."""
    (case, *_) = (c for c in FIRES if c.rule == "summed")
    read = ir.from_proto(onnx.shape_inference.infer_shapes(case.model))
    read.graph.initializers["l"].const_value = read.graph.initializers["k"].const_value
    assert generated.rule_set("summed").apply_to_model(read) == 0


def test_weights_in_another_file_are_weights(generated: Any, tmp_path: Path) -> None:
    onnx.save(FIRES[0].model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="w")
    assert generated.rule_set(FIRES[0].rule).apply_to_model(ir.load(tmp_path / "m.onnx")) == 1
