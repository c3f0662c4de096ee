# SPDX-License-Identifier: Apache-2.0
"""Transforms of every way to decompose DFT against NumPy: short lengths, factors, large primes."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(5)
# One product; 8 x 16; a prime that is small; 20 x 25; primes that are large; twice one; 32 x 32.
LENGTHS = [100, 127, 128, 131, 500, 509, 1009, 1018, 1024]
ERROR = {"float32": 3e-6, "float64": 1e-13}


def complex_of(pairs):
    return pairs[..., 0] + 1j * pairs[..., 1]


def expect_near(got, want, dtype):
    assert got.dtype == dtype
    assert np.abs(np.asarray(got, "float64") - want).max() <= ERROR[dtype] * np.abs(want).max()


def pairs_of(values):
    return np.stack([values.real, values.imag], -1)


@pytest.mark.parametrize("dtype", ERROR)
@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_are_numpys(n, dtype):
    x = rng.standard_normal((3, n)).astype(dtype)
    z = rng.standard_normal((2, n, 2)).astype(dtype)
    half = rng.standard_normal((2, n // 2 + 1, 2)).astype(dtype)
    wide = x.astype("float64")
    expect_near(tn.fft.rfft(x), pairs_of(np.fft.rfft(wide)), dtype)
    expect_near(tn.fft.fft(z), pairs_of(np.fft.fft(complex_of(z))), dtype)
    expect_near(tn.fft.ifft(z), pairs_of(np.fft.ifft(complex_of(z))), dtype)
    expect_near(tn.fft.irfft(half, n=n), np.fft.irfft(complex_of(half), n=n), dtype)


@pytest.mark.parametrize("n", [1, 255, 257, 514, 4099])
def test_the_plain_kernel_is_numpys(n):
    z = rng.standard_normal((2, n, 2))
    wanted = np.fft.fft(complex_of(z))
    got = tn.jit(tn.fft.fft, backend="reference")(z)
    expect_near(got, pairs_of(wanted), "float64")
    expect_near(tn.jit(tn.fft.ifft, backend="reference")(pairs_of(wanted)), z, "float64")


@pytest.mark.parametrize("n", [500, 509])
@pytest.mark.parametrize("given", [300, 700])
def test_signals_are_cut_and_filled(n, given):
    x = rng.standard_normal((given, 2))
    z = rng.standard_normal((given, 3, 2))
    expect_near(tn.fft.rfft(x, n=n, axis=0), pairs_of(np.fft.rfft(x, n=n, axis=0)), "float64")
    wanted = np.fft.fft(complex_of(z), n=n, axis=0)
    expect_near(tn.fft.fft(z, n=n, axis=0), pairs_of(wanted), "float64")
    for size in (n, 2 * given):
        back = np.fft.irfft(complex_of(z), n=size, axis=0)
        expect_near(tn.fft.irfft(z, n=size, axis=0), back, "float64")


@pytest.mark.parametrize("n", [500, 509])
def test_gradients_are_those_of_the_definition(n):
    x, w = rng.standard_normal((2, n)), rng.standard_normal((2, n // 2 + 1, 2))
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n)
    want = w[..., 0] @ matrix.real + w[..., 1] @ matrix.imag
    got = tn.grad(lambda x: (tn.fft.rfft(x) * w).sum())(x)
    np.testing.assert_allclose(got, want, atol=1e-10)


def test_a_long_signal_runs_on_the_backend_with_nothing_left_over():
    x = rng.standard_normal((1, 1 << 16)).astype("float32")
    f = tn.jit(tn.fft.rfft)
    expect_near(f(x), pairs_of(np.fft.rfft(x.astype("float64"))), "float32")
    assert f.describe()["fallback_nodes"] == []


# STFT is made of a DFT, which no backend but reference takes either: both are taken apart.
def test_composites_of_composites_run_on_the_backend():
    graph = tn.parse("""graph {
  input %x: f32[2, 1000, 1]
  input %w: f32[400]
  constant %step: i64[] = [160]
  %y: f32[2, 4, 201, 2] = STFT(%x, %step, %w) {onesided = 1} @stft
  output y = %y
}""")
    x = rng.standard_normal((2, 1000, 1)).astype("float32")
    w = np.hanning(400).astype("float32")
    plan = graph.compile(backend="onednn")
    frames = np.stack([x[:, i * 160 : i * 160 + 400, 0] * w for i in range(4)], 1)
    expect_near(plan(x=x, w=w)[0], pairs_of(np.fft.rfft(frames.astype("float64"))), "float32")
    assert plan.describe()["fallback_nodes"] == []
