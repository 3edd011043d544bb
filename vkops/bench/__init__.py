"""The benchmark of `vkops bench` and scripts/bench."""

from vkops.bench.measure import Result, measure
from vkops.bench.report import RunReport, made_from, read, tables
from vkops.bench.workloads import WORKLOADS, Workload

__all__ = ["WORKLOADS", "Result", "RunReport", "Workload", "made_from", "measure", "read", "tables"]
