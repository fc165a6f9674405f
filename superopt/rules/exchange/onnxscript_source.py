"""Rules as Python source: a module of rewrite rules for `onnxscript.rewriter`, whose checks state all that a rule asks.

For each rule the module has a class with the rule above it as a comment: `pattern` is its left side as ONNX nodes,
`rewrite` its right side, and `check` demands, of what was matched,

- floating-point tensors, with the ranks and sizes of the rule as the model states or infers them (an unknown size is
  equal to nothing), and shapes that ONNX broadcasts as the rule's `expand`s do;
- every attribute, those that a node leaves out by their defaults; any other attribute, a bias, `auto_pad`, `ceil_mode`,
  or a second output, is another node than the rule's; lists that are inputs (of Slice, Reshape, Pad) must be constant;
- the rule's conditions on sizes and on elements, and that both sides are well formed;
- that what is merged is not the same: two tensors that would make two operators of the left one and the same must be
  different tensors, with different weights. Nothing would be wrong, but the node is to be computed once instead;
- a gain, unless `rule_set(gaining=False)` is asked for: fewer operators are left at run time, for just those tensors
  known before the model runs (weights, constants) that are. Whether that holds was counted for each set of tensors and
  stands in `gains`. So a rule that combines two tensors on its right, and gains nothing at run time, asks that they
  be weights: `fold_constants` does the rest. Each gain lowers one count, so a pass over a model comes to an end.

Equal nodes are taken to be one node (as common subexpression elimination leaves them), and a node that is read from
elsewhere too, or whose value is an output, is never removed: the rule does not match there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from pathlib import Path

from superopt.rules.exchange.onnxscript_class import RuleClass
from superopt.rules.exchange.onnxscript_places import NotInOnnxscript
from superopt.rules.exchange.onnxscript_sizes import Names, quoted
from superopt.rules.ranks import at_ranks
from superopt.rules.rule import Rule

_PREAMBLE = Path(__file__).with_name("onnxscript_preamble.txt")
_OWN = re.compile(r"^(?:def|class) (\w+)|^(\w+) =|^import (\w+)|^from \S+ import (.*)", re.MULTILINE)

_HEAD = '''"""Rewrite rules of superopt for onnxscript.rewriter, each proved for all sizes that meet its check.

    import onnx_ir, onnxscript.optimizer, onnx_ir.passes.common as passes

    model = onnx_ir.load("model.onnx")
    passes.CommonSubexpressionEliminationPass()(model)
    passes.ShapeInferencePass()(model)
    while rule_set().apply_to_model(model):
        onnxscript.optimizer.fold_constants(model, input_size_limit=1 << 40, output_size_limit=1 << 40)
        passes.ShapeInferencePass()(model)
    passes.RemoveUnusedNodesPass()(model)

Outputs agree up to rounding, since sums and products are taken in another order.
"""
'''

_TAIL = '''

def rule_set(*names, gaining=True, times=float("inf"), commute=True):
    """The rules of these names, or all, each to be applied so many times at most: those that gain, where they gain.

    Without `gaining` they apply wherever they hold. A rule and its inverse then never come to an end, but for `times`.
    """
    chosen = [rule for rule in RULES if not names or rule.rule_name in names]
    return RewriteRuleSet([rule.rule(gaining, times) for rule in chosen if rule.gains or not gaining], commute=commute)
'''


def to_onnxscript(rules: Sequence[Rule]) -> str:
    """The source of a module with a class for each rule; `REFUSED` in it names those that cannot be written."""
    rules, taken = at_ranks(rules), _own_names()
    names = Names(taken)
    called = [names.fresh(_camel(rule.name)) for rule in rules]
    written = [_class_or_refusal(rule, name, taken) for rule, name in zip(rules, called, strict=True)]
    classes = {name: source for name, source in zip(called, written, strict=True) if isinstance(source, str)}
    refused = [(r.name, str(w)) for r, w in zip(rules, written, strict=True) if isinstance(w, NotInOnnxscript)]
    listed = "".join(f"    {name},\n" for name in classes)
    reasons = "".join(f"    {quoted(name)}: {quoted(reason)},\n" for name, reason in refused)
    return "".join(
        [
            _HEAD,
            "\n",
            _PREAMBLE.read_text(encoding="utf-8"),
            f"\n\n# {'-' * 100} rules\n",
            *(f"\n\n{source}\n" for source in classes.values()),
            f"\n\nRULES = [\n{listed}]\n" if classes else "\n\nRULES = []\n",
            f"\nREFUSED = {{\n{reasons}}}\n" if refused else "\nREFUSED = {}\n",
            _TAIL,
        ]
    )


def onnxscript_refusals(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """The name of each rule that `to_onnxscript` does not write, with the reason."""
    taken = _own_names()
    written = [(rule.name, _class_or_refusal(rule, "Rule", taken)) for rule in at_ranks(rules)]
    return [(name, str(reason)) for name, reason in written if isinstance(reason, NotInOnnxscript)]


def _class_or_refusal(rule: Rule, name: str, taken: Set[str]) -> str | NotInOnnxscript:
    try:
        return RuleClass(rule, taken).source(name)
    except NotInOnnxscript as reason:
        return reason


def _own_names() -> set[str]:
    """What the module calls something itself."""
    found = _OWN.findall(_PREAMBLE.read_text(encoding="utf-8") + _TAIL)
    own = {name for groups in found for group in groups for name in group.split(", ") if name}
    return own | {"self", "op", "context", "np", "RULES", "REFUSED"}


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+|_", name, flags=re.ASCII)) or "Rule"
