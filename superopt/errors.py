"""Every error that a user can cause, with the exit code that the command gives for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOG = logging.getLogger("superopt")


class SuperoptError(Exception):
    """Base of all errors of this project: one line that names the culprit and what to do."""

    exit_code = 1


UNFORESEEN = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What code raises that met a form of a model which nobody foresaw: what it was to do is left undone."""


class UsageError(SuperoptError):
    """An argument that cannot be used: a file that exists already, a value outside its domain."""

    exit_code = 2


class ParseError(UsageError):
    """Text that is not an S-expression, term, law or rule; names file, line and column."""


class RuleError(UsageError):
    """A rule that is malformed, refuted, or no longer proves."""


class InvalidModel(SuperoptError):
    """Not an ONNX model, or one that breaks ONNX's own rules."""

    exit_code = 3


class ShapeError(SuperoptError):
    """An operator applied to shapes or types that it does not accept; quotes them."""

    exit_code = 3


class Undecided(SuperoptError):
    """A comparison of sizes whose answer depends on symbols, used as if it were known."""


class RuntimeFailed(SuperoptError):
    """The runtime could not load or run a model; says on one line what it said."""


class VerificationFailed(SuperoptError):
    """An optimized model that does not agree with the original; nothing was written."""

    exit_code = 4


class NoRoom(SuperoptError):
    """There is no room, or no right, to write what the work needs on the way."""

    exit_code = 6


class OutOfTime(SuperoptError):
    """The time limit passed before there was any answer."""

    exit_code = 5


def one_line(error: BaseException, limit: int = 2000) -> str:
    """An error's message without its line breaks, or its type where it says nothing; no longer than the limit."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else f"{text[:limit]}…"


@contextmanager
def left_undone(what: str) -> Iterator[None]:
    """Leave undone what sizes forbid that are not told apart, and what meets a form that nobody foresaw. The latter is
    logged, since it may as well be a mistake.
    """
    try:
        yield
    except SuperoptError:
        pass
    except UNFORESEEN as error:
        _LOG.info("%s is left undone: %s: %s", what, type(error).__name__, one_line(error))
