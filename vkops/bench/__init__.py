"""The benchmark behind `vkops bench` and scripts/bench."""

from vkops.bench.measure import Result, measure
from vkops.bench.report import json_ready, table
from vkops.bench.works import WORKS, Work

__all__ = ["WORKS", "Result", "Work", "json_ready", "measure", "table"]
