"""Candidates compared on what models compute on the way, where their outputs show nothing.

A detector finds nothing in random numbers: whatever stands before its last steps, its outputs are empty. Those steps
are the original's own in the candidate, so what was rewritten is compared itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from superopt.errors import SuperoptError
from superopt.onnx_io import Program, changed_values, load, opset_of, outdated, save_showing
from superopt.search.agreement import Agreement
from superopt.search.replay import Placement
from superopt.term import Type

Between = Callable[[Path, Path, Sequence[str]], Agreement]
"""Compares two models that lie in files; their outputs are these values of the program."""


def rewritten_values(program: Program, placed: Placement, candidate: Path) -> dict[str, Type]:
    """What a candidate computes otherwise than the original, by name: what was replaced, and what is written in another
    form since its opset is newer. Weights are left out.
    """
    changed = changed_values(program, placed.new, placed.origins)
    opset = opset_of(load(candidate))
    anew = outdated(program, opset) if opset > opset_of(program.model) else {}
    return {n: program.values[n].type for n, term in sorted((changed | dict(anew)).items()) if not term.constant}


def compared_within(
    types: Mapping[str, Type], original: Path, candidate: Path, folder: Path, between: Between
) -> Agreement | None:
    """How two models compare at inner values of these names, those that are in both; None where there are none, or they
    cannot be shown. What is made for that goes into the folder, and is gone afterwards.
    """
    shown = folder / "inner-original.onnx", folder / "inner-candidate.onnx"
    try:
        theirs = save_showing(candidate, shown[1], types, types)
        if not theirs or save_showing(original, shown[0], theirs, types) != theirs:
            return None
        return replace(between(*shown, theirs), inner=True)
    except SuperoptError:
        return None
    finally:  # with their weights, of which there may be many
        for path in shown:
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.data").unlink(missing_ok=True)
