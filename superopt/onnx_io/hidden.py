"""Constants that runtimes do not know as such: what takes nothing but its type from a value that is none.

Exporters that do not simplify write a bias as zeros cast like the input of the layer (ONNX's CastLike). To a runtime it
is no constant then: it is made anew in each run, and what would be folded into a convolution after it is not.
"""

from __future__ import annotations

from superopt.demands import assuming
from superopt.onnx_io.folding import is_folded
from superopt.onnx_io.program import Program
from superopt.term import Term, replace_all, variables


def hidden_constants(program: Program) -> dict[str, Term]:
    """The values that steps compute of constants alone and that can be weights, each as a term over constants."""
    found: dict[Term, Term] = {}
    named: dict[str, Term] = {}
    for step in program.steps:
        for name, term in zip(step.outputs, step.terms, strict=False):
            known = {v: found[v] for v in variables(term) if v in found}
            with assuming():  # what held of sizes where it was read still does
                (made,) = replace_all((term,), known) if known else (term,)
            if made.constant and name in program.values:
                found[program.values[name]] = named[name] = made
    return {name: term for name, term in named.items() if term.is_variable or is_folded(term)}
