"""A witness as files that a runtime can run: a model of each side, and the inputs for which they differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from superopt.errors import UsageError
from superopt.onnx_io import load, save, standalone
from superopt.term import Graph, variables
from superopt.verify.witness import Witness

OPSET = 24
"""Of the models; all operators that are declared have a form in it."""


def save_witness(witness: Witness, name: str, folder: Path) -> None:
    """Write `source.onnx`, `target.onnx`, `inputs.npz` and `witness.json` into a new folder of the rule's name.

    Both models take the inputs by the names of the rule's variables, as 32-bit floats. Raises `UsageError` where the
    folder exists or cannot be written.
    """
    into, partial = folder / name, folder / f".{name}.partial"
    given = tuple(variables(*witness.source, *witness.target))
    try:
        if into.exists():
            raise UsageError(f"{into}: exists already; name another folder for the witnesses")
        partial.mkdir(parents=True)
        for side, terms in (("source", witness.source), ("target", witness.target)):
            save(load(standalone(Graph(given, terms), OPSET)), partial / f"{side}.onnx")
        arrays: dict[str, Any] = {n: a.astype(np.float32) for n, a in witness.arrays.items()}
        np.savez(partial / "inputs.npz", **arrays)
        (partial / "witness.json").write_text(json.dumps(described(witness), indent=2) + "\n", encoding="utf-8")
        partial.rename(into)
    except OSError as error:
        raise UsageError(f"{into}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def described(witness: Witness) -> dict[str, object]:
    """A witness for machines: inputs by name, and the place and values where the sides differ."""
    return {
        "inputs": {name: {"shape": shape, "elements": elements} for name, shape, elements in witness.values},
        "output": witness.output,
        "place": witness.place,
        "source": witness.left,
        "target": witness.right,
    }
