"""Terms: operators applied to terms, immutable and interned, each with a type that it gets once, when it is made.

Equal terms are one object, so equality is `is` and a shared subgraph is shared in memory. The leaves are variables.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import attrgetter
from typing import ClassVar
from weakref import WeakValueDictionary

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import note_again, noted
from superopt.dim import Condition, Dim, Shape
from superopt.errors import ShapeError
from superopt.substitution import symbols

REAL = "real"
"""The element type of rules and of made constants: whatever floating type the terms around it have."""

TRUTH = "bool"
"""The element type of truth values."""

_constant, _sized = attrgetter("constant"), attrgetter("sized")


@dataclass(frozen=True)
class Type:
    """The type of a term: element type (numpy's name, or `REAL`) and shape."""

    dtype: str
    shape: Shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


class Operator:
    """What can stand at the head of a term. Instances are immutable values; attributes are their fields."""

    name: ClassVar[str]
    chains: ClassVar[bool] = False
    """Whether applications within applications are one chain, evaluated by `eval_chain`."""

    def type_of(self, inputs: tuple[Type, ...]) -> Type:
        """The type of the result. Raises `ShapeError` or `Undecided` for inputs that do not fit."""
        raise NotImplementedError

    def eval(self, ring: Carrier, *arrays: Array) -> Array:
        """The value, in any carrier."""
        raise NotImplementedError

    def eval_chain(self, ring: Carrier, *arrays: Array) -> Array:
        """What a chain of this operator gives, from all of its inputs: in steps, where none knows better."""
        return reduce(partial(self.eval, ring), arrays)

    def is_known(self, inputs: Sequence[Term]) -> bool:
        """Whether the value over inputs is known before a model runs."""
        return all(map(_constant, inputs))


@dataclass(frozen=True)
class Variable(Operator):
    """A leaf: an input, or a weight where `constant` says that its value is known before the model runs."""

    name: ClassVar[str] = "variable"
    label: str
    type: Type
    constant: bool = False

    def type_of(self, inputs: tuple[Type, ...]) -> Type:
        """The declared type."""
        return self.type

    def is_known(self, inputs: Sequence[Term]) -> bool:
        """As declared."""
        return self.constant


class Term:
    """An operator applied to terms. Make one with `make` or `variable`; equal terms are the same object."""

    __slots__ = ("__weakref__", "constant", "demands", "inputs", "is_variable", "operator", "shape", "sized", "type")
    operator: Operator
    inputs: tuple[Term, ...]
    type: Type
    constant: bool
    """Whether the value is known before the model runs: all leaves are constants."""
    is_variable: bool
    """Whether this is a leaf that stands for a value from outside."""
    shape: Shape
    """The shape of the value."""
    sized: bool
    """Whether all sizes in it are numbers."""
    demands: tuple[Condition, ...]
    """What its operator demands of sizes that symbols leave open."""
    _interned: ClassVar[WeakValueDictionary[tuple[Operator, tuple[Term, ...]], Term]] = WeakValueDictionary()

    def __reduce__(self) -> tuple[Callable[..., Term], tuple[Operator, tuple[Term, ...]]]:
        return make, (self.operator, self.inputs)

    @property
    def label(self) -> str:
        """The name of a variable."""
        assert isinstance(self.operator, Variable)
        return self.operator.label

    def __repr__(self) -> str:
        if self.is_variable:
            return f"?{self.label}"
        return f"({' '.join([str(self.operator), *map(repr, self.inputs)])})"


def make(operator: Operator, inputs: Iterable[Term] = ()) -> Term:
    """The term of an operator and inputs. Raises `ShapeError` where the types do not fit, and `Undecided` where sizes
    leave that open, nobody assumes it, and the term is new.
    """
    inputs = tuple(inputs)
    known = Term._interned.get((operator, inputs))
    if known is None:
        before = len(noted())
        type_ = operator.type_of(tuple([i.type for i in inputs]))
        return _entered(operator, inputs, type_, tuple(noted(before)))
    if known.demands:  # whoever makes it now decides them too
        note_again(known.demands)
    return known


def made_over(term: Term, inputs: tuple[Term, ...]) -> Term:
    """What `make` gives of a term's operator over other inputs; over inputs of the same types its type is known."""
    known = Term._interned.get((term.operator, inputs))
    if known is not None:
        if known.demands and known.demands != term.demands:
            note_again(known.demands)
        return known
    for own, other in zip(term.inputs, inputs, strict=True):
        if own is not other and not _of_one_type(own, other):
            return make(term.operator, inputs)
    return _entered(term.operator, inputs, term.type, term.demands)


def _of_one_type(a: Term, b: Term) -> bool:
    """Whether two terms are of the same type, to the letter; what symbols leave open counts as no."""
    if a.type is b.type:
        return True
    return a.sized and b.sized and a.type.dtype == b.type.dtype and a.shape == b.shape


def _entered(operator: Operator, inputs: tuple[Term, ...], type_: Type, demands: tuple[Condition, ...]) -> Term:
    """The new term of an operator and inputs, whose type is known, and what that demands of sizes."""
    term = object.__new__(Term)
    term.operator, term.inputs, term.type, term.shape = operator, inputs, type_, type_.shape
    term.demands = demands
    term.is_variable = isinstance(operator, Variable)
    term.constant = operator.is_known(inputs)
    term.sized = all(isinstance(d, int) for d in type_.shape) and all(map(_sized, inputs))
    Term._interned[operator, inputs] = term
    return term


def variable(label: str, shape: Iterable[Dim], dtype: str = REAL, constant: bool = False) -> Term:
    """A variable of a name, shape and element type."""
    return make(Variable(label, Type(dtype, tuple(shape)), constant))


def join_dtypes(inputs: Iterable[Type], what: str) -> str:
    """The element type common to all inputs, where `REAL` fits every floating type. Raises `ShapeError`."""
    joined = REAL
    for type_ in inputs:
        if joined == REAL:
            joined = type_.dtype
        elif type_.dtype not in (joined, REAL):
            raise ShapeError(f"{what}: element types differ: {joined} and {type_.dtype}")
    return joined


FACTS = ("nonnegative", "nonzero", "finite")
"""What may be known of all elements of a term; positive is the first two, finite neither infinite nor no number."""


@dataclass(frozen=True)
class Fact:
    """That each element of a term is what one of `FACTS` says."""

    kind: str
    of: Term

    def __str__(self) -> str:
        return f"({self.kind} {self.of!r})"


@dataclass(frozen=True)
class Graph:
    """Named inputs (variables) and outputs (terms over them), in order."""

    inputs: tuple[Term, ...]
    outputs: tuple[Term, ...]

    @cached_property
    def runs(self) -> tuple[Term, ...]:
        """The terms that are computed when it runs: see `running`."""
        return tuple(running(*self.outputs))

    def __str__(self) -> str:
        return " ".join(map(repr, self.outputs))


def subterms(*roots: Term, known: Container[Term] = ()) -> list[Term]:
    """Every distinct term under the roots, inputs before users; of those `known` neither they nor what is below."""
    return _inputs_first([r for r in roots if r not in known], known, all_of_them=True)


def running(*roots: Term, known: Container[Term] = ()) -> list[Term]:
    """The terms under the roots that are computed when a model runs, inputs before users; of `known` ones none.

    These are neither variables nor made of constants alone.
    """
    left = [r for r in roots if not (r.constant or r.is_variable or r in known)]
    return _inputs_first(left, known, all_of_them=False)


def _inputs_first(roots: Sequence[Term], known: Container[Term], all_of_them: bool) -> list[Term]:
    """The distinct terms under the roots that are not known: all of them, or those that run."""
    found: dict[Term, None] = {}
    stack = list(reversed(roots))
    while stack:
        term = stack[-1]
        if term not in found:
            for i in term.inputs:
                if i not in found and (all_of_them or not (i.constant or i.is_variable)) and i not in known:
                    if i.inputs:
                        stack.append(i)
                        break
                    found[i] = None
            else:
                found[term] = None
                stack.pop()
        else:
            stack.pop()
    return list(found)


def variables(*roots: Term) -> list[Term]:
    """The distinct variables under the roots, in the order of first use."""
    return [t for t in subterms(*roots) if t.is_variable]


def size_symbols(*roots: Term) -> set[str]:
    """The names of the symbols in the shapes of the variables under the roots."""
    return {name for v in variables(*roots) for dim in v.shape for name in symbols(dim)}


def replace(root: Term, new: Mapping[Term, Term]) -> Term:
    """The term with some subterms replaced, everything above them made anew. Raises what `make` raises."""
    return replace_all((root,), new)[0]


def replace_all(roots: tuple[Term, ...], new: Mapping[Term, Term]) -> tuple[Term, ...]:
    """`replace` for several terms that share subterms."""
    done: dict[Term, Term] = dict(new)
    for term in subterms(*roots, known=done):
        inputs = tuple([done[i] for i in term.inputs])
        done[term] = term if inputs == term.inputs else made_over(term, inputs)
    return tuple([done[root] for root in roots])
