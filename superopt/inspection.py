"""What of a model is understood, and what is opaque and why: by operator, with shares of operations and of time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.child import Child, within
from superopt.cost.flops import flops, is_floating
from superopt.cost.ort import OnnxRuntime
from superopt.cost.profile import Profile, profile
from superopt.cost.sizes import DEFAULT_SIZE, concretize
from superopt.errors import RuntimeFailed, SuperoptError
from superopt.folders import temporary_folder
from superopt.onnx_io import LARGE, Program, Step, facts, load, save, understand, widened
from superopt.onnx_io.tensors import Tensor, tensors
from superopt.operators.nodes import concrete
from superopt.search.report import Part
from superopt.search.settings import Setting, assumed
from superopt.search.settled import PATIENCE_S, settled
from superopt.search.strategies.found import Progress
from superopt.term import Graph, Type

Sizes = Mapping[str, int]
"""Of symbols."""

LONGEST_S = 120.0
"""A model that has not run a few times by then is taken as never ending."""


class Share(Part):
    """Nodes, and what they take. Shares are of the whole model, from 0 to 1; None is unknown.

    Of opaque nodes nothing is known but how large their results are, so they count as one operation for each
    floating-point element: the share of operations that is understood is at most the one given. `unsized` nodes count
    as none. `untimed` nodes were not run as they stand: the runtime has no kernel for them, and runs what they are made
    of instead.
    """

    nodes: int
    understood: int
    opaque: int
    flops: int | None
    flops_share: float | None
    unsized: int
    seconds: float | None
    time_share: float | None
    untimed: int


class Group(Share):
    """All nodes of one ONNX operator. `reasons` says why nodes are opaque, and how many for each reason."""

    operator: str
    reasons: dict[str, int]


class Inspection(Part):
    """A whole model; constants are not counted. `whole` is all of it, `known` what is understood.

    `added_seconds` is what the runtime's additions take: casts, and what untimed nodes are made of. Times are medians
    of `runs` runs; where nothing was timed, `not_timed` says why. A model of 16-bit floats is told of `in_32_bits`
    where that is how the runtime computes these. `assumed` are the sizes of inputs that have symbolic ones.
    """

    groups: tuple[Group, ...]
    whole: Share
    known: Share
    added_seconds: float | None
    runs: int
    not_timed: str | None
    in_32_bits: bool
    assumed: dict[str, str]


@dataclass(frozen=True)
class _Node:
    """A step, with its operations and seconds where they are known."""

    operator: str
    reason: str
    flops: int | None
    seconds: float | None


def inspect_model(source: str | Path, timed: bool = True, progress: Progress | None = None) -> Inspection:
    """Inspect a model, and run it a few times unless told otherwise.

    Symbolic sizes count as likely ones at which it runs, or 1. Raises `InvalidModel` and `UsageError`; a model that
    cannot be run is inspected all the same.
    """
    progress = progress or (lambda stage, done: None)
    model = load(source)
    wide = widened(model) if OnnxRuntime.widens_half else None
    program = understand(wide or model)
    times, not_timed = None, None if timed else "not asked for"
    with temporary_folder() as folder, closing(Child()) as child:
        ask = within(child, PATIENCE_S) if timed else None
        taken = settled(program, Path(source), (Setting(),), OnnxRuntime(1), ask, folder)
        if timed:
            progress("measure", 0.5)
            try:
                times = _profile(program, taken.settings[0], child, folder)
            except SuperoptError as error:
                not_timed = str(error)
    nodes = _nodes(program, times, taken.sizes)
    total = sum(n.flops or 0 for n in nodes)
    spent = None if times is None else times.added + sum(n.seconds or 0.0 for n in nodes)
    groups = []
    for operator in dict.fromkeys(n.operator for n in nodes):
        own = [n for n in nodes if n.operator == operator]
        reasons = dict(Counter(n.reason for n in own if n.reason).most_common())
        groups.append(Group(operator=operator, reasons=reasons, **_share(own, total, spent).model_dump()))
    return Inspection(
        groups=tuple(sorted(groups, key=lambda g: (-(g.seconds or 0.0), -(g.flops or 0), -g.nodes, g.operator))),
        whole=_share(nodes, total, spent),
        known=_share([n for n in nodes if not n.reason], total, spent),
        added_seconds=None if times is None else times.added,
        runs=0 if times is None else times.runs,
        not_timed=not_timed,
        in_32_bits=wide is not None,
        assumed=assumed(program, Setting(), taken.settings[0]),
    )


def _nodes(program: Program, times: Profile | None, sizes: Sizes) -> list[_Node]:
    names = {node: _name(i) for i, node in enumerate(program.model.graph)}
    seconds = {} if times is None else times.nodes
    found = tensors(program.model)
    return [
        _Node(_operator(s), s.reason, _flops(s, program, found, sizes), seconds.get(names[s.node]))
        for s in program.steps
    ]


def _share(nodes: Sequence[_Node], total: int, spent: float | None) -> Share:
    """What some nodes take, of all operations and all seconds."""
    counted = [n.flops for n in nodes if n.flops is not None]
    timed = [n.seconds for n in nodes if n.seconds is not None]
    operations = sum(counted) if counted or not nodes else None
    seconds = sum(timed) if spent is not None and (timed or not nodes) else None
    return Share(
        nodes=len(nodes),
        understood=sum(not n.reason for n in nodes),
        opaque=sum(bool(n.reason) for n in nodes),
        flops=operations,
        flops_share=operations / total if operations is not None and total else None,
        unsized=len(nodes) - len(counted),
        seconds=seconds,
        time_share=seconds / spent if seconds is not None and spent else None,
        untimed=0 if spent is None else len(nodes) - len(timed),
    )


def _operator(step: Step) -> str:
    return ".".join(filter(None, (step.node.domain, step.node.op_type)))


def _name(position: int) -> str:
    """What a node is called while it is timed: many models leave nodes without a name, or give one twice."""
    return f"superopt:{position}"


def _profile(program: Program, setting: Setting, child: Child, folder: Path) -> Profile:
    """Time a copy of the model in which every node has a name of its own. Raises `SuperoptError`."""
    named = load(program.model)
    names = []
    for position, node in enumerate(named.graph):
        node.name = _name(position)
        names.append(node.name)
    path = folder / "named.onnx"
    save(named, path, external_data=facts(named).bytes > LARGE or None)
    try:
        return child.call(LONGEST_S, profile, path, names, folder, OnnxRuntime(threads=1), setting.draw())
    except RuntimeFailed as error:  # the copy's path means nothing to who asked
        raise RuntimeFailed(str(error).replace(str(path), "a copy of it")) from None


def _flops(step: Step, program: Program, found: Mapping[str, Tensor], sizes: Sizes) -> int | None:
    """The operations of a step; of an opaque one, the floating-point elements that it gives. None where not known."""
    try:
        if step.terms:
            return flops(step.terms, sizes)
        return sum(_elements(name, program, found, sizes) for name in step.outputs)
    except (SuperoptError, KeyError):
        return None


def _elements(name: str, program: Program, found: Mapping[str, Tensor], sizes: Sizes) -> int:
    """How many floating-point numbers a value holds. Raises `KeyError` or `NotUnderstood` where that is not known."""
    if name in program.values:  # the terms before it may know a size that ONNX's inference does not
        value = program.values[name]
        if not is_floating(value.type):
            return 0
        return math.prod(concrete(concretize(Graph((value,), (value,)), sizes).outputs[0].shape, name))
    tensor = found[name]
    dims = tuple(d if isinstance(d, int) else DEFAULT_SIZE for d in tensor.dims)
    return math.prod(dims) if is_floating(Type(tensor.dtype, dims)) else 0
