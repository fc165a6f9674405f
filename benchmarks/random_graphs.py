"""Random graphs over the whole catalogue: written to ONNX, read, written anew, and run.

`python -m benchmarks.random_graphs --count 20000 --seed 0`: graph n is that of seed + n, so that `--seed s --count 1`
repeats a failure. Compared are ONNX Runtime on the model as written, on the model whose every node was written anew
from its term, and our own 64-bit evaluation of the terms: those that were drawn, and those that were read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir
from rich.progress import track

from benchmarks.coverage import CannotRun, run
from benchmarks.random_terms import NAMES, Sample, random_graph
from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate_all
from superopt.onnx_io import Program, check, load, random_weights, rewritten, standalone, understand
from superopt.operators import Declared, NotUnderstood
from superopt.operators.interpolate import Interpolate
from superopt.operators.nearest import Nearest
from superopt.operators.norms import GroupNorm, InstanceNorm
from superopt.operators.picks import Every
from superopt.operators.reduce import AvgPool, MaxPool
from superopt.operators.resampling import Cubic
from superopt.term import Graph, Term, subterms, variables

OPSETS = (24, 17)

_SLACK = {"float32": 1e-5, "float64": 1e-6}
"""What is allowed, of the largest value or 0.1, besides what rounding explains; attributes of ONNX have 32 bits."""
_NOISE = 30.0
"""Several times as much as the noisy copies differ by: they are few."""


@dataclass
class Outcome:
    """What became of the graph of a seed. It says something where all is finite and hardly anything is noise."""

    seed: int
    operators: set[str] = field(default_factory=set)
    says_something: bool = False
    opsets: list[int] = field(default_factory=list)
    run_by: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def examined(seed: int, opsets: Sequence[int] = OPSETS) -> Outcome:
    """Draw the graph of a seed, and carry it through in each opset that has its operators."""
    outcome = Outcome(seed)
    try:
        sample = random_graph(seed)
        outcome.operators = sample.operators
        outcome.says_something = _says_something(sample)
    except (SuperoptError, AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        outcome.failures.append(f"drawing it: {_told(error)}")
        return outcome
    for opset in opsets:
        if has_all(sample.graph, opset):
            outcome.opsets.append(opset)
            try:
                with np.errstate(all="ignore"):
                    outcome.run_by.append(_carried(sample, seed, opset))
            except (SuperoptError, AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                if isinstance(error, NotUnderstood) and not _weighs_finitely(sample.graph, seed):
                    outcome.run_by.append("nothing")  # as it should be
                    continue
                outcome.failures.append(f"opset {opset}: {_told(error)}")
    return outcome


def has_all(graph: Graph, opset: int) -> bool:
    """Whether an opset has all operators of a graph, in the forms that are declared."""
    for term in subterms(*graph.outputs):
        op = term.operator
        if isinstance(op, Every) and opset < 10:
            return False
        if not isinstance(op, Declared) or op.onnx is None or term.constant:
            continue
        if (isinstance(op, GroupNorm) and opset < 21) or (isinstance(op, AvgPool) and _dilated(op) and opset < 19):
            return False
        if isinstance(op, Interpolate | Cubic | Nearest) and opset < 11:
            return False
        if not onnx.defs.has(op.onnx, opset):
            return False
    return True


def _weighs_finitely(graph: Graph, seed: int) -> bool:
    """Whether all is finite that is made of weights alone; else it is none, and is not written."""
    weights = random_weights(graph, seed)
    made = tuple(t for t in subterms(*graph.outputs) if t.constant and not t.is_variable and variables(t))
    with np.errstate(all="ignore"):
        return all(np.isfinite(value).all() for value in evaluate_all(made, FLOAT, weights))


def misread_by_reference(term: Term) -> bool:
    """Whether ONNX's reference evaluator may give a wrong shape: of largest elements, not padded alike all around."""
    op = term.operator
    return isinstance(op, MaxPool) and any(p != op.pads[0] for p in op.pads)


def _cancels(term: Term) -> bool:
    """Whether ONNX's reference evaluator takes the root of a variance that may round to less than 0."""
    return isinstance(term.operator, GroupNorm | InstanceNorm)


def _spreads(term: Term) -> bool:
    """Whether a runtime multiplies neighbours by 0, and so spreads what is not finite."""
    return isinstance(term.operator, Interpolate | Cubic)


def _dilated(op: AvgPool) -> bool:
    return any(d != 1 for d in op.dilations)


def _carried(sample: Sample, seed: int, opset: int) -> str:
    """Who ran the model. Raises `AssertionError` or `SuperoptError` for whatever is wrong."""
    model = standalone(sample.graph, opset, seed)
    check(model)
    program = understand(load(model))
    assert not program.summary.opaque, f"not understood: {program.summary.opaque}"
    new = {n: t for step in program.steps for n, t in zip(step.outputs, step.terms, strict=True)}
    again = rewritten(program, new, {})
    check(again)
    feed = {v.label: a for v, a in sample.feed.items()}
    read = _read(program, feed)
    try:
        outputs, by = run(model, feed)
    except CannotRun:
        _demand_equal("our terms and those that were read", "", sample.values, read, sample)
        anew = understand(again)
        if not anew.summary.opaque:
            _demand_equal("our terms and", "those that were written anew", sample.values, _read(anew, feed), sample)
        return "nothing"
    _demand_equal("our terms and", by, sample.values, outputs, sample)
    _demand_equal("the terms that were read and", by, read, outputs, sample)
    _demand_equal("what was written anew and", by, run(ir.to_proto(again), feed, by)[0], outputs, sample)
    return by


def _read(program: Program, feed: dict[str, Array]) -> list[Array]:
    """The outputs by the terms that were read, in 64 bits."""
    known: dict[Term, Array] = {program.values[n]: a.astype(np.float64) for n, a in feed.items() if n in program.values}
    known |= {v: program.data(n).astype(np.float64) for n, v in program.values.items() if v.constant}
    for step in program.steps:
        found = evaluate_all(step.terms, FLOAT, known)
        known |= dict(zip((program.values[n] for n in step.outputs), found, strict=True))
    return [known[program.values[n]] for n in program.outputs]


def _says_something(sample: Sample) -> bool:
    for value, noise in zip(sample.values, sample.noise, strict=True):
        if not np.isfinite(value).all() or np.mean(_NOISE * noise <= 1e-3 * (1 + abs(value))) < 0.9:
            return False
    return True


def _demand_equal(what: str, by: str, actual: Sequence[Array], expected: Sequence[Array], sample: Sample) -> None:
    """Numbers up to noise, and what is not finite of one kind."""
    for i, (a, e, noise, term) in enumerate(zip(actual, expected, sample.noise, sample.graph.outputs, strict=True)):
        if by == "reference" and any(misread_by_reference(t) for t in subterms(term)):
            continue
        if by == "reference" and np.isnan(e).any() and any(map(_cancels, subterms(term))):
            continue
        if not np.isfinite(sample.values[i]).all() and any(map(_spreads, subterms(term))):
            continue
        where = f"{what} {by}, output {i}"
        assert a.shape == e.shape, f"{where}: shapes {a.shape} and {e.shape}"
        a, e, ours = a.astype(np.float64), e.astype(np.float64), sample.values[i]
        judged = np.isfinite(noise) & (abs(ours) < 1e30)
        odd = judged & ~np.isfinite(e)
        assert _same_kind(a[odd], e[odd]), f"{where}: {a[odd][:4]}, not {e[odd][:4]}"
        judged &= np.isfinite(e)
        size = abs(e[judged]).max(initial=0.1)
        allowed = _NOISE * noise + _SLACK.get(term.type.dtype, 1e-5) * size
        wrong = judged & ~(abs(a - e) <= allowed)
        assert not wrong.any(), f"{where}: {a[wrong][:4]}, not {e[wrong][:4]} (up to {allowed[wrong][:4]})"


def _same_kind(a: Array, e: Array) -> bool:
    return bool(
        (np.isnan(a) == np.isnan(e)).all()
        and (np.isinf(a) == np.isinf(e)).all()
        and (np.sign(a[np.isinf(e)]) == np.sign(e[np.isinf(e)])).all()
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def main() -> int:
    """Examine graphs and say what came of it. The exit code says whether any failed."""
    parser = argparse.ArgumentParser(description="Random graphs over the whole catalogue, to ONNX and back.")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph; the others follow")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    with ProcessPoolExecutor(given.jobs) as pool:
        found = pool.map(examined, seeds, chunksize=min(20, 1 + given.count // (4 * given.jobs)))
        outcomes = list(track(found, description="graphs", total=given.count, transient=True))
    occurred = Counter(name for o in outcomes for name in o.operators)
    for name in sorted(NAMES, key=lambda n: -occurred[n]):
        print(f"{occurred[name]:8}  {name}")
    failed = [o for o in outcomes if o.failures]
    opsets = Counter(opset for o in outcomes for opset in o.opsets)
    by = Counter(by for o in outcomes for by in o.run_by)
    print(f"{len(outcomes)} graphs, {sum(o.says_something for o in outcomes)} of them finite and hardly noise")
    print(f"models by opset {dict(opsets)}, run by {dict(by)}; {len(failed)} graphs failed")
    for outcome in failed:
        print(f"--seed {outcome.seed} --count 1: {random_graph(outcome.seed).graph if given.count == 1 else ''}")
        print("\n".join(f"    {line}" for line in outcome.failures))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
