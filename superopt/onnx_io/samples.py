"""Inputs that the user gives to compare models on: read from files, and held against what a model takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from superopt.errors import UsageError
from superopt.onnx_io.facts import facts


def load_inputs(path: Path) -> dict[str, np.ndarray]:
    """One sample of inputs from an .npz file with an array for each. Raises `UsageError` where it cannot be read."""
    try:
        found = _arrays(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception:  # noqa: BLE001 - numpy and zipfile raise a dozen kinds, of tokens and codecs too
        raise UsageError(f"{path}: not an .npz file of arrays of numbers; make one with numpy.savez") from None
    if isinstance(found, np.ndarray):
        raise UsageError(f"{path}: one array without a name; save the inputs by name, with numpy.savez")
    for name, array in found.items():
        if not isinstance(array, np.ndarray):
            raise UsageError(f"{path}: {name!r} in it is no array; make such files with numpy.savez")
    return found


def _arrays(path: Path) -> np.ndarray | dict[str, Any]:
    """What numpy reads from a file: of an archive what is no array as it stands."""
    arrays = np.load(path, allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        return np.asarray(arrays)
    with arrays:
        return {name: arrays[name] for name in arrays.files}


def demand_inputs(model: ir.Model, sample: Mapping[str, np.ndarray]) -> None:
    """Raise `UsageError` for a sample that does not give each input as the model declares it."""
    declared = {v.name or "": v for v in model.graph.inputs}
    needed = {n for n in declared if n not in model.graph.initializers}
    for name in sorted(needed - set(sample)):
        raise UsageError(f"the sample lacks input {name!r}; it has {', '.join(sample) or 'nothing'}")
    for name, array in sample.items():
        if name not in needed:
            raise UsageError(f"the sample has {name!r}, which is no input; those are {', '.join(sorted(needed))}")
        dims = None if declared[name].shape is None else tuple(declared[name].shape or ())
        fixed = dims is None or (
            len(dims) == array.ndim
            and all(not isinstance(d, int) or d == s for d, s in zip(dims, array.shape, strict=True))
        )
        dtype = declared[name].dtype
        if not fixed or (dtype not in (None, ir.DataType.STRING) and dtype.numpy() != array.dtype):
            wanted = facts(model).inputs[name]
            raise UsageError(f"the sample's {name!r} is {array.dtype}{array.shape}, and the model takes {wanted}")
