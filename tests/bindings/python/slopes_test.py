# SPDX-License-Identifier: Apache-2.0
"""Every function of elements has the slope of its closed form: at 0 and -0, on the axes, where
pieces meet, far away. A function without a row here fails."""

import numpy as np
import pytest
import tenon as tn
from tenon.arrays import GROUPS

inf, nan = np.inf, np.nan
AT = np.array([0, 0.1, 0.5, 1, 2, 3, 20, 1e3, 1e12, inf])
AT = np.concatenate([AT, -AT])
TOL = {"float32": 4e-6, "float64": 1e-13}


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def half(a, b):
    """The slope of max(a, b) by a."""
    return np.where(a > b, 1.0, np.where(a == b, 0.5, 0.0))


def gelu(x):
    from math import erf

    bell = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    inner = 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))
    return inner + np.where(np.isinf(x), 0, x) * bell


def silu(x):
    s = logistic(x)
    return s + np.where(np.isinf(x), 0, x) * s * logistic(-x)


# By name the slope by each operand; a NaN is where there is none, or none that one would rely on.
SLOPES = {
    "abs": [np.sign],
    "acos": [lambda x: -1 / np.sqrt((1 - x) * (1 + x))],
    "acosh": [lambda x: 1 / np.sqrt(x - 1) / np.sqrt(x + 1)],
    "asin": [lambda x: 1 / np.sqrt((1 - x) * (1 + x))],
    "asinh": [lambda x: 1 / np.hypot(x, 1)],
    "atan": [lambda x: 1 / (1 + x * x)],
    "atanh": [lambda x: 1 / ((1 - x) * (1 + x))],
    "cos": [lambda x: -np.sin(x)],
    "cosh": [np.sinh],
    "erf": [lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)],
    "exp": [np.exp],
    "expm1": [np.exp],
    "gelu": [gelu],
    "log": [lambda x: 1 / x],
    "log10": [lambda x: 1 / x / np.log(10)],
    "log1p": [lambda x: np.where(x == -1, nan, 1 / (1 + x))],
    "log2": [lambda x: 1 / x / np.log(2)],
    "negative": [lambda x: -1 + 0 * x],
    "positive": [lambda x: 1 + 0 * x],
    "reciprocal": [lambda x: -1 / x / x],
    "relu": [lambda x: x > 0],
    "relu6": [lambda x: (x > 0) & (x < 6)],
    "rsqrt": [lambda x: np.where(np.signbit(x), nan, -0.5 / x / np.sqrt(x))],
    "sigmoid": [lambda x: logistic(x) * logistic(-x)],
    "silu": [silu],
    "sin": [np.cos],
    "sinh": [np.cosh],
    "softplus": [logistic],
    "sqrt": [lambda x: 0.5 / np.sqrt(x)],
    "square": [lambda x: 2 * x],
    "tan": [lambda x: 1 + np.tan(x) ** 2],
    "tanh": [lambda x: 1 / np.cosh(x) ** 2],
    "add": [lambda a, b: 1 + 0 * a * b, lambda a, b: 1 + 0 * a * b],
    "atan2": [
        lambda y, x: np.where(np.isinf(x) | np.isinf(y), nan, x / np.hypot(x, y) / np.hypot(x, y)),
        lambda y, x: np.where(np.isinf(x) | np.isinf(y), nan, -y / np.hypot(x, y) / np.hypot(x, y)),
    ],
    "copysign": [
        lambda a, b: np.where(a == 0, nan, np.copysign(1, a) * np.copysign(1, b)),
        lambda a, b: 0 * a * b,
    ],
    "divide": [lambda a, b: 1 / b + 0 * a, lambda a, b: -(a / b) / b],
    "floor_divide": [lambda a, b: 0 * a * b, lambda a, b: 0 * a * b],
    "hypot": [lambda a, b: a / np.hypot(a, b), lambda a, b: b / np.hypot(a, b)],
    "logaddexp": [lambda a, b: logistic(a - b), lambda a, b: logistic(b - a)],
    "maximum": [lambda a, b: half(a, b), lambda a, b: half(b, a)],
    "minimum": [lambda a, b: half(b, a), lambda a, b: half(a, b)],
    "multiply": [lambda a, b: b + 0 * a, lambda a, b: a + 0 * b],
    "pow": [
        lambda a, b: np.where(b == 0, 0, np.where(np.abs(b) > 1e6, nan, b * a ** (b - 1))),
        lambda a, b: np.where(
            (a == 0) & (b >= 0), 0, np.where(np.isinf(a) | np.isinf(b), nan, a**b * np.log(a))
        ),
    ],
    "remainder": [lambda a, b: 1 + 0 * a * b, lambda a, b: -np.floor_divide(a, b)],
    "subtract": [lambda a, b: 1 + 0 * a * b, lambda a, b: -1 + 0 * a * b],
}
STEPS = {"ceil", "floor", "round", "sign", "trunc"}
# They give no numbers with a slope, or take what is no number; `where` and `clip` are below.
OTHERS = {
    *("astype", "where", "clip", "isfinite", "isinf", "isnan", "signbit", "not_equal", "equal"),
    *("greater", "greater_equal", "less", "less_equal"),
    *("logical_and", "logical_not", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or"),
    *("bitwise_right_shift", "bitwise_xor"),
}


def test_no_function_is_left_out():
    assert {*GROUPS["elementwise"], *GROUPS["arithmetic"]} == set(SLOPES) | STEPS | OTHERS


def slopes_of(f, *at):
    return tn.grad(lambda *x: tn.sum(f(*x)), argnums=tuple(range(len(at))))(*at)


def same(got, want, dtype, what):
    known = ~np.isnan(want)
    with np.errstate(over="ignore"):
        want = want.astype(dtype)
    scale = TOL[dtype] * np.maximum(1, np.abs(want[known]))
    close = (got[known] == want[known]) | (np.abs(got[known] - want[known]) <= scale)
    assert close.all(), (what, np.argwhere(known)[~close][:5], got[known][~close][:5])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*SLOPES, *sorted(STEPS)])
def test_the_slope_is_the_closed_forms(name, dtype):
    with np.errstate(all="ignore"):
        at = AT.astype(dtype)
        wide = at.astype("float64")
        forms = SLOPES.get(name, [lambda x: 0 * AT])
        given = [at] if len(forms) == 1 else [a.ravel() for a in np.meshgrid(at, at)]
        wide = [g.astype("float64") for g in given]
        values = np.asarray(getattr(tn, name)(*given))
        got = slopes_of(getattr(tn, name), *given)
        for k, form in enumerate(forms):
            want = np.array(form(*wide), "float64")
            want[np.isnan(values)] = nan  # no slope where there is no value
            same(got[k], want, dtype, (name, k))


def one_sided(form, at, k, sign):
    """The slope of a closed form by operand k, as differences on one side have it; NaN where two
    distances do not agree: at the form's own ends and steps."""
    places = np.arange(1, 8)
    weights = np.linalg.solve(np.vander(places, 7, increasing=True).T, np.eye(7)[1])
    found = []
    for h in (2e-3, 1e-3):
        step = sign * h * np.where(at[k] == 0, 1, np.minimum(np.abs(at[k]), 1))
        moved = [form(*[a + (j == k) * p * step for j, a in enumerate(at)]) for p in places]
        found.append(sum(w * m for w, m in zip(weights, moved, strict=True)) / step)
    far, near = found
    agree = np.abs(far - near) < 1e-5 * np.maximum(1, np.abs(near))
    return np.where(agree & (np.abs(near) < 1e9), near, nan)


@pytest.mark.parametrize("name", [*SLOPES, *sorted(STEPS)])
def test_the_second_slope_is_that_of_the_closed_form(name):
    """Where both sides of a place agree that is it; else it is one of them or their mean."""
    forms = SLOPES.get(name, [lambda x: 0 * x])
    at = np.array([0, 0.1, 0.5, 1, 2, 3, 20, -0.0, -0.1, -0.5, -1, -2, -3, -20])
    given = [at] if len(forms) == 1 else [a.ravel() for a in np.meshgrid(at, at)]
    f = lambda *x: tn.sum(getattr(tn, name)(*x))  # noqa: E731
    known = 0
    with np.errstate(all="ignore"):
        for k, form in enumerate(forms):
            for j in range(len(forms)):
                by_k = lambda *x, k=k: tn.sum(tn.grad(f, argnums=k)(*x))  # noqa: E731
                got = np.asarray(tn.grad(by_k, argnums=j)(*given))
                left, right = (one_sided(form, given, j, sign) for sign in (-1, 1))
                wants = np.stack([left, right, (left + right) / 2])
                off = np.abs(got - wants).min(0) / np.maximum(1, np.abs(wants).max(0))
                report = ~np.isnan(wants).any(0) & np.isfinite(np.asarray(form(*given)))
                bad = report & ~(off < 1e-6)
                known += report.sum()
                at_bad = [g[bad][:4] for g in given]
                assert not bad.any(), (k, j, at_bad, got[bad][:4], wants[:, bad][:, :4])
    assert known >= 3, "nothing was compared"


def test_where_and_clip_and_a_softplus_written_out():
    x = np.float32([-2, -1, -0.0, 0, 0.5, 1, 2])
    assert slopes_of(lambda x: tn.clip(x, -1, 1), x)[0].tolist() == [0, 0.5, 1, 1, 1, 0.5, 0]
    assert slopes_of(lambda x: tn.where(x > 0, x, 3 * x), x)[0].tolist() == [3, 3, 3, 3, 1, 1, 1]
    written = slopes_of(lambda x: tn.maximum(x, 0) + tn.log(1 + tn.exp(-abs(x))), x)[0]
    np.testing.assert_allclose(written, logistic(x), rtol=1e-6)


def test_logistic_regression_from_zero_weights_moves():
    x, y = np.float32([[1, 2], [-1, 1]]), np.float32([1, 0])
    g = tn.grad(lambda w: tn.mean(tn.softplus(x @ w) - y * (x @ w)))(np.zeros(2, "float32"))
    np.testing.assert_allclose(g, ((0.5 - y)[:, None] * x).mean(0), rtol=1e-6)
