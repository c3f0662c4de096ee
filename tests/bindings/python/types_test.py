# SPDX-License-Identifier: Apache-2.0
"""Types promote as the array API standard says and NumPy does: every function of elements, every
reduction, every type and every pair of types. A function without a row here fails.

Where the standard leaves it open, Tenon differs from NumPy in two ways: a float keeps its width
beside integers, and what makes floats of integers makes float32.
"""

from functools import partial, reduce

import numpy as np
import pytest
import tenon as tn
from tenon.arrays import GROUPS

WHOLE = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
TYPES = ["bool", *WHOLE, *FLOATS]
TOL = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12}

UNARY = {
    name: getattr(np, name)
    for name in (
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil"),
        *("cos", "cosh", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10"),
        *("log1p", "log2", "logical_not", "negative", "round", "sign", "signbit", "sin", "sinh"),
        *("sqrt", "square", "tan", "tanh", "trunc"),
    )
}
UNARY |= {  # NumPy rounds no truth values and has no + for them, and lacks the last ones
    "positive": lambda x: x,
    "round": lambda x: x if x.dtype == bool else np.round(x),
    "clip": None,
    "reciprocal": lambda x: 1 / as_float(x),
    "rsqrt": lambda x: 1 / np.sqrt(as_float(x)),
    "relu": lambda x: np.maximum(as_float(x), 0),
    "relu6": lambda x: np.clip(as_float(x), 0, 6),
    "sigmoid": lambda x: 1 / (1 + np.exp(-as_float(x))),
    "silu": lambda x: as_float(x) / (1 + np.exp(-as_float(x))),
    "softplus": lambda x: np.log1p(np.exp(as_float(x))),
    "erf": None,
    "gelu": None,
}
BINARY = [
    *("add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift"),
    *("bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal"),
    *("hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor"),
    *("maximum", "minimum", "multiply", "not_equal", "pow", "remainder", "subtract"),
]
PRODUCTS = ["matmul", "vecdot", "tensordot", "kron"]
REDUCTIONS = [
    *("all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum"),
    *("diff", "max", "mean", "min", "prod", "std", "sum", "var"),
]
JOINING = {
    "concat": lambda m, a, b: m.concat([a, b]),
    "stack": lambda m, a, b: m.stack([a, b]),
    "where": lambda m, a, b: m.where(a == b, a, b),
}
NO_ARITHMETIC = {  # of functions.py: they move elements
    *("broadcast_arrays", "broadcast_to", "expand_dims", "flip", "matrix_transpose", "moveaxis"),
    *(
        "pad",
        "permute_dims",
        "repeat",
        "reshape",
        "roll",
        "split",
        "squeeze",
        "take",
        "take_along_axis",
    ),
    *("tile", "transpose", "unstack"),
}


def test_no_function_is_left_out():
    assert {*GROUPS["elementwise"], *GROUPS["arithmetic"]} == {*UNARY, *BINARY, "where", "astype"}
    covered = {*REDUCTIONS, *JOINING, "logsumexp"} - {"where"}
    assert {*GROUPS["reductions"], *GROUPS["shapes"]} - NO_ARITHMETIC == covered
    assert set(GROUPS["products"]) == {*PRODUCTS, "einsum", "convolve"}


def as_float(x):
    return x if x.dtype.kind == "f" else x.astype("float32")


def numbers(dtype, least=0):
    x = np.array([[3, 1, 2], [0, 2, 1]]) if not least else np.array([[1, 2, 1], [3, 1, 2]])
    return x.astype(dtype)


def like_numpy(numpys, *operands):
    """What NumPy gives, or its error, by the two rules above."""
    floats = [x.dtype for x in operands if getattr(x, "dtype", np.dtype(int)).kind == "f"]
    if floats:
        widest = reduce(np.promote_types, floats)
        operands = [np.asarray(x, widest) if is_whole(np.asarray(x)) else x for x in operands]
    together = np.result_type(*operands)
    with np.errstate(all="ignore"):
        try:
            found = np.asarray(numpys(*operands))
            if found.dtype.kind == "f" and together.kind != "f":
                wide = [np.asarray(x, "float64") for x in operands]
                found = np.asarray(numpys(*wide)).astype("float32")
        except TypeError as error:
            return error
    return found


def same(mine, want, operands, what):
    if isinstance(want, Exception):
        with pytest.raises((TypeError, tn.TenonError)):
            mine(*operands)
        return
    for got in (mine(*operands), tn.jit(lambda *x: mine(*x))(*operands)):
        got = np.asarray(got)
        assert got.dtype == want.dtype, (what, got.dtype, want.dtype)
        if want.dtype.kind == "f":
            short = np.float16 in [x.dtype for x in operands]
            tolerance = TOL["float16" if short else want.dtype.name]
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=str(what))
        else:
            np.testing.assert_array_equal(got, want, err_msg=str(what))


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name):
    for dtype in TYPES:
        x = numbers(dtype)
        if UNARY[name] is None:
            made = np.asarray(getattr(tn, name)(x)).dtype
            assert made == (x if name == "clip" else as_float(x)).dtype
        else:
            same(getattr(tn, name), like_numpy(UNARY[name], x), [x], (name, dtype))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name):
    for a in TYPES:
        for b in TYPES:
            given = [numbers(a), numbers(b, 1)]
            want = like_numpy(getattr(np, name), *given)
            same(getattr(tn, name), want, given, (name, a, b))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    for a in TYPES:
        for b in TYPES:
            given = [numbers(a), numbers(b, 1)]
            given[1] = given[1].T if name == "matmul" else given[1]
            mine, numpys = getattr(tn, name), getattr(np, name)
            same(mine, like_numpy(numpys, *given), given, (name, a, b))


@pytest.mark.parametrize("name", JOINING)
def test_what_joins_two_operands(name):
    for a in TYPES:
        for b in TYPES:
            given = [numbers(a), numbers(b, 1)]
            want = like_numpy(partial(JOINING[name], np), *given)
            same(partial(JOINING[name], tn), want, given, (name, a, b))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for dtype in TYPES:
        for axis in (0, 1):
            x = numbers(dtype)
            want = like_numpy(partial(getattr(np, name), axis=axis), x)
            same(partial(getattr(tn, name), axis=axis), want, [x], (name, dtype, axis))


@pytest.mark.parametrize("name", ["all", "any", "sum", "prod", "count_nonzero"])
def test_reductions_of_no_elements_give_what_changes_nothing(name):
    for dtype in TYPES:
        for shape, axis in (((0,), 0), ((2, 0), 1), ((0, 3), 0)):
            x = np.zeros(shape, dtype)
            want = like_numpy(partial(getattr(np, name), axis=axis), x)
            same(partial(getattr(tn, name), axis=axis), want, [x], (name, dtype, shape))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_there_is_no_largest_of_no_elements(name):
    for dtype in TYPES:
        for call in (getattr(tn, name), tn.jit(getattr(tn, name))):
            with pytest.raises(ValueError, match="expected one element at least"):
                call(np.zeros((0, 3), dtype))
            x = np.zeros((2, 0), dtype)
            assert tn.max(x, axis=0).shape == (0,)


NUMBERS = (True, 2, 1.5)


@pytest.mark.parametrize("operator", ["add", "multiply", "maximum", "less", "bitwise_and"])
def test_numbers_of_python_take_the_arrays_type(operator):
    for dtype in TYPES:
        for number in NUMBERS:
            x = numbers(dtype)
            beside = np.float32(number) if isinstance(number, float) and is_whole(x) else number
            want = like_numpy(getattr(np, operator), x, beside)
            same(partial(with_number, getattr(tn, operator), number), want, [x], (operator, dtype))


def is_whole(x):
    return x.dtype.kind != "f"


def with_number(function, number, x):
    return function(x, number)


SMALL = np.array([1, 2, 250], "uint8")


@pytest.mark.parametrize(
    ("function", "numpys"),
    [
        (lambda x: tn.clip(x, -1, 300), lambda x: np.clip(x, -1, 300)),
        (lambda x: tn.clip(x, 2, 2**40), lambda x: np.clip(x, 2, 255)),
        (
            lambda x: tn.clip(tn.astype(x, "int8"), -1000, 3),
            lambda x: np.clip(x.astype("i1"), -128, 3),
        ),
        (lambda x: tn.clip(tn.astype(x, "int64"), -(2**62), 3), lambda x: np.clip(x, 0, 3)),
        (lambda x: x.at[0].set(7), lambda x: np.array([7, 2, 250])),
        (lambda x: x.at[1].add(True), lambda x: np.array([1, 3, 250])),
    ],
)
def test_numbers_past_a_type_are_no_limit_of_it(function, numpys):
    np.testing.assert_array_equal(tn.jit(function)(SMALL), numpys(SMALL))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tn.clip(x, 300, 400),
        lambda x: tn.concat([x, tn.where(x > 1, x, 300)]),
        lambda x: x.at[0].set(300),
        lambda x: x.at[0].add(-1),
        lambda x: tn.maximum(x, -1),
        lambda x: x == 1000,
    ],
)
def test_numbers_that_a_type_cannot_hold_are_refused(function):
    with pytest.raises((TypeError, ValueError), match="element type can hold"):
        tn.jit(function)(SMALL)


def test_truth_values_in_expressions():
    x = np.float32([-1, 0.5, 2])
    f = tn.jit(
        lambda x: ((x > 0) + (x < 1), (x > 0) * (x < 1), (x > 0) & 1, ~(x > 0), (x > 0) ** 2)
    )
    g = ((x > 0) + (x < 1), (x > 0) * (x < 1), (x > 0) & 1, ~(x > 0), (x > 0) ** 2)
    for got, want in zip(f(x), g):
        assert got.dtype == want.dtype and (got == want).all()
    assert int(tn.sum((x > 0) + (x < 3))) == 3
    with pytest.raises(TypeError, match="logical_xor"):
        tn.jit(lambda x: (x > 0) - (x < 1))(x)


@pytest.mark.parametrize("a", TYPES)
@pytest.mark.parametrize("b", TYPES)
def test_result_type_is_numpys_but_that_a_float_keeps_its_width_beside_integers(a, b):
    floats = [name for name in (a, b) if name in FLOATS]
    expected = floats[0] if len(floats) == 1 else np.result_type(a, b)

    assert tn.result_type(a, b) == expected
    assert tn.result_type(np.zeros(3, a), np.dtype(b)) == expected
    assert tn.can_cast(a, b) == (expected == b)


def test_a_python_number_yields_to_a_type():
    assert tn.result_type(tn.int8, 3) == "int8"
    assert tn.result_type(1.5, tn.float16, 2) == "float16"
    with pytest.raises(ValueError, match="result_type: expected an array or a type"):
        tn.result_type(1, 2.0)


@pytest.mark.parametrize("name", [*TYPES, "bfloat16"])
def test_a_type_is_of_the_standards_kinds(name):
    assert getattr(tn, name) == name

    def kind(*letters):
        return name != "bfloat16" and np.dtype(name).kind in letters

    is_float = name == "bfloat16" or kind("f")
    assert tn.isdtype(name, "bool") == kind("b")
    assert tn.isdtype(name, "integral") == kind("i", "u")
    assert tn.isdtype(name, ("signed integer", "unsigned integer")) == kind("i", "u")
    assert tn.isdtype(name, "real floating") == is_float
    assert tn.isdtype(name, "numeric") == (is_float or kind("i", "u"))
    assert tn.isdtype(name, name) and not tn.isdtype(name, "complex floating")


def test_limits_are_numpys():
    assert tn.finfo(tn.float16).max == np.finfo("float16").max
    assert tn.finfo(np.zeros(2, "f")).eps == np.finfo("float32").eps
    assert float(tn.finfo(tn.bfloat16).eps) == 2.0**-7
    assert tn.iinfo(tn.int8).min == -128


WIDTHS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("source", WIDTHS)
def test_elements_of_another_type_are_numpys(source):
    x = np.random.default_rng(1).integers(0, 100, 700).astype(source)
    negative = x if x.dtype.kind in "bu" else -x
    for target in WIDTHS:
        wide = negative if np.dtype(target).kind in "if" else x
        for given in (x, wide, wide[::3].copy()):
            got = tn.jit(lambda x, t=target: tn.astype(x, t))(given)
            assert got.dtype == target
            np.testing.assert_array_equal(got, given.astype(target), f"{source} {target}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_finite_is_numpys(dtype):
    x = np.array([0, -0.0, 1, -65504, np.inf, -np.inf, np.nan] * 50, dtype)
    np.testing.assert_array_equal(tn.jit(tn.isfinite)(x), np.isfinite(x))
    np.testing.assert_array_equal(tn.jit(tn.isinf)(x), np.isinf(x))
