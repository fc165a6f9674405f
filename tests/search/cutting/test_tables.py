"""Pieces that turn by tables see of them what the model says of their halves, and are put back as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import Program, load, rewritten, understand
from superopt.operators.attention.rotary import Rotary
from superopt.operators.layout import Concat
from superopt.search.cutting.pieces import Piece, cut_into_pieces, joined_pieces
from superopt.search.replay import placement
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.solving.joined import begun
from superopt.search.solving.nodes import written_otherwise
from superopt.search.strategies.found import Found, Outcome, Solved
from superopt.term import Graph, Term, replace_all, subterms, variables
from tests.onnx_io.networks import run

FREQUENCIES = np.array([1.0, 0.1], np.float32)
TWICE = np.tile(np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32), 2)
OTHER = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)

ANGLES = """
  u = Unsqueeze(at, two)
  f = Cast<to = 1>(u)
  a = Mul(f, freq)
"""
OUTSIDE = {
    "joined angles": f"{ANGLES} e = Concat<axis = -1>(a, a) cos = Cos(e) sin = Sin(e)",
    "scaled": f"{ANGLES} e = Concat<axis = -1>(a, a) c = Cos(e) s = Sin(e) cos = Mul(c, scale) sin = Mul(s, scale)",
    "joined tables": f"{ANGLES} c = Cos(a) s = Sin(a) cos = Concat<axis = -1>(c, c) sin = Concat<axis = -1>(s, s)",
    "frequencies joined before": f"{ANGLES.replace('freq', 'freqs')} cos = Cos(a) sin = Sin(a)",
    "looked up": "cos = Gather(twice, at) sin = Gather(twice, at)",
}
"""How tables are made, outside of the layers that turn by them."""

DIFFERENT = {
    "other angles": f"{ANGLES} b = Neg(a) e = Concat<axis = -1>(a, b) cos = Cos(e) sin = Sin(e)",
    "looked up": "cos = Gather(other, at) sin = Gather(other, at)",
    "looked up, one of two": "cos = Gather(twice, at) sin = Gather(other, at)",
}


def turning(tables: str, between: Sequence[str] = ("Asinh", "Asinh")) -> onnx.ModelProto:
    """Two layers that turn what they are given, each after an opaque node, or another."""
    layers = "".join(
        f"""
  x{i} = {between[i]}(y{i})
  q{i} = Relu(x{i})
  c{i} = Unsqueeze(cos, one)
  s{i} = Unsqueeze(sin, one)
  straight{i} = Mul(q{i}, c{i})
  first{i} = Slice(q{i}, zero, two, three)
  second{i} = Slice(q{i}, two, four, three)
  minus{i} = Neg(second{i})
  quarter{i} = Concat<axis = -1>(minus{i}, first{i})
  across{i} = Mul(quarter{i}, s{i})
  y{i + 1} = Add(straight{i}, across{i})"""
        for i in range(2)
    )
    model = onnx.parser.parse_model(f"""
<ir_version: 9, opset_import: ["" : 18]>
g (float[1, 3, 5, 4] y0, int64[1, 5] at) => (float[1, 3, 5, 4] y2)
<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}}, int64[1] four = {{4}},
 float scale = {{1.5}}>
{{ {tables} {layers} }}""")
    weights = {"freq": FREQUENCIES, "freqs": np.tile(FREQUENCIES, 2), "twice": TWICE, "other": OTHER}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in weights.items())
    return model


def feed() -> dict[str, np.ndarray]:
    return {
        "y0": np.random.default_rng(2).standard_normal((1, 3, 5, 4)).astype(np.float32),
        "at": np.arange(2, 7, dtype=np.int64)[None],
    }


def layers_of(program: Program) -> list[Piece]:
    return [p for p in cut_into_pieces(program) if p.names[0].startswith("y")]


def turned(piece: Piece) -> tuple[Term, ...]:
    """The canonical outputs of a piece, by rotary embeddings."""
    outputs = piece.canonical.outputs
    new = {}
    for term in subterms(*outputs):
        for (made,) in Unfold("add as rotary").at((term,)) if term.operator.name == "add" else ():
            new[term] = made
    return replace_all(outputs, new)


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_piece_sees_that_tables_made_outside_are_a_half_twice(name: str) -> None:
    model = turning(OUTSIDE[name])
    program = understand(load(model))
    pieces = layers_of(program)
    assert len(pieces) == 2
    assert pieces[0].canonical == pieces[1].canonical, "equal layers are equal pieces"
    new = {}
    for piece in pieces:
        assert set(map(str, piece.shown)) == {"?cos", "?sin"}
        new |= placement(piece, turned(piece)).new
    made = rewritten(program, new, {})
    kinds = [node.op_type for node in made.graph]
    assert kinds.count("RotaryEmbedding") == 2
    assert kinds.count("Neg") == kinds.count("Reshape") == 0
    assert kinds.count("Slice") == 2, "the halves of the tables, once for all layers"
    np.testing.assert_allclose(run(ir.to_proto(made), feed())[0], run(model, feed())[0], rtol=1e-6, atol=1e-6)


def test_tables_of_a_length_that_is_not_known_are_a_half_twice() -> None:
    long = "n = Shape(at) t = Concat<axis = 0>(n, four) u = Unsqueeze(at, two) f = Cast<to = 1>(u)"
    model = turning(f"{long} e = Expand(freqs, t) a = Mul(f, e) cos = Cos(a) sin = Sin(a)")
    for value, axis in zip((*model.graph.input, *model.graph.output), (2, 1, 2), strict=True):
        value.type.tensor_type.shape.dim[axis].dim_param = "N"
    pieces = layers_of(understand(load(model)))
    assert pieces
    assert all(set(map(str, piece.shown)) == {"?cos", "?sin"} for piece in pieces)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_rotation_by_a_table_whose_halves_may_differ_stays(name: str) -> None:
    for piece in layers_of(understand(load(turning(DIFFERENT[name])))):
        assert len(piece.shown) == (1 if "one of two" in name else 0)
        assert not any(isinstance(t.operator, Rotary) for t in subterms(*turned(piece)))


def test_a_table_that_is_given_is_nothing_but_itself() -> None:
    model = turning("")
    for name in ("cos", "sin"):
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 5, 4]))
    pieces = layers_of(understand(load(model)))
    assert pieces
    assert not any(piece.shown for piece in pieces)


def test_what_is_shown_is_hidden_again_where_a_piece_is_put_back() -> None:
    program = understand(load(turning(OUTSIDE["joined angles"])))
    for piece in layers_of(program):
        assert any(
            isinstance(t.operator, Concat) and t.inputs[0] is t.inputs[1] for t in subterms(*piece.graph.outputs)
        )
        back = placement(piece, piece.canonical.outputs)
        assert [back.origins.get(t) for t in back.new.values()] == list(piece.names)
        assert written_otherwise(program, [piece]) == [False]
    assert rewritten(program, back.new, back.origins).graph.num_nodes() == program.model.graph.num_nodes()


def test_a_joined_piece_that_makes_the_tables_begins_with_what_its_parts_found_by_their_halves() -> None:
    program = understand(load(turning(OUTSIDE["joined angles"], between=("Relu", "Relu"))))
    pieces = cut_into_pieces(program)
    seen = 0
    for joined in joined_pieces(program, pieces):
        parts = [p for p in pieces if p.steps.start in joined.steps]
        if "cos" not in joined.origins.values() or not any(p.shown for p in parts):
            continue
        seen += 1
        assert not joined.shown, "these tables are made within"
        as_it_was, by_halves = (
            begun(joined, [(p, solved(p, find(p))) for p in parts], program.values).graph
            for find in (lambda piece: piece.canonical.outputs, turned)
        )
        assert as_it_was.outputs == joined.canonical.outputs
        assert any(isinstance(t.operator, Rotary) for t in subterms(*by_halves.outputs))
        values = {v: feed()[old.label] for old, v in joined.renaming.items() if old.label in feed()}
        values |= {v: program.data(old.label) for old, v in joined.renaming.items() if old.constant}
        for made, wanted in zip(by_halves.outputs, joined.canonical.outputs, strict=True):
            np.testing.assert_allclose(evaluate(made, FLOAT, values), evaluate(wanted, FLOAT, values), rtol=1e-9)
    assert seen


def test_what_a_joined_piece_shows_it_shows_of_parts_that_do_not() -> None:
    program = understand(load(turning(OUTSIDE["joined angles"], between=("Asinh", "Relu"))))
    pieces = cut_into_pieces(program)
    seen = 0
    for joined in joined_pieces(program, pieces):
        parts = [replace(p, graph=plain(p), shown={}) for p in pieces if p.steps.start in joined.steps]
        made = begun(joined, [(p, solved(p, p.canonical.outputs)) for p in parts], program.values).graph
        seen += len(joined.shown)
        assert made.outputs == joined.canonical.outputs
    assert seen


def plain(piece: Piece) -> Graph:
    """What the model has of a piece."""
    outputs = piece.hidden(piece.graph.outputs)
    return Graph(tuple(variables(*outputs)), outputs)


def solved(piece: Piece, outputs: tuple[Term, ...]) -> Solved:
    """A piece for which something was found."""
    start, winner = (Found(Graph(piece.canonical.inputs, o), 1.0, ()) for o in (piece.canonical.outputs, outputs))
    return Solved((piece,), Outcome(start, [winner], 1, ""), winner, 1.0)
