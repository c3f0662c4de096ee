# SPDX-License-Identifier: Apache-2.0
"""Two plans of one layer over many shapes: their shortest times, and what all shapes say."""

import math
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import figures  # noqa: E402


def shortest(plans: list, inputs: dict[str, np.ndarray], runs: int, names=None) -> list[float]:
    """Of all steps of each plan, or of the layers of these names, in us; plans run in turn."""
    best = [math.inf] * len(plans)
    for _ in range(runs):
        for i, plan in enumerate(plans):
            rows = [row for row in plan.profile(**inputs) if not names or row["name"] in names]
            best[i] = min(best[i], sum(row["ns"] for row in rows) / 1e3)
    return best


def summary(theirs: list[float], ours: list[float]) -> str:
    """The geometric mean of the ratios with its 95 % interval over shapes, and the least."""
    mean, low, high = figures.paired_ratio([[x] for x in theirs], [[x] for x in ours])
    least = min(a / b for a, b in zip(theirs, ours, strict=True))
    return f"{len(ours)} shapes: {mean:.2f} [{low:.2f}, {high:.2f}], least {least:.2f}"
