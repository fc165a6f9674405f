"""What of a family is in vain is named, with its place, before anything is enumerated."""

import re

import pytest

from superopt.enumerate.applicable import demand_applicable
from superopt.enumerate.family_text import load_family, read_family, shipped_families
from superopt.errors import ParseError, SuperoptError, UsageError

TEXT = """(family f
  (sizes (m 2 3 5) (n 1 2 7) (c 2 1 4) (h 3 4 8))
  (given (?a m m) (?x n c h h) (?k c c 3 3))
  (operators (add ?x ?y) (matmul ?x ?y)
    {})
  (depth 2))"""

IN_VAIN = {
    "(transpose (7 3) ?x)": r"transpose: \(7, 3\) does not permute the axes",
    "(transpose (0 0) ?x)": r"transpose: \(0, 0\) does not permute the axes",
    "(conv :strides (0 1) ?x ?k)": "conv: the attributes .* are smaller than they may be",
    "(conv :group -1 ?x ?k)": "conv: the attributes .* are smaller than they may be",
    "(conv :pads (-1 1 1 1) ?x ?k)": "conv: the attributes .* are smaller than they may be",
    "(maxpool (3) ?x)": "maxpool: .* are not for 2 window axes",
    "(avgpool (30 30) ?x)": r"avgpool: a window \(30, 30\) .* does not fit",
    "(slice 5 0 m ?x)": "slice: no axis 5 in",
    "(slice 0 50 60 ?x)": r"it asks for \(<= 60 n\), with",
    "(concat -1 ?x ?y)": "concat: the axis -1 is negative",
    "(softmax 4 ?x)": "softmax: no axis 4 in",
    "(pad (0 0 0) ?x)": "pad: .* are not two widths for each axis",
    "(on ((?x n n)) (relu ?x))": "it asks for sizes that no tensor has",
}


@pytest.mark.parametrize("operator", IN_VAIN)
def test_an_operator_that_applies_to_nothing_is_named_with_its_place_and_why(operator: str) -> None:
    family = read_family(TEXT.format(operator), "f.family")
    named = re.escape(f"{family.operators[-1].sexp.place}: the operator {family.operators[-1]} applies to nothing")
    with pytest.raises(ParseError, match=f"^{named} in the family: {IN_VAIN[operator]}") as caught:
        demand_applicable(family)
    assert "\n" not in str(caught.value)


def test_a_variable_that_no_operator_takes_is_named() -> None:
    text = TEXT.format("(on ((?x * *)) (relu ?x))").replace("(add ?x ?y)", "").replace("(given", "(given (?z 2)")
    with pytest.raises(UsageError, match=r"^family f: no operator takes \?z of \(2\)$"):
        demand_applicable(read_family(text, "f.family"))


@pytest.mark.parametrize("operator", ["(slice 0 m (* 2 m) ?x) (concat 0 ?x ?y)", "(conv ?x ?k)", "relu"])
def test_what_takes_something_given_or_made_by_one_operator_is_not_in_vain(operator: str) -> None:
    family = read_family(TEXT.format(operator), "f.family")
    demand_applicable(family)
    assert family.operators


@pytest.mark.parametrize("name", shipped_families())
def test_nothing_of_a_shipped_family_is_in_vain(name: str) -> None:
    family = load_family(name)
    assert family.operators
    try:
        demand_applicable(family)
    except SuperoptError as error:
        pytest.fail(str(error))
