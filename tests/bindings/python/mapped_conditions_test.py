# SPDX-License-Identifier: Apache-2.0
"""Gradients of cond under vmap, whose branches both run: alone, each example has the same."""

import numpy as np
import pytest
import tenon as tn

INFINITE_SLOPES = {  # branches for positive numbers
    "log": tn.log,
    "sqrt": tn.sqrt,
    "reciprocal": lambda v: 1 / v,
    "moved": lambda v: tn.log(v + 2) + 1 / (v + 2),
    "power": lambda v: v**0.3,
    "view": lambda v: tn.log(tn.reshape(v, (1, 1)))[0, 0],
}


@pytest.mark.parametrize("name", INFINITE_SLOPES)
def test_cond_under_vmap_has_the_gradient_of_the_one_that_is_chosen(name):
    x = np.float32([1, 0, -1, -2, 9])

    def f(v, shared):
        return tn.cond(v > 0, lambda: INFINITE_SLOPES[name](v) * shared, lambda: v * 2)

    def mapped(v, shared):
        return tn.vmap(f, in_axes=(0, None))(v, shared).sum()

    shared = np.float32(3)
    ours = tn.grad(mapped, argnums=(0, 1))(x, shared)
    alone = [tn.grad(f, argnums=(0, 1))(one, shared) for one in x]
    np.testing.assert_allclose(ours[0], [one[0] for one in alone], rtol=1e-6)
    np.testing.assert_allclose(ours[1], sum(one[1] for one in alone), rtol=1e-6)
    second = tn.grad(lambda v: tn.grad(mapped)(v, shared).sum())(x)
    twice = [tn.grad(lambda v: tn.grad(f)(v, shared))(one) for one in x]
    np.testing.assert_allclose(second, twice, rtol=1e-5)
