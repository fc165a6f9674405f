"""Rules as text, with the verdict that they must get; see the files beside this one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from superopt.rules.format import load_rules
from superopt.rules.rule import Rule
from superopt.verify.check import Refuted, verify
from superopt.verify.prove import Proved, Unknown
from superopt.verify.saved import save_witness
from superopt.verify.witness import by_size, differing, find_witness

FOLDER = Path(__file__).parent / "cases"
VERDICTS = {"proved": Proved, "refuted": Refuted, "unknown": Unknown}
CASES = {verdict: load_rules(FOLDER / f"{verdict}.rules").rules for verdict in VERDICTS}


def test_every_file_of_cases_is_read_and_holds_some() -> None:
    assert {p.stem for p in FOLDER.iterdir()} == set(VERDICTS)
    assert all(CASES.values())


@pytest.mark.parametrize(
    ("verdict", "rule"),
    [pytest.param(verdict, rule, id=f"{verdict}-{rule.name}") for verdict, rules in CASES.items() for rule in rules],
)
def test_the_verdict_on_a_rule_is_that_of_its_file(verdict: str, rule: Rule) -> None:
    assert isinstance(verify(rule), VERDICTS[verdict])


@pytest.mark.parametrize("rule", CASES["proved"], ids=lambda r: r.name)
def test_a_proof_names_the_laws_that_it_uses(rule: Rule) -> None:
    verdict = verify(rule)
    assert isinstance(verdict, Proved)
    assert verdict.laws


@pytest.mark.parametrize("rule", CASES["refuted"], ids=lambda r: r.name)
def test_a_wrong_rule_has_a_witness_that_a_runtime_runs(rule: Rule, tmp_path: Path) -> None:
    verdict = verify(rule)
    assert isinstance(verdict, Refuted)
    save_witness(verdict.witness, rule.name, tmp_path)
    source, target = (_run(tmp_path / rule.name, side)[verdict.witness.output] for side in ("source", "target"))
    assert source.shape != target.shape or not np.allclose(source, target)
    told = json.loads((tmp_path / rule.name / "witness.json").read_text())
    if source.shape == target.shape:
        place = tuple(told["place"])
        assert [float(told["source"]), float(told["target"])] == pytest.approx(
            [source[place], target[place]], nan_ok=True
        )


def _run(folder: Path, side: str) -> list[np.ndarray]:
    session = ort.InferenceSession(folder / f"{side}.onnx", providers=["CPUExecutionProvider"])
    arrays = np.load(folder / "inputs.npz")
    assert all((arrays[n] == arrays[n].round()).all() for n in arrays.files)
    return [np.asarray(o) for o in session.run(None, {i.name: arrays[i.name] for i in session.get_inputs()})]


@pytest.mark.parametrize("rule", CASES["refuted"], ids=lambda r: r.name)
def test_no_smaller_sizes_were_passed_over(rule: Rule) -> None:
    """Of the sizes that come before the witness's, which were tried, none is one: it holds for other integers too."""
    witness = find_witness(rule)
    assert witness is not None
    count = len(rule.source)
    for example in by_size((*rule.source, *rule.target), rule.conditions, 500):
        if example[:count] == witness.source:
            break
        assert differing(example[:count], example[count:], rule.facts, seed=9) is None
    else:
        pytest.fail("its sizes are not among those that were tried")


@pytest.mark.parametrize(
    "rule", [r for v in ("proved", "refuted", "unknown") for r in CASES[v][::3]], ids=lambda r: r.name
)
def test_the_verdict_is_the_same_each_time(rule: Rule) -> None:
    assert verify(rule) == verify(rule)
