"""Copy plans: the moves of elements, and the NumPy executor that all others are tested against.

The names here are public. Constructors check nothing: ``validate``
checks a plan, and ``execute`` calls it.
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
