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
