# SPDX-License-Identifier: Apache-2.0
"""Percentiles, intervals and decibels by hand, and busy programs that end with their block."""

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import busy  # noqa: E402
import figures  # noqa: E402


def test_a_percentile_is_one_of_the_values():
    values = [float(each) for each in range(100, 0, -1)]
    assert figures.percentile(values, 0.99) == 99
    assert figures.percentile(values, 0.5) == 50
    assert figures.percentile([7.0], 0.99) == 7


def test_the_summary_is_over_all_runs():
    row = figures.summary([[1.0, 2.0], [3.0]])
    assert (row["median_ms"], row["p99_ms"], row["runs"]) == (2, 3, 3)


def test_equal_slices_have_ratio_one():
    slices = [[2.0, 2.0], [4.0]]
    assert figures.paired_ratio(slices, slices) == pytest.approx((1, 1, 1))


def test_the_interval_is_students():
    # ln 2 and ln 8: mean ln 4, standard error ln 2, t of one degree of freedom 12.706.
    ratio, low, high = figures.paired_ratio([[2.0], [8.0]], [[1.0], [1.0]])
    assert ratio == pytest.approx(4)
    assert math.log(high / 4) == pytest.approx(12.706 * math.log(2))
    assert low * high == pytest.approx(16)


def test_the_interval_of_a_mean_is_known_for_any_number_of_values():
    # Standard deviation 1: the interval's half is t over the root of the number.
    for count, t in ((3, 4.303), (11, 2.228), (15, 2.145), (21, 2.086), (41, 2.0)):
        apart = math.sqrt((count - 1) / 2)
        mean, low, high = figures.mean_interval([5 - apart, 5 + apart] + [5.0] * (count - 2))
        assert (mean, high - mean) == pytest.approx((5, t / math.sqrt(count)))
        assert mean - low == pytest.approx(high - mean)


def test_one_value_leaves_the_interval_open():
    assert figures.mean_interval([7.0]) == (7, -math.inf, math.inf)


def test_decibels_are_finite_where_nothing_differs():
    right, found = [np.ones(4), np.ones(4), np.zeros(4)], [np.full(4, 1.1), np.ones(4), np.ones(4)]
    far, same, nothing = figures.decibels(right, found)
    assert far == pytest.approx(20)
    assert same > 300 and nothing < -300
    assert np.isfinite([same, nothing]).all()


def test_busy_programs_end_with_their_block():
    with busy.programs("spin", 2):
        children = {int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_ours(pid)}
        assert len(children) == 2
    assert not any(is_ours(str(pid)) for pid in children)


def is_ours(pid: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        status = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return str(busy.__file__).encode() in words and int(status[1]) == os.getpid()
