"""Digests of what rules are proved by: a seal says that it was not changed since."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from functools import cache
from types import ModuleType

from superopt.operators import places, resize, resize_nodes, windows
from superopt.operators.declare import CATALOGUE, is_shipped
from superopt.operators.laws import collected, derived, law, layout, reductions
from superopt.operators.laws.collected import declared_laws
from superopt.rules.code import meaning
from superopt.rules.rule import Rule
from superopt.term import subterms
from superopt.text import show

DECLARED_WITH = (places, resize, resize_nodes, windows)
"""What declarations compute sizes and values with, and read and write nodes, in modules that declare nothing."""

LAW_MODULES = (law, collected, derived, layout, reductions)
"""What laws are derived by."""


def operators_hash(rules: Iterable[Rule] = ()) -> str:
    """Changes whenever the meaning of a declaration may: a digest of the code of the modules that declare operators,
    and of what these declare them with.

    Files of the user's count, with their laws, where rules are given that use an operator of theirs.
    """
    own = {name for name, cls in CATALOGUE.items() if not is_shipped(cls)}
    with_own = bool(own) and any(t.operator.name in own for r in rules for t in subterms(*r.source, *r.target))
    modules = {inspect.getmodule(cls) for cls in CATALOGUE.values() if with_own or is_shipped(cls)}
    return _digest(_code(m) for m in {*modules, *DECLARED_WITH} if m is not None)


def laws_hash() -> str:
    """Changes whenever a law of superopt's may: a digest of the written ones and of the code that derives the others.

    A law in a file of the user's proves only rules about the operators of such files: see `operators_hash`.
    """
    written = [show(sexp) for cls, _, sexp in declared_laws() if is_shipped(cls)]
    return _digest([*map(_code, LAW_MODULES), *written])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


@cache
def _code(module: ModuleType) -> str:
    return meaning(inspect.getsource(module))
