"""Copy plans: representation, algebra, and the NumPy executor that is the oracle for all others."""

from vkops.plan.algebra import coalesce, optimize, widen
from vkops.plan.cut import cut
from vkops.plan.execute import execute
from vkops.plan.region import CopyPlan, Fill, Output, Read, Region
from vkops.plan.view import View, copy, packed_strides

__all__ = [
    "CopyPlan",
    "Fill",
    "Output",
    "Read",
    "Region",
    "View",
    "coalesce",
    "copy",
    "cut",
    "execute",
    "optimize",
    "packed_strides",
    "widen",
]
