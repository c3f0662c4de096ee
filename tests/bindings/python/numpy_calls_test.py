# SPDX-License-Identifier: Apache-2.0
"""Every function of NumPy on a traced value gives NumPy's numbers or says what to call instead."""

import inspect
import re
import warnings

import numpy as np
import pytest
import tenon as tn
from tenon import numpy_calls

X = np.linspace(0.1, 1, 6, dtype="float32").reshape(2, 3)
KINDS = {
    "floats": X,
    "NaN": np.where(X == X[0, 1], np.float32("nan"), X),
    "int32": np.array([[3, 0, -2], [1, 5, 2]], "int32"),
    "uint8": np.array([[3, 0, 200], [1, 255, 2]], "uint8"),
    "bool": np.array([[1, 0, 1], [0, 1, 1]], "bool"),
}
# What functions may be called with: the first that NumPy takes.
CALLS = (
    lambda x: (x,),
    lambda x: (x, x),
    lambda x: (x, 1),
    lambda x: ([x, x],),
    lambda x: (x > 0.5, x, x),
    lambda x: ("ij,ij->i", x, x),
    lambda x: (x, 0, 1),
    lambda x: (x, (3, 2)),
    lambda x: (x, x[0]),
    lambda x: (np.array([0, 1, 2], KINDS["floats"].dtype), x),
)
# Which of them are no skips: of each kind of numbers a call gives NumPy's.
EQUAL = """
abs absolute add all amax amin any arccos arcsinh arctan2 argmax argmin argsort broadcast_arrays
ceil clip concatenate copysign cos count_nonzero cumprod cumsum diff divide einsum equal exp
expand_dims expm1 flip floor floor_divide full_like greater greater_equal hypot isfinite isinf isnan
less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul
max maximum mean meshgrid min minimum mod moveaxis multiply ndim nonzero not_equal ones_like power
prod remainder repeat reshape roll searchsorted shape signbit sin size sort split sqrt square
squeeze stack std sum take tan tanh tensordot tile transpose tril triu true_divide trunc var
where zeros_like
""".split()
UNORDERED = {"unique_values"}
# Written in place, of files and settings, of other types, or with numbers that nobody promises.
OTHERS = re.compile(
    r"copyto|empty|put|fill_diagonal|place|frompyfunc|from|load|save|apply_|piecewise|nested_iters"
    r"|mask_indices|asmatrix|bmat|may_share|shares_|isfortran|min_scalar|mintype|print|set|get|show|info|test|(array_)?(repr|str)$"
)


def functions() -> list[str]:
    found = []
    for name in sorted(dir(np)):
        one = getattr(np, name)
        known = callable(one) and not inspect.isclass(one)
        if known and not name.startswith("_") and not OTHERS.match(name):
            found.append(name)
    return found


def called(function, call, x):
    """What a traced call gives; None where the error is one for the user."""
    try:
        return tn.jit(lambda x: function(*call(x)))(x)
    except (tn.TenonError, IndexError):
        return None


def is_promised(name, x):
    """Shifts by less than nothing are as the processor has them."""
    return not name.endswith("right_shift") or x.dtype == bool or x.min() >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_function_gives_other_numbers(kind):
    equal = set()
    x = KINDS[kind].copy()
    x.setflags(write=False)  # a third argument of a function of elements is where results go
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in functions():
            function = getattr(np, name)
            for i, call in enumerate(CALLS):
                try:
                    want = function(*call(x))
                except Exception:
                    continue
                got = called(function, call, x) if is_promised(name, x) else None
                if got is None:
                    continue
                equal.add(name)
                if not isinstance(want, (tuple, list)):
                    want, got = [want], [got]
                assert len(want) == len(got), name
                for a, b in zip(want, got):
                    text = f"np.{name}, call {i}"
                    assert np.shape(a) == np.shape(b), text
                    if name in UNORDERED:
                        a, b = np.sort(a), np.sort(b)
                    rtol = 2e-3 if np.asarray(a).dtype == "float16" else 1e-4
                    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
                    np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-5, err_msg=text)
    assert sorted(set(EQUAL) - equal) == []


@pytest.mark.parametrize(
    "function",
    [
        np.cumsum,
        np.cumprod,
        lambda x: np.take(x, [1, 4]),
        lambda x: np.take(x, 1, 1),
        lambda x: np.repeat(x, 2),
        lambda x: np.roll(x, 1),
        lambda x: np.sum(x, 0, None, None, True),
        lambda x: np.max(x, 1, None, True),
        lambda x: np.std(x, 0, ddof=1),
        lambda x: np.clip(x, 0.2, 0.5),
        lambda x: np.argsort(x)[0],
        lambda x: np.concatenate([x, x], 1),
        lambda x: x * np.size(x) + np.shape(x)[0] - np.ndim(x),
        lambda x: np.vecdot(x, x),
    ],
)
def test_arguments_go_by_what_numpy_calls_them(function):
    np.testing.assert_allclose(tn.jit(function)(X), function(X), rtol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_has_nan_at_the_end(side):
    nan = np.float32("nan")
    for row in (np.float32([1, 2, 3]), np.float32([1, 2, nan, nan])):
        for x in (nan, np.float32([[nan, 2], [4, 0]])):
            want = np.searchsorted(row, x, side)
            got = tn.jit(lambda row, x: np.searchsorted(row, x, side))(row, np.asarray(x))
            np.testing.assert_array_equal(got, want)
    got = tn.jit(lambda row: np.searchsorted(row, [2, float("nan")], side=side))(row)
    np.testing.assert_array_equal(got, np.searchsorted(row, [2, nan], side))
    got = tn.jit(lambda row: np.searchsorted(row, 2, side))(np.int32([1, 2, 3]))
    assert got == np.searchsorted([1, 2, 3], 2, side)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 16, 17, 31, 32, 33, 64, 1000])
def test_searchsorted_finds_the_place_in_vectors_of_any_length(n, side):
    rng = np.random.default_rng(n)
    places = tn.jit(lambda row, x: tn.searchsorted(row, x, side=side))
    for dtype in ("float32", "int64", "uint8"):
        row = np.sort(rng.integers(0, 60, n)).astype(dtype)
        x = rng.integers(0, 61, (20, 3)).astype(dtype)
        np.testing.assert_array_equal(places(row, x), np.searchsorted(row, x, side))
    if n > 1:
        row = np.sort(rng.standard_normal(n)).astype("float32")
        row[-1] = np.nan
        x = np.concatenate([row, np.float32([np.inf, -np.inf, 0])])
        np.testing.assert_array_equal(places(row, x), np.searchsorted(row, x, side))
        rows = np.sort(rng.standard_normal((3, n)).astype("float32"))
        x = rng.standard_normal((3, 5)).astype("float32")
        want = [np.searchsorted(*pair, side) for pair in zip(rows, x, strict=True)]
        np.testing.assert_array_equal(tn.vmap(places)(rows, x), want)


def test_the_reciprocal_of_integers_is_refused():
    for dtype in ("int32", "uint8", "bool"):
        with pytest.raises(
            tn.TenonError, match=rf"np.reciprocal: expected floats, got {dtype}.*1 /"
        ):
            tn.jit(np.reciprocal)(np.ones(3, dtype))
    got = tn.jit(np.reciprocal)(X)
    np.testing.assert_allclose(got, 1 / X, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: np.average(x, weights=x), r"np.average: .*use tn.mean, or"),
        (lambda x: np.gradient(x), r"use tn.diff"),
        (lambda x: np.real(x), r"what stands for a complex number"),
        (lambda x: np.cbrt(x), r"np.cbrt: .*tn.abs\(x\)"),
        (lambda x: np.add.reduce(x), r"np.add.reduce: .*use tn.sum\(x, axis=0\)"),
        (lambda x: np.add.outer(x, x), r"np.add.outer: .*tn.add has no method outer; use it on x"),
        (lambda x: np.hypot.reduce(x), r"tn.hypot has no method reduce"),
        (lambda x: np.cbrt.at(x, 0), r"use tn.sign"),
        (lambda x: np.exp(x, dtype="float32"), r"np.exp: .*tn.exp takes no dtype; use .astype"),
        (lambda x: np.add(x, x, where=x > 0), r"tn.add takes no where; use tn.where of"),
        (lambda x: np.arcsin(x, casting="no"), r"tn.asin takes no casting"),
        (lambda x: np.add(x, x, out=X), r"tn.add takes no out; use what it gives"),
        (lambda x: np.fmax(x, x), r"use tn.where\(tn.isnan\(x\), y, "),
        (lambda x: np.spacing(x), r"there is none of that name"),
        (lambda x: np.sum(x, out=np.zeros(2)), r"out.*np.sum became tn.sum"),
        (lambda x: np.sum(x, where=X > 0), r"where.*np.sum became tn.sum"),
        (lambda x: np.full_like(x, x), r"full_like: number: expected"),
        (lambda x: np.stack(x, axis=x), r"np.stack became tn.stack|integer"),
    ],
)
def test_what_has_no_equal_says_what_to_call(function, says):
    with pytest.raises((tn.TenonError, TypeError), match=says):
        tn.jit(function)(X)


def test_what_is_named_is_there():
    for text in numpy_calls._INSTEAD.values():
        for name in re.findall(r"\btn\.([\w.]+\w)", text):
            one = tn
            for part in name.split("."):
                one = getattr(one, part)


def test_no_hint_denies_what_there_is():
    for name in functions():
        own = numpy_calls.own_name(name)
        if own in tn.arrays.__all__:
            assert "there is none" not in numpy_calls.instead(name), name
            for method in ("reduce", "accumulate", "outer", "at"):
                assert "there is none" not in numpy_calls.instead_of_elements(name, method, {})


@pytest.mark.parametrize("function", [np.fmax, np.fmin])
def test_the_greater_that_is_a_number(function):
    nan = np.float32("nan")
    x, y = np.float32([1, nan, 3, nan, 5]), np.float32([2, 2, nan, nan, 4])
    text = numpy_calls._INSTEAD[function.__name__]
    got = tn.jit(lambda x, y: eval(text, {"tn": tn, "x": x, "y": y}))(x, y)
    np.testing.assert_array_equal(got, function(x, y))


@pytest.mark.parametrize("name", numpy_calls._METHODS)
def test_methods_of_functions_of_elements(name):
    function, _, method = name.partition(".")
    text = numpy_calls._METHODS[name]
    for x in KINDS.values():
        got = tn.jit(lambda x: eval(text, {"tn": tn, "x": x}))(x)
        np.testing.assert_allclose(got, getattr(getattr(np, function), method)(x), rtol=1e-5)


def test_what_numpy_takes_as_further_keywords():
    for named in ({"constant_values": 3}, {"mode": "edge"}):
        got = tn.jit(lambda x, named=named: np.pad(x, 1, **named))(X)
        np.testing.assert_array_equal(got, np.pad(X, 1, **named))


def test_an_unknown_argument_is_refused_with_the_nearest_one() -> None:
    x, w = np.ones((1, 1, 4, 4), "f"), np.ones((1, 1, 3, 3), "f")
    message = r"conv: arguments: expected one of x, .*, got .strides. \(did you mean .stride.\?"
    with pytest.raises(TypeError, match=message):
        tn.jit(lambda x: tn.conv(x, w, strides=2))(x)
    with pytest.raises(TypeError, match="conv: argument stride: given twice"):
        tn.jit(lambda x: tn.conv(x, w, None, 1, stride=2))(x)
