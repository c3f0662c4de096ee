# SPDX-License-Identifier: Apache-2.0
"""`--backend-option KEY=VALUE`: what only one backend has."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
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


def test_times_that_chose_an_implementation_are_printed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = ("bench", one_conv(tmp_path), "--backend", "onednn", "--rounds", 1, "--layers")
    options = ("choose=measured", "choose_ms=60000", 'without=["bf16x6"]')
    command += tuple(word for option in options for word in ("--backend-option", option))
    layers = json.loads(tenon(*command, "--json").stdout)["layers"]
    times = next((layer["measured"] for layer in layers if "measured" in layer), None)
    if times is None:
        pytest.skip("one implementation on this CPU")
    assert {one["implementation"] for one in times} == {"winograd", "onednn"}
    assert all(one["ns"] > 0 for one in times)
    said = ", ".join(f"{one['implementation']} {(one['ns'] + 500) // 1000} us" for one in times)
    printed = tenon(*command).stdout
    assert "layers whose implementation was chosen by measured times" in printed
    assert said in printed  # kept: the times of the first process
