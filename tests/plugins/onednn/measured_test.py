# SPDX-License-Identifier: Apache-2.0
"""Choices by measured times, from outside: one process measures, the next ones build the same."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper, numpy_helper

# Compiles with the options that it is given, and prints what it chose and a hash of the results.
RUN = """
import hashlib, json, sys
import numpy as np
import tenon as tn

options = json.loads(sys.argv[2])
plan = tn.load(sys.argv[1]).compile(backend="onednn", threads=2, **options)
x = np.random.default_rng(0).standard_normal((1200, 64)).astype("float32")
y = plan(x0=x)[0]
parts = plan.describe()["partitions"]
print(json.dumps({
    "choices": [line for part in parts for line in part["choices"]],
    "chosen": [layer["implementation"] for part in parts for layer in part["layers"]],
    "measured": [layer["measured"] for part in parts for layer in part["layers"]
                 if "measured" in layer],
    "bits": hashlib.sha256(y.tobytes()).hexdigest(),
}))
"""

RULED = "onednn + epilogue"
OURS = "f32 gemm"


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    """Products of so many rows that the rules give them to oneDNN; two of the layers are equal."""
    random = np.random.default_rng(1)
    nodes, weights = [], []
    for i in range(3):
        numbers = random.standard_normal((64, 64)).astype("float32") / 8
        weights.append(numpy_helper.from_array(numbers, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Relu", [f"p{i}"], [f"x{i + 1}"]))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1200, 64]) for n in ("x0", "x3")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    path = tmp_path / "products.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def cache(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "cache"


def start(model: pathlib.Path, cache: pathlib.Path, options: dict) -> subprocess.Popen:
    options = {"without": ["bf16x6"]} | options  # the same implementations on every CPU
    return subprocess.Popen(
        [sys.executable, "-c", RUN, model, json.dumps(options)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result_of(process: subprocess.Popen) -> dict:
    out, warnings = process.communicate()
    assert process.returncode == 0, warnings
    return {**json.loads(out), "warnings": warnings}


def run(model: pathlib.Path, cache: pathlib.Path, **options: object) -> dict:
    return result_of(start(model, cache, options))


def only_file(cache: pathlib.Path) -> pathlib.Path:
    (found,) = (cache / "tenon/onednn").iterdir()
    return found


def built(result: dict) -> tuple:
    return result["chosen"], result["bits"]


def flipped(line: str) -> str:
    """The same decision for the other one."""
    key, chosen, *times = line.split("#")
    return "#".join([key, "onednn" if chosen == OURS else OURS, *times])


def test_rules_need_no_disk(model, cache):
    ruled = run(model, cache)
    assert ruled["chosen"] == [RULED] * 3
    assert ruled["choices"] == ruled["measured"] == []
    assert not cache.exists()


def test_what_is_measured_holds_for_later_processes(model, cache):
    first = run(model, cache, choose="measured")
    assert len(first["choices"]) == 2
    assert [len(times) for times in first["measured"]] == [2] * 3
    kept = only_file(cache).read_bytes()
    for options in (
        {"choose": "measured"},
        {"choose": "measured", "deterministic": True},
        {"choose": "kept"},
    ):
        later = run(model, cache, **options)
        assert built(later) == built(first)
        assert later["choices"] == first["choices"]
        assert later["measured"] == first["measured"]
    assert only_file(cache).read_bytes() == kept
    assert first["warnings"] == later["warnings"] == ""


def test_processes_that_begin_together_build_the_same(model, cache):
    options = {"choose": "measured"}
    results = [result_of(each) for each in [start(model, cache, options) for _ in range(4)]]
    assert len({json.dumps(each["choices"]) for each in results}) == 1
    assert len({each["bits"] for each in results}) == 1


@pytest.mark.parametrize(
    "more", [{"choose": "kept"}, {"choose": "measured", "deterministic": True}]
)
def test_without_a_clock_the_rules_fill_in(model, cache, more):
    assert built(run(model, cache, **more)) == built(run(model, cache))
    assert not cache.exists()


def test_choices_that_a_plan_reported_are_built_again(model, cache, tmp_path):
    first = run(model, cache, choose="measured")
    others = [flipped(line) for line in first["choices"]]
    given = run(model, tmp_path / "nothing", choices=others)
    assert given["choices"] == others
    assert [name == OURS for name in given["chosen"]] == [name != OURS for name in first["chosen"]]
    assert not (tmp_path / "nothing").exists()
    # They come before what is kept here.
    assert built(run(model, cache, choose="measured", choices=others)) == built(given)
    assert built(run(model, cache, choose="kept")) == built(first)


def test_lines_that_are_none_are_named(model):
    with pytest.raises(tn.errors.InvalidArgument, match="option choices: .*, got no line"):
        tn.load(model).compile(backend="onednn", choices=["MatMul#onednn", "no line"])


@pytest.mark.parametrize("size", [0, 10, -20])
def test_a_damaged_file_is_left_out_with_a_warning(model, cache, size):
    first = run(model, cache, choose="measured")
    path = only_file(cache)
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    read = run(model, cache, choose="kept")
    assert ("damaged" in read["warnings"]) == (size != 0)
    assert path.read_bytes() == whole[:size]
    again = run(model, cache, choose="measured")
    assert len(again["choices"]) == len(first["choices"])
    assert built(run(model, cache, choose="kept")) == built(again)


def test_where_nothing_can_be_kept_the_rules_choose(model, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    result = run(model, blocked, choose="measured")
    assert built(result) == built(run(model, tmp_path / "nothing"))
    assert "so that the rules choose" in result["warnings"]
