"""JSON that superopt writes for itself to read again: it says of which format it is, and has a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from superopt.errors import UsageError

M = TypeVar("M", bound=BaseModel)


def read_versioned(path: Path, text: str | bytes, schema: type[M], version: int, kind: str, writer: str) -> M:
    """What a file holds. Raises `UsageError` that names the file where it is none of this kind, or of another format.

    `kind` is what such a file is called, and `writer` the command that writes one.
    """
    try:
        stated = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: no {kind}, it is not JSON; `{writer}` writes one") from None
    given = stated.get("format") if isinstance(stated, dict) else None
    if given is None:
        raise UsageError(f"{path}: no {kind}; `{writer}` writes one")
    if given != version:
        raise UsageError(f"{path}: a {kind} of format {given!r}; this superopt reads format {version}")
    try:
        return schema.model_validate(stated)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
