"""The ranks of the tensors in one of TASO's rules, which its file does not state, from the operators around them."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.errors import RuleError
from superopt.rules.exchange.taso_messages import Node, Place, Published

Key = tuple[str, Place]
"""A side and a place; a variable belongs to both sides, so its side is empty."""


def ranks_of(published: Published) -> dict[Key, int | None]:
    """The rank of each tensor; None where nothing tells it.

    Raises `RuleError` where operators ask for different ones.
    """
    first: dict[Key, Key] = {}
    known: dict[Key, int] = {}

    def root(key: Key) -> Key:
        while first.setdefault(key, key) != key:
            key = first[key]
        return key

    for keys, rank in _facts(published):
        together = {root(k) for k in keys}
        ranks = {known[k] for k in together if k in known} | ({rank} if rank is not None else set())
        if len(ranks) > 1:
            raise RuleError(f"a tensor has the ranks {' and '.join(map(str, sorted(ranks)))} at once")
        one = min(together)
        first.update(dict.fromkeys(together, one))
        known.update(dict.fromkeys([one], ranks.pop()) if ranks else {})
    return {k: known.get(root(k)) for k in list(first)}


def _facts(published: Published) -> Iterator[tuple[list[Key], int | None]]:
    """Tensors of one rank, with it where it is told."""
    for side, nodes in (("source", published.source), ("target", published.target)):
        for i, node in enumerate(nodes):
            inputs = [_key(side, p) for p in node.inputs]
            out: list[Key] = [(side, (i, 0))]
            if node.name == "split":
                out.append((side, (i, 1)))
            if node.name == "multiply by a scalar":
                yield inputs[:1] + out, None
                yield inputs[1:], 0
            else:
                yield inputs + out, _told(node)
    for s, t in published.outputs:
        yield [_key("source", s), _key("target", t)], None


def _told(node: Node) -> int | None:
    if node.name in ("conv2d", "max pool", "average pool", "enlarge", "identity convolution", "pooling kernel"):
        return 4
    if node.name in ("matmul", "identity matrix"):
        return 2
    return node.parameters.get(10)


def _key(side: str, place: Place) -> Key:
    return ("" if place[0] < 0 else side, place)
