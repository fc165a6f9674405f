"""Models of 16-bit floats, optimized as those of 32 bits that their runtime makes of them.

That alone gains where the casts that a runtime puts around each node keep it from fusing what it fuses of 32 bits.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from superopt.cost.liveness import activations
from superopt.cost.whole import take_much
from superopt.errors import OutOfTime, VerificationFailed
from superopt.onnx_io import LARGE, facts, highest_opset, save, understand, widened
from superopt.search import variants
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.branches import Solve
from superopt.search.solving.remembered import Memory

_LOG = logging.getLogger("superopt")

WEIGHTS = 2
"""How many times the bytes of its weights a model takes when these have 32 bits."""


def attempted(trial: Trial, solve: Solve, memory: Memory | None = None) -> tuple[Trial, Attempt]:
    """What optimizing a model comes to, in 32 bits where that is how the runtime computes its 16; and the trial of
    which it tells. What is not the same then is optimized as it stands. Raises what `solve` does.
    """
    wide, refused = _in_32_bits(trial), ""
    if wide is not None:
        try:
            told, tried = variants.attempted(wide, solve, memory)
        except (VerificationFailed, OutOfTime) as error:
            _LOG.info("in 32 bits, %s", error)
            refused = f"; and in 32 bits {error}"
            trial.cost.alone.measured += wide.cost.alone.measured
        else:
            if tried.accepted:
                tried.reason += "; what had 16 bits is computed in 32, as the runtime does"
            return told, tried
    trial, tried = variants.attempted(trial, solve, memory)
    if not tried.accepted:
        tried.reason += refused
    return trial, tried


def _in_32_bits(trial: Trial) -> Trial | None:
    """A trial whose program is the model in 32 bits; None where the runtime computes in 16, or nothing does, or where
    memory is what is to be less.
    """
    cost = trial.cost
    model = (
        widened(trial.program.model) if cost.bench.runtime.widens_half and trial.objective.better == "faster" else None
    )
    if model is None:
        return None
    path = trial.folder / "in-32-bits.onnx"
    save(model, path, external_data=facts(model).bytes > LARGE or None, shared=True)
    program = understand(model)
    values = activations(program, cost.bench.sizes)
    return replace(
        trial.of(program, cost.bench.sizes, WEIGHTS * trial.bytes, values, highest_opset(program)),
        wide=path,
        one_by_one=trial.one_by_one or take_much(trial.bytes, values),
    )
