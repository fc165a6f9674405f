"""TASO's rules as rules over all sizes.

What the file leaves open is read as follows, and as `taso_terms.py` says. A tensor's rank is what the operators around
it tell; a rule whose ranks nothing tells is stated at each of `OPEN_RANKS`. Each size is a symbol of its own but for
what the source asks. A kernel that is enlarged is stated at each odd size below.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from superopt.demands import assuming
from superopt.dim import Condition, Dim, equal, symbol
from superopt.errors import RuleError, ShapeError, Undecided
from superopt.operators.solved_sizes import unify
from superopt.operators.symbolic import all_symbols, conditions, positive_symbols, resize
from superopt.rules.exchange.taso_messages import KEYS, Place, Published
from superopt.rules.exchange.taso_ranks import ranks_of
from superopt.rules.exchange.taso_terms import Side, fresh
from superopt.rules.exchange.taso_windows import Windows, windows_of
from superopt.rules.naming import canonical
from superopt.rules.rule import Rule
from superopt.substitution import substitute, substitute_condition, symbols
from superopt.term import Term, variable

ARITY = dict.fromkeys(("relu", "sigmoid", "tanh", "split", "transpose", "enlarge", "concat"), 1)
ARITY |= dict.fromkeys(("max pool", "average pool", "reshape", "merge groups"), 1)
ARITY |= dict.fromkeys(("add", "mul", "matmul", "conv2d", "multiply by a scalar"), 2)
MOST = 64
"""How many operators a rule may have, and inputs a concat."""
LEGAL = {
    "kernel height": (1, 1000),
    "kernel width": (1, 1000),
    "stride height": (1, 1000),
    "stride width": (1, 1000),
    "rank": (1, 8),
    "axis": (0, 7),
}

OPEN_RANKS = (1, 2, 3, 4)
"""The ranks at which a rule is stated that holds at any."""


def rules_of(published: Published, name: str) -> list[Rule]:
    """The rule, at each rank that the operators leave open.

    Raises `RuleError` that names what cannot be said: an operator, a missing size, an output that is not there.
    """
    try:
        _demand_sound(published)
        ranks, windows = ranks_of(published), windows_of(published)
    except RuleError as error:
        raise RuleError(f"{name}: {error}") from None
    found = []
    is_open = None in ranks.values()
    for rank, sizes in itertools.product(OPEN_RANKS if is_open else (0,), windows):
        called = f"{name}-rank-{rank}" if is_open else name
        called += "".join(f"-of-{height}x{width}" for height, width in sizes.values())
        try:
            with assuming():
                at = {k: rank if r is None else r for k, r in ranks.items()}
                found.append(_rule(published, at, sizes, called))
        except (ShapeError, Undecided, RuleError) as error:
            raise RuleError(f"{called}: {error}") from None
    return found


def _rule(published: Published, ranks: dict[tuple[str, Place], int], windows: Windows, name: str) -> Rule:
    given = {
        p: variable(f"x{-p[0]}", (*fresh(f"x{-p[0]}", r)[: 2 if p in windows else r], *windows.get(p, ())))
        for (_, p), r in ranks.items()
        if p[0] < 0
    }
    left = Side("source", published.source, given, ranks)
    source = left.outputs([s for s, _ in published.outputs])
    values, rest = unify([*conditions(*source), *left.asked], _kept(given, source), positive_symbols(*source))
    odd = _odd(rest)
    values = {n: substitute(d, odd) for n, d in values.items()} | odd
    source = resize(source, values)
    stated = {c.key for c in conditions(*source)}
    right = Side("target", published.target, {p: resize((v,), values)[0] for p, v in given.items()}, ranks)
    target = _settled(right.outputs([t for _, t in published.outputs]), source, right.asked)
    left_open = [substitute_condition(c, odd) for c in rest]
    if False in left_open:
        raise ShapeError("its sizes contradict each other")
    further = tuple(c for c in left_open if isinstance(c, Condition) and c.key not in stated)
    roots = canonical((*source, *target)) if not further else (*source, *target)
    return Rule(name, roots[: len(source)], roots[len(source) :], further)


def _odd(asked: Sequence[Condition]) -> dict[str, Dim]:
    """Sizes that are asked to be odd, as SAME pads keep the size of an image where the kernel's is: each as 2 k − 1."""
    found: dict[str, Dim] = {}
    for c in asked:
        for name in symbols(c.left) | symbols(c.right):
            even = symbol(name) * 2
            if substitute_condition(c, {name: even - 1}) is True and substitute_condition(c, {name: even}) is False:
                found[name] = even - 1
    return found


def _kept(given: dict[Place, Term], source: Sequence[Term]) -> list[str]:
    dims = all_symbols(*given.values())
    return [*dims, *(n for n in all_symbols(*source) if n not in dims)]


def _settled(target: tuple[Term, ...], source: tuple[Term, ...], asked: Sequence[Condition]) -> tuple[Term, ...]:
    """The target with the sizes of its constants, which nothing states, as the source's sizes ask."""
    free = [n for n in all_symbols(*target) if n.startswith("_")]
    if not free:
        return target
    pairs = [p for s, t in zip(source, target, strict=True) for p in zip(s.shape, t.shape, strict=True)]
    shapes = [c for a, b in pairs if isinstance(c := equal(a, b), Condition)]
    values, _ = unify([*conditions(*target), *shapes, *asked], all_symbols(*source), positive_symbols(*source, *target))
    return resize(target, {n: values[n] for n in free if n in values})


def _demand_sound(published: Published) -> None:
    """Raise `RuleError` for operators with too few or too many inputs, and parameters that no operator has."""
    for node in (*published.source, *published.target):
        count, least = len(node.inputs), ARITY.get(node.name, 0)
        if count < least or count > (MOST if node.name == "concat" else least):
            raise RuleError(f"{node.name} has {count} inputs")
        for key, (low, high) in LEGAL.items():
            if not low <= node.parameter(key, low) <= high:
                raise RuleError(f"{node.name}: its parameter {KEYS[key]} ({key}) is {node.parameter(key)}")
    if len(published.source) + len(published.target) > MOST:
        raise RuleError(f"it has more than {MOST} operators")
