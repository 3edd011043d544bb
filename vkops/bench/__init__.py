"""The benchmark of `vkops bench` and scripts/bench."""

from vkops.bench.measure import Result, measure
from vkops.bench.report import BenchReport, made_from, read, tables
from vkops.bench.workloads import WORKLOADS, Workload

__all__ = [
    "WORKLOADS",
    "BenchReport",
    "Result",
    "Workload",
    "made_from",
    "measure",
    "read",
    "tables",
]
