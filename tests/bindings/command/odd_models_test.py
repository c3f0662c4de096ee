# SPDX-License-Identifier: Apache-2.0
"""Models with unusual names and values: each command takes them, or says why not."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from running import failed, tenon


def relu(folder: Path, x: str, y: str) -> None:
    port, dtype = helper.make_tensor_value_info, TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", [x], [y])],
        "g",
        [port(x, dtype, ["N", 3])],
        [port(y, dtype, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    np.save(folder / "x.npy", np.float32([[-1, 0.5, 2]]))


def written(folder: Path, *args: object) -> list[np.ndarray]:
    result = tenon("infer", "m.onnx", *args, "--output-dir", "out", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    return [np.load(folder / each["file"]) for each in json.loads(result.stdout)["outputs"]]


def test_a_name_may_hold_the_sign_behind_names(tmp_path: Path) -> None:
    relu(tmp_path, "x=1", "y")
    assert written(tmp_path, "--input", "x=1=x.npy")[0].tolist() == [[0, 0.5, 2]]
    for more in (["--input", "x=1=x.npy"], ["--shape", "x=1=4x3"]):
        result = tenon("bench", "m.onnx", "--rounds", 1, "--json", *more, cwd=tmp_path)
        assert list(json.loads(result.stdout)["inputs"]) == ["x=1"]


@pytest.mark.parametrize("name", ["y" * 300, "é" * 150, "日本" * 100])
def test_a_name_that_no_file_can_have_is_shortened(tmp_path: Path, name: str) -> None:
    relu(tmp_path, "x", name)
    assert written(tmp_path, "--input", "x=x.npy")[0].tolist() == [[0, 0.5, 2]]
    (file,) = (tmp_path / "out").iterdir()
    assert name.startswith(file.stem) and len(file.stem) > 50


def test_a_name_with_breaks_stays_in_its_line(tmp_path: Path) -> None:
    relu(tmp_path, "x\nnew", "y\t\x1b[2J")
    lines = tenon("inspect", "m.onnx", cwd=tmp_path).stdout.splitlines()
    assert lines[:2] == ["input   x new  float32[N, 3]", "output  y \\u001b[2J  float32[N, 3]"]
    assert lines[4].endswith("x new[1,3]")


def sequence(folder: Path) -> None:
    port = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0)],
        "g",
        [port("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    np.save(folder / "x.npy", np.zeros((2, 3), "f"))


def test_an_output_that_is_a_sequence_is_not_written_as_bytes(tmp_path: Path) -> None:
    sequence(tmp_path)
    result = tenon("infer", "m.onnx", "--input", "x=x.npy", "--output-dir", "out", cwd=tmp_path)
    failed(result, 1, "output parts: expected a tensor, got", "sequence of float32")
    assert list((tmp_path / "out").iterdir()) == []
    assert "parts  sequence of float32" in tenon("inspect", "m.onnx", cwd=tmp_path).stdout
    (tmp_path / "s.lua").write_text(
        "local tn = require 'tenon'\ntn.load('m.onnx'):compile {}(tn.zeros { 2, 3 })"
    )
    failed(tenon("run", "s.lua", cwd=tmp_path), 1, "s.lua:2: output parts: expected a tensor")
