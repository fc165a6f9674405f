"""Which branches of a model run, and at which sizes: as inputs decide, and bodies of loops in any case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from superopt.arithmetic.carrier import Array
from superopt.cost.child import Ask, within
from superopt.errors import RuntimeFailed
from superopt.onnx_io import Branch, Choice, Program, bodies, choices
from superopt.search.accepting.runs import first_that_runs
from superopt.search.accepting.trial import Trial
from superopt.search.settings import Setting, limited, sized
from superopt.substitution import symbols


@dataclass(frozen=True)
class Run:
    """The settings in which some branches run."""

    settings: tuple[Setting, ...]
    branches: frozenset[Branch]


def ways_of(program: Program, samples: Sequence[Mapping[str, Array]] = ()) -> list[Choice]:
    """The choices of branches that run, with the bodies that do so in each."""
    always = bodies(program)
    ways = choices(program, samples) or ([({}, frozenset[Branch]())] if always else [])
    return [(given, run.union(always)) for given, run in ways]


def asked_of(trial: Trial, deciding: Sequence[Mapping[str, int]], program: Program) -> tuple[Setting, ...]:
    """The sizes of a branch that somebody has said for the whole; a sample says them where the branch runs on it."""
    said = trial.asked[0]
    if not said.sizes:
        return (Setting(),)
    runs = any(Setting(deciding=given).decides_as(sample) for given in deciding for sample in trial.inputs[:1])
    if said.likely and not runs:
        return (Setting(),)
    return tuple(replace(sized(program, setting.sizes), likely=setting.likely) for setting in trial.asked)


def of_a_turn(trial: Trial, program: Program) -> tuple[Setting, ...]:
    """The sizes that a body's inputs have while the whole is searched, as far as they are known."""
    shapes = [program.values[name].shape for name in program.inputs if name in program.values]
    names = {name for shape in shapes for d in shape for name in symbols(d)}
    sizes = {name: size for name, size in trial.bench.sizes.items() if name in names}
    return (replace(sized(program, sizes), likely=bool(sizes)),)


def reachable_of(trial: Trial, inner: Mapping[Branch, Trial], ways: Sequence[Choice], patience_s: float) -> list[Run]:
    """The choices with which the model runs, each at the sizes of the branches that run then, if it does at these."""
    ask = within(trial.bench.child, patience_s)
    found = []
    for deciding, run in ways:
        own = {n: size for b in run if b in inner for n, size in inner[b].settings[0].sizes.items()}
        settings = [_running(trial, setting, own, deciding, ask) for setting in trial.settings]
        if all(settings):
            found.append(Run(tuple(s for s in settings if s), run))
    return found


def _running(
    trial: Trial, setting: Setting, own: Mapping[str, int], deciding: Mapping[str, int], ask: Ask
) -> Setting | None:
    """A setting in which inputs decide so, at sizes of its `own` where nobody asked for others and the model runs so;
    None where it does not run with these.
    """
    tried = [replace(setting, deciding=deciding)]
    if setting.likely and own:
        sizes = {name: own.get(name, size) for name, size in setting.sizes.items()}
        there = replace(sized(trial.program, sizes), likely=True, deciding=deciding)
        tried.insert(0, limited(trial.program, there) if setting.limits or setting.turns else there)
    try:
        place = ask(first_that_runs, trial.bench.runtime.standard, trial.working, [s.draw() for s in tried])
    except RuntimeFailed:
        return None
    return None if place is None else tried[place]
