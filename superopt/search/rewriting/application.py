"""What rewrites make of terms, where that applies, and what it saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from superopt.operators.constant import Band
from superopt.operators.facts import supposing
from superopt.search.rewriting.rewrites import Rewrite
from superopt.search.rewriting.rough import Rough
from superopt.search.rewriting.window import Window, below, placed
from superopt.term import Term, subterms


@dataclass(frozen=True)
class Template:
    """What a rewrite makes of the roots of a window, over its leaves.

    `saves` is 0 unless it leaves less work, in rough seconds; of what rules make also no more operators to run. What
    only `regroups` brings together what will save that, and may leave so much `more` work until then.
    """

    rewrite: Rewrite
    targets: tuple[Term, ...]
    leaves: tuple[Term, ...]
    saves: float
    regroups: bool = False
    more: float = 0.0


@dataclass(frozen=True)
class Application:
    """A rewrite at a place: the terms that it replaces, and what by.

    The template is over a window of that depth; where that is None, over the graph itself.
    """

    template: Template
    roots: tuple[Term, ...]
    depth: int | None

    @cached_property
    def new(self) -> dict[Term, Term]:
        """What each of the terms is replaced by."""
        made = self.template.targets
        if self.depth is not None:
            made = placed(made, self.template.leaves, below(self.roots, self.depth))
        return dict(zip(self.roots, made, strict=True))


def templates_of(rewrites: Sequence[Rewrite], seen: Window, rough: Rough) -> list[Template]:
    """What rewrites make of a window, but for those that compute all that they replace, and more."""
    found: list[Template] = []
    before = rough.each(seen.roots)
    with supposing(seen.facts):
        for rewrite in rewrites:
            for targets in rewrite.at(seen.roots):
                if not _can_be_written(targets):
                    continue
                gone, come = difference(before, rough.each(targets))
                if len(targets) == 1 and rewrite.known == "proved" and _names(gone) < _names(come):
                    continue  # another way to compute an operator is what definitions are for
                found.append(Template(rewrite, targets, seen.leaves, seconds_saved(gone, come)))
    return found


def _can_be_written(targets: Sequence[Term]) -> bool:
    """Whether no identity is made of a size that is a symbol: ONNX has none that is not data."""
    return all(t.sized or not isinstance(t.operator, Band) for t in subterms(*targets))


def difference(before: Mapping[Term, float], after: Mapping[Term, float]) -> tuple[dict[Term, float], ...]:
    """The terms that are gone, and those that came, with their seconds."""
    return {t: s for t, s in before.items() if t not in after}, {t: s for t, s in after.items() if t not in before}


def _names(terms: Iterable[Term]) -> Counter[str]:
    return Counter(t.operator.name for t in terms)


def seconds_saved(gone: Mapping[Term, float], come: Mapping[Term, float]) -> float:
    """The rough seconds that a rewrite leaves less; 0 where it leaves more work, or more operators to run."""
    return max(sum(gone.values()) - sum(come.values()), 0.0) if len(come) <= len(gone) else 0.0
