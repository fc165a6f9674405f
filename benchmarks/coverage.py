"""ONNX's own test models, about two thousand, read, taken apart into terms, put together again and run.

`python -m benchmarks.coverage` writes `docs/coverage.md`: by operator, how many nodes are understood, opaque and why.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import op_resize
from rich.progress import track

from superopt.errors import SuperoptError
from superopt.onnx_io import check, load, opset_of, rewritten, understand
from superopt.term import Term

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = ("test_bernoulli",)
"""How models are called whose outputs differ from run to run: of these types and shapes are compared."""

AUXILIARY = ("scales", "roi", "constant_value", "value")
"""Names of floating-point inputs that say how, not what: they are frozen too."""

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"

_FLOAT = np.dtype(np.float32)

Feed = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model of ONNX's and one set of data for it, with the outputs that are `published` of its nodes; `rtol` and
    `atol` are ONNX's own.
    """

    name: str
    model: onnx.ModelProto
    feed: Feed
    rtol: float
    atol: float
    published: Sequence[Any] = ()


@dataclass
class Outcome:
    """What became of a case: its nodes by operator, with the reason where one is opaque; and what went wrong."""

    nodes: list[tuple[str, str]] = field(default_factory=list)
    failure: str = ""
    run_by: str = ""


def cases(frozen: bool, kinds: Sequence[str] = KINDS) -> Iterator[Case]:
    """All models with data. `frozen` makes what is no floating-point input (shapes, axes, pads) an initializer."""
    for case in (case for kind in kinds for case in of_onnx(kind)):
        folder = Path(case.model_dir or "")
        model = case.model or onnx.load(folder / "model.onnx")
        feed = _feed(model, case.data_sets[0][0] if case.data_sets else _stored(folder, model))
        published = case.data_sets[0][1] if case.data_sets else ()
        yield Case(case.name, *(_frozen(model, feed) if frozen else (model, feed)), case.rtol, case.atol, published)


@cache  # making them takes many seconds
def of_onnx(kind: str) -> list[Any]:
    """ONNX's own test cases of a kind, made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they overflow and divide by zero on purpose
        return list(load_model_tests(kind=kind))


def _feed(model: onnx.ModelProto, given: Sequence[Any]) -> Feed:
    weights = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in weights or model.ir_version >= 4]
    arrays = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in given]
    return dict(zip(names, arrays, strict=False))


_READ: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


def _stored(folder: Path, model: onnx.ModelProto) -> list[Any]:
    """The inputs that lie beside a model."""
    found = []
    for i, info in enumerate(model.graph.input):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if path.exists():
            message_type, read = _READ[info.type.WhichOneof("value")]
            message = message_type()
            message.ParseFromString(path.read_bytes())
            found.append(read(message))
    return found


def _frozen(model: onnx.ModelProto, feed: Feed) -> tuple[onnx.ModelProto, Feed]:
    made, rest = onnx.ModelProto(), Feed()
    made.CopyFrom(model)
    del made.graph.input[:]
    held = {t.name for t in model.graph.initializer}
    for info in model.graph.input:
        value = feed.get(info.name)
        is_told = info.name not in held and (info.name in AUXILIARY or getattr(value, "dtype", _FLOAT).kind in "iub")
        if isinstance(value, np.ndarray) and is_told:
            made.graph.initializer.append(numpy_helper.from_array(value, info.name))
        else:
            made.graph.input.append(info)
            rest |= {info.name: value} if info.name in feed else {}
    made.ir_version = max(made.ir_version, 4)
    return made, rest


def carried(case: Case) -> Outcome:
    """Read a case's model, write every node that is understood anew, and compare what both compute."""
    outcome = Outcome()
    try:
        program = understand(load(case.model))
        new: dict[str, Term] = {}
        for step in program.steps:
            outcome.nodes.append((step.node.op_type, step.reason))
            new |= dict(zip(step.outputs, step.terms, strict=bool(step.terms)))
        model = rewritten(program, {n: t for n, t in new.items() if n in program.values}, {})
        check(model)
        after = ir.to_proto(model)
        _demand_same_interface(case.model, after)
        try:
            expected, outcome.run_by = run(case.model, case.feed)
        except CannotRun:
            assert all(reason for _, reason in outcome.nodes), "nothing runs it, and some of it was written anew"
            outcome.run_by = "nothing"
            return outcome
        actual, _ = run(after, case.feed, outcome.run_by)
        published = case.published or expected
        for info, a, e, p in zip(case.model.graph.output, actual, expected, published, strict=True):
            runtime_is_off = _differ(a, e, case) and _differ(e, p, case)
            _demand_equal(info.name, a, p if runtime_is_off else e, case)
    except (SuperoptError, AssertionError) as error:
        outcome.failure = " ".join(str(error).split())[:300] or type(error).__name__
    return outcome


class CannotRun(SuperoptError):
    """Neither ONNX Runtime nor ONNX's reference evaluator runs a model of ONNX's."""


class Resize(op_resize.Resize):
    """ONNX's reference of it, with the coefficient in 64 bits: one of 32 makes weights of 32 bits for any numbers."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        coefficient = attributes.get("cubic_coeff_a")
        wide = attributes if coefficient is None else {**attributes, "cubic_coeff_a": float(coefficient)}
        return super()._run(*inputs, **wide)


def run(model: onnx.ModelProto, feed: Mapping[str, Any], by: str = "") -> tuple[list[Any], str]:
    """The outputs, by ONNX Runtime without optimizations, or by the reference evaluator where that refuses."""
    if by != "reference":
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        try:
            session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return list(session.run(None, dict(feed))), "onnxruntime"
        except Exception as error:  # noqa: BLE001 - neither says what it may raise
            if by:
                raise CannotRun(f"the exported model does not run: {error}") from None
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model, new_ops=[Resize]).run(None, dict(feed))), "reference"
    except Exception as error:  # noqa: BLE001
        raise CannotRun(f"nothing runs it: {type(error).__name__}: {error}") from None


def _demand_same_interface(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    for kind in ("input", "output"):
        weights = {t.name for t in (*before.graph.initializer, *after.graph.initializer)}  # inputs too, before IR 4
        ours, theirs = ([v for v in getattr(m.graph, kind) if v.name not in weights] for m in (after, before))
        assert ours == theirs, f"{kind}s differ"
    opsets = [{o.domain: o.version for o in m.opset_import} for m in (before, after)]
    if "" not in opsets[0] and "" in opsets[1]:  # it has ONNX's own operators now: as they came with its IR version
        opsets[0][""] = opset_of(load(before))
    assert opsets[0] == opsets[1], f"the opset changed from {opsets[0]} to {opsets[1]}"


def _differ(actual: Any, expected: Any, case: Case) -> bool:
    """Whether outputs differ by more than ONNX allows. So do a runtime's own, of transforms back from one side."""
    try:
        _demand_equal("", actual, expected, case)
    except AssertionError:
        return True
    return False


def _demand_equal(name: str, actual: Any, expected: Any, case: Case) -> None:
    if isinstance(expected, list):
        assert isinstance(actual, list), f"{name} is no list"
        assert len(actual) == len(expected), f"{name} has {len(actual)} elements"
        for a, e in zip(actual, expected, strict=True):
            _demand_equal(name, a, e, case)
    elif expected is None:
        assert actual is None, f"{name} is there"
    else:
        a, e = np.asarray(actual), np.asarray(expected)
        assert a.dtype == e.dtype, f"{name} is {a.dtype}, not {e.dtype}"
        assert a.shape == e.shape, f"{name} is {a.shape}, not {e.shape}"
        if case.name.startswith(RANDOM):
            return
        if a.dtype.kind in "fV":  # ml_dtypes' floats are of kind V
            a, e = a.astype(np.float64), e.astype(np.float64)
            np.testing.assert_allclose(a, e, rtol=case.rtol, atol=max(case.atol, 1e-6), err_msg=name)
        else:
            np.testing.assert_array_equal(a, e, err_msg=name)


def main() -> int:
    """Carry all cases through, as they are and frozen, and write the page. The exit code says whether any failed."""
    counts: dict[str, Counter[str]] = {}
    why: dict[str, Counter[str]] = {}
    failed: list[str] = []
    total, not_run = 0, 0
    for is_frozen in (False, True):
        for case in track(list(cases(is_frozen)), description="frozen" if is_frozen else "as they are", transient=True):
            outcome = carried(case)
            total, not_run = total + 1, not_run + (outcome.run_by == "nothing")
            if outcome.failure:
                failed.append(f"{case.name} ({'frozen' if is_frozen else 'as it is'}): {outcome.failure}")
            for op_type, reason in outcome.nodes:
                state = "opaque" if reason else "understood"
                counts.setdefault(op_type, Counter())[state] += 1
                if reason:
                    why.setdefault(op_type, Counter())[reason] += 1
            if outcome.failure and outcome.nodes:
                counts[outcome.nodes[0][0]]["failed"] += 1
    _write(counts, why, failed, total, not_run)
    print(f"{total} models, {len(failed)} failed")
    for line in failed:
        print(line)
    return 1 if failed else 0


def _write(
    counts: Mapping[str, Counter[str]], why: Mapping[str, Counter[str]], failed: Sequence[str], total: int, not_run: int
) -> None:
    sums = Counter[str]()
    rows = []
    for op_type, c in sorted(counts.items()):
        sums.update(c)
        reasons = "; ".join(f"{r} ({n})" for r, n in why.get(op_type, Counter()).most_common(2)).replace("|", "\\|")
        rows.append(f"| {op_type} | {c['understood']} | {c['opaque']} | {c['failed']} | {reasons} |")
    told = f"""# Coverage

ONNX's own test models ({", ".join(KINDS)}), each as it is and with its integer
inputs frozen: {total} models of onnx {onnx.__version__}. Every node that is understood was written anew from its term,
the model run, and its outputs compared with the original's; {not_run} that neither ONNX Runtime nor the reference
evaluator runs are carried through as they are. Failed: {len(failed)}.
Nodes understood: {sums["understood"]}, opaque: {sums["opaque"]}. Written by `python -m benchmarks.coverage`.

| operator | understood | opaque | failed | why, mostly |
| --- | --- | --- | --- | --- |
"""
    PAGE.write_text(told + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
