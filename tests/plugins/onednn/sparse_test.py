# SPDX-License-Identifier: Apache-2.0
"""Products and 1x1 convolutions whose weights are mostly zeros, against NumPy in float64; who
computes them, and why others do not."""

import json

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

EPS = 2.0**-24


def weight(shape, zeros, block=(1, 1), seed=1):
    random = np.random.default_rng(seed)
    rows, columns = -(-shape[0] // block[0]), -(-shape[1] // block[1])
    stays = np.kron(random.random((rows, columns)) >= zeros, np.ones(block))
    made = random.uniform(0.2, 1, shape) * random.choice([-1, 1], shape)
    return (made * stays[: shape[0], : shape[1]]).astype("f")


def saved(folder, nodes, inputs, constants, result):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), folder / "model.onnx")
    return str(folder / "model.onnx")


def run(path, inputs, **options):
    """The result, and the layers of the plan."""
    plan = tenon.load(path).compile(backend="onednn", **options)
    y = np.asarray(plan(*inputs.values())[0])
    return y, [layer for part in plan.describe()["partitions"] for layer in part["layers"]]


def kernels(layers):
    return [layer["kernel"] for layer in layers]


@pytest.mark.parametrize("rows", [1, 7, 64, 130])
@pytest.mark.parametrize("block", [(1, 1), (1, 4), (1, 16)])
def test_a_product_takes_what_follows_along(tmp_path, rows, block):
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (rows, 150)).astype("f")
    r = random.uniform(-1, 1, (rows, 50)).astype("f")
    w, bias = weight((150, 50), 0.8, block), random.uniform(-1, 1, 50).astype("f")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["b"]),
        helper.make_node("Relu", ["b"], ["a"]),
        helper.make_node("Add", ["a", "r"], ["y"]),
    ]
    inputs = {"x": x, "r": r}
    path = saved(tmp_path, nodes, inputs, {"w": w, "bias": bias}, [rows, 50])

    y, layers = run(path, inputs, sparse="all")

    real = w.astype(float)
    expected = np.maximum(x @ real + bias, 0) + r
    bound = 160 * EPS * (np.abs(x) @ np.abs(real) + np.abs(bias) + np.abs(r))
    assert (np.abs(y - expected) <= bound).all()
    (kernel,) = kernels(layers)
    if rows >= 64:
        assert kernel == ("tenon:sparse" if block[1] == 1 else "tenon:sparse (1x4)")
    elif block[1] == 16:
        assert kernel == "tenon:sparse (1x16)"  # columns side by side: few rows are no matter


@pytest.mark.parametrize("transposed", [False, True])
def test_gemm(tmp_path, transposed):
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (33, 90)).astype("f")
    w, bias = weight((90, 21), 0.9), random.uniform(-1, 1, 21).astype("f")
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=int(transposed))
    stored = np.ascontiguousarray(w.T) if transposed else w
    path = saved(tmp_path, [node], {"x": x}, {"w": stored, "c": bias}, [33, 21])

    y, layers = run(path, {"x": x}, sparse="all")

    np.testing.assert_allclose(y, x @ w.astype(float) + bias, atol=1e-5)
    assert kernels(layers) == ["tenon:sparse"]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("batch", [1, 3])
def test_convolutions_of_one_pixel(tmp_path, stride, batch):
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (batch, 40, 9, 11)).astype("f")
    w, bias = weight((24, 40), 0.9), random.uniform(-1, 1, 24).astype("f")
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], kernel_shape=[1, 1], strides=[stride, stride]
        ),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ]
    constants = {
        "w": w.reshape(24, 40, 1, 1),
        "b": bias,
        "low": np.float32(0),
        "high": np.float32(1.5),
    }
    expected = np.einsum("oc,nchw->nohw", w.astype(float), x[:, :, ::stride, ::stride])
    expected = np.clip(expected + bias[:, None, None], 0, 1.5)
    path = saved(tmp_path, nodes, {"x": x}, constants, expected.shape)

    y, layers = run(path, {"x": x}, sparse="all")

    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert "tenon:sparse" in kernels(layers)


def quantized(tmp_path, zeros, m=70, k=96, n=40):
    """A product of quantized values that is quantized, and its numbers."""
    random = np.random.default_rng(5)
    x = random.uniform(-1, 1, (m, k)).astype("f")
    weights = random.integers(-127, 128, (k, n)).astype(np.int8)
    weights[np.kron(random.random((k // 4, n)) < zeros, np.ones((4, 1))) > 0] = 0
    constants = {
        "xs": np.float32(1 / 100),
        "xz": np.uint8(121),
        "weights": weights,
        "ws": random.uniform(0.01, 0.02, n).astype("f"),
        "wz": np.zeros(n, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["weights", "ws", "wz"], ["w"], axis=1),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    path = saved(tmp_path, nodes, {"x": x}, constants, [m, n])
    q = np.clip(np.rint(x / constants["xs"]) + 121, 0, 255) - 121
    expected = q * float(constants["xs"]) @ (weights * constants["ws"].astype(float))
    return path, {"x": x}, expected


def test_codes_are_multiplied_exactly(tmp_path):
    path, inputs, expected = quantized(tmp_path, 0.8)

    y, layers = run(path, inputs, sparse="all")

    np.testing.assert_allclose(y, expected, atol=1e-4)
    refusals = [r for layer in layers for r in layer.get("refused", [])]
    if not any("VNNI" in str(r) for r in refusals):
        assert "tenon:sparse" in kernels(layers)


def test_dense_weights_are_left_to_others_and_the_reason_is_said(tmp_path):
    x = np.ones((64, 128), "f")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = saved(tmp_path, [node], {"x": x}, {"w": weight((128, 64), 0.3)}, [64, 64])

    _, layers = run(path, {"x": x})

    assert not any("sparse" in kernel for kernel in kernels(layers))
    assert "too few to leave out" in json.dumps(layers)


def test_sparse_off_is_heeded(tmp_path):
    x = np.ones((64, 128), "f")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = saved(tmp_path, [node], {"x": x}, {"w": weight((128, 64), 0.95)}, [64, 64])

    _, layers = run(path, {"x": x}, sparse="off")

    assert "sparse=off" in json.dumps(layers)


def test_the_number_of_threads_changes_nothing(tmp_path):
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, (150, 300)).astype("f")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = saved(tmp_path, [node], {"x": x}, {"w": weight((300, 200), 0.8)}, [150, 200])

    one, _ = run(path, {"x": x}, sparse="all", threads=1)
    two, _ = run(path, {"x": x}, sparse="all", threads=2)

    assert np.array_equal(one, two)
