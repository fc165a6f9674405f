"""A witness as files that a runtime can run: a model of each side, and the inputs for which they differ."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from superopt.errors import UsageError
from superopt.term import Graph, variables
from superopt.verify.witness import Witness

OPSET = 24
"""Of the models; all operators that are declared have a form in it."""


def demand_free(names: Iterable[str], folder: Path) -> None:
    """Raise `UsageError` where a witness could not be saved under one of the names, before the work."""
    for name in names:
        if (folder / name).exists():
            raise UsageError(f"{folder / name}: exists already; name another folder for the witnesses")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder")


def save_witness(witness: Witness, name: str, folder: Path) -> None:
    """Write `source.onnx`, `target.onnx`, `inputs.npz` and `witness.json` into a new folder of the rule's name.

    Both models take the inputs by the names of the rule's variables, as 32-bit floats. Raises `UsageError` where the
    folder exists or cannot be written, `NotUnderstood` for a side that ONNX cannot express.
    """
    from superopt.onnx_io import load, save, standalone  # here, as proofs by themselves need nothing of ONNX

    demand_free([name], folder)
    given = tuple(variables(*witness.source, *witness.target))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".witness-") as made:
            partial = Path(made) / name
            partial.mkdir()
            for side, terms in (("source", witness.source), ("target", witness.target)):
                save(load(standalone(Graph(given, terms), OPSET)), partial / f"{side}.onnx")
            arrays: dict[str, Any] = {n: a.astype(np.float32) for n, a in witness.arrays.items()}
            np.savez(partial / "inputs.npz", **arrays)
            (partial / "witness.json").write_text(json.dumps(described(witness), indent=2) + "\n", encoding="utf-8")
            partial.rename(folder / name)
    except OSError as error:
        raise UsageError(f"{folder / name}: cannot be written: {error.strerror or error}") from None


def described(witness: Witness) -> dict[str, object]:
    """A witness for machines: inputs by name, and the place and values where the sides differ."""
    return {
        "inputs": {name: {"shape": shape, "elements": elements} for name, shape, elements in witness.values},
        "output": witness.output,
        "place": witness.place,
        "source": witness.left,
        "target": witness.right,
    }
