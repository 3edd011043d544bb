"""The benchmark of `vkops bench` and scripts/bench."""

from vkops.bench.measure import Result, measure
from vkops.bench.report import RunReport as Report
from vkops.bench.report import made_from, times
from vkops.bench.workloads import WORKLOADS, Workload

__all__ = ["WORKLOADS", "Report", "Result", "Workload", "made_from", "measure", "times"]
