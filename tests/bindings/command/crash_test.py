# SPDX-License-Identifier: Apache-2.0
"""A plugin that crashes or throws in a run of the command is named, with what it was doing."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from running import TENON

PLUGINS = Path(os.environ["TENON_TEST_PLUGINS"]) / "crashing"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.ones((2, 3), "f"))
    return tmp_path


def tenon(folder: Path, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [TENON, "--plugin-path", PLUGINS, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def infer(folder: Path, how: str) -> subprocess.CompletedProcess:
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="first"),
        helper.make_node("Crash", ["e"], ["y"], name="second", domain="crashing", how=how),
    ]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("crashing", 1)]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=opsets), folder / "m.onnx")
    return tenon(folder, "infer", "m.onnx", "--input", "x=x.npy", "--output-dir", "out")


@pytest.mark.parametrize("how", ["segv", "abort"])
def test_a_kernel_that_crashes_is_named(folder: Path, how: str) -> None:
    result = infer(folder, how)
    number = {"segv": signal.SIGSEGV, "abort": signal.SIGABRT}[how]
    assert result.returncode == -number, result
    line = result.stderr.splitlines()[-1]
    assert line.startswith(
        f"tenon: plugin crashing ({PLUGINS}/crashing.so) crashed by {number.name}"
    )
    assert line.endswith("in ref of operator Crash, at node second")


def test_a_kernel_whose_stack_overflows_is_named(folder: Path) -> None:
    result = infer(folder, "overflow")
    assert result.returncode == -signal.SIGSEGV, result
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"tenon: plugin crashing ({PLUGINS}/crashing.so) crashed by SIGSEGV")
    assert line.endswith(", at node second")


def test_a_pass_that_crashes_is_named(folder: Path) -> None:
    assert infer(folder, "").returncode == 0
    (folder / "s.lua").write_text("require('tenon').load('m.onnx'):apply('crashing.pass')")
    result = tenon(folder, "run", "s.lua")
    assert result.returncode == -signal.SIGABRT, result
    assert "plugin crashing (" in result.stderr
    assert result.stderr.endswith("crashed by SIGABRT in function run of component crashing.pass\n")


@pytest.mark.parametrize(
    ("how", "node", "function"),
    [
        ("throw", "node second (crashing.Crash)", "ref"),
        ("throw in shape", "node second (", "shape"),
    ],
)
def test_a_row_that_throws_is_named_with_its_node(folder: Path, how: str, node: str, function: str):
    result = infer(folder, how)
    assert result.returncode == 1, result
    assert result.stderr.count("\n") == 1
    assert node in result.stderr
    says = f"plugin crashing failed in {function} of operator crashing:Crash: thrown by the test"
    assert f"{says} plugin" in result.stderr


def test_a_pass_that_throws_is_named(folder: Path) -> None:
    assert infer(folder, "").returncode == 0
    (folder / "s.lua").write_text(
        "require('tenon').load('m.onnx'):apply('crashing.pass', {how = 'throw'})"
    )
    result = tenon(folder, "run", "s.lua")
    assert result.returncode == 1, result
    what = "plugin crashing failed in run of component crashing.pass: thrown by the test pass"
    assert result.stderr.count(what) == 1
