# SPDX-License-Identifier: Apache-2.0
"""Gradients in 16 bits of reductions over more elements than float16 has numbers for."""

import numpy as np
import pytest
import tenon as tn

N = 70_000
X = np.linspace(-2, 2, N).astype("float16")
EXACT = X.astype("float64")


@pytest.mark.parametrize(
    "f, slope",
    [
        (tn.mean, np.full(N, 1 / N)),
        (tn.var, 2 * EXACT / N),
        (tn.std, EXACT / N / EXACT.std()),
        (lambda x: tn.mean(x, axis=0, keepdims=True)[0], np.full(N, 1 / N)),
    ],
)
def test_slopes_of_means(f, slope):
    scale = 2**12  # so that the slopes are no subnormal numbers
    made = tn.vjp(f, X)[1](np.float16(scale))[0]
    np.testing.assert_allclose(made, slope * scale, rtol=0.01, atol=1e-3)
    moved = tn.jvp(f, (X,), (np.ones_like(X),))[1]
    np.testing.assert_allclose(moved, slope.sum(), rtol=0.01, atol=1e-2)


def test_many_extremes_share_a_slope():
    made = tn.vjp(tn.max, np.ones(N, "float16"))[1](np.float16(2**12))[0]
    np.testing.assert_allclose(made, np.full(N, 2**12 / N), rtol=1e-3)


def test_a_corrected_variance_of_many():
    wanted = EXACT.var(ddof=1)
    np.testing.assert_allclose(tn.var(X, correction=1), wanted, rtol=1e-3)
