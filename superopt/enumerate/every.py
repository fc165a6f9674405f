"""Further equations: between any two terms of a class, not only with the one that it is known by, and of a term with
itself renamed.

Of two terms that are equal the second may have its variables renamed in any way that leaves its value as it is. So
`concat(x, y) + concat(z, w) = concat(z, y) + concat(x, w)` is an equation, though both sides are one term up to names.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from superopt.arithmetic.carrier import Array
from superopt.enumerate.classes import Classes, Equation
from superopt.enumerate.family import SIZES
from superopt.enumerate.grow import Progress
from superopt.enumerate.patterns import Node, Pattern, as_term
from superopt.operators.symbolic import resize
from superopt.term import Term
from superopt.verify.elements import is_elementwise

Same = Callable[[Term, Term], bool]
"""Whether two terms have one value, as far as values drawn tell."""


def every_equation(classes: Classes, nodes: Array, same: Same, progress: Progress | None = None) -> Iterator[Equation]:
    """The equations between any two nodes of a class, each pair once, and of a node with itself renamed, in all ways in
    which the term that the class is known by may be.

    Of point-wise terms those alone that have one with the term that the class is known by: they are decided element by
    element, and the classes of sums of many terms would be most of all.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for node in nodes.tolist():
        members[int(classes.known_by[node])].append(node)
    for i, (first, found) in enumerate(members.items()):
        if progress and i % 16 == 0:
            progress("pair in each class", i, len(members))
        patterns = {node: classes.pattern(node) for node in (first, *found)}
        terms = {node: _at_numbers(classes, pattern) for node, pattern in patterns.items()}
        renamings = [{}, *_symmetries(classes, patterns[first], same)]
        for a, b in itertools.combinations_with_replacement(patterns, 2):
            if is_elementwise(terms[a], terms[b]) and a != first:
                continue
            for renaming in renamings:
                source = _renamed(patterns[b], renaming)
                if source != patterns[a] and isinstance(source, Node):  # only the first may be a leaf
                    yield Equation(source, patterns[a], b, a)


def itself_renamed(
    classes: Classes, same: Same, pointwise: bool, progress: Progress | None = None
) -> Iterator[Equation]:
    """The equations of nodes of the last level with themselves renamed. Those of `pointwise` terms are most, and say
    little more than that sums and products have no order.
    """
    for i, node in enumerate(classes.symmetric.tolist()):
        if progress and i % 16 == 0:
            progress("rename within a value", i, len(classes.symmetric))
        pattern = classes.pattern(node)
        assert isinstance(pattern, Node)
        if pointwise or not is_elementwise(_at_numbers(classes, pattern)):
            for renaming in _symmetries(classes, pattern, same):
                yield Equation(pattern, _renamed(pattern, renaming), node, node)


def _symmetries(classes: Classes, pattern: Pattern, same: Same) -> list[dict[int, int]]:
    """All ways to rename the variables of a pattern, each into one of its type, that leave its value as it is."""
    of_type: dict[int, list[int]] = defaultdict(list)
    for leaf in dict.fromkeys(_leaves(pattern)):
        if classes.table.leaves[leaf].is_variable:
            of_type[int(classes.table.type[leaf])].append(leaf)
    before = [leaf for leaves in of_type.values() for leaf in leaves]
    term = _at_numbers(classes, pattern)
    found = []
    for orders in itertools.product(*map(itertools.permutations, of_type.values())):
        renaming = dict(zip(before, itertools.chain(*orders), strict=True))
        moved = any(a != b for a, b in renaming.items())
        if moved and same(term, _at_numbers(classes, _renamed(pattern, renaming))):
            found.append(renaming)
    return found


def _leaves(pattern: Pattern) -> Iterator[int]:
    if isinstance(pattern, int):
        yield pattern
        return
    for i in pattern.inputs:
        yield from _leaves(i)


def _renamed(pattern: Pattern, renaming: Mapping[int, int]) -> Pattern:
    if isinstance(pattern, int):
        return renaming.get(pattern, pattern)
    return Node(pattern.kind, tuple(_renamed(i, renaming) for i in pattern.inputs))


def _at_numbers(classes: Classes, pattern: Pattern) -> Term:
    table = classes.table
    (term,) = resize([as_term(table, pattern, {})], table.family.numbers(SIZES - 1))
    return term
