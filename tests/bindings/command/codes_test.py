# SPDX-License-Identifier: Apache-2.0
"""Exit codes: 0 done, 1 failed, 2 used wrongly, 130 stopped by Ctrl-C, of each command."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from running import TENON, failed, tenon

# How each command is asked to work on what is not there, and on a model that never ends.
MISSING = {
    "run": ["run", "absent.lua"],
    "train": ["train", "absent.lua"],
    "optimize": ["optimize", "absent.onnx", "-o", "o.onnx", "--recipe", "simplify"],
    "evaluate": ["evaluate", "absent.onnx", "--data", "x.npz", "--metric", "accuracy"],
    "infer": ["infer", "absent.onnx", "--input", "x=x.npy", "--output-dir", "out"],
    "bench": ["bench", "absent.onnx"],
    "compare": ["compare", "absent.onnx", "absent.onnx", "--data", "x.npz"],
    "inspect": ["inspect", "absent.onnx"],
    "plugin check": ["plugin", "check", "absent.so"],
    "plugin info": ["plugin", "info", "absent"],
    "plugin forgive": ["plugin", "forgive", "absent"],
}
ENDLESS = {
    "run": ["run", "endless.lua"],
    "train": ["train", "endless.lua"],
    "optimize": ["optimize", "m.onnx", "-o", "o.onnx", "--recipe", "int8", "--data", "x.npz"],
    "evaluate": ["evaluate", "m.onnx", "--data", "x.npz", "--metric", "accuracy"],
    "infer": ["infer", "m.onnx", "--input", "x=x.npy", "--output-dir", "out"],
    "bench": ["bench", "m.onnx"],
    "compare": ["compare", "m.onnx", "m.onnx", "--data", "x.npz"],
}
# Of these nothing is asked that may be missing, or they end by themselves.
WITHOUT = {"missing": {"plugin", "plugin list", "plugin doctor", "plugin new"}}
WITHOUT["endless"] = {*WITHOUT["missing"], "inspect", *(c for c in MISSING if " " in c)}


def commands(*of: str) -> list[str]:
    """All, as the help has them."""
    listed = tenon(*of, "--help").stdout.partition("Subcommands:")[2]
    names = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
    return [" ".join((*of, name)) for name in names]


ALL = [*commands(), *commands("plugin")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose loop has 2^50 rounds, data for it, and a script."""
    numbers = {"rounds": np.int64(1 << 50), "goes": np.bool_(True), "step": np.float32(1e-9)}
    port = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["still"]),
            helper.make_node("Add", ["before", "step"], ["after"]),
        ],
        "body",
        [
            port("i", TensorProto.INT64, []),
            port("on", TensorProto.BOOL, []),
            port("before", TensorProto.FLOAT, ["n", 4]),
        ],
        [port("still", TensorProto.BOOL, []), port("after", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.asarray(numbers.pop("step")), "step")],
    )
    weight = numpy_helper.from_array(np.eye(4, dtype="f"), "w")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Loop", ["rounds", "goes", "h"], ["y"], body=body),
        ],
        "endless",
        [port("x", TensorProto.FLOAT, ["n", 4])],
        [port("y", TensorProto.FLOAT, ["n", 4])],
        [weight, *(numpy_helper.from_array(np.asarray(v), k) for k, v in numbers.items())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    x = np.ones((16, 4), "f")
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, label=np.zeros(16, "i8"))
    (tmp_path / "endless.lua").write_text("while true do end")
    return tmp_path


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(folder: Path, args: list[str]) -> tuple[int, str]:
    """Ctrl-C once the process has computed for a while, which is more than starting takes."""
    with subprocess.Popen(
        [TENON, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and processor_seconds(process.pid) < 0.4:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def test_each_command_is_in_the_tables() -> None:
    assert set(ALL) == set(MISSING) | WITHOUT["missing"]
    assert set(ALL) == set(ENDLESS) | WITHOUT["endless"]


@pytest.mark.parametrize("command", ALL)
def test_help_is_code_0(command: str) -> None:
    assert tenon(*command.split(), "--help").returncode == 0


@pytest.mark.parametrize("command", ALL)
def test_an_unknown_flag_is_code_2(command: str) -> None:
    failed(tenon(*command.split(), "--no-such-flag"), 2, f"see tenon {command} --help")


@pytest.mark.parametrize("command", MISSING)
def test_what_is_not_there_is_code_1_and_named(command: str, folder: Path) -> None:
    failed(tenon(*MISSING[command], cwd=folder), 1, "absent")


@pytest.mark.parametrize("command", ENDLESS)
def test_ctrl_c_is_code_130_and_leaves_nothing(command: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    code, errors = interrupted(folder, ENDLESS[command])
    assert code == 130, errors
    assert "cancelled" in errors.splitlines()[-1]
    assert [
        path for path in sorted(folder.rglob("*")) if path not in before and path.is_file()
    ] == []


def test_a_second_ctrl_c_ends_what_does_not_listen(folder: Path) -> None:
    (folder / "deaf.lua").write_text(
        "print('on') io.stdout:flush() string.find(('a'):rep(200), ('a*'):rep(30) .. 'b')"
    )
    with subprocess.Popen(
        [TENON, "run", "deaf.lua"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "on\n"
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
    assert process.returncode in (130, -signal.SIGINT)
