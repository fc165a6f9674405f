"""Operators that users declare in Python files of their own."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from superopt.arithmetic.exact import EXACT
from superopt.arithmetic.floats import FLOAT
from superopt.errors import SuperoptError, UsageError
from superopt.evaluate import evaluate, sample
from superopt.operators.declare import CATALOGUE, READERS
from superopt.operators.declared import Declared
from superopt.operators.laws.collected import Scope, forget_laws, laws_in
from superopt.operators.meanings import FURTHER_DEFINITIONS, SPELLINGS
from superopt.term import variable

DECLARED_IN: dict[Path, ModuleType] = {}
"""The files that were declared from, with the module that each became."""

_TABLES: tuple[dict[Any, Any], ...] = (CATALOGUE, READERS, FURTHER_DEFINITIONS, SPELLINGS)


def declare_files(paths: Iterable[Path]) -> list[type[Declared]]:
    """Declare what files declare, each once for as long as the process lives; gives the operators of all of them.

    A file is a Python module: it is run. Raises `UsageError`, with file and line, for one that is missing, does not
    run, declares what is declared already, or declares nothing; then nothing of it is declared.
    """
    files = {path.resolve(): path for path in paths}
    for file, path in files.items():
        if file not in DECLARED_IN:
            with _or_nothing(file):
                DECLARED_IN[file] = _module(path, file)
    names = {DECLARED_IN[file].__name__ for file in files}
    return [cls for cls in CATALOGUE.values() if cls.__module__ in names]


def _module(path: Path, file: Path) -> ModuleType:
    """Run a file. Raises `UsageError`."""
    before = [dict(table) for table in _TABLES]
    name = f"operators_of_the_user_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: operators are declared in Python, in a file whose name ends in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        if error.filename is not None and Path(error.filename) == file:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
        raise UsageError(f"{_place(path, file, error)}: {_said(error)}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- whatever a user's file does wrong
        raise UsageError(f"{_place(path, file, error)}: {_said(error)}") from None
    for table, old in zip(_TABLES, before, strict=True):
        for key in [k for k in old if table[k] is not old[k]]:
            what = " of the domain ".join(filter(None, reversed(key))) if isinstance(key, tuple) else key
            raise UsageError(f"{path}: {what} is declared already")
    if list(map(len, _TABLES)) == list(map(len, before)):
        raise UsageError(f"{path}: declares no operator; a declaration begins with @operator")
    try:
        _try({n: cls for n, cls in CATALOGUE.items() if n not in before[0]})
    except Exception as error:  # noqa: BLE001 -- the same, a little later
        raise UsageError(f"{_place(path, file, error)}: {_said(error)}") from None
    return module


def _try(declared: dict[str, type[Declared]]) -> None:
    """Make the laws of new operators, and evaluate those that are point-wise. Raises what that raises."""
    forget_laws()
    laws_in(Scope(frozenset(declared), frozenset((1, 2)), frozenset(), frozenset(), frozenset()))
    for cls in declared.values():
        if not cls.pointwise or any(f.default is MISSING for f in cls.fields):
            continue
        inputs = [variable(f"x{i}", (2, 3)) for i in range(cls.arity)]
        op = cls()
        term, meaning = op(*inputs), op.definition(*inputs)
        if meaning is not None and meaning.type != term.type:
            raise SuperoptError(f"operator {op.name}: it is {term.type}, and its definition is {meaning.type}")
        for ring in (*EXACT, FLOAT):
            with np.errstate(all="ignore"):
                evaluate(term, ring, sample((term,), ring, 0))


@contextmanager
def _or_nothing(file: Path) -> Iterator[None]:
    """Where an error ends it, leave the catalogue as it was."""
    before, modules = [dict(table) for table in _TABLES], set(sys.modules)
    try:
        yield
    except BaseException:
        _restore(before)
        for name in set(sys.modules) - modules:
            if getattr(sys.modules[name], "__file__", None) == str(file):
                del sys.modules[name]
        raise
    finally:
        forget_laws()


@contextmanager
def apart() -> Iterator[None]:
    """Within it files may be declared from; after it they are not."""
    before, files = [dict(table) for table in _TABLES], dict(DECLARED_IN)
    try:
        yield
    finally:
        _restore(before)
        for file in [f for f in DECLARED_IN if f not in files]:
            del sys.modules[DECLARED_IN.pop(file).__name__]
        forget_laws()


def _restore(before: list[dict[Any, Any]]) -> None:
    for table, old in zip(_TABLES, before, strict=True):
        table.clear()
        table.update(old)


def _place(path: Path, file: Path, error: BaseException) -> str:
    """The file, and the last line of it that ran."""
    if isinstance(error, SyntaxError):
        return f"{path}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _said(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg
    return str(error) if isinstance(error, SuperoptError) else f"{type(error).__name__}: {error}"
