"""A model whose large weights are external: the runtime loads such a one several times faster."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from superopt.errors import NoRoom, UsageError
from superopt.onnx_io.files import LARGE, Model
from superopt.onnx_io.saving import save


def working_copy(loaded: ir.Model, model: Model, folder: Path) -> Path:
    """Where a model lies whose large weights are external: where it was given, if they are, and a copy in the folder
    otherwise. Raises `NoRoom`.
    """
    tensors = [v.const_value for g in loaded.graphs() for v in g.initializers.values() if v.const_value is not None]
    within = sum(t.nbytes for t in tensors if not isinstance(t, ir.ExternalTensor))
    if within <= LARGE and isinstance(model, str | Path):
        return Path(model)
    try:
        save(loaded, folder / "original.onnx", external_data=within > LARGE or None)
    except UsageError as error:
        raise NoRoom(f"{error}; make room for a copy of the model, or name another folder by TMPDIR") from None
    return folder / "original.onnx"
