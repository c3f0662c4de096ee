# SPDX-License-Identifier: Apache-2.0
"""What measured values say: medians, high percentiles, means and paired ratios with their
intervals, signal to noise."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

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


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean and the ends of its 95 % interval (Student's t), which one value leaves open."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    freedom = len(values) - 1
    t = T95[freedom - 1] if freedom <= len(T95) else T95_ABOVE
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def paired_ratio(theirs: list[list[float]], ours: list[list[float]]) -> tuple[float, float, float]:
    """theirs / ours, slice by slice: the geometric mean of the ratios of medians, and its 95 %
    interval. Above 1, ours is faster."""
    logs = [
        math.log(statistics.median(a) / statistics.median(b))
        for a, b in zip(theirs, ours, strict=True)
    ]
    mean, low, high = mean_interval(logs)
    return math.exp(mean), math.exp(low), math.exp(high)


def timed(run: Callable[[dict], object], inputs: dict, seconds: float) -> float:
    """Seconds of one run, over as many runs as fill so many seconds."""
    began, runs = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        run(inputs)
        runs += 1
    return passed / runs


def shortest(runs: list, rounds: int = 5, seconds: float = 0.02) -> list[float]:
    """CPU ms of the shortest run of each; they take turns, each for so many seconds a round."""
    best = [math.inf] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                began = time.process_time()
                run()
                best[i] = min(best[i], 1e3 * (time.process_time() - began))
    return best


def decibels(right: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> np.ndarray:
    """Signal to noise of each array. A signal or a noise of zero counts as 1e-30, so that no mean
    over samples becomes infinite."""
    pairs = list(zip(right, found, strict=True))
    signal = np.array([np.square(a, dtype=np.float64).sum() for a, _ in pairs])
    noise = np.array([np.square(a - b, dtype=np.float64).sum() for a, b in pairs])
    return 10 * np.log10(np.maximum(signal, 1e-30) / np.maximum(noise, 1e-30))
