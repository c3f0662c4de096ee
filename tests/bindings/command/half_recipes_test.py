# SPDX-License-Identifier: Apache-2.0
"""Recipes fp16 and bf16 on models whose operators ONNX does not define for these types."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from running import tenon

F32 = TensorProto.FLOAT


def weights(name: str, *shape: int) -> TensorProto:
    values = np.random.default_rng(len(name)).standard_normal(shape)
    return numpy_helper.from_array(values.astype("f"), name)


def saved(folder: Path, nodes, initializers, output=None, element=F32) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, ["n", 16])],
        [output or helper.make_tensor_value_info("y", element, ["n", 16])],
        initializers,
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def converted(folder: Path, model: Path, recipe: str):
    small = folder / "small.onnx"
    done = tenon("optimize", model, "-o", small, "--recipe", recipe)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(str(small), full_check=True)
    return onnx.load(small), done.stderr


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_what_is_rounded_stays_in_the_type_of_its_scale(tmp_path: Path, recipe: str) -> None:
    scale = numpy_helper.from_array(np.array(0.1, "f"), "scale")
    zero = numpy_helper.from_array(np.array(0, "int8"), "zero")
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], "product"),
        helper.make_node("QuantizeLinear", ["a", "scale", "zero"], ["q"], "round"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "back"),
        helper.make_node("MatMul", ["d", "second"], ["y"], "last"),
    ]
    path = saved(
        tmp_path, nodes, [weights("first", 16, 16), weights("second", 16, 16), scale, zero]
    )

    made, _ = converted(tmp_path, path, recipe)

    assert made.opset_import[0].version == 21
    low = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}[recipe]
    stored = {one.data_type for one in made.graph.initializer if len(one.dims) == 2}
    assert stored == {low}


def test_einsum_stays_in_float32_where_onnx_has_no_bfloat16_of_it(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], "product"),
        helper.make_node("Einsum", ["a", "second"], ["y"], "sum", equation="ij,jk->ik"),
    ]
    path = saved(tmp_path, nodes, [weights("first", 16, 16), weights("second", 16, 16)])

    made, said = converted(tmp_path, path, "bf16")

    assert made.opset_import[0].version <= 26
    assert "node sum (Einsum) is computed in float32" in said


def test_sequences_stay_in_float32(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], "product"),
        helper.make_node("SequenceConstruct", ["a", "x"], ["s"], "list"),
        helper.make_node("ConcatFromSequence", ["s"], ["c"], "join", axis=1),
        helper.make_node("MatMul", ["c", "second"], ["y"], "last"),
    ]
    path = saved(tmp_path, nodes, [weights("first", 16, 16), weights("second", 32, 16)])

    converted(tmp_path, path, "bf16")


def test_an_output_keeps_the_shape_that_only_the_file_states(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], "product"),
        helper.make_node("NonZero", ["a"], ["at"], "found"),
        helper.make_node("Shape", ["a"], ["shape"], "size"),
        helper.make_node("Sub", ["shape", "none"], ["same"], "kept"),
        helper.make_node("Reshape", ["a", "same"], ["y"], "form"),
    ]
    none = numpy_helper.from_array(np.zeros(2, "int64"), "none")
    path = saved(tmp_path, nodes, [weights("first", 16, 16), none])

    made, _ = converted(tmp_path, path, "fp16")

    dims = made.graph.output[0].type.tensor_type.shape.dim
    assert [one.dim_param or one.dim_value for one in dims][1:] == [16]


@pytest.mark.parametrize(
    ("element", "recipe", "said"),
    [
        (TensorProto.DOUBLE, "fp16", "nothing is computed in float16: the model is in float64"),
        (TensorProto.FLOAT16, "bf16", "nothing is computed in bfloat16: the model is in float16"),
    ],
)
def test_a_model_in_another_type_is_warned_of(tmp_path: Path, element, recipe, said) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(element)
    w = numpy_helper.from_array(np.ones((16, 16), dtype), "w")
    path = saved(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [w], element=element)

    _, stderr = converted(tmp_path, path, recipe)

    assert said in stderr


def test_metadata_is_left_out_of_a_file_with_capital_letters(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [weights("w", 16, 16)])
    model = onnx.load(path)
    model.graph.node[0].doc_string = "traced"
    onnx.save(model, path)

    done = tenon("optimize", path, "-o", tmp_path / "small.ONNX", "--recipe", "simplify")

    assert done.returncode == 0, done.stderr
    assert onnx.load(tmp_path / "small.ONNX").graph.node[0].doc_string == ""


def report(folder: Path, model: Path, recipe: str, *flags: object):
    done = tenon(
        *("optimize", model, "-o", folder / "small.onnx", "--recipe", recipe, "--json", *flags)
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_masks_that_cover_channels_are_no_failure(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], "product"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "second"], ["y"], "last"),
    ]
    path = saved(tmp_path, nodes, [weights("first", 16, 32), weights("second", 32, 16)])

    result, stderr = report(tmp_path, path, "prune", "--set", "apply=mask", "--set", "ratio=0.5")

    assert result["groups"][0]["kept"] == 16
    assert "no channel went" not in stderr


def test_weights_in_batches_that_stay_are_warned_of(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Unsqueeze", ["x", "zero"], ["u"]),
        helper.make_node("MatMul", ["u", "batches"], ["b"], "batched"),
        helper.make_node("ReduceSum", ["b", "zero"], ["y"], keepdims=0),
    ]
    zero = numpy_helper.from_array(np.array([0], "int64"), "zero")
    path = saved(tmp_path, nodes, [weights("batches", 4, 16, 16), zero])

    done = tenon("optimize", path, "-o", tmp_path / "small.onnx", "--recipe", "weights")

    assert "stay in float, most in batched" in done.stderr or "nothing to quantize" in done.stderr


def test_shared_weights_in_4_bits_keep_their_plain_rounding(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "once"),
        helper.make_node("MatMul", ["a", "w"], ["y"], "twice"),
    ]
    path = saved(tmp_path, nodes, [weights("w", 16, 16)])
    x = np.random.default_rng(3).standard_normal((32, 16)).astype("f")
    np.savez(tmp_path / "x.npz", x=x)
    flags = ["--data", tmp_path / "x.npz", "--set", "bits=4"]

    _, stderr = report(tmp_path, path, "weights", *flags)

    assert "weights are rounded to the nearest number" in stderr
    assert "{" not in stderr


@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_scores_are_compared_where_only_the_largest_is_given(tmp_path: Path, recipe: str) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["scores"], "product"),
        helper.make_node("ArgMax", ["scores"], ["y"], "largest", axis=1),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 1])
    path = saved(tmp_path, nodes, [weights("first", 16, 4)], output)
    x = np.random.default_rng(3).standard_normal((16, 16)).astype("f")
    np.savez(tmp_path / "x.npz", x=x)

    result, _ = report(tmp_path, path, recipe, "--data", tmp_path / "x.npz")

    assert 30 < result["snr_db"] < 100
