"""What enumeration starts from: operators and variables, as data."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.errors import UsageError
from superopt.operators.declare import CATALOGUE, Declared, is_shipped
from superopt.operators.reader import read_dim
from superopt.term import Term, variable
from superopt.text import Form, read

CORE = (
    *("transpose", "reshape", "concat", "slice", "pad", "add", "mul", "div", "sqrt", "relu", "matmul", "conv"),
    *("maxpool", "avgpool", "global_avgpool", "softmax"),
)
"""The operators of the rules that come with superopt; the catalogue has more."""

_DATA = "(?x n c h w) (?y n c h w) (?p m k) (?q m k) (?z m n2)"
_WEIGHTS = "(?k c c 1 1) (?l c c 3 3) (?m c c 3 3) (?s c) (?t c) (?a) (?b) (?u k n2) (?v k n2) (?w n2 r)"

_SIZES = {"n": 2, "c": 4, "h": 5, "w": 6, "m": 3, "k": 7, "n2": 8, "r": 9}


@dataclass(frozen=True)
class Family:
    """Operators to apply, and variables to apply them to: data, and weights (constants), which are grown only as far
    as folding needs. Sizes are all different, so that few terms are equal by accident.
    """

    name: str
    operators: tuple[type[Declared], ...]
    variables: tuple[Term, ...]


def core_family(operators: str = "") -> Family:
    """The core operators and the user's own (or those listed, with commas between), over images, kernels, vectors,
    numbers and matrices.

    Raises `UsageError` for an operator that is unknown or not enumerated.
    """
    names = [n.strip() for n in operators.split(",") if n.strip()] or [*CORE, *_own()]
    for name in names:
        if name not in CATALOGUE or not _tried(CATALOGUE[name]):
            known = ", ".join(n for n, c in CATALOGUE.items() if _tried(c))
            raise UsageError(f"operator {name} is unknown or not enumerated; choose from {known}")
    return Family("core", tuple(CATALOGUE[n] for n in names), tuple(_variables()))


def _own() -> list[str]:
    return [name for name, cls in CATALOGUE.items() if not is_shipped(cls) and _tried(cls)]


def _tried(cls: type[Declared]) -> bool:
    return cls.enumerated and not cls.free


def _variables() -> list[Term]:
    found = []
    for text, weight in ((_DATA, False), (_WEIGHTS, True)):
        for sexp in read(text):
            assert isinstance(sexp, Form)
            dims = [read_dim(d) for d in sexp.items[1:]]
            sizes = [d if isinstance(d, int) else _SIZES[str(d)] for d in dims]
            found.append(variable(sexp.head[1:], sizes, constant=weight))
    return found
