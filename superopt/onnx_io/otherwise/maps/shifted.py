"""Planes of sums over channels of two maps multiplied, of which one is shifted by one place more in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from superopt.dim import Shape
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


class _View(NamedTuple):
    """Columns of a product in which a map is, and so many rows and columns further on."""

    of: str
    start: int
    stop: int
    down: int
    right: int


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
    """What planes of a model are, told by what its values are made of, and by the parts that these have of others: as
    they are padded, and with zeros around them, since some pad a map once, and others for each shift.
    """

    def __init__(self, program: Program, plain: Mapping[str, Parts], padded: Mapping[str, Parts]) -> None:
        self._values, self._made, self._plain, self._padded = program.values, program.made, plain, padded
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
        inner = term.inputs[0].shape
        channels, groups = inner[-_COLUMNS], inner[_CHANNELS] if len(inner) > _COLUMNS + 1 else 1
        if columns is None or not isinstance(channels, int) or not isinstance(groups, int):
            return []
        factor = of.factor / channels if isinstance(term.operator, Mean) else of.factor
        found, start = list[Plane](), part.box[columns][0]
        for with_zeros in (False, True):
            views = [self._view(of_map, product.shape, with_zeros) for of_map in product.inputs]
            for still, shifted in (views, views[::-1]):
                if still is None or shifted is None or not isinstance(start, int):
                    continue
                by = shifted.right - still.right
                ends = start + max(still.start, shifted.start), start + min(still.stop, shifted.stop)
                whole = (*product.shape[:_COLUMNS], shape[columns])
                stands = (still.down, still.right) == (0, start) and equal_shapes(self._values[still.of].shape, whole)
                if stands and self._is_whole(shifted, whole, ends, by):
                    found.append(Plane(still.of, shifted.of, groups, shifted.down, by, factor))
        return list(dict.fromkeys(found))

    def _is_whole(self, shifted: _View, whole: Shape, ends: Range, by: int) -> bool:
        """Whether of a map that is shifted all columns are multiplied that lie behind one of the whole map."""
        (*_, rows, width), size = self._values[shifted.of].shape, whole[_COLUMNS]
        is_told = are_equal(rows, whole[_ROWS]) or all(isinstance(d, int) for d in (rows, whole[_ROWS]))
        if not is_told or not isinstance(width, int) or not isinstance(size, int):
            return False
        return ends == (max(0, -by), min(size, width - by))

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

    def _view(self, term: Term, shape: Shape, with_zeros: bool) -> _View | None:
        """The one part of which a factor is, with all channels, and its axes as they are."""
        try:
            parts = parts_of(term, self._padded if with_zeros else self._plain, with_zeros)
        except UntoldError:
            return None
        if len(parts) != 1 or parts[0].axes != tuple(range(_COLUMNS + 1)):
            return None
        (part,) = parts
        (start, stop), own = part.box[_COLUMNS], self._values[part.of].shape
        is_all = equal_shapes(part.sizes[:_COLUMNS], shape[:_COLUMNS]) and equal_shapes(own[:_ROWS], shape[:_ROWS])
        if not is_all or not isinstance(start, int) or not isinstance(stop, int):
            return None
        return _View(part.of, start, stop, part.first[_ROWS], part.first[_COLUMNS] - start)
