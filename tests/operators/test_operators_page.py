"""`docs/operators.md` says what the declarations say."""

from __future__ import annotations

import re

import pytest

from benchmarks.operators_page import PAGE, page
from superopt.operators import CATALOGUE, Declared
from superopt.operators.laws.collected import written_laws

OURS = {name: cls for name, cls in CATALOGUE.items() if cls.__module__.startswith("superopt.")}


@pytest.fixture(scope="module")
def shown() -> str:
    return page()


@pytest.fixture(scope="module")
def sections(shown: str) -> dict[str, str]:
    return dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", shown, re.DOTALL | re.MULTILINE))


def test_the_committed_page_is_what_the_declarations_give(shown: str) -> None:
    assert PAGE.read_text(encoding="utf-8") == shown, "run: python -m benchmarks.operators_page"


def test_every_operator_has_a_section_that_opens_with_its_formula(sections: dict[str, str]) -> None:
    assert set(sections) == set(OURS)
    for name, text in sections.items():
        formula = " ".join((OURS[name].__doc__ or "").split()).split("`")[1]
        assert text.lstrip().startswith(f"`{formula}`"), name


def test_every_law_of_a_declaration_is_on_the_page(shown: str) -> None:
    assert written_laws()
    for name, _ in written_laws():
        assert f"(law {name} " in shown


def test_every_attribute_is_in_the_table_of_its_operator(sections: dict[str, str]) -> None:
    seen = 0
    for name, cls in OURS.items():
        for f in cls.fields:
            assert f"\n| `{f.name}` | " in sections[name]
            seen += 1
    assert seen


@pytest.mark.parametrize("name", [n for n, c in OURS.items() if c.definition is not Declared.definition])
def test_a_composite_operator_shows_its_definition(name: str, sections: dict[str, str]) -> None:
    assert f"Definition of `({name} " in sections[name]


def test_what_a_definition_needs_the_operator_needs(sections: dict[str, str]) -> None:
    assert "- needs: `div`, `root`" in sections["batchnorm"]
