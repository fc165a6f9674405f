"""Names of variables and sizes by first use, so that renamings of one equation are one."""

from __future__ import annotations

import itertools

from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.symbolic import all_symbols, resize
from superopt.term import Term, replace_all, variable, variables


def canonical(roots: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms with variables called x y z w …, sizes n c h w …, and the other attributes a0 a1 …, by first use."""
    letters = [*"xyzwuvpq", *(f"x{i}" for i in range(len(variables(*roots))))]
    names = _names_of_sizes(variables(*roots))
    names |= {n: f"a{i}" for i, n in enumerate(n for n in all_symbols(*roots) if n not in names)}
    with assuming():  # what was well formed stays so
        sized = resize(roots, {n: symbol(new) for n, new in names.items()})
        # Two steps, since a swap of names is not a sequence of renamings.
        aside = {v: variable(f"_{i}", v.shape) for i, v in enumerate(variables(*sized))}
        final = {w: variable(letters[i], w.shape) for i, w in enumerate(aside.values())}
        return replace_all(replace_all(sized, aside), final)


def _names_of_sizes(given: list[Term]) -> dict[str, str]:
    """Sizes in the shapes of variables, by first use: n c h w, then further letters."""
    found: dict[str, str] = {}
    letters = itertools.chain("nchwoijdmkrefgtlbpqsuv", (f"d{i}" for i in itertools.count()))
    for v in given:
        for name in all_symbols(v):
            if name not in found:
                found[name] = next(letters)
    return found
