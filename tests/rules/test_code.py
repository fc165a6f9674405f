"""The code of a module as a text: what changes it, and what does not."""

from __future__ import annotations

import pytest

from superopt.rules.code import meaning

SOURCE = """
def name(parts: list[str]) -> str:
    return f"{', '.join(parts)!r:>{8}}" + u"\\n"  # the format ends with an empty text in 3.12.1
"""


def test_every_python_writes_the_same() -> None:
    """`ast.unparse` of 3.12 keeps the quotes within braces that earlier ones change; each version has other fields."""
    assert meaning(SOURCE) == (
        "Module(body=[FunctionDef(name='name',args=arguments(args=[arg(arg='parts',"
        "annotation=Subscript(value=Name(id='list',ctx=Load()),slice=Name(id='str',ctx=Load()),ctx=Load()))]),"
        "body=[Return(value=BinOp(left=JoinedStr(values=[FormattedValue("
        "value=Call(func=Attribute(value=Constant(value=', '),attr='join',ctx=Load()),"
        "args=[Name(id='parts',ctx=Load())]),conversion=114,format_spec=JoinedStr(values=["
        "Constant(value='>'),FormattedValue(value=Constant(value=8),conversion=-1)]))]),op=Add(),"
        "right=Constant(value='\\n',kind='u')))],returns=Name(id='str',ctx=Load()))])"
    )


@pytest.mark.parametrize(
    "same",
    [
        "# why\nx = f(1, 2)",
        "x = f(1,\n      2)  # why",
        "x = f((1), 2)\n",
    ],
)
def test_comments_and_layout_mean_nothing(same: str) -> None:
    assert meaning(same) == meaning("x = f(1, 2)")


@pytest.mark.parametrize("kind", ["def f():", "async def f():", "class F:"])
def test_docstrings_mean_nothing(kind: str) -> None:
    assert meaning(f'"""One."""\n{kind}\n    """Two."""\n    g = 1') == meaning(
        f'"""1."""\n{kind}\n    """2."""\n    g = 1'
    )


@pytest.mark.parametrize(
    "other",
    [
        "x = f(1, 3)",
        "x = f(1, 2.0)",
        "x = f(1, True)",
        "x = f(2, 1)",
        "y = f(1, 2)",
        "x = f(1, 2, None)",
        "x = f(1, '2')",
    ],
)
def test_what_does_another_thing_is_another_text(other: str) -> None:
    assert meaning(other) != meaning("x = f(1, 2)")
