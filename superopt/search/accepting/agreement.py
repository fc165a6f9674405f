"""What comparing a candidate with the original came to, over all outputs and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class OutputAgreement:
    """One output: the largest errors over all samples, relative to its largest magnitude in each.

    `error` is the candidate's against the original; the other two are against the 64-bit evaluation, where there is
    one. `bound` is what `error` was allowed in the sample where it came closest to it or passed it most. `saturated`
    says that no sample shows two values that differ by more than rounding, as a softmax that always gives 1 for one
    class: then agreement says little of what stands before it.
    """

    name: str
    error: float
    bound: float
    original_error: float | None
    candidate_error: float | None
    examined: bool
    saturated: bool
    agrees: bool


@dataclass(frozen=True)
class Agreement:
    """The outcome over all outputs and samples; `reason` says why it does not agree or was not examined.

    Where outputs show little, those are `inner` values instead, and `reason` says what was not examined, if
    anything was not. A candidate that never `ran` does not agree, but differs in nothing either. One that does not
    agree `rounds` more than it may, where nothing else tells it from the original; it is `discrete` where nothing but
    outputs of no floating-point type differs, as the place of the least of numbers that are nearly equal may.
    """

    agrees: bool
    examined: bool
    reason: str
    samples: int
    outputs: tuple[OutputAgreement, ...]
    inner: bool = False
    ran: bool = True
    rounds: bool = False
    discrete: bool = False

    @property
    def differs(self) -> bool:
        """Whether they were compared, and are not the same."""
        return not self.agrees and (self.examined or bool(self.outputs))

    @property
    def shows_little(self) -> bool:
        """Whether an output says little of what stands before it."""
        return any(output.saturated for output in self.outputs)


def joined(found: Sequence[Agreement]) -> Agreement:
    """What comparisons with different branches come to: all must be right, and of each output the worst is told."""
    wrong = next((a for a in found if a.differs), next((a for a in found if not a.agrees or not a.examined), None))
    if wrong is not None or len(found) == 1:
        return wrong or found[0]
    of_each = zip(*(agreement.outputs for agreement in found), strict=True)
    outputs = tuple(max(same, key=lambda output: output.error / (output.bound or 1.0)) for same in of_each)
    reason = next((agreement.reason for agreement in found if agreement.reason), "")
    return replace(found[0], reason=reason, samples=sum(a.samples for a in found), outputs=outputs)
