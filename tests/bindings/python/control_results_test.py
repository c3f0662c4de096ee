# SPDX-License-Identifier: Apache-2.0
"""What branches and loops may give and take: no results, numbers, steps without slices."""

import numpy as np
import pytest
import tenon as tn


def test_steps_without_slices_are_stacked_from_the_last_to_the_first():
    last, stacked = tn.scan(lambda c, _: (c * 2, c), 1.0, None, length=3, reverse=True)
    assert last == 8
    assert list(stacked) == [4, 2, 1]


def test_branches_without_results():
    assert tn.cond(np.array(True), lambda: None, lambda: None) is None
    assert tn.jit(lambda x: tn.cond(x > 0, lambda: (), lambda: ()))(1.0) == ()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_takes_the_type_of_the_other_branch(dtype):
    x = np.asarray(3, dtype)
    for condition, wanted in ((True, [3, 3]), (False, [0.1, 1])):
        both = tn.cond(np.array(condition), lambda x: [x, x], lambda x: [0.1, 1], x)
        assert [y.dtype for y in both] == [dtype, dtype]
        np.testing.assert_array_equal(both, np.asarray(wanted, dtype))
    assert tn.cond(np.array(False), lambda x: 0.1, lambda x: x, x).dtype == dtype


def test_a_count_of_steps_is_an_integer():
    with pytest.raises(TypeError, match="fori_loop: upper: expected an integer, got 2.7"):
        tn.fori_loop(0, 2.7, lambda i, s: s + i, 0)
    with pytest.raises(TypeError, match="scan: length: expected an integer, got 2.7"):
        tn.scan(lambda s, x: (s, s), 0, None, length=2.7)
