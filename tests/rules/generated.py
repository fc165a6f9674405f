"""Rules as a module for onnxscript, made, imported and applied; for tests of what it does."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript.rewriter import RewriteRuleSet

from superopt.rules.exchange.onnxscript_source import to_onnxscript
from superopt.rules.rule import Rule
from tests.onnx_io.networks import assert_close, run


def imported(rules: Sequence[Rule], directory: Path) -> Any:
    """The module of rules."""
    path = directory / "generated_rules.py"
    path.write_text(to_onnxscript(rules), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("generated_rules", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def rewritten(proto: onnx.ModelProto, rules: RewriteRuleSet) -> tuple[int, onnx.ModelProto]:
    """How often rules applied in one pass over a model, and what they made of it."""
    read = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    passes.CommonSubexpressionEliminationPass()(read)
    count = rules.apply_to_model(read)
    made = ir.to_proto(read)
    if count:
        onnx.checker.check_model(made, full_check=True)
    return count, made


def demand_equal(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """That two models give the same; on inputs at which division and roots are no matter, where no name is below 3."""
    feed = _feed(before)
    kept = {i.name for i in after.graph.input}
    assert_close(run(after, {n: a for n, a in feed.items() if n in kept}), run(before, feed))


def says_something(proto: onnx.ModelProto) -> bool:
    """Whether no output is all zero on the inputs that models are compared on: a window may see padding alone."""
    return all(np.abs(output).max() > 0 for output in run(proto, _feed(proto)))


def _feed(before: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = {i.name for i in before.graph.initializer}
    shapes = {i.name: [d.dim_value or 3 for d in i.type.tensor_type.shape.dim] for i in before.graph.input}
    positive = {n: rng.uniform(0.5, 1.5, s).astype(np.float32) for n, s in shapes.items() if n not in weights}
    signed = {n: np.asarray(x * rng.choice([-1, 1], x.shape), np.float32) for n, x in positive.items()}
    return signed if all(np.isfinite(output).all() for output in run(before, signed)) else positive
