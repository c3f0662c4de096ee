# SPDX-License-Identifier: Apache-2.0
"""`tenon bench --streams`: many requests at once on one plan."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon
from small_models import classifier


def test_bench_asks_from_several_streams_at_once(tmp_path: Path) -> None:
    command = ("bench", classifier(tmp_path), "--shape", "x=4x8", "--rounds", 5)
    report = json.loads(tenon(*command, "--streams", 3, "--json").stdout)
    assert (report["streams"], report["rounds"]) == (3, 15)
    assert report["runs_per_s"] > 0
    assert report["latency_ms"]["median"] <= report["latency_ms"]["p99"]
    assert "3 streams" in tenon(*command, "--streams", 3).stdout
    assert "streams" not in tenon(*command).stdout
    failed(tenon(*command, "--streams", 0), 2, "--streams")


def test_a_failure_in_one_of_several_streams_is_reported(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    table = numpy_helper.from_array(np.zeros((3, 2), "f"), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "at"], ["y"])],
        "g",
        [info("at", TensorProto.INT64, ["n"])],
        [info("y", TensorProto.FLOAT, ["n", 2])],
        [table],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset), tmp_path / "gather.onnx")
    np.save(tmp_path / "at.npy", np.array([0, 7]))
    command = ("bench", tmp_path / "gather.onnx", "--input", f"at={tmp_path / 'at.npy'}")
    failed(tenon(*command, "--streams", 2), 1, "Gather", "expected -3..2, got 7")
