"""Rules as S-expressions for egg (Rust): a rule a line, `name: left => right`, then `if` and its conditions.

    cut: (slice 1 0 ?c (concat 1 ?x ?y)) => ?x if (shape ?x _ ?c) (shape ?y (dim ?x 0) _)

What stands left and right of `=>` is a pattern that egg's `Pattern` parses, and `SymbolLang` has all of its operators.

- An operator has all its attributes as its first children, in the order of its declaration, then its tensors: `(conv
  (dims ?s ?t) (dims ?p ?q ?u ?v) (dims 1 1) 1 ?x ?k)`. A list of sizes is `(dims …)`; a list that is part of the
  structure is one word, `(transpose 0_2_3_1 ?x)`, and `_` where it is empty. `expand` states axes and shape.
- `?x` is a tensor or a size. Every variable on the right stands on the left. A size on the left is a variable or a
  number; where the rule has an expression there, it is a variable with a condition.
- Sizes on the right may be computed: `(+ …)`, `(* …)`, `(quotient a b)` (rounded down) and `(dim ?x 1)`, the size of an
  axis of a tensor. An analysis that knows shapes folds these to numbers (egg's own examples fold constants so).
- Conditions, all of which must hold: `(shape ?x a _ b)`, the sizes of a tensor and so its rank, where `_` is any;
  `(= a b)`, `(<= a b)`, `(!= a b)`, `(divides a b)` of sizes; `(nonnegative ?x)`, `(nonzero ?x)`, `(finite ?x)` of
  elements. What matches is taken to be well formed: no tensor is empty, elements are floating-point numbers.
- A rule with several outputs is a pair of egg's `MultiPattern`s: `?root = (matmul ?x ?y), ?root1 = …`. In a graph, what
  it makes may depend on itself: the extraction must refuse such cycles, as TENSAT's does.

Lines that begin with `;` are comments; what is not written is named in one, with the reason. A line is read by

    let (name, rule) = line.split_once(": ")?;
    let (rule, conditions) = rule.split_once(" if ").unwrap_or((rule, ""));
    let (left, right) = rule.split_once(" => ")?;
    Rewrite::new(name, left.parse::<Pattern<_>>()?, ConditionalApplier { condition, applier: right.parse()? })
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from superopt.dim import Dim, symbol_name
from superopt.errors import RuleError, ShapeError
from superopt.operators.declared import Declared
from superopt.operators.reader import dim_sexp
from superopt.rules.exchange.demands import of_the_right
from superopt.rules.ranks import at_ranks
from superopt.rules.rule import Rule
from superopt.substitution import symbols
from superopt.term import Term, subterms
from superopt.text import Form, Sexp, form, show, word

_WORD = re.compile(r"[^\s()\";,=?#]+")
"""What egg reads as one symbol and nothing else, alone or within a multi-pattern."""


class NotInEgg(RuleError):
    """A rule that this form cannot say; names the reason."""


def to_egg(rules: Sequence[Rule]) -> str:
    """The rules as text for egg, in their order; those that it cannot say are named in comments."""
    head = "; name: left => right if conditions; the docstring of superopt.rules.exchange.egg says of what."
    lines = map(_line_or_refusal, at_ranks(rules))
    shown = (s if isinstance(s, str) else f"; not written: {' '.join(str(s).split())}" for s in lines)
    return "\n".join([head, *shown, ""])


def egg_refusals(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """The name of each rule that `to_egg` does not write, with the reason."""
    lines = [(rule.name, _line_or_refusal(rule)) for rule in at_ranks(rules)]
    return [(name, str(line).removeprefix(f"{name}: ")) for name, line in lines if isinstance(line, NotInEgg)]


def _line_or_refusal(rule: Rule) -> str | NotInEgg:
    try:
        return egg_line(rule)
    except NotInEgg as reason:
        return reason


def egg_line(rule: Rule) -> str:
    """One rule. Raises `NotInEgg` for what this form cannot say."""
    if not re.fullmatch(r"[^\s();\"]+", rule.name):
        raise NotInEgg(f"{rule.name}: the name is not one word")
    written = _Written(rule)
    left = _side(rule.source, written)
    right = _side(rule.target, written)
    asked = written.conditions()
    return f"{rule.name}: {left} => {right}" + (f" if {' '.join(map(show, asked))}" if asked else "")


def _side(roots: Sequence[Term], written: _Written) -> str:
    texts = [show(written.term(t)) for t in roots]
    return texts[0] if len(texts) == 1 else ", ".join(f"?{n} = {t}" for n, t in zip(written.roots, texts, strict=True))


class _Written:
    """How the variables and sizes of a rule are called, and what this leaves to conditions."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.taken = {v.label for v in rule.given}
        self.roots = [self._fresh("root") for _ in rule.source]
        self.sizes: dict[str, Sexp] = {}
        self.computed: dict[str, tuple[Sexp, Dim]] = {}
        for label in self.taken:
            self._demand_word(label, "variable")
        for dim in (d for t in subterms(*rule.source) if isinstance(t.operator, Declared) for d in t.operator.sizes()):
            self._name_attribute(dim)
        for v in rule.given:
            for axis, dim in enumerate(v.shape):
                name = symbol_name(dim)
                if name is not None:
                    self.sizes.setdefault(name, form("dim", f"?{v.label}", axis))

    def term(self, term: Term) -> Sexp:
        """A term as an expression, attributes first."""
        if term.is_variable:
            return word(f"?{term.label}")
        op = term.operator
        assert isinstance(op, Declared)
        values = ((f.facts.size, getattr(op, f.name)) for f in op.fields)
        attributes = [self._sized(value) if size else self._structure(value) for size, value in values]
        return form(op.name, *attributes, *map(self.term, term.inputs))

    def conditions(self) -> list[Sexp]:
        """The shapes of the variables, what computed sizes on the left are, the rule's own, and what is known."""
        try:
            asked = of_the_right(self.rule)
        except ShapeError as error:
            raise NotInEgg(f"{self.rule.name}: {error}") from None
        shapes = [form("shape", f"?{v.label}", *self._axes(v)) for v in self.rule.given]
        computed = [form("=", name, self._expression(dim)) for name, dim in self.computed.values()]
        relations = [form(c.relation, self._size(c.left), self._size(c.right)) for c in asked]
        return [*shapes, *computed, *relations, *(form(f.kind, f"?{f.of.label}") for f in self.rule.facts)]

    def _axes(self, v: Term) -> list[Sexp]:
        own = [form("dim", f"?{v.label}", axis) for axis in range(v.type.rank)]
        sizes = map(self._size, v.shape)
        return [word("_") if size == itself else size for size, itself in zip(sizes, own, strict=True)]

    def _name_attribute(self, dim: Dim) -> None:
        name = symbol_name(dim)
        if name is not None and name not in self.sizes:
            self._demand_word(name, "size")
            self.sizes[name] = word(f"?{self._fresh(name)}")
        elif name is None and not isinstance(dim, int) and str(dim) not in self.computed:
            self.computed[str(dim)] = word(f"?{self._fresh('size')}"), dim

    def _sized(self, value: Any) -> Sexp:
        return form("dims", *map(self._size, value)) if isinstance(value, tuple) else self._size(value)

    def _size(self, dim: Dim) -> Sexp:
        known = self.computed.get(str(dim))
        return known[0] if known is not None else self._expression(dim)

    def _expression(self, dim: Dim) -> Sexp:
        unknown = symbols(dim) - set(self.sizes)
        if unknown:
            raise NotInEgg(f"{self.rule.name}: the size {min(unknown)} stands nowhere by itself, only within a formula")
        return self._renamed(dim_sexp(dim))

    def _renamed(self, sexp: Sexp) -> Sexp:
        if isinstance(sexp, Form):
            head = "quotient" if sexp.head == "div" else sexp.head  # div is of tensors
            return form(head, *map(self._renamed, sexp.items[1:]))
        return self.sizes[sexp.value] if isinstance(sexp.value, str) else sexp

    def _structure(self, value: Any) -> Sexp:
        text = "_".join(map(str, value)) or "_" if isinstance(value, tuple) else str(value)
        if text != "_":
            self._demand_word(text, "attribute")
        return word(text)

    def _fresh(self, name: str) -> str:
        free = (
            name
            if name not in self.taken
            else next(f"{name}{i}" for i in range(1, 10**6) if f"{name}{i}" not in self.taken)
        )
        self.taken.add(free)
        return free

    def _demand_word(self, text: str, what: str) -> None:
        if not _WORD.fullmatch(text):
            raise NotInEgg(f"{self.rule.name}: egg cannot read the {what} {text!r} as one word")
