"""One rule as the source of a class for `onnxscript.rewriter`: `onnxscript_source.py` says what the class demands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.dim import Dim
from superopt.errors import ShapeError
from superopt.rules.exchange.demands import of_both_sides
from superopt.rules.exchange.onnxscript_nodes import LISTS, OLDEST, demand_node, writing
from superopt.rules.exchange.onnxscript_places import NotInOnnxscript, Placed, gains, left_of, merged, placed, reshapes
from superopt.rules.exchange.onnxscript_sizes import Names, Sizes, as_targets, as_tuple, quoted, wrapped
from superopt.rules.format import print_rule
from superopt.rules.rule import Rule

_RELATIONS = {"=": "same", "<=": "at_most", "divides": "divides", "!=": "unequal"}


class RuleClass:
    """The parts of a rule's class. Raises `NotInOnnxscript` for a rule that it cannot say."""

    def __init__(self, rule: Rule, taken: Iterable[str]) -> None:
        self.rule, self.names = rule, Names(taken)
        self.left, self.right = left_of(rule), placed(rule.target)
        operators = [demand_node(p.term) for p in [*self.left, *self.right] if not p.term.is_variable]
        self.tensors = {v: self.names.fresh(v.label) for v in rule.given}
        self.nodes = {
            p: self.names.fresh(f"t{i}") for i, p in enumerate(p for p in self.left if not p.term.is_variable)
        }
        self.sizes = Sizes(self.left, self.called, self.names)
        self.kept: dict[str, str] = {}
        reshaped = any(reshapes(p, self.left) for p in self.right)
        self.opset = max([OLDEST[op.name] for op in operators] + [OLDEST["reshape"]] * reshaped)

    def source(self, name: str) -> str:
        """The class, under a name."""
        rewrite = self.rewrite()  # first: it says what the check computes for it
        lines = [
            f"class {name}(ProvedRule):",
            *(f"    # {line}" for line in print_rule(self.rule).splitlines()),
            f"    rule_name = {quoted(self.rule.name)}",
            f"    opset = {self.opset}",
            *wrapped(f"    gains = {self.gains()}"),
        ]
        for method in (self.pattern(), self.check(), rewrite):
            lines += ["", *(w for line in method for w in wrapped(f"    {line}"))]
        return "\n".join(lines)

    def gains(self) -> str:
        """The sets of tensors such that the rule gains where exactly these are known before the model runs."""
        known = gains(self.rule, self.left, self.right)
        if len(known) == 2 ** len(self.tensors) - 1:
            return "ALWAYS"
        sets = [", ".join(sorted(quoted(self.tensors[v]) for v in s)) for s in known]
        return as_tuple(f"{{{s}}}" if s else "set()" for s in sets)

    def called(self, place: Placed) -> str:
        """The name of a placed term of the left."""
        return self.tensors[place.term] if place.term.is_variable else self.nodes[place]

    def pattern(self) -> list[str]:
        """The left side as nodes; those with inputs that are lists have more inputs than tensors."""
        lines = [f"def pattern({', '.join(['self', 'op', *self.tensors.values()])}):"]
        for place, name in self.nodes.items():
            more = ", _allow_other_inputs=True" if isinstance(place.term.operator, LISTS) else ""
            inputs = ", ".join(map(self.called, place.inputs))
            lines.append(f"    {name} = op.{demand_node(place.term).onnx}({inputs}{more}, _outputs=[{quoted(name)}])")
        return [*lines, f"    return {', '.join(self.nodes[Placed(root)] for root in self.rule.source)}"]

    def check(self) -> list[str]:
        """What must hold of what was matched, and the sizes that the right side needs."""
        given = list(self.tensors.values())
        kept = [f"{name} = {source}" for source, name in self.kept.items()]
        last = [*self.demands(), *kept]
        last += [f"self.found = {as_tuple(self.kept.values())}"] if kept else []
        applies = f"self.applies({', '.join(['context', *(f'{name}={name}' for name in given)])})"
        head = f"def check({', '.join(['self', 'context', *given, *self.nodes.values()])}):"
        return ["@refusing", head, *(f"    {line}" for line in [applies, *self.sizes.lines(), *last])]

    def demands(self) -> list[str]:
        """The conditions of the rule, that its terms are well formed, and that what it merges is not the same."""
        try:
            asked = of_both_sides(self.rule)
        except ShapeError as error:
            raise NotInOnnxscript(f"no sizes fit it: {error}") from None
        text = self.sizes.text
        lines = [f"{_RELATIONS[c.relation]}({text(c.left)}, {text(c.right)})" for c in asked]
        lines += [f"{f.kind}({self.tensors[f.of]})" for f in self.rule.facts]
        for pairs in merged(self.left):
            some, others = (as_tuple(self.tensors[v] for v in side) for side in zip(*pairs, strict=True))
            lines.append(f"different({some}, {others})")
        if len(self.rule.source) > 1:
            roots = as_tuple(self.nodes[Placed(root)] for root in self.rule.source)
            lines.append(f"in_order(context, {roots}, {as_tuple(self.tensors.values())})")
        return lines

    def rewrite(self) -> list[str]:
        """The right side as new nodes; an output that is there already gets a node of its own, for its name."""
        made: dict[Placed, str] = {}
        lines: list[str] = []
        for place in self.right:
            if place.term.is_variable and not reshapes(place, self.left):
                made[place] = self.tensors[place.term]
                continue
            call = self.new(place, [made[i] for i in place.inputs])
            made[place] = self.names.fresh(f"t{len(self.nodes) + len(lines)}")
            lines.append(f"{made[place]} = {call}")
        roots = [made[Placed(root)] for root in self.rule.target]
        for i, root in enumerate(roots):
            if root in self.tensors.values() or root in roots[:i]:
                roots[i] = f"op.Identity({root})"
        kept = [f"{as_targets(list(self.kept.values()))} = self.found"] if self.kept else []
        head = f"def rewrite({', '.join(['self', 'op', *self.tensors.values(), '**_'])}):"
        return [head, *(f"    {line}" for line in [*kept, *lines, f"return {', '.join(roots)}"])]

    def new(self, place: Placed, inputs: Sequence[str]) -> str:
        """The call that makes a placed term of the right."""
        if not reshapes(place, self.left):
            return writing(place.term, inputs, self.sizes.text, self.keep)
        shape: list[Dim] = list(place.term.shape)
        if place.frame is not None:
            sizes = dict(zip(place.frame.axes, shape, strict=True))
            shape = [sizes.get(a, 1) for a in range(min(sizes, default=place.frame.rank), place.frame.rank)]
        aligned = self.keep("aligned", f"wildcard({', '.join(map(self.sizes.text, shape))})")
        return f"op.Reshape({inputs[0] if inputs else self.tensors[place.term]}, listed(op, {aligned}))"

    def keep(self, name: str, source: str) -> str:
        """The name of what the check computes for the right side."""
        if source not in self.kept:
            self.kept[source] = self.names.fresh(name)
        return self.kept[source]
