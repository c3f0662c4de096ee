# SPDX-License-Identifier: Apache-2.0
"""Quantized models whose stored constants are moved before they are read, in floats again; and
what else ONNX Runtime's quantizers write."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import F32, INT64, constant, info, model_of, ran

RANDOM = np.random.default_rng(5)
TABLE = RANDOM.integers(-128, 128, (12, 32)).astype("int8")
IDS = np.array([[3, 0], [11, 3]])


def floats_of(folder, model, **feeds):
    loaded = ran(folder, model)
    floats = loaded.apply("quantizer.dequantize")
    assert floats.report["left"] == []
    ops = [node["op"] for node in floats.inspect()["nodes"]]
    both = [one.compile(backend="reference").run(feeds)[0] for one in (loaded, floats)]
    return ops, *map(np.asarray, both)


def test_a_table_of_int8_becomes_one_of_floats(tmp_path):
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"], "lookup"),
        helper.make_node("DequantizeLinear", ["rows", "scale", "zero"], ["y"], "back"),
    ]
    given = [constant("table", TABLE), constant("scale", np.float32(0.1))]
    model = model_of(
        nodes, [info("ids", [2, 2], INT64)], ["y"], [*given, constant("zero", np.int8(3))]
    )

    ops, before, after = floats_of(tmp_path, model, ids=IDS)

    assert ops == ["Gather"]
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_a_table_in_blocks_becomes_one_of_floats(tmp_path):
    node = helper.make_node(
        "GatherBlockQuantized",
        ["table", "ids", "scales"],
        ["y"],
        "lookup",
        domain="com.microsoft",
        block_size=16,
        quantize_axis=1,
    )
    scales = RANDOM.uniform(0.1, 0.2, (12, 4)).astype("f")
    packed = RANDOM.integers(0, 256, (12, 32)).astype("uint8")
    given = [constant("table", packed), constant("scales", scales)]
    model = model_of([node], [info("ids", [2, 2], INT64)], ["y"], given, opset=21)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))

    ops, before, after = floats_of(tmp_path, model, ids=IDS)

    assert ops == ["Gather"]
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_a_transposed_weight_of_integers_counts_as_stored(tmp_path):
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMulInteger", ["q", "wt", "z", "wz"], ["i"], "product"),
        helper.make_node("Cast", ["i"], ["f"], to=F32),
        helper.make_node("Mul", ["s", "ws"], ["scale"]),
        helper.make_node("Mul", ["f", "scale"], ["y"]),
    ]
    given = [constant("w", TABLE), constant("wz", np.int8(0)), constant("ws", np.float32(0.01))]
    model = model_of(nodes, [info("x", [4, 32])], ["y"], given)
    x = RANDOM.standard_normal((4, 32)).astype("f")

    ops, before, after = floats_of(tmp_path, model, x=x)

    assert ops == ["MatMul"]
    np.testing.assert_allclose(after, before, atol=0.02 * np.abs(before).max())


@pytest.mark.parametrize("opset", [17, 21])
def test_onnx_runtimes_own_pair_is_that_of_onnx(tmp_path, opset):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft"),
    ]
    zero = helper.make_tensor("z", TensorProto.UINT16, [], [100])
    model = model_of(
        nodes, [info("x", [4, 8])], ["y"], [constant("s", np.float32(0.1)), zero], opset=opset
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = RANDOM.standard_normal((4, 8)).astype("f")

    loaded = ran(tmp_path, model)
    (found,) = loaded.compile(backend="reference").run({"x": x})

    assert [n["op"] for n in loaded.inspect()["nodes"]] == ["QuantizeLinear", "DequantizeLinear"]
    np.testing.assert_allclose(found, np.round(x / 0.1).clip(-100) * 0.1, atol=1e-5)
