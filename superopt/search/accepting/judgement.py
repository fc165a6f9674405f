"""What comparing and measuring a candidate came to, kept so that the same two files are not measured twice.

It stands for these very files on this runtime. What is recalled is never taken on trust alone: the candidate is
compared again, on other inputs than when it was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from superopt.onnx_io import weight_files
from superopt.search.paired import Paired, faster, hopeless, loses
from superopt.search.solving.remembered import Memory


@dataclass(frozen=True)
class Judgement:
    """A candidate that agreed with its original on so many samples, and what both took, in one setting after the other;
    when that was measured (ISO 8601, UTC). `weighed` says that it takes less in bytes, and need not be faster.
    """

    samples: int
    pairs: tuple[Paired, ...]
    measured_at: str
    weighed: bool = False

    @property
    def settled(self) -> bool:
        """Whether the intervals say that there is a gain, or none to speak of; and where it loses, that it is slower.
        Otherwise measuring again may tell.
        """
        gains, held = ((), self.pairs) if self.weighed else (self.pairs[:1], self.pairs[1:])
        return all(faster(p) or hopeless(p) for p in gains) and not any(loses(p) and p.high >= 1.0 for p in held)


_FORM = TypeAdapter(Judgement)


def now() -> str:
    """The time, as a judgement tells it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Question:
    """Whether a candidate is as good as its original, to the byte, and faster: asked of a memory."""

    memory: Memory
    asked: str

    def recall(self) -> Judgement | None:
        """The answer, if it is known."""
        text = self.memory.table.answer(self.memory.key, self.asked)
        try:
            return None if text is None else _FORM.validate_json(text)
        except ValidationError:  # of another version, or damaged: measured anew
            return None

    def keep(self, judgement: Judgement, open_too: bool = False) -> None:
        """Keep an answer, if it is one, or even if it leaves the question `open_too`."""
        if judgement.settled or open_too:
            self.memory.table.keep_answer(self.memory.key, self.asked, _FORM.dump_json(judgement).decode())

    def forget(self) -> None:
        """Remove the answer."""
        self.memory.table.forget_answer(self.memory.key, self.asked)


def question(memory: Memory, models: Sequence[Path], *facts: object) -> Question:
    """The question about some models, with their weights, and facts that print."""
    total = hashlib.sha256(repr((memory.search_digest, "judgement", *facts)).encode())
    for path in dict.fromkeys(file for model in models for file in (model, *weight_files(model))):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return Question(memory, total.hexdigest()[:32])
