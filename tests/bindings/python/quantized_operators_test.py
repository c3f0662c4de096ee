# SPDX-License-Identifier: Apache-2.0
"""The 8-bit operators of ONNX Runtime's domain against NumPy, on both backends: results are those
of the exact product, within one step where it is a tie."""

import numpy as np
import onnx
import pytest
import tenon
from onnx import helper, numpy_helper

BACKENDS = ["reference", "onednn"]
TYPES = {"uint8": (onnx.TensorProto.UINT8, 0, 255), "int8": (onnx.TensorProto.INT8, -128, 127)}


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def flat_softmax(x, axis):
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return softmax(rows, -1).reshape(x.shape)


def padded_means(x):
    """Windows of 2 x 2 in steps of 2 over one row of zeros in front, which count."""
    x = np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 0)])
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


POOL = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 0, 0, 0], "count_include_pad": 1}
IMAGE = [(2, 3, 5, 4)]
# operator, attributes: shapes, scale of the result, what it is in float
CASES = [
    ("QLinearAdd", {}, [(2, 3, 4), (3, 1)], 0.05, lambda x, y: x + y),
    ("QLinearMul", {}, [(2, 3, 4), (3, 1)], 0.06, lambda x, y: x * y),
    ("QLinearSigmoid", {}, [(4, 5)], 1 / 256, lambda x: 1 / (1 + np.exp(-x))),
    ("QLinearLeakyRelu", {"alpha": 0.2}, [(4, 5)], 0.03, lambda x: np.where(x < 0, 0.2 * x, x)),
    ("QLinearSoftmax", {"axis": 1, "opset": 13}, [(3, 4, 5)], 1 / 256, lambda x: softmax(x, 1)),
    (
        "QLinearSoftmax",
        {"axis": 1, "opset": 12},
        [(3, 4, 5)],
        1 / 256,
        lambda x: flat_softmax(x, 1),
    ),
    ("QLinearGlobalAveragePool", {}, IMAGE, 0.02, lambda x: x.mean((2, 3), keepdims=True)),
    ("QLinearAveragePool", POOL, IMAGE, 0.02, padded_means),
]


def numbers(kind, shape, scale, zero, seed):
    """Quantized values, and what they dequantize to."""
    low, high = TYPES[kind][1:]
    codes = np.random.default_rng(seed).integers(low, high + 1, shape).astype(kind)
    return codes, (codes.astype(np.float64) - zero) * np.float64(np.float32(scale))


def run(folder, node, feeds, constants, result, opset=17):
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(result), None)
    weights = [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    graph = helper.make_graph([node], "g", infos, [output], weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), path)
    model = tenon.load(path)
    return [model.compile(backend=name).run(feeds)[0] for name in BACKENDS]


def expect_codes(outputs, exact, scale, zero, kind):
    low, high = TYPES[kind][1:]
    number = exact / np.float64(np.float32(scale)) + zero
    expected = np.clip(np.rint(number), low, high)
    is_tie = np.abs(number - np.floor(number) - 0.5) < 1e-3
    for out in outputs:
        far = np.abs(np.asarray(out).astype(np.float64) - expected)
        assert np.asarray(out).dtype == kind
        assert far.shape == expected.shape
        assert (far <= np.where(is_tie, 1, 0)).all()


def triple(name, kind, scale, zero):
    return {f"{name}_scale": np.float32(scale), f"{name}_zero": np.array(zero, kind)}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "op, attributes, shapes, y_scale, function",
    CASES,
    ids=[f"{c[0]}{i}" for i, c in enumerate(CASES)],
)
def test_is_what_it_says(tmp_path, op, attributes, shapes, y_scale, function, kind):
    low, high = TYPES[kind][1:]
    y_zero = low if 1 / 256 == y_scale else low + 99
    feeds, exact, constants, inputs = {}, [], {}, []
    for i, shape in enumerate(shapes):
        scale, zero = 0.02 + 0.01 * i, low + 120 + i
        feeds[f"x{i}"], number = numbers(kind, shape, scale, zero, i)
        exact.append(number)
        constants |= triple(f"x{i}", kind, scale, zero)
        inputs += [f"x{i}", f"x{i}_scale", f"x{i}_zero"]
    constants |= triple("y", kind, y_scale, y_zero)
    node = helper.make_node(
        op, [*inputs, "y_scale", "y_zero"], ["y"], domain="com.microsoft", **attributes
    )
    outputs = run(tmp_path, node, feeds, constants, np.dtype(kind))
    expect_codes(outputs, function(*exact), y_scale, y_zero, kind)


@pytest.mark.parametrize("kind", TYPES)
def test_zero_points_may_be_left_out(tmp_path, kind):
    x, real = numbers(kind, (3, 4), 0.02, 0, 1)
    constants = {"s": np.float32(0.02), "t": np.float32(0.05)}
    node = helper.make_node(
        "QLinearAdd", ["x", "s", "", "x", "s", "", "t"], ["y"], domain="com.microsoft"
    )
    outputs = run(tmp_path, node, {"x": x}, constants, np.dtype(kind))
    expect_codes(outputs, real + real, 0.05, 0, kind)


def test_where_takes_each_operands_scale(tmp_path):
    x, a = numbers("uint8", (3, 4), 0.02, 3, 1)
    y, b = numbers("uint8", (3, 4), 0.04, 9, 2)
    condition = np.random.default_rng(3).random((3, 1)) < 0.5
    constants = triple("x", "uint8", 0.02, 3) | triple("z", "uint8", 0.04, 9)
    constants |= triple("y", "uint8", 0.05, 5)
    names = ["c", "x", "x_scale", "x_zero", "z", "z_scale", "z_zero", "y_scale", "y_zero"]
    node = helper.make_node("QLinearWhere", names, ["y"], domain="com.microsoft")
    outputs = run(tmp_path, node, {"c": condition, "x": x, "z": y}, constants, np.dtype("uint8"))
    expect_codes(outputs, np.where(condition, a, b), 0.05, 5, "uint8")


def test_concat_rescales_each_tensor(tmp_path):
    x, a = numbers("uint8", (2, 3), 0.02, 3, 1)
    y, b = numbers("uint8", (2, 5), 0.04, 9, 2)
    constants = triple("x", "uint8", 0.02, 3) | triple("z", "uint8", 0.04, 9)
    constants |= triple("y", "uint8", 0.05, 5)
    names = ["y_scale", "y_zero", "x", "x_scale", "x_zero", "z", "z_scale", "z_zero"]
    node = helper.make_node("QLinearConcat", names, ["y"], domain="com.microsoft", axis=1)
    outputs = run(tmp_path, node, {"x": x, "z": y}, constants, np.dtype("uint8"))
    expect_codes(outputs, np.concatenate([a, b], 1), 0.05, 5, "uint8")


@pytest.mark.parametrize("in_codes", [True, False])
@pytest.mark.parametrize("flip", [0, 1])
def test_gemm_has_an_int32_bias_and_a_scale_for_each_column(tmp_path, flip, in_codes):
    rng = np.random.default_rng(5)
    a, real = numbers("uint8", (4, 6), 0.02, 7, 1)
    w = rng.integers(-127, 128, (5, 6) if flip else (6, 5)).astype("int8")
    scales = rng.uniform(0.01, 0.03, 5).astype("float32")
    bias = rng.integers(-3000, 3000, 5).astype("int32")
    constants = (
        triple("a", "uint8", 0.02, 7)
        | {
            "w": w,
            "w_scale": scales,
            "w_zero": np.zeros(5, "int8"),
            "bias": bias,
        }
        | triple("y", "uint8", 0.03, 120)
    )
    names = ["a", "a_scale", "a_zero", "w", "w_scale", "w_zero", "bias"]
    names += ["y_scale", "y_zero"] if in_codes else []
    node = helper.make_node("QGemm", names, ["y"], domain="com.microsoft", alpha=0.5, transB=flip)
    real_w = (w.T if flip else w) * scales.astype(np.float64)
    exact = 0.5 * (real @ real_w + bias * np.float64(np.float32(0.02)) * scales)
    outputs = run(tmp_path, node, {"a": a}, constants, np.dtype("uint8" if in_codes else "float32"))
    if in_codes:
        expect_codes(outputs, exact, 0.03, 120, "uint8")
    else:
        for out in outputs:
            np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-4, atol=1e-4)


def test_is_written_back_in_its_domain(tmp_path):
    test_zero_points_may_be_left_out(tmp_path, "uint8")
    tenon.load(tmp_path / "model.onnx").save(tmp_path / "again.onnx")
    again = onnx.load(tmp_path / "again.onnx")
    assert [(n.domain, n.op_type) for n in again.graph.node] == [("com.microsoft", "QLinearAdd")]
    assert "com.microsoft" in {one.domain for one in again.opset_import}
