# SPDX-License-Identifier: Apache-2.0
"""Functions by the array API's names give what NumPy's do: on arrays and in compiled functions."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(5)
X = rng.standard_normal((3, 4)).astype("float32")
Y = rng.standard_normal((3, 4)).astype("float32")
TIES = rng.integers(0, 3, (4, 6)).astype("float32")
SIGNS = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf], "float32")
ORDERED = np.array([-1.0, 0.0, 0.0, 2.0, 5.0], "float32")
WHOLE = rng.integers(1, 60, (2, 5))
FEW = rng.integers(0, 5, (2, 5))

CASES = {
    "trunc": (lambda m, x: m.trunc(x * 3), (X,)),
    "positive": (lambda m, x: m.positive(x), (X,)),
    "signbit": (lambda m, x: m.signbit(x), (SIGNS,)),
    "isfinite": (lambda m, x: m.isfinite(x / 0.5), (SIGNS,)),
    "copysign": (lambda m, a, b: m.copysign(a[:, None], b), (SIGNS, SIGNS)),
    "hypot": (lambda m, a, b: m.hypot(a, b), (X * 1e25, Y * 1e25)),
    "hypot of nothing": (lambda m, a: m.hypot(a, a), (SIGNS[:4] * 0,)),
    "logaddexp": (lambda m, a, b: m.logaddexp(a * 100, b * 100), (X, Y)),
    "logaddexp of infinities": (lambda m, a: m.logaddexp(a, a), (SIGNS,)),
    "shift up": (lambda m, a, b: a << b, (WHOLE, FEW)),
    "shift down": (lambda m, a, b: (-a) >> b, (WHOLE, FEW)),
    "count_nonzero": (lambda m, x: m.count_nonzero(x, axis=1), (TIES,)),
    "diff": (lambda m, x: m.diff(x, axis=0), (X,)),
    "second differences": (lambda m, x: m.diff(x, n=2), (X,)),
    "broadcast_arrays": (lambda m, a, b: m.broadcast_arrays(a[:, :1], b[0])[0], (X, Y)),
    "roll": (lambda m, x: m.roll(x, 3), (X,)),
    "roll an axis": (lambda m, x: m.roll(x, -1, axis=1), (X,)),
    "roll axes": (lambda m, x: m.roll(x, (1, 5), axis=(0, 1)), (X,)),
    "repeat": (lambda m, x: m.repeat(x, 2), (X,)),
    "repeat an axis": (lambda m, x: m.repeat(x, [1, 0, 3], axis=0), (X,)),
    "linspace": (lambda m, x: x[0, 0] + m.linspace(0, 1, 7, endpoint=False), (X,)),
    "eye": (lambda m, x: x @ m.eye(4, 5, k=1), (X,)),
    "meshgrid": (lambda m, a, b: m.meshgrid(a[0], b[:, 0])[1], (X, Y)),
    "meshgrid ij": (lambda m, a, b: m.meshgrid(a[0], b[:, 0], indexing="ij")[0], (X, Y)),
    "tensordot": (lambda m, a, b: m.tensordot(a, b, axes=([0], [0])), (X, Y)),
    "tensordot of all": (lambda m, a, b: m.tensordot(a, b), (X, Y)),
    "einsum": (lambda m, a, b: m.einsum("ij,kj->ik", a, b), (X, Y)),
    "differences of more": (
        lambda m, a, b: m.diff(a, axis=0, prepend=b[:2], append=b[:1]),
        (X, Y),
    ),
    "sum of a type": (lambda m, x: m.sum(x * 3, axis=0, dtype="int64"), (FEW,)),
    "prod of a type": (lambda m, x: m.prod(x + 1, dtype="float64"), (FEW,)),
    "moveaxis": (lambda m, x: m.moveaxis(x[None, :, None], (0, -1), (2, 0)), (X,)),
    "empty_like": (lambda m, x: m.empty_like(x)[:0], (X,)),
    "empty": (lambda m, x: x[:0, :3] + m.empty((0, 3)), (X,)),
    "nonzero": (lambda m, x: m.nonzero(x)[1], (TIES,)),
    "unique_all": (lambda m, x: m.unique_all(x)[1], (TIES,)),
    "unique_counts": (lambda m, x: m.unique_counts(x)[1], (TIES,)),
    "unique_inverse": (lambda m, x: m.unique_inverse(x)[1], (TIES,)),
    "unique_values": (lambda m, x: m.unique_values(x), (TIES,)),
    "sort": (lambda m, x: m.sort(x, axis=0), (TIES,)),
    "searchsorted": (lambda m, a, b: m.searchsorted(a, b), (ORDERED, X)),
    "searchsorted right": (lambda m, a, b: m.searchsorted(a, b, side="right"), (ORDERED, TIES[0])),
}
NUMPYS = {
    "cumulative_prod": (tn.cumulative_prod, lambda x: np.cumprod(x, 1), {"axis": 1}),
    "cumulative_sum from 0": (
        lambda x: tn.cumulative_sum(x, include_initial=True),
        lambda x: np.concatenate([0 * x[:1], np.cumsum(x, 0)]),
        {},
    ),
    "from_dlpack": (tn.from_dlpack, lambda x: x, {}),
    "unstack": (lambda x: tn.unstack(x, axis=1)[2], lambda x: x[:, 2], {}),
    "argsort": (tn.argsort, lambda x: np.argsort(x, 1, kind="stable"), {}),
    "falling": (
        lambda x: tn.argsort(x, descending=True),
        lambda x: np.argsort(-x, 1, kind="stable"),
        {},
    ),
    "top_k": (lambda x: tn.top_k(x, 2)[0], lambda x: -np.sort(-x, 1)[:, :2], {}),
    "smallest": (lambda x: tn.top_k(x, 1, axis=0, largest=False)[0], lambda x: x.min(0)[None], {}),
    "asarray": (lambda x: tn.asarray(x, dtype="int64"), lambda x: x.astype("int64"), {}),
}


def same(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)
    if np.asarray(want).dtype.kind == "f":  # -0 and 0 differ
        assert np.array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("case", CASES)
def test_they_give_what_numpys_do(case):
    f, arrays = CASES[case]
    with np.errstate(all="ignore"):
        want = f(np, *arrays)
    same(tn.jit(lambda *values: f(tn, *values))(*arrays), want)
    same(f(tn, *arrays), want)


@pytest.mark.parametrize("case", NUMPYS)
def test_those_that_numpy_calls_otherwise(case):
    mine, numpys, options = NUMPYS[case]
    same(mine(TIES, **options), numpys(TIES))
    same(tn.jit(lambda x: mine(x, **options))(TIES), numpys(TIES))


FAR = np.float32(
    [0.5, 1, 3, -1, -3, 1e-7, 0.1, -0.1, 1e8, 1e30, -1e8, -200, np.inf, -np.inf, np.nan]
)


@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_what_is_exact_near_0_is_right_far_from_it(name):
    with np.errstate(all="ignore"):
        want = getattr(np, name)(FAR)
    np.testing.assert_allclose(getattr(tn, name)(FAR), want, rtol=2e-6)
    slope = tn.grad(lambda x: tn.sum(getattr(tn, name)(x)))(FAR[:9])
    with np.errstate(all="ignore"):
        exact = np.exp(FAR[:9]) if name == "expm1" else np.where(FAR[:9] > -1, 1 / (1 + FAR[:9]), 0)
    known = exact != 0
    np.testing.assert_allclose(slope[known], exact[known], rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "numpys"),
    [
        ("floor_divide", np.floor_divide),
        ("remainder", np.remainder),
        ("hypot", np.hypot),
        ("atan2", np.arctan2),
    ],
)
def test_infinities_and_quotients_near_whole_numbers_go_as_in_numpy(name, numpys):
    with np.errstate(all="ignore"):
        want = numpys(FAR[:, None], FAR)
    np.testing.assert_allclose(getattr(tn, name)(FAR[:, None], FAR), want, rtol=2e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32"])
def test_sums_of_integers_are_made_in_64_bits(dtype):
    x = np.array([100, 100, 100, 100, 100]).astype(dtype)
    for mine, numpys in (
        (tn.sum, np.sum),
        (tn.prod, np.prod),
        (tn.cumulative_sum, np.cumsum),
        (tn.cumulative_prod, np.cumprod),
    ):
        got, want = mine(x), numpys(x)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_every_quarter_of_the_plane_has_its_angle():
    y, x = np.meshgrid(SIGNS[:4], SIGNS[:4])
    same(tn.atan2(y, x), np.arctan2(y, x))
    same(tn.jit(lambda y, x: np.arctan2(y, x))(Y, X), np.arctan2(Y, X))


@pytest.mark.parametrize(
    "f",
    [
        tn.hypot,
        tn.logaddexp,
        tn.atan2,
        lambda a, b: tn.sort(a * b),
        lambda a, b: tn.roll(a, 1, axis=1) * b,
        lambda a, b: tn.diff(a * b, n=2),
        lambda a, b: tn.tensordot(a, b, axes=([1], [1])),
        lambda a, b: tn.repeat(a, 2, axis=1)[:, :4] * b,
    ],
)
def test_they_have_gradients(f):
    a, b = X.astype("float64"), Y.astype("float64")
    g = tn.grad(lambda a, b: tn.sum(f(a, b) ** 2), argnums=(0, 1))(a, b)
    step = 1e-6
    for k, given in enumerate((a, b)):
        for place in ((0, 0), (1, 2), (2, 3)):
            ends = []
            for sign in (1, -1):
                moved = [a, b]
                moved[k] = given.copy()
                moved[k][place] += sign * step
                ends.append((np.asarray(f(*moved)) ** 2).sum())
            assert g[k][place] == pytest.approx(
                (ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-7
            )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tn.top_k(X, 9), "k: expected one of 0 to 4, got 9"),
        (lambda: tn.sort(X, axis=2), "axis: expected one of -2 to 1, got 2"),
        (lambda: tn.searchsorted(ORDERED, X, side="middle"), "expected 'left' or 'right'"),
        (lambda: tn.meshgrid(X[0], indexing="yx"), "expected 'xy' or 'ij'"),
        (lambda: tn.roll(X, (1, 2), axis=0), "shift: expected 1 numbers, got 2"),
        (lambda: tn.moveaxis(X, (0, 1), 0), "destination: expected 2 axes, got 1"),
        (lambda: tn.tensordot(X, Y, axes=([0], [0, 1])), "axes: expected as many"),
        (lambda: tn.arange(1e30), "arange: expected fewer elements, got 1"),
        (lambda: tn.linspace(0, 1, 10**18), "linspace: expected fewer elements, got 1"),
        (lambda: tn.linspace(0, 1, -1), "linspace: expected a size of 0 or more, got -1"),
        (lambda: tn.eye(2**33), "eye: expected fewer elements"),
        (lambda: tn.eye(2, -1), "eye: expected sizes of 0 or more, got 2 and -1"),
    ],
)
def test_what_does_not_fit_is_said(call, words):
    with pytest.raises((ValueError, IndexError), match=words):
        call()
