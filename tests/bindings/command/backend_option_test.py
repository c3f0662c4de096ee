# SPDX-License-Identifier: Apache-2.0
"""`--backend-option KEY=VALUE`: what only one backend has."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon


def one_conv(folder: Path) -> Path:
    """A 3x3 convolution that runs by minimal filtering unless that is off."""
    info = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.ones((64, 64, 3, 3), "f"), "w")
    shape = [1, 64, 56, 56]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "g",
        [info("x", TensorProto.FLOAT, shape)],
        [info("y", TensorProto.FLOAT, shape)],
        [weights],
    )
    path = folder / "conv.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_an_option_reaches_the_backend(tmp_path: Path) -> None:
    command = ("bench", one_conv(tmp_path), "--backend", "onednn", "--rounds", 1, "--layers")
    option = ("--backend-option", "winograd=off", "--json")
    layers = json.loads(tenon(*command, *option).stdout)["layers"]
    refusals = [one for layer in layers for one in layer.get("refused", [])]
    assert {"implementation": "winograd", "why": "winograd=off"} in refusals


def test_an_implementation_is_left_out(tmp_path: Path) -> None:
    command = ("bench", one_conv(tmp_path), "--backend", "onednn", "--rounds", 1, "--layers")
    run = tenon(*command, "--backend-option", 'without=["winograd"]', "--json")
    refusals = [one for layer in json.loads(run.stdout)["layers"] for one in layer["refused"]]
    assert {"implementation": "winograd", "why": "the option `without` names it"} in refusals
    assert run.stderr == ""


def test_what_no_backend_takes_is_refused(tmp_path: Path) -> None:
    command = ("bench", one_conv(tmp_path), "--backend", "onednn")
    failed(tenon(*command, "--backend-option", "winogrd=off"), 1, "winogrd", "winograd")
    failed(tenon(*command, "--backend-option", "winograd=of"), 1, "winograd", "auto", "of")
    failed(tenon(*command, "--backend-option", "winograd"), 2, "expected NAME=VALUE")
    wrong = tenon(*command, "--backend-option", 'without=["filtre"]')
    failed(wrong, 1, "option without: expected some of ", "winograd", "got filtre")
    failed(tenon(*command, "--backend-option", "threads=1"), 2, "expected the flag --threads")
