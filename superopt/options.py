"""Options that several commands have, each stated once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from superopt.cost.runtimes import RUNTIMES

ModelIn = Annotated[Path, typer.Argument(metavar="IN", help="The ONNX model to read.", show_default=False)]
ModelOut = Annotated[
    Path | None,
    typer.Argument(metavar="OUT", help="Where to write the result [default: IN.optimized.onnx].", show_default=False),
]
ReportIn = Annotated[Path, typer.Argument(metavar="REPORT", help="What `optimize --report` wrote.")]
ReportOut = Annotated[Path | None, typer.Option("--report", help="Write the report, as JSON, to this file.")]
ReportJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON instead of tables.")]
SampleFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A sample (.npz, an array per input) to compare on besides random ones; may be given again. The first is "
        "measured on, and symbolic sizes are its.",
    ),
]
OperatorFiles = Annotated[
    list[Path] | None,
    typer.Option("--operators", metavar="FILE", help="Python files that declare further operators; they are run."),
]
RuleFiles = Annotated[
    list[Path] | None,
    typer.Argument(help="Rule files [default: those that come with superopt].", show_default=False),
]
RuntimeName = Annotated[str, typer.Option("--runtime", help=f"What is to run the model: {' or '.join(RUNTIMES)}.")]
RuntimeThen = Annotated[
    str | None,
    typer.Option(
        "--runtime", help=f"What is to run the model: {' or '.join(RUNTIMES)} [default: what the report says]."
    ),
]
Threads = Annotated[int, typer.Option(help="Threads that the runtime uses.")]
ThreadsThen = Annotated[
    int | None, typer.Option("--threads", help="Threads that the runtime uses [default: as the report says].", min=1)
]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.")]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="INPUT:SIZES",
        help="Sizes of an input that has symbolic ones, as in x:1..8,128. Of a range, the middle, least and most are"
        " tried, and the result is slower at none. Where nobody says, likely ones at which the model runs: batches"
        " of 1, images of 224, sequences of 128; what was taken is told.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Do all but write the model.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
SaveExternal = Annotated[bool, typer.Option("--save-external", help="Write weights to OUT.data, not into OUT.")]
