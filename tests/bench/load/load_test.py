# SPDX-License-Identifier: Apache-2.0
"""Percentiles and intervals by hand, and busy programs that end with their block."""

import math
import os
import sys
from pathlib import Path

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
