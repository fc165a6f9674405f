"""What maps cost that are shifted step by step is one product of matrices for each row; other planes stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import gain, operators_of


class Maps(NamedTuple):
    """Two maps, of which the second may be larger, as what has zeros around it, and how their planes are made."""

    channels: int = 32
    rows: int = 3
    columns: int = 20
    more: tuple[int, int] = (0, 0)
    groups: int = 1
    keeps: bool = False
    total: str = "ReduceMean"
    scale: str = ""
    swapped: bool = False
    cut: int = 0
    """By how many columns less than there are in both."""
    pads: bool = False
    """Whether each shift pads the second map, and what it gives is not."""

    def plane(self, name: str, down: int, right: int) -> str:
        """Nodes that make a plane, with its axis, of the maps x and z."""
        wide = self.columns + self.more[1]
        first, last = max(0, -right), min(self.columns, wide - right) - self.cut
        if self.pads:
            around = f"v0_0_0_{first}_0_0_0_{self.columns - last}"
            text = f"l{name} = Identity(x) c{name} = Slice(z, i{first + right}, i{last + right}, i3) "
            text += f"r{name} = Pad(c{name}, {around}) m{name} = Mul(l{name}, r{name}) "
            return text + f"t{name} = {self.total}<keepdims = 1>(m{name}, i1) p{name} = Identity(t{name}) "
        text = f"l{name} = Slice(x, i{first}, i{last}, i3) "
        text += f"r{name} = Slice(z, v{down}_{first + right}, v{down + self.rows}_{last + right}, v2_3) "
        text += f"m{name} = Mul({', '.join((f'r{name}', f'l{name}') if self.swapped else (f'l{name}', f'r{name}'))}) "
        if self.groups > 1:
            size = f"v0_{self.groups}_-1_{self.rows}_{last - first}".replace("-", "n")
            text += f"g{name} = Reshape(m{name}, {size}) t{name} = {self.total}<keepdims = 0>(g{name}, i2) "
        else:
            text += f"t{name} = {self.total}<keepdims = {int(self.keeps)}>(m{name}, i1) "
        text += f"f{name} = {self.scale}(t{name}, number) " if self.scale else f"f{name} = Identity(t{name}) "
        axis = 1 + (self.groups > 1)
        spread = "Identity" if self.keeps else f"Unsqueeze[i{axis}]"
        text += f"u{name} = Identity(f{name}) " if spread == "Identity" else f"u{name} = Unsqueeze(f{name}, i{axis}) "
        before, behind = [0] * (axis + 3), [0] * (axis + 3)
        before[-1], behind[-1] = first, self.columns - last
        if not first and last == self.columns:
            return text + f"p{name} = Identity(u{name}) "
        return text + f"p{name} = Pad(u{name}, v{'_'.join(map(str, (*before, *behind)))}) "

    def feeds(self, rows: int = 2) -> dict[str, np.ndarray]:
        random, sizes = np.random.default_rng(0), (self.rows + self.more[0], self.columns + self.more[1])
        shapes = {"x": (rows, self.channels, self.rows, self.columns), "z": (rows, self.channels, *sizes)}
        return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    def model(self, shifts: Sequence[tuple[int, int]], rows: str = "2", also: str = "") -> onnx.ModelProto:
        """A model that joins the planes of these shifts."""
        planes = [self.plane(str(i), *shift) for i, shift in enumerate(shifts)]
        axis = 1 + (self.groups > 1)
        joined = f"y = Concat<axis = {axis}>({', '.join(f'p{i}' for i in range(len(shifts)))})"
        x, z = (f"float[{rows}, {', '.join(map(str, data.shape[1:]))}]" for data in self.feeds().values())
        groups = f"{self.groups}, " * (self.groups > 1)
        y = f"float[{rows}, {groups}{len(shifts)}, {self.rows}, {self.columns}]"
        nodes = f"number = Constant<value_float = 0.3>() {' '.join(planes)} {also} {joined}"
        made = model(f"g ({x} x, {z} z) => ({y} y) {{ {nodes} }}", 18)
        for name in sorted({name for node in made.graph.node for name in node.input if name[0] in "iv"}):
            numbers = [int(number.replace("n", "-")) for number in name[1:].split("_")]
            made.graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return made

    def read(self, shifts: Sequence[tuple[int, int]], rows: str = "2", also: str = "") -> list[str]:
        """The operators of that model as it is read."""
        return operators_of(self.model(shifts, rows, also), self.feeds())


LEFT = [(0, -i) for i in range(6)]
AROUND = [(down, right) for down in range(3) for right in range(5)]

CORRELATED = {
    "to the left, as the right picture of two is seen": (Maps(), LEFT, 1),
    "to the right": (Maps(), [(0, i) for i in range(6)], 1),
    "from the right to the left": (Maps(), [(0, 3 - i) for i in range(7)], 1),
    "sums": (Maps(total="ReduceSum"), LEFT, 1),
    "sums over a number": (Maps(total="ReduceSum", scale="Div"), LEFT, 1),
    "means times a number": (Maps(scale="Mul"), LEFT, 1),
    "with the axis kept": (Maps(keeps=True), LEFT, 1),
    "the shifted map first": (Maps(swapped=True), LEFT, 1),
    "in groups": (Maps(channels=96, groups=3), LEFT, 1),
    "in blocks": (Maps(columns=48), LEFT, 1),
    "in blocks, in groups": (Maps(channels=64, groups=2, columns=48), LEFT, 1),
    "of rows and columns, in a map with zeros around it": (Maps(more=(2, 4)), AROUND, 3),
    "of maps that are padded for each": (Maps(pads=True), LEFT, 1),
    "of maps that are padded for each, around": (Maps(pads=True), [(0, i - 3) for i in range(7)], 1),
    "of one row": (Maps(rows=1), LEFT, 1),
    "from one place on": (Maps(more=(0, 9)), [(0, 2 + i) for i in range(6)], 1),
}


@pytest.mark.parametrize(("maps", "shifts", "products"), CORRELATED.values(), ids=CORRELATED)
@pytest.mark.parametrize("rows", ["2", "N"])
def test_planes_are_a_product(maps: Maps, shifts: list[tuple[int, int]], products: int, rows: str) -> None:
    operators = maps.read(shifts, rows)
    assert operators.count("MatMul") == products
    assert not {"ReduceMean", "ReduceSum"}.intersection(operators)


STAYING = {
    "every other place": (Maps(), [(0, -2 * i) for i in range(6)], ""),
    "few": (Maps(), LEFT[:3], ""),
    "fewer columns than there are": (Maps(cut=2), LEFT, ""),
    "fewer of padded columns than there are": (Maps(pads=True, cut=1), LEFT, ""),
    "few channels": (Maps(channels=2), LEFT, ""),
    "other rows each": (Maps(more=(5, 0)), [(i, 0) for i in range(6)], ""),
}


@pytest.mark.parametrize(("maps", "shifts", "also"), STAYING.values(), ids=STAYING)
def test_others_stay(maps: Maps, shifts: list[tuple[int, int]], also: str) -> None:
    assert "MatMul" not in maps.read(shifts, also=also)


def test_costs_are_computed_faster() -> None:
    maps = Maps(channels=64, rows=16, columns=48)
    assert gain(maps.model([(0, -i) for i in range(24)], rows="1"), maps.feeds(rows=1)) > 1.5
