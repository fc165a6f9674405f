"""Runtimes that take square roots ill. Those who use them in another process put this checkout on its PYTHONPATH."""

import os
import time
from pathlib import Path
from typing import Any

from superopt.cost.ort import OnnxRuntime
from superopt.cost.runtime import Session


def has_root(model: bytes | Path) -> bool:
    return b"Sqrt" in (model.read_bytes() if isinstance(model, Path) else model)


class Fragile(OnnxRuntime):
    """It crashes."""

    def session(self, model: bytes | Path, *given: Any, **more: Any) -> Session:
        """As ever, but for square roots."""
        if has_root(model):
            os.abort()
        return super().session(model, *given, **more)


class Stuck(OnnxRuntime):
    """It never ends."""

    def session(self, model: bytes | Path, *given: Any, **more: Any) -> Session:
        """As ever, but for square roots."""
        if has_root(model):
            time.sleep(600)
        return super().session(model, *given, **more)
