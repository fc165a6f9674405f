"""What looks at single terms for what is computed for nothing, more often than once, or of more than need be."""

from superopt.search.rewriting.finders.associated import Associating
from superopt.search.rewriting.finders.blended import Blending
from superopt.search.rewriting.finders.carried import Carrying
from superopt.search.rewriting.finders.chosen import Choosing
from superopt.search.rewriting.finders.cleared import Clearing
from superopt.search.rewriting.finders.collapsed import Collapsing
from superopt.search.rewriting.finders.contracted import Contracting
from superopt.search.rewriting.finders.dense import Densing
from superopt.search.rewriting.finders.exchanged import Exchanging
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.fronted import Fronting
from superopt.search.rewriting.finders.gathered import Gathering
from superopt.search.rewriting.finders.grouped import Grouping
from superopt.search.rewriting.finders.masked import Masking
from superopt.search.rewriting.finders.masked_shares import Remasking
from superopt.search.rewriting.finders.merged import Merging
from superopt.search.rewriting.finders.modulated import Unmodulating
from superopt.search.rewriting.finders.monotone import Extremes
from superopt.search.rewriting.finders.moved import Moving
from superopt.search.rewriting.finders.outer import Outering
from superopt.search.rewriting.finders.parted import Parting
from superopt.search.rewriting.finders.picked import Picking
from superopt.search.rewriting.finders.pictured import Picturing
from superopt.search.rewriting.finders.placewise import Placewise
from superopt.search.rewriting.finders.pooled import Pooling
from superopt.search.rewriting.finders.repeated import Repeating
from superopt.search.rewriting.finders.summed import Summing
from superopt.search.rewriting.finders.tables import LookingUp
from superopt.search.rewriting.finders.unfolded import Unfolding
from superopt.search.rewriting.finders.unmade import Unmaking
from superopt.search.rewriting.finders.weighed import Weighing

FINDERS: tuple[type[Fewer], ...] = (
    Picking,
    Repeating,
    LookingUp,
    Gathering,
    Placewise,
    Extremes,
    Choosing,
    Carrying,
    Grouping,
    Clearing,
    Unfolding,
    Unmodulating,
    Masking,
    Remasking,
    Summing,
    Parting,
    Merging,
    Collapsing,
    Fronting,
    Exchanging,
    Densing,
    Contracting,
    Weighing,
    Unmaking,
    Associating,
    Outering,
    Pooling,
    Picturing,
    Blending,
    Moving,
)
"""All of them, in the order in which what they make is offered."""
