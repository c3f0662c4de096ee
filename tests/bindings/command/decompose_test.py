# SPDX-License-Identifier: Apache-2.0
"""The recipe `decompose`: thin layers that other runtimes run to the same answers."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
from models_test import data, optimize
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon
from small_models import classifier


def low_rank_model(folder: Path) -> Path:
    """x[batch, 8, 6, 6] to y: a 3x3 convolution of Tucker ranks 2 and 3, a product of rank 2."""
    seeded = np.random.default_rng(5)
    draw = seeded.standard_normal
    conv = np.einsum("oa,ib,abhw->oihw", draw((12, 3)), draw((8, 2)), draw((3, 2, 3, 3)))
    arrays = {"w1": conv, "b1": draw(12), "w2": draw((192, 2)) @ draw((2, 16)), "b2": draw(16)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["y"], "head"),
    ]
    graph = helper.make_graph(
        nodes,
        "low_rank",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])],
        [numpy_helper.from_array(value.astype("f"), name) for name, value in arrays.items()],
    )
    path = folder / "classifier.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_a_decomposed_model_is_smaller_and_still_onnx(tmp_path: Path) -> None:
    original = onnx.load(low_rank_model(tmp_path))
    result = optimize(tmp_path, "--set", "measure=false", "--json", recipe="decompose")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert {one["layer"]: one["rank"] for one in report["decomposed"]} == {
        "head": "2",
        "conv": "2 3",
    }
    assert report["parameters_after"] < 0.5 * report["parameters_before"]
    written = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(written, full_check=True)
    x = np.random.default_rng(1).standard_normal((3, 8, 6, 6)).astype("f")
    np.save(tmp_path / "x.npy", x)
    result = tenon(
        "infer", tmp_path / "small.onnx", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path
    )
    assert result.returncode == 0, result.stderr
    got = np.load(tmp_path / "y.npy")
    for model in (original, written):
        (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_weights_without_structure_are_left(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--data", data(tmp_path), "--json", recipe="decompose")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert not report["decomposed"]
    assert {one["node"] for one in report["left"]} == {"first", "second"}
    assert report["cosine"] > 0.999999


def test_bad_options_are_refused(tmp_path: Path) -> None:
    for setting, parts in {
        "rank=evbm": ["rank", "energy, error, evbmf", "'evbm'"],
        "energy=2": ["energy", "2"],
        "only=third": ["only", "'third'"],
    }.items():
        failed(optimize(tmp_path, "--set", setting, recipe="decompose"), 1, *parts)
        assert not (tmp_path / "small.onnx").exists()


def test_where_nothing_is_decomposed_the_json_has_an_empty_list(tmp_path: Path) -> None:
    args = ["-o", tmp_path / "o.onnx", "--recipe", "decompose", "--json"]
    result = tenon("optimize", classifier(tmp_path), *args)
    assert json.loads(result.stdout)["decomposed"] == [], result.stderr
