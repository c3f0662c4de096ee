# SPDX-License-Identifier: Apache-2.0
"""Uniform random numbers stay below the end of their interval, in every type and backend."""

import numpy as np
import pytest
import tenon as tn

BACKENDS = [one["id"] for one in tn.components("backend") if one["id"] in ("reference", "onednn")]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_below_one(dtype, backend):
    drawn = tn.jit(
        lambda key: tn.astype(tn.random_uniform((1 << 15,), key=key, dtype=dtype), "float64"),
        backend=backend,
    )(np.int64([5, 1]))
    assert 0.99 < drawn.max() < 1
    assert drawn.min() >= 0
    assert abs(drawn.mean() - 0.5) < 0.01


def like(low, high, dtype):
    """RandomUniformLike of a constant, as ONNX's files have it."""
    zeros = np.zeros(1 << 12, "float32")
    return tn.jit(
        lambda: tn.astype(
            tn.op("RandomUniformLike", tn.astype(zeros, dtype), low=low, high=high, seed=3.0),
            "float64",
        )
    )()


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (1.0, 1.001), (-2.0, -1.0), (-1.0, 0.25)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_of_an_interval(low, high, dtype):
    drawn = like(low, high, dtype)
    assert drawn.max() < high
    assert drawn.min() >= low - abs(low) / 128


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_largest_draw_in_float32_is_below_one(backend):
    """In 2**25 numbers about one is rounded to 1; this key has one among the first ones."""
    draw = tn.jit(lambda key: tn.random_uniform((1 << 16,), key=key), backend=backend)
    drawn = draw(np.int64([1789, 0]))
    assert drawn.max() == np.nextafter(np.float32(1), np.float32(0))
