# SPDX-License-Identifier: Apache-2.0
"""Shapes that a file declares are hints: what the model computes counts, with a warning; and a
shape that is given by name goes before the one that an input declares."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from running import failed, tenon


def info(name: str, shape: list, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(folder: Path, nodes: list, inputs: list, outputs: list, between: list = ()) -> Path:
    made = [helper.make_node(op, ins, outs, outs[0]) for op, ins, outs in nodes]
    graph = helper.make_graph(made, "g", inputs, outputs, value_info=between)
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def infer(path: Path, *more: str, **inputs: np.ndarray):
    flags = []
    for name, array in inputs.items():
        np.save(path.parent / f"{name}.npy", array)
        flags += ["--input", f"{name}={path.parent / name}.npy"]
    return tenon("infer", path, *flags, "--output-dir", path.parent / "out", *more)


ONES = np.ones((2, 3), "f")
RELU = [("Relu", ["x"], ["m"]), ("Relu", ["m"], ["y"])]


@pytest.mark.parametrize(
    ("x", "y", "between", "words"),
    [
        ([2, 3], [2, 4], [], ["output y", "[2, 4]", "[2, 3]"]),
        ([2, 3], [2, 3, 1], [], ["output y", "[2, 3, 1]", "[2, 3]"]),
        ([2, 3], [2, 3], [("m", [1, 5])], ["value m", "[1, 5]", "[2, 3]"]),
        (["n", 3], [1, 3], [], ["output y", "[1, 3]", "[2, 3]"]),
        (["n", 3], ["n", 3], [], []),
    ],
)
def test_what_is_computed_counts(tmp_path: Path, x, y, between, words) -> None:
    path = model(tmp_path, RELU, [info("x", x)], [info("y", y)], [info(*one) for one in between])
    result = infer(path, x=ONES)
    assert result.returncode == 0, result.stderr
    assert np.load(tmp_path / "out" / "y.npy").shape == (2, 3)
    assert result.stderr.count("\n") == bool(words), result.stderr
    assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize("backend", ["onednn", "reference"])
@pytest.mark.parametrize("declared", [[2, 4], [4], [1, 0], ["a", "b"]])
def test_sizes_that_data_decide_are_not_what_is_declared(tmp_path, backend, declared) -> None:
    y = [info("y", declared, TensorProto.INT64)]
    path = model(tmp_path, [("NonZero", ["x"], ["y"])], [info("x", ["n", 3])], y)
    result = infer(path, "--backend", backend, x=ONES)
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), np.nonzero(ONES))
    assert ("warning" in result.stderr) == (declared != ["a", "b"]), result.stderr


@pytest.mark.parametrize("backend", ["onednn", "reference"])
def test_a_reshape_to_computed_sizes_may_declare_others(tmp_path: Path, backend) -> None:
    nodes = [("Reshape", ["x", "s"], ["m"]), ("Relu", ["m"], ["y"])]
    inputs = [info("x", ["n", 4]), info("s", [2], TensorProto.INT64)]
    path = model(tmp_path, nodes, inputs, [info("y", [1, 4])], [info("m", [1, 4])])
    x = np.arange(8, dtype="f").reshape(2, 4)
    result = infer(path, "--backend", backend, x=x, s=np.array([4, 2]))
    assert result.returncode == 0 and "warning" in result.stderr, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), x.reshape(4, 2))


def test_a_shape_by_name_goes_before_the_declared_one(tmp_path: Path) -> None:
    path = model(tmp_path, RELU, [info("x", [1, 3])], [info("y", [1, 3])])
    for command in (["bench", "--rounds", "1"], ["inspect"]):
        result = tenon(command[0], path, "--shape", "x=7x3", *command[1:], "--json")
        assert result.returncode == 0, result.stderr
        assert "float32[1, 3]" in result.stderr and "float32[7, 3]" in result.stderr
    assert json.loads(result.stdout)["shapes"] == {"x": [7, 3]}
    failed(infer(path, x=ONES), 1, "input x: expected float32[1, 3], got float32[2, 3]")
