# SPDX-License-Identifier: Apache-2.0
"""What `tenon compare` says of values that it cannot compare."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon


def model(folder: Path, name: str, columns: int, more: bool = False) -> Path:
    """x[n, 4] through a product of so many columns, and with more a sequence beside it."""
    w = np.random.default_rng(1).standard_normal((4, columns)).astype("f")
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w"], ["y"], "product"),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", columns])]
    if more:
        nodes.append(helper.make_node("SequenceConstruct", ["r", "y"], ["s"], "list"))
        outputs.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph(nodes, "g", [x], outputs, [numpy_helper.from_array(w, "w")])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[opset]), folder / name)
    return folder / name


def compared(folder: Path, a: Path, b: Path, *flags: str):
    x = np.random.default_rng(2).standard_normal((6, 4)).astype("f")
    np.savez(folder / "x.npz", x=x)
    return tenon("compare", a, b, "--data", folder / "x.npz", *flags)


def test_values_of_other_shapes_have_no_figures(tmp_path: Path) -> None:
    a, b = model(tmp_path, "a.onnx", 3), model(tmp_path, "b.onnx", 5)

    result = json.loads(compared(tmp_path, a, b, "--json").stdout)
    text = compared(tmp_path, a, b)

    assert result["compared"] == 1
    assert "snr_db" not in result
    same, other = result["layers"]
    assert (same["value"], same["snr_db"]) == ("r", 200)
    assert [other[key] for key in ("damage", "snr_db", "cosine", "max_error")] == [None] * 4
    assert "shapes differ" in other["trouble"]
    assert "shapes differ" in result["outputs"][0]["trouble"]
    assert text.returncode == 0
    assert (
        "output y was not compared: shapes differ: float32[6, 3] and float32[6, 5]" in text.stdout
    )
    assert "trouble" in text.stdout.splitlines()[0]


def test_nothing_compared_is_a_failure(tmp_path: Path) -> None:
    paths = [model(tmp_path, "a.onnx", 3), model(tmp_path, "b.onnx", 5)]
    for i, path in enumerate(paths):
        changed = onnx.load(path)
        changed.graph.node[0].output[0] = changed.graph.node[1].input[0] = f"r{i}"
        onnx.save(changed, path)

    failed(compared(tmp_path, *paths), 1, "no value could be compared")


def test_sequences_are_left_out(tmp_path: Path) -> None:
    a, b = (model(tmp_path, name, 3, more=True) for name in ("a.onnx", "b.onnx"))

    result = json.loads(compared(tmp_path, a, b, "--json").stdout)

    assert [one["value"] for one in result["layers"]] == ["r", "y"]
    assert [one["snr_db"] for one in result["outputs"]] == [200, 200]
