"""Cells of recurrent networks that are written out step by step are one node; what is no such cell stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

import superopt
from superopt.api import Options
from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.series.unrolled import FEWEST_NUMBERS
from tests.onnx_io.models import model
from tests.onnx_io.networks import assert_close, run
from tests.onnx_io.otherwise.reading import operators_of

STEPS, ROWS, READ, WIDTH = 5, 2, 3, 4
SIZES = {"x": READ, "h": WIDTH, "z": READ + WIDTH, "g": 4 * WIDTH, "k": 3 * WIDTH, "u": WIDTH, "q": 1}
NUMBERS = ", ".join(f"int64 i{t} = {{{t}}}" for t in range(STEPS))
HELD = f"""<{NUMBERS}, float one = {{1}}, int64[1] first = {{0}}, int64[1] second = {{1}}, int64[1] last = {{-1}},
    int64[4] four = {{4, 4, 4, 4}}, int64[3] three = {{4, 4, 4}}, int64[1] to4 = {{4}}, int64[1] to8 = {{8}},
    int64[1] to12 = {{12}}, int64[1] to16 = {{16}}, int64[3] row = {{1, -1, 4}}>"""

LONG = """i{t}_ = Sigmoid(a{t}) f{t}_ = Sigmoid(b{t}) g{t}_ = Tanh(d{t}) o{t}_ = Sigmoid(e{t})
    p{t} = Mul(f{t}_, {c}) q{t} = Mul(i{t}_, g{t}_) c{t} = Add(p{t}, q{t}) r{t} = Tanh(c{t}) h{t} = Mul(o{t}_, r{t})"""
"""What an LSTM makes of its gates."""

FOUR = "a{t}, b{t}, d{t}, e{t} = Split<axis = 1>(s{t}, four) " + LONG
SHORT = """m{t} = Sub(one, z{t}) j{t} = Mul(m{t}, n{t}) l{t} = Mul(z{t}, {h}) h{t} = Add(j{t}, l{t})"""
THREE = """xr{t}, xz{t}, xn{t} = Split<axis = -1>(u{t}, three) hr{t}, hz{t}, hn{t} = Split<axis = -1>(v{t}, three)
    sr{t} = Add(xr{t}, hr{t}) r{t} = Sigmoid(sr{t}) sz{t} = Add(xz{t}, hz{t}) z{t} = Sigmoid(sz{t})
    rn{t} = Mul(r{t}, hn{t}) sn{t} = Add(xn{t}, rn{t}) n{t} = Tanh(sn{t})"""
EACH = "@x{t} = Gemm({x}, W_xu@, B_u) @h{t} = MatMul({h}, W_hu@) @{t} = Add(@h{t}, @x{t}) "
BEFORE = """j{t}_ = Concat<axis = 1>({h}, {x}) y{t} = MatMul(j{t}_, W_zu) r{t} = Sigmoid(y{t})
    w{t} = Gemm(j{t}_, W_zu2, B_u) z{t} = Sigmoid(w{t}) rh{t} = Mul(r{t}, {h})
    k{t} = Concat<axis = 1>(rh{t}, {x}) sn{t} = Gemm(k{t}, W_zu3, B_u3) n{t} = Tanh(sn{t})"""

CELLS: dict[str, tuple[str, str]] = {
    "as torch's cell": (
        "u{t} = Gemm<transB = 1>({x}, W_gx, B_g) v{t} = Gemm<transB = 1>({h}, W_gh, B_g2) s{t} = Add(u{t}, v{t})"
        + FOUR, "LSTM"),
    "of what is joined": ("j{t} = Concat<axis = 1>({x}, {h}) s{t} = Gemm(j{t}, W_zg, B_g) " + FOUR, "LSTM"),
    "with more for what is forgotten": (
        """j{t} = Concat<axis = -1>({h}, {x}) y{t} = MatMul(j{t}, W_zg) s{t} = Add(B_g, y{t})
        a{t}, d{t}, b{t}_, e{t} = Split<axis = 1>(s{t}, four) b{t} = Add(b{t}_, one)""" + LONG, "LSTM"),
    "with slices": (
        """u{t} = MatMul({x}, W_xg) v{t} = MatMul({h}, W_hg) y{t} = Add(u{t}, v{t}) s{t} = Add(y{t}, B_g)
        a{t} = Slice(s{t}, first, to4, last) b{t} = Slice(s{t}, to4, to8, second, second)
        d{t} = Slice(s{t}, to8, to12, second) e{t} = Slice(s{t}, to12, to16, second)""" + LONG, "LSTM"),
    "with a layer for each gate": (
        " ".join(EACH.replace("@", v) for v in "abde") + LONG, "LSTM"),
    "that forgets what comes in": (
        """j{t} = Concat<axis = 1>({x}, {h}) s{t} = Gemm(j{t}, W_zk, B_k)
        a{t}, d{t}, e{t} = Split<axis = 1>(s{t}, three)
        i{t}_ = Sigmoid(a{t}) f{t}_ = Sub(one, i{t}_) g{t}_ = Tanh(d{t}) o{t}_ = Sigmoid(e{t}) p{t} = Mul(f{t}_, {c})
        q{t} = Mul(g{t}_, i{t}_) c{t} = Add(q{t}, p{t}) r{t} = Tanh(c{t}) h{t} = Mul(r{t}, o{t}_)""", "LSTM"),
    "that takes what it forgets": (
        """j{t} = Concat<axis = 1>({x}, {h}) s{t} = Gemm(j{t}, W_zk, B_k)
        a{t}, d{t}, e{t} = Split<axis = 1>(s{t}, three)
        f{t}_ = Sigmoid(a{t}) g{t}_ = Relu(d{t}) o{t}_ = Sigmoid(e{t}) y{t} = Sub({c}, g{t}_) p{t} = Mul(f{t}_, y{t})
        c{t} = Add(g{t}_, p{t}) r{t} = Tanh(c{t}) h{t} = Mul(r{t}, o{t}_)""", "LSTM"),
    "as torch's GRU": (
        "u{t} = Gemm<transB = 1>({x}, W_kx, B_k) v{t} = Gemm<transB = 1>({h}, W_kh, B_k2)" + THREE
        + "y{t} = Sub({h}, n{t}) l{t} = Mul(y{t}, z{t}) h{t} = Add(l{t}, n{t})", "GRU"),
    "with a sum of states": ("u{t} = Gemm({x}, W_xk, B_k) v{t} = MatMul({h}, W_hk)" + THREE + SHORT, "GRU"),
    "that resets before the product": (BEFORE + SHORT, "GRU"),
    "whose gate is the other's rest": (
        BEFORE + "m{t} = Sub(one, z{t}) j{t} = Mul(m{t}, {h}) l{t} = Mul(z{t}, n{t}) h{t} = Add(j{t}, l{t})", "GRU"),
    "whose gates are parts of one": (
        """j{t}_ = Concat<axis = 1>({h}, {x}) w{t} = Gemm(j{t}_, W_zk, B_k) a{t} = Slice(w{t}, first, to8, second)
        b{t} = Sigmoid(a{t}) r{t} = Slice(b{t}, first, to4, second) z{t} = Slice(b{t}, to4, to8, second)
        rh{t} = Mul(r{t}, {h}) k{t} = Concat<axis = 1>(rh{t}, {x}) sn{t} = Gemm(k{t}, W_zu3, B_u3) n{t} = Tanh(sn{t})"""
        + SHORT, "GRU"),
    "of one layer": (
        "u{t} = Gemm({x}, W_xu, B_u) v{t} = MatMul({h}, W_hu) s{t} = Add(u{t}, v{t}) h{t} = Tanh(s{t})", "RNN"),
    "of one layer, without bounds": (
        "u{t} = MatMul({x}, W_xu) s{t} = Gemm({h}, W_hu, u{t}) h{t} = Relu(s{t})", "RNN"),
}  # fmt: skip
TORCH = CELLS["as torch's cell"][0]
TAKEN = "x{t} = Gather<axis = 0>(x, i{t})"
STACK = " ".join(f"u{t}_ = Unsqueeze(h{t}, second)" for t in range(STEPS))
STACK += f" y = Concat<axis = 1>({', '.join(f'u{t}_' for t in range(STEPS))})"


def unrolled(
    step: str, take: str = TAKEN, end: str = STACK, begin: str = "h = Neg(hb) c = Neg(cb)", rows: int | str = ROWS
) -> onnx.ModelProto:
    """A model of steps, each of which takes an x with its number and leaves an h, and perhaps a c."""
    nodes = begin
    for t in range(STEPS):
        before = {v: f"{v}{t - 1}" if t else v for v in ("h", "c", "h_2", "c_2")}
        before |= {"h2": before["h_2"], "c2": before["c_2"]}
        nodes += " " + f"{take} {step}".format(t=t, x=f"x{t}", half=t // 2, **before)
    made = model(
        f"""g (float[{STEPS}, {rows}, {READ}] x, float[{rows}, {WIDTH}] hb, float[{rows}, {WIDTH}] cb)
        => (float[k, m, n] y) {HELD} {{ {nodes} {end} }}"""
    )
    rng, named = np.random.default_rng(0), {name for node in made.graph.node for name in node.input}
    for name in sorted(name for name in named if re.match("[WB]_", name)):
        shape = [SIZES[letter] for letter in name[2:] if letter in SIZES][: 2 if name[0] == "W" else 1]
        data = rng.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(data, name))
    return made


def read(source: onnx.ModelProto) -> list[str]:
    """The operators of a model as it is read."""
    rng = np.random.default_rng(1)
    sizes = {i.name: [d.dim_value or 3 for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    return operators_of(source, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()})


def is_one(operators: list[str], op_type: str) -> bool:
    """Whether one node of a kind, and none of what cells are made of, is there."""
    return operators.count(op_type) == 1 and not {"Sigmoid", "Tanh", "Mul", "MatMul", "Gemm"}.intersection(operators)


@pytest.mark.parametrize(("step", "op_type"), CELLS.values(), ids=CELLS)
def test_cells_are_one_node(step: str, op_type: str) -> None:
    assert is_one(read(unrolled(step)), op_type)


TAKEN_SO: Mapping[str, tuple[str, str, str]] = {
    "by slices": ("y{t}_0 = Unsqueeze(i{t}, first) y{t}_1 = Add(y{t}_0, second)"
                  "y{t}_2 = Slice(x, y{t}_0, y{t}_1, first) x{t} = Squeeze(y{t}_2, first)", STACK, ""),
    "the last one first": (f"y{{t}}_0 = Constant<value_int = {STEPS - 1}>() y{{t}}_1 = Sub(y{{t}}_0, i{{t}})"
                           "x{t} = Gather<axis = 0>(x, y{t}_1)", STACK, ""),
    "each twice": ("y{t}_0 = Constant<value_int = 2>() y{t}_1 = Div(i{t}, y{t}_0) x{t} = Gather<axis = 0>(x, y{t}_1)",
                   STACK, ""),
    "from rows": ("x{t} = Gather<axis = 1>(rows, i{t})", STACK, "rows = Transpose<perm = [1, 0, 2]>(x)"),
    "what is computed of each": ("y{t}_0 = Gather<axis = 0>(x, i{t}) x{t} = Exp(y{t}_0)", STACK, ""),
    "the last state alone": (TAKEN, f"y = Unsqueeze(h{STEPS - 1}, first)", ""),
    "what is remembered, too": (TAKEN, f"j = Add(c{STEPS - 1}, h{STEPS - 1}) y = Unsqueeze(j, first)", ""),
    "some states": (TAKEN, "j = Concat<axis = 0>(h1, h3) y = Unsqueeze(j, first)", ""),
    "states beside each other": (
        TAKEN, f"j = Concat<axis = 1>({', '.join(f'h{t}' for t in range(STEPS))}) y = Unsqueeze(j, first)", ""),
    "from nothing": (TAKEN, STACK, "h = Constant<value = float[2, 4] {0, 0, 0, 0, 0, 0, 0, 0}>() c = Identity(h)"),
}  # fmt: skip


@pytest.mark.parametrize(("take", "end", "begin"), TAKEN_SO.values(), ids=TAKEN_SO)
def test_however_steps_are_taken_and_states_read(take: str, end: str, begin: str) -> None:
    begins = begin if "h =" in begin else f"{begin} h = Neg(hb) c = Neg(cb)"
    assert is_one(read(unrolled(TORCH, take, end, begins)), "LSTM")


def test_what_all_steps_multiply_at_once_is_multiplied_in_the_node() -> None:
    """As torch unrolls a layer."""
    take = "x{t} = Gather<axis = 0>(all, i{t})"
    step = "v{t} = Gemm<transB = 1>({h}, W_gh, B_g2) s{t} = Add({x}, v{t})" + FOUR
    begin = "all_ = MatMul(x, W_xg) all = Add(all_, B_g) h = Neg(hb) c = Neg(cb)"
    assert is_one(read(unrolled(step, take, begin=begin)), "LSTM")


def test_there_may_be_any_number_of_rows() -> None:
    operators = read(unrolled(TORCH, rows="N"))
    assert is_one(operators, "LSTM")
    assert "Gather" not in operators


DECODERS = {
    "an LSTM": (TORCH, "LSTM", "o{t} = Gemm({h}, W_hx, B_x) x{t}_ = Gemm(o{t}, W_xx, B_x2)"),
    "one layer": (CELLS["of one layer"][0], "RNN", "o{t} = MatMul({h}, W_hx) x{t}_ = Add(o{t}, B_x)"),
}  # fmt: skip


@pytest.mark.parametrize("rows", [ROWS, "N"])
@pytest.mark.parametrize(("step", "op_type", "feed"), DECODERS.values(), ids=DECODERS)
def test_what_is_fed_back_is_part_of_the_node(step: str, op_type: str, feed: str, rows: int | str) -> None:
    source = unrolled(step.replace("{x}", "x{t}_"), feed, rows=rows)
    assert is_one(read(source), op_type)


@pytest.mark.parametrize("name", ["as torch's GRU", "that resets before the product"])
def test_what_is_fed_back_to_a_gru_is_left(name: str) -> None:
    """It is not reset as its state is."""
    step = CELLS[name][0].replace("{x}", "x{t}_")
    assert "GRU" not in read(unrolled(step, "x{t}_ = Gemm({h}, W_hx, B_x)"))


def test_layers_are_a_node_each() -> None:
    first = TORCH
    second = re.sub(r"(\w+)\{t\}", r"\1_2{t}", first.replace("W_gx", "W_gh2").replace("{x}", "<x>"))
    second = second.replace("{h}", "{h2}").replace("{c}", "{c2}").replace("<x>", "h{t}")
    begin = "h = Neg(hb) c = Neg(cb) h_2 = Abs(hb) c_2 = Abs(cb)"
    operators = read(unrolled(f"{first} {second}", end=STACK.replace("(h", "(h_2"), begin=begin))
    assert operators.count("LSTM") == 2
    assert "Sigmoid" not in operators


STAYING: Mapping[str, tuple[str, str, str]] = {
    "a matrix of its own in each step": (TORCH.replace("W_gh", "W_gh{t}"), STACK, "Sigmoid"),
    "a gate of another kind": (TORCH.replace("o{t}_ = Sigmoid", "o{t}_ = HardSigmoid"), STACK, "Sigmoid"),
    "memory that is not bounded": (TORCH.replace("r{t} = Tanh", "r{t} = Identity"), STACK, "Sigmoid"),
    "gates that see the memory": (
        TORCH.replace("f{t}_ = Sigmoid(b{t})", "w{t} = Add(b{t}, {c}) f{t}_ = Sigmoid(w{t})"), STACK, "Sigmoid"),
    "another sign": (TORCH.replace("c{t} = Add", "c{t} = Sub"), STACK, "Sigmoid"),
    "memory that fades": (
        TORCH.replace("p{t} = Mul(f{t}_, {c})", "w{t} = Sign({c}) p{t} = Mul(f{t}_, w{t})"), STACK, "Sigmoid"),
    "memory of all steps that is read": (TORCH, STACK.replace("(h", "(c"), "Sigmoid"),
    "a gate that is read": (TORCH, STACK.replace("(h2", "(i2_"), "Sigmoid"),
    "steps that read what is made of states": (TORCH.replace("{x}", "w{t}").replace(
        "u{t} =", "w_{t} = Slice({h}, first, three_, second) w{t} = Add(w_{t}, {x}) u{t} ="), STACK, "Sigmoid"),
    "a sum that is no rest": (CELLS["with a sum of states"][0].replace("Sub(one", "Sub(two"), STACK, "Sigmoid"),
    "a bound that is read": (CELLS["of one layer"][0], STACK.replace("(h2", "(s2"), "Tanh"),
    "a few steps": (TORCH.replace("W_gh", "W_gh{half}"), STACK, "Sigmoid"),
}  # fmt: skip


@pytest.mark.parametrize(("step", "end", "op_type"), STAYING.values(), ids=STAYING)
def test_others_are_left(step: str, end: str, op_type: str) -> None:
    more = "three_ = Constant<value_ints = [3]>() two = Constant<value_float = 2.0>() h = Neg(hb) c = Neg(cb)"
    operators = read(unrolled(step, end=end, begin=more))
    assert not {"LSTM", "GRU", "RNN"}.intersection(operators)
    assert op_type in operators


def test_a_network_of_cells_gains_and_is_the_same(options: Options) -> None:
    source = unrolled(TORCH)
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert "LSTM" in {node.op_type for node in result.proto().graph.node}
    assert_close(run(result.proto()), run(source))


WIDE: Mapping[str, tuple[str, str]] = {
    "a gate of one number": (
        "u{t} = Gemm({x}, W_xq, B_q) v{t} = Gemm({h}, W_hq, B_q2) sr{t} = Add(u{t}, v{t}) r{t} = Sigmoid(sr{t})"
        "b{t} = MatMul({h}, W_hu) a{t} = Gemm({x}, W_xu, B_u) rb{t} = Mul(r{t}, b{t}) sn{t} = Add(rb{t}, a{t})"
        "n{t} = Tanh(sn{t}) z_{t} = Gemm({h}, W_hu2, B_u2) z{t} = Sigmoid(z_{t})" + SHORT, TAKEN),
    "a gate of one row": (
        "a{t} = MatMul({h}, W_hu) b{t} = MatMul({x}, W_xu2) d{t} = MatMul({x}, W_xu3) e{t} = MatMul({x}, W_xu)" + LONG,
        "y{t}_0 = ReduceMax<axes = [1], keepdims = 1>(x) x{t} = Gather<axis = 0>(y{t}_0, i{t})"),
}  # fmt: skip


@pytest.mark.parametrize("rows", [ROWS, "N"])
@pytest.mark.parametrize(("step", "take"), WIDE.values(), ids=WIDE)
def test_gates_that_are_repeated_are_left(step: str, take: str, rows: int | str) -> None:
    operators = read(unrolled(step, take, rows=rows))
    assert not {"LSTM", "GRU"}.intersection(operators)


def test_states_with_an_axis_of_rows_in_front_are_left() -> None:
    begin = "h_ = Neg(hb) h = Unsqueeze(h_, second)"
    take = "y{t}_0 = Gather<axis = 0>(x, i{t}) x{t} = Unsqueeze(y{t}_0, second)"
    step = "u{t} = MatMul({x}, W_xu) v{t} = MatMul({h}, W_hu) s{t} = Add(u{t}, v{t}) h{t} = Tanh(s{t})"
    end = f"y = Identity(h{STEPS - 1})"
    assert "RNN" not in read(unrolled(step, take, end, begin, rows="N"))


def test_many_rows_are_left_to_products() -> None:
    assert "RNN" not in read(unrolled(CELLS["of one layer"][0], rows=FEWEST_NUMBERS // WIDTH))
    assert is_one(read(unrolled(CELLS["of one layer"][0], rows=FEWEST_NUMBERS // WIDTH - 1)), "RNN")


def test_nodes_that_stay_without_a_name_are_given_none() -> None:
    source = unrolled(TORCH)
    made = ir.to_proto(understand(load(source)).model)
    assert not any(node.name for node in source.graph.node)
    staying = [node for node in made.graph.node if node.op_type == "Neg"]
    assert len(staying) == 2
    assert not any(node.name for node in staying)


def test_64_bits_are_left() -> None:
    source = unrolled(TORCH)
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in source.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    operators = [node.op_type for node in understand(load(source)).model.graph]
    assert "LSTM" not in operators
    assert operators.count("Tanh") == 2 * STEPS
