"""`superopt show` and `superopt inspect`: a model as it is understood."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from superopt import tables
from superopt.bars import progress_line
from superopt.inspection import inspect_model
from superopt.onnx_io import load, understand
from superopt.operators.files import declare_files
from superopt.operators.reader import term_text
from superopt.options import ModelIn, OperatorFiles


def show(source: ModelIn, operators: OperatorFiles = None) -> None:
    """Print a model as terms, a line for each node; opaque nodes say why they are."""
    declare_files(operators or ())
    program = understand(load(source))
    for step in program.steps:
        for name, term in zip(step.outputs, step.terms, strict=False):
            typer.echo(f"?{name} = {term_text(term)} ; {term.type}")
        if not step.terms:
            outputs = " ".join(f"?{n}" for n in step.outputs)
            typer.echo(
                f"{outputs} = ({step.node.op_type} {' '.join(f'?{n}' for n in step.inputs)}) ; opaque: {step.reason}"
            )
    summary = program.summary
    typer.echo(f"{summary.understood} of {summary.nodes} nodes are understood", err=True)


def inspect(
    source: ModelIn,
    operators: OperatorFiles = None,
    time: Annotated[
        bool, typer.Option("--time/--no-time", help="Run the model a few times, and show where its time goes.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print all that is known as JSON instead of a table.")] = False,
) -> None:
    """Say how much of a model is understood, and what is opaque and why, by ONNX operator.

    A node is understood where it was read as terms, so that rewrites can apply to it; opaque nodes are carried through
    as they are. The columns flops and time say how much it matters: each operator's share of the model's arithmetic,
    and of its measured time (onnxruntime's profiler, one thread, random inputs, nothing optimized, so that nodes stay
    the model's own). Symbolic sizes count as likely ones, which are told. Constants, and nodes that only compute
    constants, are not counted.

    Exit codes: 0 done, also where the model cannot be run and time is not shown; 2 usage; 3 invalid model.
    """
    declare_files(operators or ())
    with progress_line() as progress:
        found = inspect_model(source, time, progress)
    if time and found.not_timed is not None:
        typer.echo(f"superopt: time is not shown: {' '.join(found.not_timed.split())}", err=True)
    if json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(tables.inspection(found, source), crop=False)
