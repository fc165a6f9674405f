"""How the end of the command is told to who sent the model."""

from __future__ import annotations

import pytest

from service.jobs import problem_of
from service.problems import FAILED, INVALID_MODEL, NO_ROOM, NOT_RUN, Kind
from service.sandbox import Ending, Stop
from service.settings import Settings

TRACEBACK = "Traceback (most recent call last):\n  File ...\nKeyError: 'a secret'\n"


@pytest.mark.parametrize(
    ("code", "errors", "kind", "detail"),
    [
        (3, "superopt: model.onnx: the file is empty\n", INVALID_MODEL, "the model: the file is empty"),
        (1, "a warning\nsuperopt: runtime r cannot run the model: no\n", NOT_RUN, "runtime r cannot run the model: no"),
        (1, TRACEBACK, FAILED, FAILED.meaning),
        (6, "superopt: no folder can be made in /a/secret: full\n", NO_ROOM, NO_ROOM.meaning),
        (-11, "", FAILED, FAILED.meaning),
        (77, "superopt: of another kind\n", FAILED, FAILED.meaning),
    ],
)
def test_an_exit_code_is_a_kind_of_problem_and_only_lines_for_users_are_told(
    code: int, errors: str, kind: Kind, detail: str
) -> None:
    problem = problem_of(Ending(Stop.EXITED, code, errors), 1.0, Settings())
    assert problem is not None
    assert (problem.kind, problem.detail) == (kind, detail)
