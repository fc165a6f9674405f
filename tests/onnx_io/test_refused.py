"""Models that cannot be: each is refused in one line that names the culprit, before memory is spent on it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.errors import InvalidModel
from superopt.onnx_io import load
from tests.onnx_io.models import model

BRANCHES = """g (bool c, float[2] x) => (float[2] y)
  { y = If(c) <then_branch = then () => (float[2] t) { t = Add(x, w) },
               else_branch = other () => (float[2] e) { e = Relu(x) }> }"""


def weight(*dims: int, of: int = TensorProto.FLOAT, **data: object) -> TensorProto:
    """A tensor `w` with fields as they are given, right or wrong."""
    return TensorProto(name="w", data_type=of, dims=dims, **data)


def adding(tensor: TensorProto, text: str = "g (float[2] x) => (float[2] y) { y = Add(x, w) }") -> onnx.ModelProto:
    source = model(text)
    source.graph.initializer.append(tensor)
    return source


def in_a_branch(tensor: TensorProto) -> onnx.ModelProto:
    source = model(BRANCHES)
    next(a.g for a in source.graph.node[0].attribute if a.name == "then_branch").initializer.append(tensor)
    return source


def in_an_attribute(tensor: TensorProto) -> onnx.ModelProto:
    source = model("g (float[2] x) => (float[2] y) { w = Constant() y = Add(x, w) }")
    source.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    return source


def unshaped() -> onnx.ModelProto:
    source = model("g (float x) => (float y) { y = Relu(x) }")
    source.graph.input[0].type.tensor_type.ClearField("shape")
    return source


def declared_otherwise(count: int, declared: str) -> onnx.ModelProto:
    text = f"g (float[{count}] x, {declared} w) => (float[{count}] y) {{ y = Add(x, w) }}"
    return adding(numpy_helper.from_array(np.ones(count, np.float32), "w"), text)


def doubling_functions(count: int, last: str = "") -> onnx.ModelProto:
    """Each calls the next one twice; the last one calls `last`, or is a Relu."""
    source, opsets = model("g (float x) => (float y) { y = custom.f0(x) }"), [helper.make_opsetid("", 17)]
    opsets.append(helper.make_opsetid("custom", 1))
    for i in range(count):
        callee, domain = (f"f{i + 1}", "custom") if i < count - 1 else (last or "Relu", "custom" if last else "")
        body = [helper.make_node(callee, ["v"], ["u"], domain=domain)]
        body.append(helper.make_node(callee, ["u"], ["w"], domain=domain))
        source.functions.append(helper.make_function("custom", f"f{i}", ["v"], ["w"], body, opsets))
    return source


HUGE = {"a size of 2⁶²": (2**62,), "sizes whose product overflows": (2**40, 2**40), "a negative size": (-1,)}
HUGE |= {"two negative sizes": (-(2**32), -(2**32)), "an overflow beside a zero": (2**62, 4, 0)}
HOLDERS = {"a weight": adding, "a branch": in_a_branch, "an attribute": in_an_attribute}
EIGHT = b"\0" * 8

REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[str, ...]]] = {
    f"{what} in {where}": (lambda d=d, hold=hold: hold(weight(*d, raw_data=EIGHT)), ("impossible", str(d[0])))
    for what, d in HUGE.items()
    for where, hold in HOLDERS.items()
}
REFUSED |= {
    f"raw and typed data of {n} elements": (
        lambda n=n: adding(weight(n, raw_data=b"\0" * 4 * n, float_data=[1] * n)),
        ("'w'", "twice", "raw_data", "float_data"),
    )
    for n in (2, 3000)
}
REFUSED |= {
    f"an initializer of {n} elements declared as {t}": (
        lambda n=n, t=t: declared_otherwise(n, t.replace("N", str(n))),
        ("'w'", "declared"),
    )
    for n in (2, 3000)
    for t in ("double[N]", "float[N, 1]")
}
REFUSED |= {
    "data in a field of another type": (lambda: adding(weight(2, int32_data=[1, 2])), ("'w'", "int32_data")),
    "too few numbers": (lambda: adding(weight(3000, float_data=[1] * 2999)), ("'w'", "2999", "3000")),
    "too few bytes": (lambda: adding(weight(3, raw_data=EIGHT)), ("'w'", "8 bytes", "12")),
    "no data": (lambda: adding(weight(3000)), ("'w'", "no data")),
    "an unknown element type": (lambda: adding(weight(2, of=99, raw_data=EIGHT)), ("'w'", "99")),
    "two initializers of one name": (
        lambda: adding(
            weight(2, raw_data=EIGHT), "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
        ),
        ("w", "not unique"),
    ),
    "a value and an initializer of one name": (
        lambda: adding(weight(2, raw_data=EIGHT), "g (float[2] x) => (float[2] w) { w = Relu(x) }"),
        ("'w'", "multiple times"),
    ),
    "two inputs of one name": (lambda: model("g (float x, float x) => (float y) { y = Relu(x) }"), ("'x'", "multiple")),
    "an input without a shape": (unshaped, ("'x'", "no shape")),
    "an undefined input in a branch": (lambda: model(BRANCHES), ("'w'", "not output of any previous")),
    "an output of another type": (
        lambda: model("g (float[2] x) => (double[2] y) { y = Relu(x) }"),
        ("Relu", "elem type differs"),
    ),
    "a cycle": (lambda: model("g (float x) => (float y) { a = Add(x, b) b = Relu(a) y = Relu(b) }"), ("'b'", "sorted")),
    "functions that call each other": (lambda: doubling_functions(2, last="f0"), ("f1", "call each other")),
    "functions that mean 2⁶⁰ nodes": (lambda: doubling_functions(60), ("'f0'", "nodes")),
    "more parts than are said": (
        lambda: model("g (float[n] x) => (float[m] a) { a, b, c = Split<num_outputs = 2>(x) }", 18),
        ("'a'", "num_outputs 2", "3"),
    ),
    "more parts than are said, in a branch": (
        lambda: model(
            "g (float[n] x, bool[1] c) => (float[m] y) { y = If (c) <then_branch = p () => (float[m] a) "
            "{ a, b = Split<num_outputs = 1>(x) }, else_branch = q () => (float[m] r) { r = Relu(x) }> }",
            18,
        ),
        ("'a'", "num_outputs 1", "2"),
    ),
    "training": (
        lambda: onnx.ModelProto.FromString(model(BRANCHES).SerializeToString() + b"\xa2\x01\0"),
        ("training",),
    ),
}


@pytest.mark.parametrize(("make", "named"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_by_name_without_memory(
    make: Callable[[], onnx.ModelProto], named: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").write_bytes(make().SerializeToString())
    tracemalloc.start()
    with pytest.raises(InvalidModel) as error:
        load(tmp_path / "m.onnx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22
    assert str(error.value).startswith(f"{tmp_path / 'm.onnx'}: ")
    assert "\n" not in str(error.value)
    for word in named:
        assert word in str(error.value)
