# SPDX-License-Identifier: Apache-2.0
"""Einsum with diagonals and sizes of 1 has gradients and works under vmap."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(11)
CASES = {
    "ii->i": [(3, 3)],
    "ii": [(4, 4)],
    "iij,jk->ik": [(2, 2, 3), (3, 2)],
    "aibibc->cb": [(2, 3, 2, 3, 2, 4)],
    "iii->i": [(3, 3, 3)],
    "ij,ij->i": [(3, 4), (3, 1)],
}


@pytest.mark.parametrize("equation", CASES)
def test_values_slopes_and_batches(equation):
    arrays = [rng.standard_normal(shape) for shape in CASES[equation]]

    def numpys(*x):
        full = [np.broadcast_to(a, CASES[equation][0]) if equation == "ij,ij->i" else a for a in x]
        return np.einsum(equation, *full)

    f = lambda *x: tn.einsum(equation, *x)  # noqa: E731
    np.testing.assert_allclose(f(*arrays), numpys(*arrays))
    slopes = tn.grad(lambda *x: (f(*x) ** 2).sum(), argnums=tuple(range(len(arrays))))(*arrays)
    for k, array in enumerate(arrays):
        for at in np.ndindex(*array.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[k][at] += step
                sides.append((numpys(*moved) ** 2).sum())
            assert np.isclose(slopes[k][at], (sides[0] - sides[1]) / 2e-6, atol=1e-5)
    many = [np.stack([a, 2 * a, -a]) for a in arrays]
    want = [numpys(*(a[i] for a in many)) for i in range(3)]
    np.testing.assert_allclose(tn.vmap(f)(*many), want)


def test_what_cannot_be_taken_apart_is_batched_by_a_loop():
    f = tn.jit(tn.vmap(lambda a: tn.einsum("ij->ji", a)), batch_axes=1)
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_array_equal(f(x), x.transpose(0, 2, 1))
