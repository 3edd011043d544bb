"""Copy plans: representation, algebra, and the NumPy executor that is the oracle for all others."""

from vkops.plan.algebra import coalesce, narrow, optimize, widen
from vkops.plan.compose import compose
from vkops.plan.cut import cut
from vkops.plan.execute import execute
from vkops.plan.graph import Graph, Pipeline, Stage, Step
from vkops.plan.region import CopyPlan, Fill, Output, Read, Region
from vkops.plan.view import View, copy, packed_strides

__all__ = [
    "CopyPlan",
    "Fill",
    "Graph",
    "Output",
    "Pipeline",
    "Read",
    "Region",
    "Stage",
    "Step",
    "View",
    "coalesce",
    "compose",
    "copy",
    "cut",
    "execute",
    "narrow",
    "optimize",
    "packed_strides",
    "widen",
]
