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
        (lambda: tn.searchsorted(X, X), "searchsorted: x1: expected a vector, got traced float"),
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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tn.permute_dims(X, (0,)), "axes: expected each of 2 axes"),
        (lambda: tn.permute_dims(X, (0, 0)), "axes: expected each axis once"),
        (lambda: tn.moveaxis(X, (0, 0), (0, 1)), "source: expected each axis once"),
        (lambda: tn.var(X, axis=(1, -1), correction=1), "axis: expected each axis once"),
        (lambda: tn.sum(X, axis=(0, -2)), "axis: expected each axis once"),
        (lambda: tn.broadcast_to(X, (4,)), "broadcast_to: shape: expected one that"),
        (lambda: tn.broadcast_to(X[0], (1,)), "broadcast_to: shape: expected one that"),
        (lambda: tn.repeat(X, (1, -1, 1), axis=0), "repeats: expected numbers from 0"),
        (lambda: tn.diff(X, n=-1), "diff: n: expected a number from 0, got -1"),
        (lambda: tn.one_hot(FEW, -1), "classes: expected a number from 0, got -1"),
        (lambda: tn.vecdot(X, X[:, :1]), "vecdot: expected one size of axis 1"),
        (lambda: tn.tensordot(X, Y, axes=([0, 0], [0, 1])), "axes: expected each axis once"),
        (lambda: tn.tensordot(X, Y[:1], axes=([0], [0])), "axes: expected axes of one size"),
        (lambda: tn.linalg.cross(X[:, :3], X), "expected axis -1 of size 3"),
        (lambda: tn.conv(X[0], X[0]), "three axes at least"),
        (lambda: tn.max_pool(X[0], 2), "three axes at least"),
        (lambda: tn.quantile(X, np.array([0.5, -0.1])), "indices"),
        (lambda: tn.quantile(X, np.array([1.05])), "indices"),
    ],
)
def test_what_would_be_another_result_is_refused(call, words):
    with pytest.raises((ValueError, IndexError), match=words):
        call()


def test_an_axis_may_be_rolled_twice():
    np.testing.assert_array_equal(tn.roll(X, (1, 2), axis=(0, 0)), np.roll(X, (1, 2), axis=(0, 0)))


def test_a_power_that_is_a_float_makes_floats_of_integers():
    for power in (0.5, 1.0, 2.0, 3.0):
        got = tn.pow(np.array([1, 4]), power)
        assert got.dtype == "float32"
        np.testing.assert_allclose(got, np.array([1, 4]) ** power, rtol=1e-6)
    assert tn.pow(np.array([1, 4]), 2).dtype == "int64"


@pytest.mark.parametrize("stop", [0.3, -7.1])
def test_the_last_of_equal_distances_is_the_end_itself(stop):
    for n in (2, 38, 68, 75, 134):
        assert tn.linspace(0.1, stop, n, dtype="float64")[-1] == stop


def test_the_middle_of_infinite_numbers():
    inf = np.inf
    for numbers in (
        [1, inf, inf],
        [inf, inf],
        [-inf, -inf, 1, 2],
        [-inf, inf, 0, inf],
        [-inf, inf],
    ):
        x = np.float32(numbers)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(tn.median(x), np.median(x))
    np.testing.assert_array_equal(
        tn.quantile(np.float32([0, 1, inf]), np.array([0.25, 0.5, 0.75, 1])), [0.5, 1, inf, inf]
    )
    slope = tn.grad(lambda x: tn.median(x))(np.float32([-inf, 1, 3, inf]))
    np.testing.assert_array_equal(slope, [0, 0.5, 0.5, 0])


def test_the_middle_of_the_largest_numbers_of_both_signs():
    x = np.float32([-3e38, 3e38])
    assert tn.median(x) == 0
    np.testing.assert_allclose(tn.quantile(x, 0.75), 1.5e38, rtol=1e-6)


def test_lines_between_an_infinite_and_a_finite_value_are_numpys():
    x, xp = np.array([0, 0.5, 1, 1.5, 2]), np.array([0.0, 1, 2])
    for fp in ([np.inf, 3, 4], [3, -np.inf, 4], [3, 4, np.inf], [np.nan, 3, 4]):
        np.testing.assert_array_equal(tn.interp(x, xp, np.array(fp)), np.interp(x, xp, fp))
    far = np.array([-np.inf, 1, np.inf])
    got = tn.interp(x, far, np.array([1.0, 3, 4]))
    np.testing.assert_array_equal(got, np.interp(x, far, [1.0, 3, 4]))
    slope = tn.grad(lambda fp: tn.interp(0.25, xp, fp))(np.array([1.0, 2, np.inf]))
    np.testing.assert_array_equal(slope, [0.75, 0.25, 0])


def test_counts_with_narrow_weights_are_their_sums():
    x = np.zeros(5000, "int64")
    assert tn.bincount(x, 1, weights=np.ones(5000, "float16")).dtype == np.float16
    for dtype in ("int8", "uint8", "int16", "float16"):
        assert tn.bincount(x, 1, weights=np.ones(5000, dtype)) == 5000


def test_vectors_meet_rows_of_vectors_in_a_cross_product():
    a, b = X[:, :3], Y[0, :3]
    same(tn.linalg.cross(a, b), np.cross(a, b))
    same(tn.linalg.cross(b, a), np.cross(b, a))
    same(tn.linalg.cross(X[:, :1], Y, axis=0), np.cross(X[:, :1].T, Y.T).T)


def test_a_norm_over_no_axes_is_the_size_of_each_element():
    np.testing.assert_array_equal(tn.linalg.vector_norm(X, axis=()), np.abs(X))


def test_labels_of_a_narrow_type_have_more_classes_than_it_has_numbers():
    labels = np.array([44, 127], "int8")
    np.testing.assert_array_equal(tn.one_hot(labels, 300), np.eye(300, dtype="float32")[labels])


def test_the_slope_of_erfinv_is_infinite_at_its_ends_and_none_beyond():
    got = tn.grad(lambda x: tn.sum(tn.erfinv(x)))(np.array([-2, -1, 0, 1, np.nan]))
    half = np.sqrt(np.pi) / 2
    np.testing.assert_allclose(got, [np.nan, np.inf, half, np.inf, np.nan])
    assert tn.grad(tn.erfc)(np.inf) == 0


def test_the_number_of_a_full_array_has_the_standards_name():
    np.testing.assert_array_equal(tn.full((2,), fill_value=3), np.full((2,), 3))
    np.testing.assert_array_equal(tn.full_like(X, fill_value=3), np.full_like(X, 3))
