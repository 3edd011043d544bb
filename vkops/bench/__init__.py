"""The benchmark behind `vkops bench` and scripts/bench."""

from vkops.bench.measure import Result, measure
from vkops.bench.report import Report, made_from, read
from vkops.bench.tables import tables
from vkops.bench.works import WORKS, Work

__all__ = ["WORKS", "Report", "Result", "Work", "made_from", "measure", "read", "tables"]
