"""Pieces cover what is understood, once; no path leaves a piece and comes back; equal layers are equal pieces."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.classes import shufflenet_v2
from benchmarks.sketch import Sketch
from benchmarks.unfused import unfused_llama
from superopt.cost.steps import swaps_last_two
from superopt.onnx_io import Program, load, understand
from superopt.onnx_io.program import Step
from superopt.operators.layout import Concat, Reshape, Transpose
from superopt.operators.normalize import Softmax
from superopt.search.cutting.cuts import LARGEST
from superopt.search.cutting.pieces import Piece, cut_into_pieces
from superopt.term import subterms
from tests.models import model, normalized, weight
from tests.onnx_io.networks import LIGHT, name


def program(network: Path) -> Program:
    return understand(load(network))


def layers(count: int) -> onnx.ModelProto:
    """Equal layers of a product, a skip and a relu, each after an opaque node."""
    nodes, last, weights = [], "x", {}
    for i in range(count):
        weights[f"w{i}"] = weight(8, 8, seed=i)
        nodes += [
            helper.make_node("Asinh", [last], [f"e{i}"]),
            helper.make_node("MatMul", [f"e{i}", f"w{i}"], [f"m{i}"]),
            helper.make_node("Add", [f"m{i}", f"e{i}"], [f"a{i}"]),
            helper.make_node("Relu", [f"a{i}"], [f"r{i}"]),
        ]
        last = f"r{i}"
    ends = [(n, TensorProto.FLOAT, [4, 8]) for n in ("x", last)]
    return model(nodes, ends[:1], ends[1:], weights)


@pytest.mark.parametrize("network", LIGHT, ids=name)
def test_every_understood_value_is_in_exactly_one_piece(network: Path) -> None:
    read = program(network)
    pieces = cut_into_pieces(read)
    counted = Counter(value for piece in pieces for value in set(piece.origins.values()))
    understood = {n for step in read.steps if step.terms for n in step.outputs if n in read.values}
    twice = {n for n, count in counted.items() if count > 1}
    assert pieces
    assert not twice
    # Two values of one piece that are one term share the first's name.
    terms = [{t for p in pieces for t in p.origins}, {n for n in understood if n not in counted}]
    assert terms[0]
    assert len(terms[1]) <= len(understood) - len(counted)
    assert set(counted) <= understood
    assert {n for p in pieces for n in p.names} <= understood


@pytest.mark.parametrize("network", LIGHT, ids=name)
def test_no_path_leaves_a_piece_and_comes_back(network: Path) -> None:
    """Pieces in their order read nothing that a later one makes, nor an opaque node that reads from within."""
    read = program(network)
    place = {n: i for i, step in enumerate(read.steps) for n in step.outputs}
    seen = 0
    for piece in cut_into_pieces(read):
        inside = [place[n] for n in piece.origins.values() if n in place]
        outside = [place[v.label] for v in piece.graph.inputs if v.label in place]
        seen += len(outside)
        assert max(outside, default=-1) < min(inside)
    assert seen


@pytest.mark.parametrize("network", LIGHT, ids=name)
def test_pieces_are_bounded(network: Path) -> None:
    """In nodes that move something: one may be a few terms, as a convolution is one with its bias."""
    pieces = cut_into_pieces(program(network))
    moving = [{name for t, name in p.origins.items() if not isinstance(t.operator, Reshape)} for p in pieces]
    assert all(len(names) <= LARGEST for names in moving)
    assert sum(len(p.graph.runs) for p in pieces) > LARGEST


def test_equal_layers_are_equal_pieces() -> None:
    pieces = cut_into_pieces(understand(load(layers(4))))
    assert len(pieces) == 4
    assert len({p.canonical.outputs for p in pieces}) == 1
    assert all(a.graph.outputs != b.graph.outputs for a, b in pairwise(pieces))


def test_what_is_canonical_goes_back_to_its_place() -> None:
    pieces = cut_into_pieces(understand(load(layers(3))))
    assert len(pieces) == 3
    assert all(piece.placed(piece.canonical.outputs) == piece.graph.outputs for piece in pieces)


def test_a_value_that_is_read_elsewhere_is_an_output_of_its_piece() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Sqrt", ["a"], ["b"]),
        helper.make_node("Asinh", ["a"], ["c"]),
        helper.make_node("Mul", ["b", "c"], ["y"]),
    ]
    ends = [(n, TensorProto.FLOAT, [2, 2]) for n in "xy"]
    first, second = cut_into_pieces(understand(load(model(nodes, ends[:1], ends[1:]))))
    assert (set(first.names), set(second.names)) == ({"a", "b"}, {"y"})


def test_no_cut_parts_a_transposed_matrix_from_the_product_that_takes_it_in() -> None:
    """Scores of queries and keys, among values that are all needed later: nowhere is it narrow."""
    pieces = cut_into_pieces(understand(load(unfused_llama(Sketch()))))
    transposed = [t for p in pieces for t in subterms(*p.graph.outputs) if swaps_last_two(t)]
    alone = [t for p in pieces for t in p.graph.outputs if swaps_last_two(t)]
    assert len(transposed) == 6
    assert alone == []


def test_no_cut_parts_a_softmax_from_its_scores_or_from_the_product_of_its_shares() -> None:
    pieces = cut_into_pieces(understand(load(unfused_llama(Sketch()))))
    inner = [t for p in pieces for t in subterms(*p.graph.outputs) if isinstance(t.operator, Softmax)]
    assert len(inner) == 6
    assert all(not i.is_variable for t in inner for i in t.inputs)
    assert not any(isinstance(t.operator, Softmax) for p in pieces for t in p.graph.outputs)


def test_no_cut_parts_what_is_joined_from_the_transpose_that_shuffles_it() -> None:
    pieces = cut_into_pieces(understand(load(shufflenet_v2(Sketch())), plainly=True))
    shuffles = [t for p in pieces for t in subterms(*p.graph.outputs) if isinstance(t.operator, Transpose)]
    assert len(shuffles) >= 12
    assert all(isinstance(t.inputs[0].inputs[0].operator, Concat) for t in shuffles)


def norms(count: int) -> onnx.ModelProto:
    """A norm by moments before two products of rows each, and a skip."""
    nodes, last, weights = [], "x", {"e": np.float32([1e-5]), "c": np.float32([0.0])}
    weights |= {"rows": np.array([4, 8]), "back": np.array([1, 4, 8])}
    for i in range(count):
        weights |= {f"w{i}": weight(8, 8, seed=i), f"g{i}": weight(8, seed=i), f"b{i}": weight(8, seed=i)}
        steps = [
            ("ReduceMean", [last], "m"),
            ("Mul", [last, last], "xx"),
            ("ReduceMean", [f"xx{i}"], "n"),
            ("Mul", [f"m{i}", f"m{i}"], "mm"),
            ("Sub", [f"n{i}", f"mm{i}"], "d"),
            ("Max", [f"d{i}", "c"], "v"),
            ("Add", [f"v{i}", "e"], "ve"),
            ("Sqrt", [f"ve{i}"], "s"),
            ("Sub", [last, f"m{i}"], "z"),
            ("Div", [f"z{i}", f"s{i}"], "q"),
            ("Mul", [f"q{i}", f"g{i}"], "p"),
            ("Add", [f"p{i}", f"b{i}"], "a"),
            ("Reshape", [f"a{i}", "rows"], "r"),
            ("MatMul", [f"r{i}", f"w{i}"], "t"),
            ("Reshape", [f"a{i}", "rows"], "rr"),
            ("MatMul", [f"rr{i}", f"w{i}"], "tt"),
            ("Sub", [f"t{i}", f"tt{i}"], "u"),
            ("Reshape", [f"u{i}", "back"], "l"),
            ("Add", [f"l{i}", last], "y"),
        ]
        given = {"ReduceMean": {"axes": [2], "keepdims": 1}}
        nodes += [helper.make_node(op, inputs, [f"{o}{i}"], **given.get(op, {})) for op, inputs, o in steps]
        last = f"y{i}"
    ends = [(n, TensorProto.FLOAT, [1, 4, 8]) for n in ("x", last)]
    return model(nodes, ends[:1], ends[1:], weights)


def test_no_cut_parts_a_mean_from_what_it_is_taken_from_nor_from_what_scales_and_shifts_that() -> None:
    program = understand(load(norms(6)))
    of = {s.node.outputs[0].name: p for p, piece in enumerate(cut_into_pieces(program)) for s in _steps(program, piece)}
    assert len(of) == len(program.steps)
    assert [{of[f"{n}{i}"] for n in ("m", "n", "s", "q", "p", "a")} for i in range(6)] == [
        {of[f"a{i}"]} for i in range(6)
    ]


@pytest.mark.parametrize("written_out", [False, True])
def test_no_cut_parts_a_sum_from_the_norm_that_alone_takes_it(written_out: bool) -> None:
    """As in BERT: what a layer gives and the skip, and their norm."""
    nodes, last, weights = [], "x", {"e": np.float32([1e-5]), "two": np.float32([2])}
    for i in range(8):
        weights |= {f"w{i}": weight(8, 8, seed=i), f"v{i}": weight(8, 8, seed=i), f"g{i}": weight(8, seed=i)}
        norm = [
            ("ReduceMean", [f"s{i}"], "m"),
            ("Sub", [f"s{i}", f"m{i}"], "z"),
            ("Pow", [f"z{i}", "two"], "zz"),
            ("ReduceMean", [f"zz{i}"], "n"),
            ("Add", [f"n{i}", "e"], "ne"),
            ("Sqrt", [f"ne{i}"], "r"),
            ("Div", [f"z{i}", f"r{i}"], "q"),
            ("Mul", [f"q{i}", f"g{i}"], "y"),
        ]
        steps = [
            ("MatMul", [last, f"w{i}"], "a"),
            ("Relu", [f"a{i}"], "b"),
            ("MatMul", [f"b{i}", f"v{i}"], "c"),
            ("Add", [f"c{i}", last], "s"),
            *(norm if written_out else [("LayerNormalization", [f"s{i}", f"g{i}"], "y")]),
        ]
        given = {"ReduceMean": {"axes": [2], "keepdims": 1}}
        nodes += [helper.make_node(op, inputs, [f"{o}{i}"], **given.get(op, {})) for op, inputs, o in steps]
        last = f"y{i}"
    ends = [(n, TensorProto.FLOAT, [1, 4, 8]) for n in ("x", last)]
    program = understand(load(model(nodes, ends[:1], ends[1:], weights)))
    of = {s.node.outputs[0].name: p for p, piece in enumerate(cut_into_pieces(program)) for s in _steps(program, piece)}
    assert len(set(of.values())) > 1
    assert all(of[f"s{i}"] == of[f"y{i}"] for i in range(8))


def _steps(program: Program, piece: Piece) -> list[Step]:
    return program.steps[piece.steps.start : piece.steps.stop]


def test_opaque_nodes_are_in_no_piece() -> None:
    read = understand(load(layers(3)))
    made = {o for p in cut_into_pieces(read) for o in p.origins.values()}
    assert {n for step in read.steps if not step.terms for n in step.outputs} == {"e0", "e1", "e2"}
    assert not made & {"e0", "e1", "e2"}


def test_a_window_over_symbolic_sizes_is_in_a_piece() -> None:
    (piece,) = cut_into_pieces(understand(load(normalized(batch="N", size="side"))))
    assert [t.operator.name for t in subterms(*piece.canonical.outputs)].count("conv") == 2
