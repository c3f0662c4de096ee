# SPDX-License-Identifier: Apache-2.0
"""A process that is killed, whenever and however, leaves every next one as it was; a plugin that
crashes twice while it is loaded is reported, and can be forgiven."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from running import TENON, failed, tenon

BENCH = """
local tn = require "tenon"
local w = tn.normal({ 64, 64 })
local net = tn.jit(function(x) return tn.relu(tn.matmul(x, w)) end, { backend = tn.args.backend })
local x = tn.normal({ 8, 64 })
local until_ = os.time() + 60
repeat net(x) until tn.args.once or os.time() > until_
return net:describe()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.lua").write_text(BENCH)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"XDG_STATE_HOME": str(folder / "state")}


def components(folder: Path, role: str) -> list[str]:
    listed = json.loads(tenon("plugin", "list", "--json", env=environment(folder)).stdout)
    return [
        component["id"]
        for plugin in listed
        for component in plugin["components"]
        if plugin["usable"] and component["role"] == role
    ]


def test_kills_at_any_moment_leave_every_next_run_as_it_was(folder: Path) -> None:
    role = "tenon.backend/1"
    before = components(folder, role)
    command = [TENON, "run", "run.lua", "--json"]
    begin = time.monotonic()
    once = tenon("run", "run.lua", "--set", "once=1", cwd=folder, env=environment(folder))
    assert once.returncode == 0, once.stderr
    whole = time.monotonic() - begin  # start, load, compile and run, and all of the end
    rng = random.Random(7)
    signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV]
    for kill in range(60):
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0, 1.5 * whole))
        process.send_signal(signals[kill % len(signals)])
        time.sleep(0.01)
        process.kill()
        process.wait()
    assert not (folder / "state").exists(), list((folder / "state").rglob("*"))
    assert components(folder, role) == before
    again = tenon("run", "run.lua", "--set", "once=1", cwd=folder, env=environment(folder))
    assert (again.returncode, again.stderr) == (0, "")


def crashed_twice(folder: Path, plugin: str) -> None:
    """Writes down what two crashes while the plugin was loaded would have left."""
    listed = json.loads(tenon("plugin", "list", "--json", env=environment(folder)).stdout)
    record = next(Path(one["crash_record"]) for one in listed if one["id"] == plugin)
    assert record.is_relative_to(folder)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("SIGSEGV\nSIGABRT\n")


def default_backend() -> str:
    listed = json.loads(tenon("plugin", "list", "--json").stdout)
    ids = {component["id"] for plugin in listed for component in plugin["components"]}
    if "onednn" not in ids:
        pytest.skip("onednn is not built")
    return "onednn"


def test_a_run_without_its_default_backend_says_why(folder: Path) -> None:
    backend = default_backend()
    crashed_twice(folder, backend)
    model = folder / "model.lua"
    model.write_text(
        'local tn = require "tenon"\n'
        "local f = tn.jit(function(x) return tn.exp(x) end)\n"
        'f:trace(tn.normal({ 2, 3 })):save("model.onnx")\n'
    )
    assert tenon("run", "model.lua", cwd=folder, env=environment(folder)).returncode == 0
    ran = tenon("bench", "model.onnx", "--json", cwd=folder, env=environment(folder))
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["backend"] == "reference"
    warnings = [line for line in ran.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1, ran.stderr
    for part in ("plugin onednn", "2 times, last by SIGABRT", "tenon plugin forgive onednn"):
        assert part in warnings[0]
    named = tenon("bench", "model.onnx", "--backend", backend, cwd=folder, env=environment(folder))
    assert named.returncode == 1
    assert "backend onednn: plugin onednn brings it, but cannot be used" in named.stderr
    assert "tenon plugin forgive onednn" in named.stderr

    forgiven = tenon("plugin", "forgive", backend, env=environment(folder))
    assert forgiven.returncode == 0
    assert "2 crashes forgiven" in forgiven.stdout
    again = tenon("bench", "model.onnx", "--json", cwd=folder, env=environment(folder))
    assert (json.loads(again.stdout)["backend"], again.stderr) == (backend, "")


def test_a_missed_row_names_the_plugin_that_may_have_it(folder: Path) -> None:
    crashed_twice(folder, "ops")
    script = folder / "row.lua"
    script.write_text("local tn = require 'tenon'\nreturn tn.exp(tn.tensor({ 1, 2 }, 'float32'))\n")
    result = tenon("run", "row.lua", cwd=folder, env=environment(folder))
    assert result.returncode == 1
    assert "warning: plugin ops (" in result.stderr
    assert "tenon plugin forgive ops" in result.stderr


def test_forgiving_what_did_not_crash(folder: Path) -> None:
    result = tenon("plugin", "forgive", "ops", env=environment(folder))
    assert (result.returncode, result.stdout) == (
        0,
        "plugin ops: nothing to forgive, loading it did not crash\n",
    )
    failed(tenon("plugin", "forgive", "opps"), 1, "plugin forgive: expected one of", "got 'opps'")
