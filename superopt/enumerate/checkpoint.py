"""What a stopped run has proved, in a file beside its output, so that another goes on where it was.

Growing terms again takes a minute or two and gives the same; proofs are what takes long, and they depend on the rule
alone. So verdicts are all that is kept: a line of JSON for each rule tried, after a line with the run's settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from superopt.errors import UsageError

Verdict: TypeAlias = "tuple[str | None, str | None]"
"""A proved rule's text, or why there is none."""


class Checkpoint:
    """The verdicts of a run, on disk as soon as they are known."""

    def __init__(self, path: Path | None = None, settings: str = "", resume: bool = False) -> None:
        """Raises `UsageError` where there is nothing to resume, or only a run with other settings."""
        self.path = path
        self._known: dict[str, Verdict] = {}
        if path is None:
            return
        if resume:
            self._read(path, settings)
        else:
            self._write(settings, "w")

    def _read(self, path: Path, settings: str) -> None:
        if not path.exists():
            raise UsageError(f"{path}: there is no stopped run to go on with; leave --resume out")
        first, *rest = path.read_text(encoding="utf-8").splitlines() or [""]
        if _loaded(first) != settings:
            raise UsageError(f"{path}: the stopped run had other settings ({first}) than this one ({settings})")
        for line in rest:
            found = _loaded(line)
            if isinstance(found, list) and len(found) == 3:  # the last line of a killed run may be cut short
                self._known[str(found[0])] = (found[1], found[2])

    def verdicts(self, run: Callable[[Sequence[str]], Iterable[Verdict]], texts: Sequence[str]) -> Iterator[Verdict]:
        """The verdicts on rules in order: those known, and for the rest what `run` says."""
        new = iter(run([text for text in texts if text not in self._known]))
        for text in texts:
            if text not in self._known:
                self._known[text] = next(new)
                self._append(text)
            yield self._known[text]

    def _append(self, text: str) -> None:
        self._write([text, *self._known[text]], "a")

    def _write(self, line: object, mode: str) -> None:
        if self.path is not None:
            try:
                with self.path.open(mode, encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            except OSError as error:
                raise UsageError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def done(self) -> None:
        """Remove the file: the run is through."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _loaded(line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
