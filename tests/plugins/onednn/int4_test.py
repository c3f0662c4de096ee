# SPDX-License-Identifier: Apache-2.0
"""Products with 4-bit weights in groups, from files as others write them, against NumPy in float64.

The bounds are those of kernels/int4_product.h: with rows in floating point rounding of f32 sums
alone; with rows in 8 bits (precision=int8 and bf16, accuracy_level 4) half a step of each group.
"""

import json

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

EPS = 2.0**-24
KINDS = {"int4": (TensorProto.INT4, -8, 7), "uint4": (TensorProto.UINT4, 0, 15)}


def nibbles(quantized):
    """Two quantized values a byte, the first in the low half, in row-major order."""
    flat = np.append(quantized.reshape(-1), [0] * (quantized.size % 2)).astype(np.uint8) & 15
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8)


def packed_tensor(name, kind, quantized):
    made = TensorProto(name=name, data_type=KINDS[kind][0], raw_data=nibbles(quantized).tobytes())
    made.dims.extend(quantized.shape)
    return made


class Weights:
    """w[k, n] = (quantized - zero) * scale, one of each for `block` rows of a column."""

    def __init__(self, k, n, block, kind="int4", zeros=False, seed=1):
        random = np.random.default_rng(seed)
        low, high = KINDS[kind][1:]
        self.k, self.n, self.block, self.kind = k, n, block, kind
        self.quantized = random.integers(low, high + 1, (k, n))
        self.groups = -(-k // block)
        self.scales = random.uniform(0.01, 0.1, (self.groups, n)).astype("f")
        self.scales[:, n // 2] = 0  # a column of zeros
        self.zeros = random.integers(low, high + 1, (self.groups, n)) if zeros else None
        at = np.arange(k) // block
        zero = 0 if self.zeros is None else self.zeros[at]
        self.real = (self.quantized - zero) * self.scales[at].astype(np.float64)

    def bound(self, x, as_int8):
        """By which a result may be off, [m, n]."""
        rows = x.reshape(-1, self.k).astype(np.float64)
        size = np.abs(rows) @ np.abs(self.real)
        if not as_int8:
            return (self.block + self.groups + 2) * EPS * size + 1e-30
        steps = np.zeros_like(rows)
        for g in range(self.groups):
            part = slice(g * self.block, (g + 1) * self.block)
            steps[:, part] = np.abs(rows[:, part]).max(1, keepdims=True) / 127
        # Groups of a large block may be smaller in the kernel, never larger.
        return steps / 2 @ np.abs(self.real) + (self.groups + 200) * EPS * size + 1e-30


def saved(folder, nodes, x, constants, opset=21, result=None):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        constants,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), path)
    return str(path)


def dequantized(w, transposed=False, form="blocks"):
    """A DequantizeLinear of `w` as value "w", and its constants."""
    turn = (lambda a: np.ascontiguousarray(a.T)) if transposed else (lambda a: a)
    axis = 1 if transposed else 0
    scales = w.scales if form == "blocks" else w.scales[0]
    attributes = {"axis": axis, "block_size": w.block} if form == "blocks" else {"axis": 1 - axis}
    constants = [
        packed_tensor("quantized", w.kind, turn(w.quantized)),
        numpy_helper.from_array(np.ascontiguousarray(turn(scales)), "scales"),
    ]
    names = ["quantized", "scales"]
    if w.zeros is not None:
        zeros = w.zeros if form == "blocks" else w.zeros[0]
        constants.append(packed_tensor("zeros", w.kind, turn(zeros)))
        names.append("zeros")
    return helper.make_node("DequantizeLinear", names, ["w"], **attributes), constants


def n_bits(w, level, bias=None):
    """MatMulNBits of `w`, whose quantized values have no sign, and its constants."""
    rows = np.full((w.n, w.groups * w.block), 8)
    rows[:, : w.k] = w.quantized.T
    packed = nibbles(rows).reshape(w.n, w.groups, w.block // 2)
    constants = [
        numpy_helper.from_array(packed, "quantized"),
        numpy_helper.from_array(np.ascontiguousarray(w.scales.T).reshape(-1), "scales"),
    ]
    names = ["x", "quantized", "scales", ""]
    if w.zeros is not None:
        zeros = np.zeros((w.n, (w.groups + 1) // 2 * 2), int)
        zeros[:, : w.groups] = w.zeros.T
        constants.append(numpy_helper.from_array(nibbles(zeros).reshape(w.n, -1), "zeros"))
        names[3] = "zeros"
    if bias is not None:
        constants.append(numpy_helper.from_array(bias, "bias"))
        names += ["", "bias"]
    attributes = {"K": w.k, "N": w.n, "bits": 4, "block_size": w.block, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)
    return node, constants


def rows_of(shape, seed=2):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def expect(path, x, want, bound, backend="onednn", reported=None, **options):
    plan = tenon.load(path).compile(backend=backend, **options)
    y = np.asarray(plan.run({"x": x})[0]).astype(np.float64)
    if reported:
        described = plan.describe()
        assert reported in json.dumps(described) and described["fallback_nodes"] == []
    assert y.shape == want.shape
    off = np.abs(y - want) - bound.reshape(want.shape)
    assert (off <= 0).all(), f"off by {off.max()} more than the bound, at {off.argmax()}"
    return y


SHAPES = [(1, 64, 40), (2, 100, 33), (7, 129, 17), (9, 256, 50), (40, 65, 16), (1, 33, 1)]


@pytest.mark.parametrize("block", [16, 32, 64, 128])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [False, True])
def test_blocked_weights_of_a_matmul_stay_packed(tmp_path, block, kind, zeros):
    for m, k, n in SHAPES:
        w, x = Weights(k, n, block, kind, zeros), rows_of((m, k))
        node, constants = dequantized(w)
        path = saved(tmp_path, [node, helper.make_node("MatMul", ["x", "w"], ["y"])], x, constants)
        want = x.astype(np.float64) @ w.real
        real, quantized = w.bound(x, False), w.bound(x, True)
        expect(path, x, want, real, threads=2, reported="int4 times f32")
        expect(path, x, want, quantized, precision="int8", threads=2, reported="int4 times int8")
        expect(path, x, want, real, backend="reference")


@pytest.mark.parametrize("form", ["blocks", "columns"])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_gemm_takes_its_bias_and_what_follows_along(tmp_path, form, transposed):
    k, n = 96, 45
    w = Weights(k, n, 32 if form == "blocks" else k, "int4")
    x, bias = rows_of((5, k)), rows_of((n,), 3)
    node, constants = dequantized(w, transposed, form)
    nodes = [
        node,
        helper.make_node("Gemm", ["x", "w", "c"], ["g"], transB=int(transposed)),
        helper.make_node("Relu", ["g"], ["r"]),
        helper.make_node("Add", ["r", "residual"], ["y"]),
    ]
    residual = rows_of((5, n), 4)
    constants += [
        numpy_helper.from_array(bias, "c"),
        numpy_helper.from_array(residual, "residual"),
    ]
    path = saved(tmp_path, nodes, x, constants)
    want = np.maximum(x.astype(np.float64) @ w.real + bias, 0) + residual
    for precision, as_int8 in (("fp32", False), ("int8", True)):
        plan = tenon.load(path).compile(backend="onednn", precision=precision)
        plan.run({"x": x})
        (part,) = plan.describe()["partitions"]
        assert len(part["layers"]) == 1  # all is one step
        expect(path, x, want, w.bound(x, as_int8) + 1e-5, precision=precision)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [16, 32, 128])
def test_matmul_n_bits_says_by_its_level_how_exact_it_is(tmp_path, zeros, block):
    for m, k, n in ((1, 64, 40), (3, 100, 33), (20, 257, 18)):
        w, x = Weights(k, n, block, "uint4", zeros), rows_of((2, m, k))
        if not zeros:
            w.real = (w.quantized - 8) * w.scales[np.arange(k) // block].astype(np.float64)
        bias = rows_of((n,), 3)
        want = x.astype(np.float64) @ w.real + bias
        for level, precision, as_int8 in (
            (0, "fp32", False), (1, "int8", False), (4, "fp32", True), (0, "int8", True)
        ):  # fmt: skip
            node, constants = n_bits(w, level, bias)
            path = saved(tmp_path, [node], x, constants)
            reported = "int4 times int8" if as_int8 else "int4 times f32"
            bound = w.bound(x, as_int8) + 1e-6
            expect(path, x, want, bound, precision=precision, reported=reported)
        expect(path, x, want, w.bound(x, False) + 1e-6, backend="reference")


def test_weights_that_others_read_too_are_expanded(tmp_path):
    w, x = Weights(64, 24, 32), rows_of((3, 64))
    node, constants = dequantized(w)
    nodes = [
        node,
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("ReduceSum", ["w"], ["b"], keepdims=0),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    path = saved(tmp_path, nodes, x, constants)
    want = x.astype(np.float64) @ w.real + w.real.sum()
    expect(path, x, want, w.bound(x, False) + 1e-4, reported="int4 times f32")


@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_that_the_kernel_does_not_take_say_so(tmp_path, axis):
    """Along columns, or of eight: floats, and the reason is reported."""
    block = 32 if axis == 1 else 8
    random = np.random.default_rng(1)
    quantized = random.integers(-8, 8, (64, 64))
    scales = random.uniform(0.1, 1, (64, 2) if axis == 1 else (8, 64)).astype("f")
    real = quantized * np.repeat(scales.astype(np.float64), block, axis)
    nodes = [
        helper.make_node(
            "DequantizeLinear", ["quantized", "scales"], ["w"], axis=axis, block_size=block
        ),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    constants = [
        packed_tensor("quantized", "int4", quantized),
        numpy_helper.from_array(scales, "scales"),
    ]
    x = rows_of((4, 64))
    path = saved(tmp_path, nodes, x, constants)
    want = x.astype(np.float64) @ real
    why = "in blocks along their columns" if axis == 1 else "blocks that 16 does not divide"
    expect(path, x, want, np.full(want.shape, 1e-4), reported=why)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_row(tmp_path, bad):
    w, x = Weights(70, 20, 32, "uint4", True), rows_of((4, 70))
    clean = x.astype(np.float64) @ w.real
    x[2, 69] = bad
    node, constants = dequantized(w)
    path = saved(tmp_path, [node, helper.make_node("MatMul", ["x", "w"], ["y"])], x, constants)
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64) @ w.real
    for precision in ("fp32", "int8"):
        plan = tenon.load(path).compile(backend="onednn", precision=precision)
        y = np.asarray(plan.run({"x": x})[0])
        np.testing.assert_allclose(y[[0, 1, 3]], clean[[0, 1, 3]], atol=0.5)
        if precision == "fp32":
            np.testing.assert_array_equal(np.isnan(y[2]), np.isnan(want[2]))
            np.testing.assert_array_equal(np.isinf(y[2]), np.isinf(want[2]))
        else:
            assert np.isnan(y[2]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_writer_says_it_as_matmul_n_bits_on_request(tmp_path, kind, zeros, transposed):
    w, x = Weights(100, 21, 32, kind, zeros), rows_of((3, 100))
    node, constants = dequantized(w, transposed)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    if transposed:
        product = helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1)
        constants.append(numpy_helper.from_array(np.zeros(21, "f"), "c"))
    loaded = tenon.load(saved(tmp_path, [node, product], x, constants))
    written = tmp_path / "n_bits.onnx"
    loaded.save(str(written), matmul_nbits=True)
    nodes = [n.op_type for n in onnx.load(written).graph.node]
    assert nodes == (["MatMulNBits", "Add"] if transposed else ["MatMulNBits"])
    want = x.astype(np.float64) @ w.real
    for backend in ("onednn", "reference"):
        expect(str(written), x, want, w.bound(x, False) + 1e-6, backend=backend)


def test_packed_weights_take_an_eighth_of_their_floats(tmp_path):
    w, x = Weights(512, 512, 32), rows_of((1, 512))
    node, constants = dequantized(w)
    path = saved(tmp_path, [node, helper.make_node("MatMul", ["x", "w"], ["y"])], x, constants)
    plan = tenon.load(path).compile(backend="onednn")
    plan.run({"x": x})
    packed = sum(part.get("packed_bytes", 0) for part in plan.describe()["partitions"])
    assert 512 * 512 // 2 <= packed < 512 * 512 * 4 * 0.165
