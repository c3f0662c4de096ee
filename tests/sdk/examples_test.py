# SPDX-License-Identifier: Apache-2.0
"""Third-party plugins: each example is built against the installed SDK alone, then one pipeline
uses them all. The build tree comes in TENON_BUILD, plugins to run on in TENON_PLUGINS.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/structure"), str(ROOT / "tests/abi")]

import handshake  # noqa: E402
import plugin_symbols  # noqa: E402

EXAMPLES = ["c_wave", "cxx_ops", "cxx_sigma", "rust_peak"]
TENON = Path(os.environ["TENON_BUILD"]) / "bin/tenon"
PLUGINS = os.environ["TENON_PLUGINS"]
AT_MOST = 150  # lines of a plugin that is one source


def run(*command, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=280, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", os.environ["TENON_BUILD"], "--component", "sdk", "--prefix", path)
    return path


@pytest.fixture(scope="module")
def plugins(prefix, tmp_path_factory) -> dict[str, Path]:
    """The libraries by example, in one folder, built from copies outside of this tree."""
    folder = tmp_path_factory.mktemp("third_party")
    found = {}
    assert shutil.which("rustc"), "rustc is not installed: scripts/setup installs it"
    for name in EXAMPLES:
        source = folder / name
        shutil.copytree(ROOT / "sdk/examples" / name, source)
        strict = "-Wall -Wextra -Wpedantic -Wshadow -Werror"
        run(
            *["cmake", "-S", source, "-B", source / "build", "-G", "Ninja"],
            f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_FLAGS={strict}",
            f"-DCMAKE_C_FLAGS={strict}",
        )
        run("cmake", "--build", source / "build")
        (library,) = (source / "build").rglob("*.so")
        found[name] = folder / library.name
        shutil.copy(library, found[name])
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_has_one_symbol_and_shakes_hands(plugins, prefix, name):
    library = plugins[name]

    assert plugin_symbols.violations(library) == []
    assert handshake.violations((prefix / "share/tenon/tenon.cdef").read_text(), library) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_small(name):
    sources = [
        path
        for path in (ROOT / "sdk/examples" / name).iterdir()
        if path.suffix in (".c", ".cpp", ".rs")
    ]
    for path in sources:
        assert len(path.read_text().splitlines()) < AT_MOST, path


def test_transforms_work_on_their_operators(plugins):
    """One operator is its expression alone, one has every column; neither is of this tree."""
    text = run(
        *[TENON, "--plugin-path", PLUGINS, "plugin", "check", plugins["cxx_ops"], "--json"],
    )

    checks = {one["check"]: one for part in json.loads(text) for one in part["checks"]}
    for operator in ("SoftGate", "EnergyNorm"):
        for check in ("runs", "gradient", "second order", "vmap"):
            assert checks[f"com.example:{operator} {check}"]["result"] == "passed"
    for check in ("decompose", "vjp", "batch"):
        assert checks[f"com.example:EnergyNorm {check}"]["result"] == "passed"


def model(path: Path) -> None:
    """y = EnergyNorm(SoftGate(x w1) w2), with two operators of the example cxx_ops."""
    random = np.random.default_rng(3)
    weights = [random.normal(size=size).astype("float32") for size in ((8, 16), (16, 4))]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("SoftGate", ["a"], ["b"], "gate", domain="com.example"),
        helper.make_node("MatMul", ["b", "w2"], ["c"], "second"),
        helper.make_node("EnergyNorm", ["c"], ["y"], "norm", domain="com.example", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "third_party",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(w, f"w{i + 1}") for i, w in enumerate(weights)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    x = random.normal(size=(64, 8)).astype("float32")
    x[-1, 0] = 30  # what the observer is to leave out
    np.savez(path.with_suffix(".npz"), x=x)


def weight(path: Path, name: str) -> np.ndarray:
    (found,) = (one for one in onnx.load(path).graph.initializer if one.name == name)
    return numpy_helper.to_array(found)


def test_a_pipeline_uses_them_all(plugins, tmp_path):
    model(tmp_path / "model.onnx")
    shutil.copy(ROOT / "sdk/examples/pipeline.lua", tmp_path)
    folder = plugins["c_wave"].parent

    text = run(
        *[
            TENON,
            "--plugin-path",
            PLUGINS,
            "--plugin-path",
            folder,
            "run",
            "pipeline.lua",
            "--json",
        ],
        *["--set", "model=model.onnx", "--set", "data=model.npz"],
        cwd=tmp_path,
    )

    result = json.loads(text)
    assert result["steps"] == [0.5, 0.75, 1.0, 1.25, 1.5, 1.25, 1.0, 0.75, 0.5]
    assert 0 < result["worst"] < 0.1  # int8 was used, and is near
    assert result["operators"]["com.example:SoftGate"] == 1
    x = np.load(tmp_path / "model.npz")["x"].astype("d")
    (seen,) = (one for one in result["report"]["values"] if one["name"] == "x")
    assert seen["high"] == pytest.approx(x.mean() + 4 * x.std(), rel=1e-4)
    assert seen["low"] == pytest.approx(x.min(), rel=1e-4)
    if (Path(PLUGINS) / "pruner.so").exists():
        peaks = np.abs(weight(tmp_path / "model.onnx", "w1")).max(0)
        assert result["removed"] == sorted(np.argsort(peaks)[:8].tolist())
