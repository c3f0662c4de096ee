# SPDX-License-Identifier: Apache-2.0
"""Option keep_packed, from outside: later processes map what the first one has packed."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# Prints a hash of the results and the files that are mapped while the plan lives.
RUN = """
import hashlib, json, sys
import numpy as np
import tenon as tn

options = json.loads(sys.argv[2])
plan = tn.load(sys.argv[1]).compile(backend="onednn", threads=2, **options)
x = np.random.default_rng(0).standard_normal((64, 256)).astype("float32")
y = plan(x0=x)[0]
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".packed" in line}
print(json.dumps({"bits": hashlib.sha256(y.tobytes()).hexdigest(), "mapped": sorted(mapped)}))
"""


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    random = np.random.default_rng(1)
    nodes, weights = [], []
    for i in range(3):
        numbers = random.standard_normal((256, 256)).astype("float32") / 16
        weights.append(numpy_helper.from_array(numbers, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 256]) for n in ("x0", "x3")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    path = tmp_path / "products.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def run(model: pathlib.Path, cache: pathlib.Path, **options) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(model), json.dumps(options)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {**json.loads(done.stdout), "stderr": done.stderr}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_later_processes_map_the_files(model, tmp_path, precision):
    cache = tmp_path / "cache"
    plain = run(model, cache, precision=precision)
    assert plain["mapped"] == [] and not cache.exists()
    first = run(model, cache, precision=precision, keep_packed=True)
    kept = sorted(str(path) for path in (cache / "tenon/onednn/packed").iterdir())
    assert len(kept) == 3
    times = {path: os.stat(path).st_ino for path in kept}
    later = run(model, cache, precision=precision, keep_packed=True)
    assert first["mapped"] == later["mapped"] == kept
    assert plain["bits"] == first["bits"] == later["bits"]
    assert times == {path: os.stat(path).st_ino for path in kept}  # none was written again


@pytest.fixture
def int4_models(tmp_path: pathlib.Path) -> list[pathlib.Path]:
    """Two models whose 4-bit weights, which a sum reads as f32, differ by their scales alone."""
    paths = []
    for i, scale in enumerate((0.5, 2.0)):
        scales = numpy_helper.from_array(np.full((256, 16), scale, "float32"), "s")
        weights = helper.make_tensor("w", TensorProto.INT4, (256, 256), list(range(-8, 8)) * 4096)
        attributes = {"axis": 1, "block_size": 16}
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes),
            helper.make_node("Slice", ["d", "begin", "end"], ["part"]),
            helper.make_node("Add", ["x0", "part"], ["y"]),
        ]
        ends = [numpy_helper.from_array(np.array([n]), k) for k, n in (("begin", 0), ("end", 64))]
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 256]) for n in ("x0", "y")]
        graph = helper.make_graph(nodes, "g", info[:1], info[1:], [weights, scales, *ends])
        paths.append(tmp_path / f"int4_{i}.onnx")
        imports = [helper.make_opsetid("", 21)]
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), paths[-1])
    return paths


def test_4_bit_weights_are_found_by_their_scales(int4_models, tmp_path):
    cache = tmp_path / "cache"
    plain = [run(model, cache)["bits"] for model in int4_models]
    assert plain[0] != plain[1]
    first, other, later = (run(int4_models[i], cache, keep_packed=True) for i in (0, 1, 0))
    assert [first["bits"], other["bits"], later["bits"]] == [plain[0], plain[1], plain[0]]
    assert len(first["mapped"]) == 1
    assert first["mapped"] == later["mapped"] != other["mapped"]


def test_damaged_files_are_replaced(model, tmp_path):
    cache = tmp_path / "cache"
    first = run(model, cache, keep_packed=True)
    for path in first["mapped"]:
        with open(path, "r+b") as file:
            file.seek(5000)
            file.write(b"damaged")
    repaired = run(model, cache, keep_packed=True)
    assert "is damaged" in repaired["stderr"]
    assert repaired["bits"] == first["bits"]
    again = run(model, cache, keep_packed=True)
    assert again["bits"] == first["bits"] and "damaged" not in again["stderr"]


def test_a_folder_that_cannot_be_written_is_said(model, tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("a file where the folder should be")
    made = run(model, cache, keep_packed=True)
    assert made["mapped"] == [] and "packed weights are not kept" in made["stderr"]
