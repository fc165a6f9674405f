"""ONNX's own tests: the term that a node is read as has the value that ONNX says, and is written back as it; and models
are read, taken apart, put together again and run, as `benchmarks/coverage.py` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from benchmarks.coverage import AUXILIARY, KINDS, carried, of_onnx, run
from benchmarks.coverage import cases as models
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import Program, check, load, rewritten, understand
from superopt.operators import READERS
from superopt.term import Term, variables
from tests.onnx_io.models import terms
from tests.versions import since

Feed = dict[str, NDArray[np.float32]]

OPERATORS = sorted(op_type for domain, op_type in READERS if not domain)

WITHOUT_A_CASE = {"Equal", "Not", "CastLike", "Range", "ConstantOfShape", "ScatterND", "SimplifiedLayerNormalization"}
"""ONNX's cases for these compare integers, are old, like an empty tensor, constant, or fill no box, and one operator is
a runtime's: `test_catalogue`, `test_scatter` and `test_of_runtimes` have some.
"""

ROUNDED = {"DFT", "STFT"}
"""Where sums cancel, onnxruntime 1.32 is off by 10⁻⁷ of the largest: these are run by ONNX's reference evaluator."""


LEAST = {"node": 1800 if since(onnx, 1, 23) else 1600, "simple": 20, "pytorch-converted": 80, "pytorch-operator": 30}
"""How many models of a kind there are, or more."""


@cache
def cases() -> dict[str, list[tuple[str, Program, Feed, Feed]]]:
    """For each operator that is read: the name, program, inputs and outputs of its cases."""
    found: dict[str, list[tuple[str, Program, Feed, Feed]]] = {op_type: [] for op_type in OPERATORS}
    for case in of_onnx("node"):
        if case.model is None or case.data_sets is None or len(case.model.graph.node) != 1:
            continue
        op_type = case.model.graph.node[0].op_type
        if op_type in found:
            inputs, outputs = ([_array(v) for v in values] for values in case.data_sets[0])
            model, feed = with_constants(case.model, inputs)
            expected = {v.name: o for v, o in zip(case.model.graph.output, outputs, strict=True)}
            found[op_type].append((case.name, understand(load(model)), feed, expected))
    return found


def _array(value: object) -> object:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def with_constants(model: onnx.ModelProto, inputs: Sequence[object]) -> tuple[onnx.ModelProto, Feed]:
    """A case whose inputs that are no floats (shapes, axes, flags) are weights, as they are in real models."""
    made, feed = onnx.ModelProto(), {}
    made.CopyFrom(model)
    del made.graph.input[:]
    for info, value in zip(model.graph.input, inputs, strict=True):
        told = isinstance(value, np.ndarray) and value.dtype not in (np.float32, np.float64, np.bool_)
        if told or info.name in AUXILIARY:
            made.graph.initializer.append(numpy_helper.from_array(value, info.name))
        else:
            made.graph.input.append(info)
            feed[info.name] = np.asarray(value)
    made.ir_version = max(made.ir_version, 4)  # before, a weight had to be an input too
    return made, feed


def understood(op_type: str) -> Iterator[tuple[str, Program, Feed, Feed]]:
    """The cases of an operator that are understood."""
    for name, program, feed, expected in cases()[op_type]:
        if program.steps and not program.steps[0].reason:
            yield name, program, feed, expected


def value(term: Term, program: Program, feed: Feed) -> NDArray[np.float64]:
    """The value of a term, in 64-bit floats."""
    given = {v: feed[v.label] if v.label in feed else program.data(v.label) for v in variables(term)}
    return evaluate(term, FLOAT, {v: a.astype(np.float64) for v, a in given.items()})


@pytest.mark.parametrize("op_type", OPERATORS)
def test_the_term_of_a_node_has_the_value_that_onnx_says(op_type: str) -> None:
    seen = 0
    for name, program, feed, expected in understood(op_type):
        for output, term in zip(program.steps[0].outputs, program.steps[0].terms, strict=True):
            actual = value(term, program, feed)
            assert actual.shape == expected[output].shape, name
            np.testing.assert_allclose(actual, expected[output], rtol=1e-4, atol=1e-6, err_msg=name)
        seen += 1
    assert (seen == 0) == (op_type in WITHOUT_A_CASE), f"{seen} cases of {op_type} were understood"


@pytest.mark.parametrize("op_type", sorted(set(OPERATORS) - WITHOUT_A_CASE))
def test_a_node_that_is_written_anew_computes_what_onnx_says(op_type: str) -> None:
    seen = 0
    for name, program, feed, expected in understood(op_type):
        model = rewritten(program, terms(program), {})
        check(model)
        found, _ = run(ir.to_proto(model), feed, "reference" if op_type in ROUNDED else "")
        for output, actual in zip(program.outputs, found, strict=True):
            np.testing.assert_allclose(actual, expected[output], rtol=1e-3, atol=1e-5, err_msg=name)
        seen += 1
    assert seen


def test_a_case_that_is_not_understood_has_a_reason_and_is_carried_through() -> None:
    seen = 0
    for op_type in OPERATORS:
        for _, program, _, _ in cases()[op_type]:
            if program.steps and not program.steps[0].terms:
                assert program.steps[0].reason
                before = ir.to_proto(program.model).SerializeToString(deterministic=True)
                assert ir.to_proto(rewritten(program, {}, {})).SerializeToString(deterministic=True) == before
                seen += 1
    assert seen > 10


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the models overflow and divide by zero on purpose
@pytest.mark.parametrize("frozen", [False, True], ids=["as they are", "frozen"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_computes_the_same_after_it_was_written_anew(kind: str, frozen: bool) -> None:
    outcomes = {case.name: carried(case) for case in models(frozen, (kind,))}
    assert {name: o.failure for name, o in outcomes.items() if o.failure} == {}
    assert len(outcomes) >= LEAST[kind]
    compared = [o for o in outcomes.values() if o.run_by != "nothing"]
    assert len(compared) > 0.9 * len(outcomes)  # training and image formats have no runtime here
    assert any(not reason for o in compared for _, reason in o.nodes)
