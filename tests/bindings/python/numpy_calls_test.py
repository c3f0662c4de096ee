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
# What functions may be called with: the first that NumPy takes.
CALLS = (
    (X,),
    (X, X),
    (X, 1),
    ([X, X],),
    (X > 0.5, X, X),
    ("ij,ij->i", X, X),
    (X, 0, 1),
    (X, (3, 2)),
)
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


def called(function, arguments):
    """What a traced call gives; None where the error is one for the user."""
    try:
        return tn.jit(lambda x: function(*[x if one is X else one for one in arguments]))(X)
    except (tn.TenonError, IndexError):
        return None


def test_no_function_gives_other_numbers():
    equal = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in functions():
            function = getattr(np, name)
            for arguments in CALLS:
                try:
                    want = function(*arguments)
                except Exception:
                    continue
                got = called(function, arguments)
                if got is None:
                    continue
                equal.append(name)
                if not isinstance(want, (tuple, list)):
                    want, got = [want], [got]
                assert len(want) == len(got), name
                for a, b in zip(want, got):
                    text = f"np.{name}{arguments}"
                    assert np.shape(a) == np.shape(b), text
                    np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5, err_msg=text)
    assert len(set(equal)) > 100, len(set(equal))


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


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: np.average(x, weights=x), r"np.average: .*use tn.mean, or"),
        (lambda x: np.gradient(x), r"use tn.diff"),
        (lambda x: np.real(x), r"what stands for a complex number"),
        (lambda x: np.cbrt(x), r"np.cbrt: .*tn.abs\(x\)"),
        (lambda x: np.add.reduce(x), r"np.add.reduce: "),
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
