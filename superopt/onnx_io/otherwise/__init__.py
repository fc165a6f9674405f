"""What writes nodes as others that are faster by themselves, equal for all finite inputs but for rounding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import onnx_ir as ir

from superopt.errors import left_undone
from superopt.onnx_io.otherwise.along_last import along_last
from superopt.onnx_io.otherwise.as_rows import as_rows
from superopt.onnx_io.otherwise.attention.grouped_queries import grouped_queries
from superopt.onnx_io.otherwise.attention.hidden_in_nodes import hidden_in_nodes
from superopt.onnx_io.otherwise.attention.hidden_keys import hidden_keys
from superopt.onnx_io.otherwise.bases import bases
from superopt.onnx_io.otherwise.cast_once import cast_once
from superopt.onnx_io.otherwise.cells import cells
from superopt.onnx_io.otherwise.channel_sums import channel_sums
from superopt.onnx_io.otherwise.forests import forests
from superopt.onnx_io.otherwise.full_rank import full_rank
from superopt.onnx_io.otherwise.guarded import guarded
from superopt.onnx_io.otherwise.larger import larger
from superopt.onnx_io.otherwise.maps.attended import attended
from superopt.onnx_io.otherwise.maps.correlated import correlated
from superopt.onnx_io.otherwise.monomials import monomials
from superopt.onnx_io.otherwise.networks.heads import heads
from superopt.onnx_io.otherwise.networks.mixed import mixed
from superopt.onnx_io.otherwise.networks.pairs import pairs
from superopt.onnx_io.otherwise.networks.side_by_side import side_by_side
from superopt.onnx_io.otherwise.places.added import added
from superopt.onnx_io.otherwise.places.assigned import assigned
from superopt.onnx_io.otherwise.places.bordered import bordered
from superopt.onnx_io.otherwise.places.counted import counted
from superopt.onnx_io.otherwise.places.filled import filled
from superopt.onnx_io.otherwise.places.gathered import gathered
from superopt.onnx_io.otherwise.places.one_hot import one_hot
from superopt.onnx_io.otherwise.places.rejoined import rejoined
from superopt.onnx_io.otherwise.places.restacked import restacked
from superopt.onnx_io.otherwise.places.scattered import scattered
from superopt.onnx_io.otherwise.quantized.bounded import bounded
from superopt.onnx_io.otherwise.quantized.convolved import convolved
from superopt.onnx_io.otherwise.quantized.dequantized import dequantized
from superopt.onnx_io.otherwise.quantized.few_channels import few_channels
from superopt.onnx_io.otherwise.quantized.padded import padded
from superopt.onnx_io.otherwise.quantized.saturated import saturated
from superopt.onnx_io.otherwise.quantized.shares import shares
from superopt.onnx_io.otherwise.quantized.signed_weights import signed_weights
from superopt.onnx_io.otherwise.quantized.sums_apart import sums_apart
from superopt.onnx_io.otherwise.quantized.tabled import tabled
from superopt.onnx_io.otherwise.quantized.unsigned_constants import unsigned_constants
from superopt.onnx_io.otherwise.quantized.unsigned_values import unsigned_values
from superopt.onnx_io.otherwise.quantized.whole_channels import whole_channels
from superopt.onnx_io.otherwise.sampled import sampled
from superopt.onnx_io.otherwise.series.cumulated import cumulated
from superopt.onnx_io.otherwise.series.joined_steps import joined_steps
from superopt.onnx_io.otherwise.series.listed import listed
from superopt.onnx_io.otherwise.series.mapped import mapped
from superopt.onnx_io.otherwise.series.recurrences import recurrences
from superopt.onnx_io.otherwise.series.stacked_steps import stacked_steps
from superopt.onnx_io.otherwise.series.steps import steps
from superopt.onnx_io.otherwise.series.unrolled import unrolled
from superopt.onnx_io.otherwise.shuffled.shuffled import shuffled
from superopt.onnx_io.otherwise.spelled.clips import clips
from superopt.onnx_io.otherwise.spelled.hard_sigmoids import hard_sigmoids
from superopt.onnx_io.otherwise.spelled.leaks import leaks
from superopt.onnx_io.otherwise.spelled.shrinks import shrinks
from superopt.onnx_io.otherwise.told_once import told_once
from superopt.onnx_io.otherwise.transformed import transformed
from superopt.onnx_io.otherwise.transposed_views import transposed_views
from superopt.onnx_io.otherwise.truths import truths
from superopt.onnx_io.otherwise.unchanged import unchanged
from superopt.onnx_io.otherwise.unread.unread import unread
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Put, replaced

FIRST: tuple[Callable[[Program], Mapping[int, Put]], ...] = (cells, side_by_side, forests, correlated)
"""What is written otherwise before anything else is: of what is left of a cell or a tree, none could be told. Networks
that can be side by side are so rather than in stacks, and so are planes of products of maps.
"""

ALONE: tuple[tuple[Callable[[Program], Mapping[int, Put]]], ...] = ((unread,), (shuffled,))
"""What changes the sizes of values that nodes between give: no other way is to know them as they were."""

OTHERWISE: tuple[Callable[[Program], Mapping[int, Put]], ...] = (
    unchanged,
    told_once,
    full_rank,
    clips,
    hard_sigmoids,
    leaks,
    shrinks,
    dequantized,
    padded,
    bounded,
    sums_apart,
    convolved,
    shares,
    few_channels,
    saturated,
    tabled,
    whole_channels,
    unsigned_values,
    unsigned_constants,
    signed_weights,
    mapped,
    sampled,
    attended,
    scattered,
    added,
    bordered,
    filled,
    assigned,
    gathered,
    rejoined,
    cast_once,
    listed,
    steps,
    stacked_steps,
    joined_steps,
    one_hot,
    truths,
    counted,
    recurrences,
    as_rows,
    restacked,
    transposed_views,
    grouped_queries,
    heads,
    pairs,
    mixed,
    monomials,
    bases,
    along_last,
    hidden_keys,
    hidden_in_nodes,
    cumulated,
    larger,
    unrolled,
    guarded,
    transformed,
    channel_sums,
)
"""Each tells places of nodes in the main graph and how to put another there; of a place of two of them the latter."""


class Written(NamedTuple):
    """A model with nodes written otherwise, and the names of the ways that told places for that."""

    model: ir.Model
    ways: frozenset[str]


def otherwise(program: Program, only: Collection[str] | None = None) -> Written | None:
    """The model with all such nodes written otherwise, in a copy; None where there are none. The interface stays. Where
    ways are named, it is in these `only`.
    """
    for ways in (FIRST, *ALONE, OTHERWISE):
        puts: dict[int, Put] = {}
        told = set[str]()
        for way in ways:
            if only is not None and way.__name__ not in only:
                continue
            with left_undone(way.__name__):
                found = way(program)
                puts.update(found)
                told.update([way.__name__] if found else ())
        if (made := replaced(program.model, puts)) is not None:
            return Written(made, frozenset(told))
    return None
