"""One optimization: the public command in a process of its own, files in, files out.

The command is what people run in a terminal; the service adds limits and says its exit codes in HTTP.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from service.problems import (
    FAILED,
    INVALID_MODEL,
    INVALID_REQUEST,
    LOG,
    NO_ROOM,
    NOT_RUN,
    NOT_VERIFIED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    TOO_LARGE,
    Kind,
    Problem,
)
from service.sandbox import Ending, Stop, run_limited
from service.schemas import Wish
from service.settings import Settings
from superopt.errors import InvalidModel, NoRoom, OutOfTime, SuperoptError, UsageError, VerificationFailed

COMMAND: Final = (sys.executable, "-P", "-m", "superopt")

MODEL: Final = "model.onnx"
OPTIMIZED: Final = "optimized.onnx"
REPORT: Final = "report.json"

_TELLS: Final = "superopt: "
"""How the command begins the line of an error that it names."""

_EXITS: Final[dict[int, Kind]] = {
    SuperoptError.exit_code: NOT_RUN,
    UsageError.exit_code: INVALID_REQUEST,
    InvalidModel.exit_code: INVALID_MODEL,
    VerificationFailed.exit_code: NOT_VERIFIED,
    OutOfTime.exit_code: OUT_OF_TIME,
    NoRoom.exit_code: NO_ROOM,
}


@dataclass(frozen=True)
class Optimized:
    """A finished job: the model as an open file, so that its folder can go before the answer is sent."""

    model: BinaryIO
    report: bytes


def child_environment(folder: Path) -> dict[str, str]:
    """The server's environment; temporary files in the folder, and messages neither coloured nor wrapped.

    ONNX Runtime (from 1.29) reports on the models that it loads to its maker, unless told not to: models that are sent
    here belong to those who send them.
    """
    told = {"TMPDIR": str(folder), "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "10000", "ORT_DISABLE_TELEMETRY": "1"}
    return {**os.environ, **told}


async def optimize(folder: Path, wish: Wish, settings: Settings) -> Optimized:
    """Optimize the `MODEL` that is in the folder; raises the problem that the command ended with."""
    seconds = settings.time_of(wish.time)
    ending = await run_limited(
        [*COMMAND, "optimize", MODEL, OPTIMIZED, "--report", REPORT, *_options(wish, seconds), "--overwrite"],
        folder=folder,
        environment=child_environment(folder),
        seconds=seconds + settings.grace,
        memory=settings.memory,
    )
    problem = problem_of(ending, seconds, settings)
    if problem:
        if problem.kind.status >= 500:
            LOG.warning("%s: exit code %d, %s", problem.kind.name, ending.code, ending.errors or "nothing on stderr")
        raise problem
    if (folder / f"{OPTIMIZED}.data").exists():
        raise Problem(TOO_LARGE, "the optimized model passes 2 GiB, so that its weights would need a second file")
    return Optimized((folder / OPTIMIZED).open("rb"), (folder / REPORT).read_bytes())


def _options(wish: Wish, seconds: float) -> list[str]:
    """What was asked for; the rest is the command's own default, said in one place only."""
    asked = {"time": seconds, **wish.model_dump(exclude={"time"}, exclude_none=True)}
    several = {name: value if isinstance(value, list) else [value] for name, value in asked.items()}
    return [f"--{name}={value}" for name, values in several.items() for value in values]


def problem_of(ending: Ending, seconds: float, settings: Settings) -> Problem | None:
    """The end of a command as a problem; None where it succeeded."""
    if ending.stop is Stop.OUT_OF_TIME:
        return Problem(OUT_OF_TIME, f"stopped {settings.grace:g} seconds after the {seconds:g} that were given")
    if ending.stop is Stop.OUT_OF_MEMORY:
        return Problem(OUT_OF_MEMORY, f"this server grants a process for a model {settings.memory} bytes")
    if ending.code == 0:
        return None
    kind = _EXITS.get(ending.code, FAILED)
    if kind is NOT_RUN and not ending.last_line.startswith(_TELLS):
        kind = FAILED  # an unforeseen failure ends in a traceback, whose last line is for the log
    return Problem(kind, kind.meaning if kind in (FAILED, NO_ROOM) else _told(ending.last_line))


def _told(line: str) -> str:
    """The command's one-line error, where the model has no file name."""
    return line.removeprefix(_TELLS).replace(MODEL, "the model")
