"""Copy plans: what moves where, and the NumPy executor that is the oracle for all others.

The names here are public. Nothing is checked when a plan is made: ``validate`` does that, and
``execute`` calls it.
"""

from vkops.plan.execute import execute
from vkops.plan.graph import Pipeline, Step
from vkops.plan.region import CopyPlan, Fill, Indices, Output, Progression, Read, Region, Term
from vkops.plan.validation import validate
from vkops.plan.view import View

__all__ = [
    "CopyPlan",
    "Fill",
    "Indices",
    "Output",
    "Pipeline",
    "Progression",
    "Read",
    "Region",
    "Step",
    "Term",
    "View",
    "execute",
    "validate",
]
