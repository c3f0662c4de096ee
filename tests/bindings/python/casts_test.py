# SPDX-License-Identifier: Apache-2.0
"""Every pair of element types of Cast, with the numbers at which conversions differ. What floats
become as integers is written out here: C leaves it open, and NumPy and ONNX Runtime give the same
on x86, save below -2^31 as uint32, where both give other numbers in long rows than in short ones:
here all have those of long rows.
"""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import info, model_of, ran

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES = [*FLOATS, *INTEGERS, "bool"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def element(name):
    return helper.np_dtype_to_tensor_dtype(dtype_of(name))


def cut(x, bits, signed):
    """A float as an integer of so many bits, as the instructions of x86 have it: what a signed type
    does not hold is its lowest number, short types are the low bits of 32, and the upper half of
    an unsigned type is the lower one and the highest bit."""
    half = 2.0 ** (max(bits, 32) - 1)

    def signed_part(x):
        return int(x) if -half <= x < half else -int(half)

    if not signed and bits >= 32 and x >= half:
        return (signed_part(x - half) ^ int(half)) % 2**bits
    return signed_part(x) % 2**bits


def numbers(name):
    """Where a conversion changes its mind: ends of all types, their neighbours, halves, NaN."""
    ends = [0, 1, *(2**b + d for b in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1))]
    with np.errstate(all="ignore"):
        if name == "bool":
            return np.array([False, True, True])
        dtype = dtype_of(name)
        if name in INTEGERS:
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            exact = [x for one in ends for x in (one, -one) if low <= x <= high]
            return np.array([*exact, low, high], dtype)
        exact = [x * s for x in [*ends, 0.5, 1.5, 2.5, 300.7, 70000.9, 1e-40] for s in (1.0, -1.0)]
        return np.array([*exact, np.inf, -np.inf, np.nan, 1e300, -1e300]).astype(dtype)


def converted(x, to):
    if to == "bool":
        return x != 0
    dtype = dtype_of(to)
    if to in INTEGERS and x.dtype.name in FLOATS:
        bits, signed = dtype.itemsize * 8, to[0] == "i"
        raw = [cut(float(one), bits, signed) for one in x.astype("f8").ravel()]
        return np.array(raw, f"uint{bits}").view(dtype).reshape(x.shape)
    with np.errstate(all="ignore"):
        if to == "bfloat16" and x.dtype.name not in FLOATS:
            return x.astype("f4").astype(dtype)  # rounded twice, as every runtime does
        return x.astype(dtype)


def same(got, want, what):
    assert got.dtype == want.dtype, what
    if want.dtype.kind in "fV" or want.dtype == ml_dtypes.bfloat16:
        got, want = got.astype("f8"), want.astype("f8")
    np.testing.assert_array_equal(got, want, err_msg=what)


def cast_node(source, target, to):
    return helper.make_node("Cast", [source], [target], to=element(to))


@pytest.mark.parametrize("source", TYPES)
def test_every_pair_of_types(tmp_path, source):
    """A scalar, a vector, a long one, and a transposed matrix."""
    few = numbers(source)
    many = np.resize(few, 2000)
    nodes, inputs, wanted = [], [], {}
    for shape_name, x in (("one", few[-1:].reshape(())), ("few", few), ("many", many)):
        inputs.append(info(shape_name, x.shape, element(source)))
        for to in TYPES:
            name = f"{shape_name}_{to}"
            nodes.append(cast_node(shape_name, name, to))
            wanted[name] = converted(x, to)
    matrix = many.reshape(40, 50)
    inputs.append(info("matrix", matrix.shape, element(source)))
    nodes.append(helper.make_node("Transpose", ["matrix"], ["transposed"]))
    for to in TYPES:
        nodes.append(cast_node("transposed", f"transposed_{to}", to))
        wanted[f"transposed_{to}"] = converted(matrix.T, to)
    model = ran(tmp_path, model_of(nodes, inputs, list(wanted)))
    feeds = {"one": few[-1:].reshape(()), "few": few, "many": many, "matrix": matrix}
    for backend in ("reference", "onednn"):
        results = model.compile(backend=backend).run(feeds)
        for (name, want), got in zip(wanted.items(), results, strict=True):
            same(np.asarray(got), want, f"{source} to {name} on {backend}")


@pytest.mark.parametrize("source", FLOATS)
def test_casts_that_are_folded(tmp_path, source):
    x = numbers(source)
    constant = onnx.numpy_helper.from_array(x, "x")
    nodes = [cast_node("x", f"y_{to}", to) for to in INTEGERS]
    outputs = [f"y_{to}" for to in INTEGERS]
    model = ran(tmp_path, model_of(nodes, [], outputs, [constant])).apply("fusion.default")
    for backend in ("reference", "onednn"):
        for to, got in zip(INTEGERS, model.compile(backend=backend).run({}), strict=True):
            same(np.asarray(got), converted(x, to), f"{source} to {to} on {backend}")


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("size", [7, 1000])
def test_casts_behind_other_operators(tmp_path, to, size):
    """Of a pointwise chain, and of a product's epilogue."""
    x = np.resize(numbers("float32"), size)
    eye = onnx.numpy_helper.from_array(np.eye(1, dtype="f"), "eye")
    two = onnx.numpy_helper.from_array(np.float32(2), "two")
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["doubled"]),
        cast_node("doubled", "chain", to),
        helper.make_node("MatMul", ["column", "eye"], ["product"]),
        helper.make_node("Neg", ["product"], ["negated"]),
        cast_node("negated", "behind", to),
    ]
    inputs = [info("x", [size]), info("column", [size, 1])]
    made = model_of(nodes, inputs, ["chain", "behind"], [eye, two])
    assert made.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    model = ran(tmp_path, made)
    with np.errstate(all="ignore"):
        doubled, column = x * np.float32(2), x.reshape(-1, 1)
    for backend in ("reference", "onednn"):
        chain, behind = model.compile(backend=backend).run({"x": x, "column": column})
        same(np.asarray(chain), converted(doubled, to), f"chain on {backend}")
        same(np.asarray(behind), converted(-column, to), f"epilogue on {backend}")
