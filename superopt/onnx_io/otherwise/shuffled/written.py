"""The nodes that make and read channels as they are planned."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.asked_sizes import sizes_before
from superopt.onnx_io.naming import name_of
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.shuffled.moves import Numbers
from superopt.onnx_io.otherwise.shuffled.plan import Plan
from superopt.onnx_io.otherwise.shuffled.sources import WEIGHTS, Source, Sources
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft
from superopt.onnx_io.said import input_of, is_a
from superopt.onnx_io.surgery import bury, pass_on

VARIANCE = 4
"""Which input of a norm is what it divides by the root of: what fills blocks up is divided by one."""


class Writer:
    """A draft in which sources make and read channels as a plan says."""

    def __init__(self, program: Program, sources: Sources, plan: Plan, draft: Draft) -> None:
        self._program, self._sources, self._plan, self._draft = program, sources, plan, draft
        self._before, self._after = list(program.model.graph), list(draft.model.graph)
        self._pieces = dict[tuple[int, int], ir.Value]()
        self._joined = dict[tuple[tuple[int, int], ...], ir.Value]()

    def write(self) -> None:
        """Write all sources that make or read channels otherwise, in the order of the nodes, and what others read."""
        last, old = {source.places[-1]: i for i, source in enumerate(self._sources.each)}, list[ir.Value]()
        for place, node in enumerate(self._after):
            outputs, i = list(node.outputs), last.get(place)
            if i is not None:
                self._write_source(i, self._sources.each[i], node)
            for value in outputs:
                if name_of(value) in self._plan.outside:
                    self._write_outside(value, node)
            if place in self._sources.asked:
                self._write_sizes(self._sources.asked[place], node)
            old.extend(outputs if i is not None or place in self._sources.moving else [])
        bury(self._draft.model, dict.fromkeys(old))

    def _write_source(self, i: int, source: Source, last: ir.Node) -> None:
        pieces, made = self._plan.pieces[i], self._draft.nodes("channels")
        as_it_was = np.array_equal(pieces[0], source.channels)
        if as_it_was and i not in self._plan.reads:
            self._pieces[i, 0] = last.outputs[0]
            return
        root = self._after[source.places[0]].inputs[0]
        assert root is not None
        x = self._joined_pieces(self._plan.reads[i], made) if i in self._plan.reads else root
        for k, piece in enumerate(pieces):
            self._pieces[i, k] = self._piece(i, source, piece, x, made)
        if as_it_was:
            self._draft.replace(last, made, [self._pieces[i, 0]])
        else:
            self._draft.model.graph.insert_before(last, made.nodes)

    def _piece(self, i: int, source: Source, piece: Numbers, x: ir.Value, made: NewNodes) -> ir.Value:
        """Channels of a source, by the nodes that make them and compute each of them."""
        as_it_was = np.array_equal(piece, source.channels)
        values = {self._before[source.places[0]].inputs[0]: x}
        for place in source.places:
            node, is_dense = self._after[place], source.is_dense and place == source.places[0]
            there = self._plan.channels(self._plan.reads[i]) if is_dense and i in self._plan.reads else None
            read = zip(self._before[place].inputs, node.inputs, strict=True)
            inputs, said = [values.get(before, after) for before, after in read], list(node.attributes.values())
            for k in WEIGHTS.get(node.op_type, ()):
                weights = self._weights(input_of(self._before[place], k))
                if k == 1 and there is not None and source.reads is not None:
                    inputs[k] = made.held(_rows(_columns(weights, source.reads, there), piece - source.first))
                elif not as_it_was and k < len(inputs) and inputs[k] is not None:
                    is_divisor = is_a(node, "BatchNormalization") and k == VARIANCE
                    inputs[k] = made.held(_rows(weights, piece - source.first, float(is_divisor)))
            if is_a(node, "Conv") and not is_dense:
                said = [*(a for a in said if a.name != "group"), ir.AttrInt64("group", piece.size)]
            x = made.several(node.op_type, inputs, said)[0]
            values[self._before[place].outputs[0]] = x
        return x

    def _weights(self, value: ir.Value | None) -> Array:
        return np.zeros(0) if value is None else self._program.data(name_of(value))

    def _joined_pieces(self, read: list[tuple[int, int]], made: NewNodes) -> ir.Value:
        key = tuple(read)
        if key not in self._joined:
            self._joined[key] = made.joined([self._pieces[one] for one in key], 1)
        return self._joined[key]

    def _write_sizes(self, name: str, node: ir.Node) -> None:
        """The sizes of a value that is not made any more, by those of what its first channel is made with."""
        lies = self._sources.known[name]
        if self._plan.is_changed(channels := lies.channels.reshape(-1)):
            made, piece = self._draft.nodes("sizes"), self._pieces[int(self._plan.of[channels[0]]), 0]
            sizes = sizes_before(made, piece, 1, (lies.images, channels.size, *lies.around))
            self._draft.replace(node, made, [sizes])

    def _write_outside(self, value: ir.Value, node: ir.Node) -> None:
        """What others read, in its order."""
        made, read, name = self._draft.nodes("channels"), self._plan.outside[name_of(value)], name_of(value)
        there = {int(channel): place for place, channel in enumerate(self._plan.channels(read))}
        places = [there[int(channel)] for channel in self._sources.known[name].channels.reshape(-1)]
        new = self._joined_pieces(read, made)
        new = made.node("Gather", [new, made.integers(places)], [ir.AttrInt64("axis", 1)])
        self._draft.model.graph.insert_after(node, made.nodes)
        pass_on(value, new)
        value.replace_all_uses_with(new, replace_graph_outputs=True)
        value.name, new.name = new.name, name


def _columns(weights: Array, reads: Numbers, there: Numbers) -> Array:
    """The weights of a convolution for the channels that are there, of those for what it reads in its order."""
    found = np.zeros((weights.shape[0], there.size, *weights.shape[2:]), weights.dtype)
    places = {int(channel): place for place, channel in enumerate(there)}
    for place, channel in enumerate(reads):  # one may be read twice
        found[:, places[int(channel)]] += weights[:, place]
    return found


def _rows(weights: Array, places: Numbers, filling: float = 0.0) -> Array:
    """What there is for channels at some places, and something else for those that fill blocks up."""
    found = weights[np.maximum(places, 0)]
    found[places < 0] = filling
    return found
