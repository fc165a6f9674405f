"""Maps that are sampled with corners or borders are so from the outer corner, with zeros around."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DRAWN = np.random.default_rng(0)


def sampling(attributes: str, x: str = "2, 3, 5, 7", grid: str = "2, 4, 6, 2", y: str = "n, c, a, b") -> str:
    """A model of one GridSample."""
    return f"""g (float[{x}] x, float[{grid}] places) => (float[{y}] y) {{
        y = GridSample<{attributes}>(x, places) }}"""


CASES = {
    "with corners": (sampling("align_corners = 1"), 16),
    "with corners and zeros, by their names": (
        sampling('align_corners = 1, mode = "linear", padding_mode = "zeros"'),
        20,
    ),
    "with borders": (sampling('padding_mode = "border"'), 16),
    "with corners and borders": (sampling('align_corners = 1, padding_mode = "border", mode = "bilinear"'), 16),
    "with reflections": (sampling('padding_mode = "reflection"'), 16),
    "with corners and reflections": (sampling('align_corners = 1, padding_mode = "reflection"'), 16),
    "of known width alone": (sampling('align_corners = 1, padding_mode = "border"', x="n, 3, h, 7"), 16),
    "of open sizes": (sampling('padding_mode = "border"', x="n, c, h, w", grid="n, a, b, 2"), 22),
}

STAYS = {
    "as it is to be": (sampling("align_corners = 0"), 16),
    "to the nearest": (sampling('align_corners = 1, mode = "nearest"'), 16),
    "by cubes": (sampling('align_corners = 1, mode = "cubic"'), 20),
    "of one channel": (sampling("align_corners = 1", x="2, 1, 5, 7"), 16),
    "of three axes": (sampling("align_corners = 1", x="2, 3, 4, 5, 7", grid="2, 4, 4, 6, 3", y="n, c, a, b, d"), 20),
}


@pytest.mark.parametrize(("text", "opset"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("size", [(5, 7), (1, 7), (7, 7)])
def test_the_same_is_sampled(text: str, opset: int, size: tuple[int, int]) -> None:
    if "reflection" in text:
        size = (max(size[0], 2), size[1])  # between the two ends of a single row is nothing
    given = model(text.replace("5, 7", ", ".join(map(str, size))), opset)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert program.otherwise
    (node,) = (n for n in made.graph.node if n.op_type == "GridSample")
    said = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert (said["align_corners"], said["padding_mode"]) == (0, b"zeros")
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    x = DRAWN.standard_normal((2, 3, *size)).astype(np.float32)
    for scale in (1.0, 30.0):
        feeds = {"x": x, "places": (scale * DRAWN.uniform(-1.3, 1.3, (2, 4, 6, 2))).astype(np.float32)}
        feeds["places"][0, 0, :3] = [[-1, -1], [1, 1], [0, 1]]
        (before,), (after,) = run(given, feeds), run(made, feeds)
        np.testing.assert_allclose(before, after, atol=1e-4)


@pytest.mark.parametrize(("text", "opset"), STAYS.values(), ids=STAYS)
def test_others_stay(text: str, opset: int) -> None:
    program = understand(load(model(text, opset)))
    assert [n.op_type for n in program.model.graph] == ["GridSample"]
    assert not program.otherwise
