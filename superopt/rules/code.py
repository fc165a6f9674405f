"""Code as a text that changes when what it does may: not with comments, docstrings and layout, nor with the Python.

The parsed code, written by ourselves: what `ast.unparse` and `ast.dump` write of the same code differs among versions
of Python, and rules that one of them sealed would be proved again by another.
"""

from __future__ import annotations

import ast


def meaning(source: str) -> str:
    """What a module's source does, as a text. Raises `SyntaxError`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            body[0] = ast.Pass()
        if isinstance(node, ast.JoinedStr):  # Python 3.12.1 ends some formats with an empty text
            node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
    return _written(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _written(node: object) -> str:
    """A node with the fields that say something; versions of Python add fields, which are empty in what others read."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({','.join(f'{name}={_written(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    return repr(node)
