# SPDX-License-Identifier: Apache-2.0
"""A third-party backend on the kit: the example cxx_backend is built against the installed SDK
alone, and gives what the reference gives, without a fallback. The build tree comes in TENON_BUILD.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "sdk/examples/cxx_backend"
TENON = Path(os.environ["TENON_BUILD"]) / "bin/tenon"
MODELS = ROOT / ".cache/models"
BACKEND = "com.example.plain"
AT_MOST = 400  # lines of the whole example


def run(*command, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=280, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plugin() -> Path:
    """The library, built from a copy with the installed SDK: nothing of this tree's CMake. What is
    compiled stays from run to run; SDK and source are copied anew, with their times."""
    folder = Path(os.environ["TENON_BUILD"]) / "example_backend"
    for part in ("sdk", "source", "plugins"):
        shutil.rmtree(folder / part, ignore_errors=True)
    run(
        "cmake",
        "--install",
        os.environ["TENON_BUILD"],
        "--component",
        "sdk",
        "--prefix",
        folder / "sdk",
    )
    shutil.copytree(EXAMPLE, folder / "source")
    configure = ["cmake", "-S", folder / "source", "-B", folder / "build", "-G", "Ninja"]
    strict = "-Wall -Wextra -Wpedantic -Wshadow -Werror"
    run(*configure, f"-DCMAKE_PREFIX_PATH={folder / 'sdk'}", f"-DCMAKE_CXX_FLAGS={strict}")
    run("cmake", "--build", folder / "build")
    (library,) = (folder / "build").rglob("*.so")
    (folder / "plugins").mkdir()
    return Path(shutil.copy(library, folder / "plugins"))


def infer(plugin: Path, model: Path, backend: str, inputs: dict, folder: Path) -> dict:
    out = folder / backend
    out.mkdir()
    np.savez(out / "inputs.npz", **inputs)
    run(
        *[TENON, "--plugin-path", plugin.parent, "infer", model, "--backend", backend],
        *["--input", out / "inputs.npz", "--output-dir", out],
    )
    return {path.stem: np.load(path) for path in sorted(out.glob("*.npy"))}


def described(plugin: Path, model: Path, shapes: dict) -> dict:
    given = [part for name, dims in shapes.items() for part in ("--shape", f"{name}={dims}")]
    command = [TENON, "--plugin-path", plugin.parent, "bench", model, "--backend", BACKEND]
    return json.loads(run(*command, *given, "--layers", "--json"))


def same(plugin: Path, model: Path, inputs: dict, folder: Path) -> None:
    ours = infer(plugin, model, BACKEND, inputs, folder)
    reference = infer(plugin, model, "reference", inputs, folder)
    assert ours.keys() == reference.keys()
    for name, expected in reference.items():
        most = np.abs(expected).max()
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=2e-5 * most, err_msg=name)


def save(path: Path, nodes: list, inputs: dict, outputs: list, weights: dict) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "small",
        [value(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()],
        [value(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def residual_block(path: Path, random, groups: int, stride: int) -> Path:
    """Two convolutions with bias, a sum and Relu, then a pool and a Gemm."""
    node = helper.make_node
    f = lambda *size: random.normal(size=size).astype("f")  # noqa: E731
    weights = {
        "w1": f(8, 6 // groups, 3, 3),
        "b1": f(8),
        "w2": f(8, 6, 1, 1),
        "w3": f(8, 5),
        "b3": f(5),
    }
    nodes = [
        node(
            "Conv",
            ["x", "w1", "b1"],
            ["a"],
            "c1",
            group=groups,
            pads=[1, 2, 0, 1],
            strides=[stride, 1],
            dilations=[1, 2],
        ),
        node("Relu", ["a"], ["b"], "r1"),
        node("Conv", ["x", "w2"], ["c"], "c2", strides=[stride, 1]),
        node("Shape", ["b"], ["shape"], "shape"),
        node("Resize", ["c", "", "", "shape"], ["d"], "resize", mode="nearest"),
        node("Add", ["d", "b"], ["e"], "sum"),
        node("Relu", ["e"], ["g"], "r2"),
        node("GlobalAveragePool", ["g"], ["h"], "pool"),
        node("Flatten", ["h"], ["i"], "flat"),
        node("Gemm", ["i", "w3", "b3"], ["y"], "gemm", alpha=0.5),
    ]
    return save(path, nodes, {"x": [2, 6, 9, 33]}, ["y", "g"], weights)


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (2, 2)])
def test_a_residual_block_is_the_references(plugin, tmp_path, groups, stride):
    random = np.random.default_rng(groups)
    model = residual_block(tmp_path / "block.onnx", random, groups, stride)

    same(plugin, model, {"x": random.normal(size=(2, 6, 9, 33)).astype("f")}, tmp_path)
    report = described(plugin, model, {})
    assert report["fallback_nodes"] == []
    kernels = {layer["kernel"] for layer in report["layers"]}
    assert {"plain:product", "plain:convolution"} <= kernels


def test_products_are_the_references(plugin, tmp_path):
    """Stacks of both operands, one matrix for all, transposed ones, sizes that are no multiple."""
    random = np.random.default_rng(5)
    f = lambda *size: random.normal(size=size).astype("f")  # noqa: E731
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["a"], "one"),
        node("Add", ["a", "bias"], ["b"], "bias"),
        node("Add", ["b", "x"], ["c"], "sum"),
        node("Transpose", ["c"], ["ct"], "turn", perm=[0, 2, 1]),
        node("MatMul", ["c", "ct"], ["s"], "scores"),
        node("Softmax", ["s"], ["p"], "softmax"),
        node("MatMul", ["p", "c"], ["y"], "mix"),
        node("MatMul", ["row", "w"], ["z"], "row"),
        node("MatMul", ["m", "x"], ["stretched"], "stretched"),
        node("Gemm", ["m", "w2"], ["g"], "gemm", transA=1, transB=1, alpha=2.0),
    ]
    weights = {"w": f(35, 35), "bias": f(35), "row": f(35), "m": f(7, 7), "w2": f(3, 7)}
    model = save(
        tmp_path / "products.onnx", nodes, {"x": [3, 7, 35]}, ["y", "z", "stretched", "g"], weights
    )

    same(plugin, model, {"x": f(3, 7, 35)}, tmp_path)
    assert described(plugin, model, {})["fallback_nodes"] == []


def test_the_check_passes(plugin):
    for component in json.loads(run(TENON, "plugin", "check", plugin, "--json")):
        assert [one for one in component["checks"] if one["result"] == "failed"] == []


def test_it_is_small():
    files = [path for path in EXAMPLE.iterdir() if path.is_file()]
    assert sum(len(path.read_text().splitlines()) for path in files) <= AT_MOST


REAL = {
    "resnet50": {"image": "1x3x224x224"},
    "minilm": {"input_ids": "2x24", "attention_mask": "2x24", "token_type_ids": "2x24"},
}


@pytest.mark.parametrize("name", REAL)
def test_a_real_model_is_the_references(plugin, tmp_path, name):
    model = MODELS / f"{name}.onnx"
    if not model.exists():
        pytest.skip(f"scripts/fetch {name} brings it")
    random = np.random.default_rng(7)
    sizes = {key: [int(d) for d in dims.split("x")] for key, dims in REAL[name].items()}
    inputs = {key: random.normal(size=dims).astype("f") for key, dims in sizes.items()}
    if name == "minilm":
        inputs = {key: np.ones(dims, "int64") for key, dims in sizes.items()}
        inputs["input_ids"] = random.integers(5, 20000, (2, 24))

    same(plugin, model, inputs, tmp_path)
    assert described(plugin, model, REAL[name])["fallback_nodes"] == []
