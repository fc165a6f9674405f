"""The whole way from a family to proved rules: grow, pair, prune, generalize, verify, prune again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from superopt.enumerate.abstraction import abstracted
from superopt.enumerate.checkpoint import Checkpoint
from superopt.enumerate.climb import REFUTED, climb, learn_conditions, prove_each, refute
from superopt.enumerate.directed import Pair, directions, distinct
from superopt.enumerate.equations import equations
from superopt.enumerate.family import SIZES, Family
from superopt.enumerate.grow import Progress
from superopt.enumerate.judges import first_learned, first_proved, first_refuted, judges
from superopt.enumerate.overlaps import overlaps
from superopt.enumerate.prune import (
    POINTWISE_STEPS,
    STEPS,
    macros,
    named,
    prune_instances,
    replayed,
    replaying,
    steps_for,
)
from superopt.enumerate.tuples import of_two_outputs
from superopt.evaluate import same_value
from superopt.operators.reader import term_text
from superopt.operators.symbolic import resize
from superopt.rules.derive import Rules
from superopt.rules.rule import Rule
from superopt.verify.elements import is_elementwise


@dataclass
class Generated:
    """Proved rules, and how many things there were at each stage."""

    rules: list[Rule]
    counts: dict[str, int]
    unknown: list[str] = field(default_factory=list)
    seconds: float = 0.0


def generate(
    family: Family,
    max_ops: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    memory: float | None = None,
    beside: Sequence[Rule] = (),
    steps: int = STEPS,
) -> Generated:
    """Find and prove all rules of up to `max_ops` operators a side. The result depends on the seed alone.

    `memory` is a limit in GB: a level that would pass it is left out, and so is what comes after; the counts say so.
    What other rules, and those `beside`, replay in so many `steps` is left out. With 0, every two terms of a class are
    a rule unless they are an instance of another: this is how far TASO prunes.
    """
    start = time.monotonic()
    found_equal = equations(family, max_ops, seed, progress, memory, steps)
    counts, given = found_equal.counts, resize(family.given, family.numbers(SIZES - 1))
    shared = [abstracted(*pair, same_value) for pair in found_equal.pairs]
    pairs = distinct([p for pair in shared for p in directions(*pair)], given)
    counts["directed, shared parts abstracted"] = len(pairs)
    known = (checkpoint or Checkpoint()).verdicts
    with (
        judges(workers, first_proved) as proving,
        judges(workers, first_refuted) as refuting,
        judges(workers, first_learned) as learning,
    ):
        prove_all = partial(known, proving)
        found, open_ = climb(pairs, prove_all, counts, progress)
        open_ = refute(open_, partial(known, refuting), progress)
        learned, open_ = learn_conditions(open_, partial(known, learning), counts, progress)
        found += learned
        found += prove_each(of_two_outputs(found), prove_all, counts, "of two outputs", progress)
        found = prune_instances(found, progress)
        counts["instances of no other rule"] = len(found)
        so_far = replaying([*beside, *macros(found, beside, progress, steps)])
        further = distinct(_not_replayed(found_equal.others, so_far, progress, steps), given)
        counts["not replayed, of all equations"] = len(further)
        peaks = overlaps(found, found_equal.others, beside, max_ops + 1, progress)
        peaks = [rule for rule in _told("replay overlaps", peaks, progress) if _is_new(rule, so_far, steps)]
        found += climb(further, prove_all, {}, progress)[0]
        found += prove_each(peaks, prove_all, counts, "of two rules, uphill", progress)
    found = prune_instances(found, progress)
    rules = named(macros(found, beside, progress, steps), beside)
    counts["rules"] = len(rules)
    unknown = [f"{term_text(a)} = {term_text(b)} ({why})" for (a, b), why in open_.items() if why != REFUTED]
    return Generated(rules, counts, unknown, time.monotonic() - start)


def _told(stage: str, rules: Sequence[Rule], progress: Progress | None) -> Iterator[Rule]:
    """Rules, one after the other, and how far they are."""
    for i, rule in enumerate(rules):
        if progress and i % 16 == 0:
            progress(stage, i, len(rules))
        yield rule


def _is_new(rule: Rule, known: Rules, steps: int) -> bool:
    """Whether the rules do not replay another in so many steps."""
    return not replayed(known, rule.source, rule.target, steps)


def _not_replayed(pairs: list[Pair], known: Rules, progress: Progress | None, steps: int) -> list[Pair]:
    """The equations, directed, that the rules do not replay in so many steps, as far as they are looked at."""

    def is_new(pair: Pair) -> bool:
        source, target = pair[:1], pair[1:]
        return not replayed(known, source, target, steps_for(source, target, steps))

    found: list[Pair] = []
    for i, pair in enumerate(pairs):
        if progress and i % 64 == 0:
            progress("replay all equations", i, len(pairs))
        looked_at = steps <= POINTWISE_STEPS or not is_elementwise(*pair)
        if looked_at and any(map(is_new, directions(*pair))):
            found += filter(is_new, directions(*abstracted(*pair, same_value)))
    return found
