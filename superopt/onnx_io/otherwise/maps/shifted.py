"""Planes of sums over channels of two maps multiplied, of which one is shifted by one place more in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from superopt.dim import Dim, Shape
from superopt.onnx_io.otherwise.maps.scaled import scaled
from superopt.onnx_io.otherwise.places.boxes import Part, Parts, Range, UntoldError, parts_of
from superopt.onnx_io.program import Program
from superopt.operators.layout import Reshape
from superopt.operators.pointwise import Mul
from superopt.operators.reductions import Mean, Sum
from superopt.relations import are_equal, equal_shapes, is_one
from superopt.term import Term

_CHANNELS, _ROWS, _COLUMNS = 1, 2, 3
"""The axes of a map, behind that of the batch."""


class Plane(NamedTuple):
    """Of two maps the sum over channels, in groups, of their products: that of each place of `still` with the one of
    `shifted` that is so many rows below and so many columns to the right; 0 where there is no such column.
    """

    still: str
    shifted: str
    groups: int
    down: int
    right: int
    factor: float
    """By what each sum is multiplied."""


class Run(NamedTuple):
    """Planes, each of one column more than the one before it, or of one less."""

    first: Plane
    length: int
    step: int

    @property
    def least(self) -> int:
        """By how many columns they are shifted at least."""
        return min(self.first.right, self.first.right + (self.length - 1) * self.step)


def runs_of(planes: Sequence[Plane]) -> list[Run]:
    """Planes in runs."""
    found = [Run(planes[0], 1, 1)]
    for before, plane in pairwise(planes):
        last, step = found[-1], plane.right - before.right
        is_next = abs(step) == 1 and plane == before._replace(right=plane.right)
        if is_next and (last.length == 1 or last.step == step):
            found[-1] = Run(last.first, last.length + 1, step)
        else:
            found.append(Run(plane, 1, 1))
    return found


class Planes:
    """What planes of a model are, told by what its values are made of, and by the parts that these have of others."""

    def __init__(self, program: Program, known: Mapping[str, Parts]) -> None:
        self._values, self._made, self._known = program.values, program.made, known
        self._scaled = partial(scaled, program)
        self._outputs = {value.name or "": value for node in program.model.graph for value in node.outputs}

    def of(self, part: Part, shape: Shape, axis: int) -> list[Plane]:
        """What a part of a value of a shape is that is one place of an axis: one of each map that may be what stands
        still, as may both where neither is shifted; none where it is no such plane.
        """
        value = self._outputs.get(part.of)
        if value is None or (of := self._scaled(value)).shift or (of.of.name or "") not in self._made:
            return []
        term = self._made[of.of.name or ""]
        if isinstance(term.operator, Reshape):  # as what is reduced keeps its axis
            (term,) = term.inputs
        if not isinstance(term.operator, Mean | Sum) or (product := self._product(term)) is None:
            return []
        columns = self._columns(part, shape, axis, term)
        views, inner = [self._view(factor) for factor in product.inputs], term.inputs[0].shape
        channels, groups = inner[-_COLUMNS], inner[_CHANNELS] if len(inner) > _COLUMNS + 1 else 1
        if columns is None or not isinstance(channels, int) or not isinstance(groups, int):
            return []
        factor = of.factor / channels if isinstance(term.operator, Mean) else of.factor
        found, of_maps = list[Plane](), product.shape[:_COLUMNS]
        for still, shifted in (views, views[::-1]):
            if still is None or shifted is None:
                return []
            stands = still.first == (0, 0, 0, part.box[columns][0])
            stands = stands and equal_shapes(self._values[still.of].shape, (*of_maps, shape[columns]))
            by = shifted.first[_COLUMNS] - still.first[_COLUMNS]
            if stands and self._is_whole(shifted, of_maps, by, part.box[columns], shape[columns]):
                found.append(Plane(still.of, shifted.of, groups, shifted.first[_ROWS], by, factor))
        return found

    def _is_whole(self, shifted: Part, of_maps: Shape, by: int, ends: Range, size: Dim) -> bool:
        """Whether the part of the shifted map has all channels, and all columns that lie behind those of the other one,
        of which there are so many.
        """
        (*others, rows, width) = self._values[shifted.of].shape
        is_told = are_equal(rows, of_maps[_ROWS]) or all(isinstance(d, int) for d in (rows, of_maps[_ROWS]))
        if not is_told or not isinstance(width, int) or not isinstance(size, int):
            return False
        return equal_shapes(tuple(others), of_maps[:_ROWS]) and ends == (max(0, -by), min(size, width - by))

    def _product(self, sums: Term) -> Term | None:
        """What two maps are multiplied by, if it is summed up over channels, or over those of each group."""
        axes, of = getattr(sums.operator, "axes", ()), sums.inputs[0]
        product, shape = self._itself(of), of.shape
        if isinstance(product.operator, Reshape) and axes == (_CHANNELS + 1,) and len(shape) == _COLUMNS + 2:
            product, axes = self._itself(product.inputs[0]), (_CHANNELS,)
            shape = (shape[0], shape[1] * shape[2], *shape[3:])
        is_told = isinstance(product.operator, Mul) and product.type.rank == _COLUMNS + 1 and axes == (_CHANNELS,)
        return product if is_told and equal_shapes(product.shape, shape) else None

    def _columns(self, part: Part, shape: Shape, axis: int, sums: Term) -> int | None:
        """The axis of a value along which a part of it has the columns, if it is all of a plane, with rows and columns
        behind the axis of planes, and all else before it.
        """
        inner, at = sums.inputs[0].shape, getattr(sums.operator, "axes", (0,))[0]
        kept = self._values[part.of].type.rank == len(inner)
        has = [(a, own + (own >= at and not kept)) for a, own in enumerate(part.axes) if own is not None]
        has = [(a, own) for a, own in has if own != at]
        lacks = set(range(len(inner))) - {own for _, own in has} - {at}
        is_ordered = [own for _, own in has] == sorted(own for _, own in has)
        is_apart = all((a < axis) == (own < at) for a, own in has)
        is_all = all(are_equal(part.sizes[a], inner[own]) for a, own in has) and all(is_one(inner[a]) for a in lacks)
        if not has or has[-1][1] != len(inner) - 1 or not (is_ordered and is_apart and is_all):
            return None
        columns = has[-1][0]
        others = [(part.box[a], size) for a, size in enumerate(shape) if a not in (axis, columns)]
        is_whole = all(are_equal(start, 0) and are_equal(stop, size) for (start, stop), size in others)
        return columns if is_whole else None

    def _itself(self, term: Term) -> Term:
        """What a value is computed by."""
        while term.is_variable and term.label in self._made:
            term = self._made[term.label]
        return term

    def _view(self, term: Term) -> Part | None:
        """The one part of which a factor is, with its axes as they are."""
        try:
            parts = parts_of(term, self._known)
        except UntoldError:
            return None
        return parts[0] if len(parts) == 1 and parts[0].axes == tuple(range(_COLUMNS + 1)) else None
