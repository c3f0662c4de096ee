# SPDX-License-Identifier: Apache-2.0
"""What slices of times say: medians, high percentiles, and paired ratios with their intervals."""

import math
import statistics

# Student's t, two-sided 95 %, by degrees of freedom.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
T95 += (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
T95_ABOVE = 2.0


def percentile(values: list[float], share: float) -> float:
    """The least value that so large a share of all is not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(slices: list[list[float]]) -> dict:
    """Over all runs of all slices."""
    runs = [each for one in slices for each in one]
    return {
        "median_ms": statistics.median(runs),
        "p99_ms": percentile(runs, 0.99),
        "mean_ms": statistics.fmean(runs),
        "runs": len(runs),
    }


def paired_ratio(theirs: list[list[float]], ours: list[list[float]]) -> tuple[float, float, float]:
    """theirs / ours, slice by slice: the geometric mean of the ratios of medians, and its 95 %
    interval. Above 1, ours is faster."""
    logs = [
        math.log(statistics.median(a) / statistics.median(b))
        for a, b in zip(theirs, ours, strict=True)
    ]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    freedom = len(logs) - 1
    t = T95[freedom - 1] if freedom <= len(T95) else T95_ABOVE
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
