# SPDX-License-Identifier: Apache-2.0
"""linalg and fft beyond single calls: batches, gradients against differences, first and second,
vmap, and what is refused. NumPy is the oracle of values, differences that of gradients."""

import numpy as np
import pytest
import tenon as tn

RANDOM = np.random.default_rng(5)
STACK = RANDOM.normal(size=(2, 3, 4, 4))
TALL = RANDOM.normal(size=(3, 5, 3))
EVEN = STACK @ STACK.mT + np.eye(4)


def slopes(f, x, step=1e-5):
    """Of the sum of f, by differences of fourth order."""
    made = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        total = 0.0
        for steps, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            moved = x.copy()
            moved[at] += steps * step
            total += weight * float(f(moved))
        made[at] = total / (12 * step)
    return made


def weights(shape):
    return np.random.default_rng(3).normal(size=shape)


# name, function of one array, where
GRADIENTS = {
    "cholesky": (lambda x: tn.linalg.cholesky(x), EVEN[0]),
    "det": (tn.linalg.det, STACK[0]),
    "eigenvalues": (lambda x: tn.linalg.eigh(x).eigenvalues, EVEN[0]),
    "eigenvectors": (lambda x: tn.linalg.eigh(x).eigenvectors, EVEN[1]),
    "inv": (tn.linalg.inv, STACK[1]),
    "logdet": (lambda x: tn.linalg.slogdet(x).logabsdet, STACK[0]),
    "nuclear": (lambda x: tn.linalg.matrix_norm(x, ord="nuc"), TALL),
    "pinv of tall": (tn.linalg.pinv, TALL[:1]),
    "pinv of wide": (tn.linalg.pinv, TALL[:1].mT.copy()),
    "q": (lambda x: tn.linalg.qr(x).Q, TALL),
    "q of wide": (lambda x: tn.linalg.qr(x).Q, TALL.mT.copy()),
    "r": (lambda x: tn.linalg.qr(x).R, TALL),
    "r of wide": (lambda x: tn.linalg.qr(x).R, TALL.mT.copy()),
    "solve": (lambda x: tn.linalg.solve(x, TALL[:2, None, :4]), STACK[:, :1]),
    "left of svd": (lambda x: tn.linalg.svd(x, full_matrices=False).U, TALL),
    "right of svd": (lambda x: tn.linalg.svd(x, full_matrices=False).Vh, TALL.mT.copy()),
    "singular values": (lambda x: tn.linalg.svd(x).S, TALL),
    "spectral": (lambda x: tn.linalg.matrix_norm(x, ord=2), TALL),
    "fft": (lambda x: tn.fft.fft(x, n=5, axis=0), TALL[0, :, :2]),
    "ifft": (lambda x: tn.fft.ifft(x, axis=0, norm="ortho"), TALL[0, :, :2]),
    "rfft": (lambda x: tn.fft.rfft(x, n=7), TALL[0]),
    "rfft that cuts": (lambda x: tn.fft.rfft(x, n=4, axis=0), TALL[0]),
    "irfft of even": (lambda x: tn.fft.irfft(x, axis=0), TALL[0, :4, :2]),
    "irfft of odd": (lambda x: tn.fft.irfft(x, n=7, axis=0), TALL[0, :4, :2]),
    "irfft that fills": (lambda x: tn.fft.irfft(x, n=12, axis=0), TALL[0, :4, :2]),
    "fftn": (lambda x: tn.fft.fftn(x), TALL[..., :2]),
    "irfftn": (lambda x: tn.fft.irfftn(x), STACK[0, ..., :2]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_differences(name):
    f, x = GRADIENTS[name]

    @tn.jit
    def weighted(v):
        made = f(v)
        return (made * weights(made.shape)).sum()

    np.testing.assert_allclose(tn.grad(weighted)(x), slopes(weighted, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cholesky", "inv", "logdet", "eigenvalues", "q", "rfft"])
def test_second_gradients_too(name):
    f, x = GRADIENTS[name]

    @tn.jit
    def first(v):
        slope = tn.grad(lambda u: (f(u) * weights(f(u).shape)).sum())(v)
        return (slope * weights(v.shape)).sum()

    np.testing.assert_allclose(tn.grad(first)(x), slopes(first, x), rtol=1e-4, atol=1e-5)


def test_leading_axes_count_matrices():
    np.testing.assert_allclose(tn.linalg.inv(STACK), np.linalg.inv(STACK), rtol=1e-8)
    np.testing.assert_allclose(tn.linalg.cholesky(EVEN), np.linalg.cholesky(EVEN), rtol=1e-8)
    wide = tn.linalg.solve(STACK[:, :1], STACK[0])
    np.testing.assert_allclose(wide, np.linalg.solve(STACK[:, :1], STACK[0]), atol=1e-10)
    u, s, vh = tn.linalg.svd(TALL)
    assert u.shape == (3, 5, 5) and vh.shape == (3, 3, 3)
    np.testing.assert_allclose((u[..., :3] * s[:, None]) @ vh, TALL, atol=1e-10)
    sign, size = tn.linalg.slogdet(STACK)
    np.testing.assert_allclose(sign * np.exp(size), np.linalg.det(STACK), rtol=1e-8)


@pytest.mark.parametrize("name", GRADIENTS)
def test_vmap_is_a_loop(name):
    f, x = GRADIENTS[name]
    many = np.stack([x, x * 1.25, x * 0.75])
    np.testing.assert_allclose(tn.vmap(f)(many), [f(one) for one in many], rtol=1e-6, atol=1e-8)


def test_long_signals_agree_with_numpy():
    x = RANDOM.normal(size=(2, 4096 * 3))
    made = tn.fft.rfft(x)
    np.testing.assert_allclose(made[..., 0] + 1j * made[..., 1], np.fft.rfft(x), atol=1e-8)
    np.testing.assert_allclose(tn.fft.irfft(made), x, atol=1e-10)
    slope = tn.grad(lambda v: (tn.fft.rfft(v) ** 2).sum())(x)
    spectrum = np.fft.rfft(x)
    np.testing.assert_allclose(slope, 2 * np.fft.irfft(_half(spectrum), 12288) * 12288, atol=1e-6)


def _half(spectrum):  # the inner part stands for both halves: each was counted once
    made = spectrum / 2
    made[..., 0] *= 2
    made[..., -1] *= 2
    return made


def test_equal_eigenvalues_give_finite_gradients():
    f = tn.grad(
        lambda x: (tn.linalg.eigh(x).eigenvectors ** 2).sum() + tn.linalg.eigh(x).eigenvalues.sum()
    )
    np.testing.assert_allclose(f(np.eye(3)), np.eye(3), atol=1e-12)
    g = tn.grad(lambda x: tn.linalg.matrix_norm(x, ord="nuc"))
    np.testing.assert_allclose(g(np.eye(3)), np.eye(3), atol=1e-12)


BASIS = np.linalg.qr(np.random.default_rng(7).normal(size=(6, 6)))[0]
REPEATED = (BASIS * [1, 1, 1, 3, 3, 7]) @ BASIS.T


def on_the_first_three(vectors):
    return vectors[:, :3] @ vectors[:, :3].T


@pytest.mark.parametrize("x", [REPEATED, REPEATED[::-1], np.eye(6)], ids=["even", "odd", "one"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (lambda s: s.U @ s.Vh)(tn.linalg.svd(x)),
        lambda x: on_the_first_three(tn.linalg.svd(x + np.diag([0, 0, 0, 5, 5, 5])).U),
        lambda x: on_the_first_three(tn.linalg.eigh(x + 4 * BASIS[:, 3:] @ BASIS[:, 3:].T)[1]),
    ],
    ids=["nearest orthonormal matrix", "span of left vectors", "span of eigenvectors"],
)
def test_repeated_values_have_the_slopes_of_what_does_not_depend_on_their_vectors(f, x):
    @tn.jit
    def weighted(v):
        return (f(v) * weights((6, 6))).sum()

    np.testing.assert_allclose(tn.grad(weighted)(x), slopes(weighted, x), rtol=1e-5, atol=1e-6)


def test_what_has_no_answer_is_refused():
    with pytest.raises(tn.TenonError, match="matrix 1 of 2: expected a matrix with an inverse"):
        tn.linalg.inv(np.stack([np.eye(2), np.ones((2, 2))]))
    with pytest.raises(tn.TenonError, match="expected a positive definite matrix"):
        tn.linalg.cholesky(-np.eye(3))
    with pytest.raises(tn.TenonError, match="expected square matrices, got traced float64"):
        tn.linalg.det(np.ones((2, 3)))
    with pytest.raises(tn.TenonError, match="full_matrices|use full = 0"):
        tn.grad(lambda x: tn.linalg.svd(x).U.sum())(TALL[0])
    with pytest.raises(tn.TenonError, match="mode: expected 'reduced' or 'complete'"):
        tn.linalg.qr(TALL, mode="raw")
    with pytest.raises(tn.TenonError, match=r"pairs in a last axis of 2.*fft.rfft"):
        tn.fft.fft(np.ones(5))
    with pytest.raises(tn.TenonError, match="norm: expected 'backward'"):
        tn.fft.rfft(np.ones(5), norm="none")
    with pytest.raises(tn.TenonError, match="n: expected a whole number from 1, got 0"):
        tn.fft.rfft(np.ones(5), n=0)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "inv", "qr", "slogdet", "svd"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_matrices_that_are_not_finite_are_refused(name, number):
    stack = np.stack([np.eye(3), np.eye(3)])
    stack[1, 2, 2] = number

    with pytest.raises(tn.TenonError, match="matrix 1 of 2: expected finite numbers"):
        getattr(tn.linalg, name)(stack)


@pytest.mark.parametrize("exponent", [-1060, -1000, -600, 600, 1018])
def test_factors_of_the_smallest_and_largest_numbers_are_those_of_others(exponent):
    size = np.ldexp(1.0, exponent)
    x = np.round(np.random.default_rng(2).normal(size=(6, 4)) * 64) / 64  # few digits
    even = x.T @ x + np.eye(4)
    q, r = tn.linalg.qr(x)
    tiny_q, tiny_r = tn.linalg.qr(x * size)
    np.testing.assert_array_equal(tiny_q, q)
    np.testing.assert_allclose(tiny_r, r * size, rtol=1e-15, atol=5e-324)
    s, tiny_s = tn.linalg.svdvals(x), tn.linalg.svdvals(x * size)
    np.testing.assert_allclose(tiny_s, s * size, rtol=1e-15, atol=5e-324)
    values, tiny = tn.linalg.eigvalsh(even), tn.linalg.eigvalsh(even * size)
    np.testing.assert_allclose(tiny, values * size, rtol=1e-4)
    lower = tn.linalg.cholesky(even * size)
    np.testing.assert_allclose(lower, tn.linalg.cholesky(even) * 2.0 ** (exponent / 2), rtol=1e-4)
    sign, logarithm = tn.linalg.slogdet(x[:4] * size)
    wanted = tn.linalg.slogdet(x[:4])
    assert sign == wanted.sign
    np.testing.assert_allclose(logarithm, wanted.logabsdet + 4 * exponent * np.log(2), rtol=1e-14)
    y = tn.linalg.solve(x[:4] * size, x[:4, :2] * size)
    np.testing.assert_allclose(y, tn.linalg.solve(x[:4], x[:4, :2]), rtol=1e-12, atol=1e-12)


def test_empty_matrices_are_allowed():
    assert tn.linalg.inv(np.ones((0, 2, 2))).shape == (0, 2, 2)
    assert tn.linalg.inv(np.ones((2, 0, 0))).shape == (2, 0, 0)
    np.testing.assert_array_equal(tn.linalg.slogdet(np.ones((2, 0, 0)))[1], np.zeros(2))
    assert tn.linalg.cholesky(np.ones((2, 0, 0))).shape == (2, 0, 0)
    assert tn.linalg.svd(np.ones((2, 0, 3)))[2].shape == (2, 3, 3)
    assert tn.linalg.qr(np.ones((2, 3, 0)), mode="complete")[0].shape == (2, 3, 3)


def test_numpys_functions_work_or_say_what_to_call_instead():
    f = tn.jit(lambda a, b: np.linalg.solve(a, b) + np.linalg.eigvalsh(a)[:, None])
    wanted = np.linalg.solve(EVEN[0], STACK[0]) + np.linalg.eigvalsh(EVEN[0])[..., None]
    np.testing.assert_allclose(tn.vmap(f)(EVEN[0], STACK[0]), wanted, rtol=1e-8)
    for call, report in {
        np.linalg.norm: "np.linalg.norm: .*use tn.linalg.vector_norm or tn.linalg.matrix_norm",
        np.fft.rfft: "np.fft.rfft: .*use tn.fft.rfft; complex numbers are pairs",
        np.trace: "np.trace: .*use tn.linalg.trace",
        np.cov: "np.cov: .*use tn.matmul",
        np.median: None,
        np.cumulative_sum: None,
        np.nanstd: "use tn.std|there is none of that name",
    }.items():
        if report is None:
            np.testing.assert_allclose(tn.jit(call)(TALL[0, 0]), call(TALL[0, 0]))
            continue
        with pytest.raises(tn.TracedValueError, match=report):
            tn.jit(call)(TALL[0])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)])
def test_norms_of_nothing_are_0_and_the_smallest_of_nothing_is_refused(shape):
    empty = np.zeros(shape, "float32")
    both = (-2, -1)
    assert np.array_equal(tn.linalg.vector_norm(empty, ord="inf", axis=both), np.zeros(shape[:-2]))
    for order in (1, 2, "inf"):
        wanted = np.linalg.matrix_norm(empty, ord=float(order))
        assert np.array_equal(tn.linalg.matrix_norm(empty, ord=order), wanted)
    with pytest.raises(tn.InvalidArgument, match="one element at least"):
        tn.linalg.vector_norm(empty, ord="-inf")
    open_size = tn.nn.build(lambda x: tn.linalg.vector_norm(x, ord="inf"), {"x": ("N",)})
    run = open_size.compile()
    assert run(np.zeros(0, "f"))[0] == 0 and run(np.float32([-2, 1]))[0] == 2
