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
    with pytest.raises(TypeError, match="scan: length: expected an integer from 0, got 2.7"):
        tn.scan(lambda s, x: (s, s), 0, None, length=2.7)
    with pytest.raises(TypeError, match="scan: length: expected an integer from 0, got -1"):
        tn.scan(lambda s, x: (s, s), 0, None, length=-1)


def test_no_examples_have_no_steps():
    def doubled(x):
        return tn.while_loop(lambda s: s < 3, lambda s: s * 2, x)

    none = np.zeros(0, "float32")
    np.testing.assert_array_equal(tn.vmap(doubled)(none), none)
    np.testing.assert_array_equal(tn.vmap(tn.grad(doubled))(none), none)
    np.testing.assert_array_equal(
        tn.vmap(lambda n: tn.fori_loop(0, n, lambda i, s: s + i, 0))(none.astype(int)), []
    )


@pytest.mark.parametrize("n", [0, 1, 3])
def test_branches_of_as_many_examples_as_there_are(n):
    def f(x):
        return tn.cond(x.sum() > 0, lambda x: tn.linalg.inv(x), lambda x: x @ x, x)

    x = np.eye(2, dtype="float32") * np.float32([2, -1, 4])[:n, None, None]
    want = np.eye(2, dtype="float32") * np.float32([0.5, 1, 0.25])[:n, None, None]
    np.testing.assert_allclose(tn.vmap(f)(x), want)
    varying = tn.vmap(f, batch_axes=0)
    np.testing.assert_allclose(varying(x), want)
    slope = tn.vmap(tn.grad(lambda x: f(x).sum()))(x)
    assert slope.shape == x.shape and np.isfinite(slope).all()


def test_a_number_among_the_operands_of_a_branch_keeps_its_digits():
    x = np.array([1.0])
    for f in (tn.cond, tn.jit(lambda c, *given: tn.cond(c, *given), static_argnums=(1, 2))):
        assert f(True, lambda x, a: x * a, lambda x, a: x, x, 0.1) == 0.1
    half = np.ones(2, "float16")
    assert tn.cond(True, lambda x, a: x * a, lambda x, a: x / a, half, 0.5).dtype == "float16"
