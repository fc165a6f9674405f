"""Which form of answer an Accept header asks for."""

import pytest

from service.answers import MIXED_TYPE, MODEL_TYPE, preferred


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, MODEL_TYPE),
        ("*/*", MODEL_TYPE),
        ("application/octet-stream", MODEL_TYPE),
        ("application/*", MODEL_TYPE),
        ("multipart/mixed", MIXED_TYPE),
        ("Multipart/Mixed", MIXED_TYPE),
        ("multipart/*", MIXED_TYPE),
        ("multipart/mixed, application/octet-stream", MODEL_TYPE),
        ("multipart/mixed, */*;q=0.1", MIXED_TYPE),
        ("multipart/mixed;q=0.5, application/octet-stream;q=0.4", MIXED_TYPE),
        ("*/*, application/octet-stream;q=0", MIXED_TYPE),
        ("application/json", None),
        ("application/octet-stream;q=0", None),
        ("application/octet-stream;q=high", None),
        ("application/octet-stream;q=nan", None),
        ("application/octet-stream;q=-1", None),
        ("", MODEL_TYPE),
    ],
)
def test_the_form_of_answer_is_the_one_that_accept_likes_best(accept: str | None, form: str | None) -> None:
    assert preferred(accept, (MODEL_TYPE, MIXED_TYPE)) == form
