# SPDX-License-Identifier: Apache-2.0
"""One call that would never end: Ctrl-C ends it, and the plan is of use afterwards."""

import subprocess
import sys

import pytest
import tenon

pytest.importorskip("onnx")

PROGRAM = """
import os, signal, threading
import numpy as np
from onnx import TensorProto, helper
from tenon import onnx_backend

def port(name, dtype, *shape):
    return helper.make_tensor_value_info(name, dtype, shape)

nodes = [helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["a", "a"], ["a2"])]
F, B = TensorProto.FLOAT, TensorProto.BOOL
before = [port("i", TensorProto.INT64), port("c", B), port("a", F, 2)]
after = [port("c2", TensorProto.BOOL), port("a2", TensorProto.FLOAT, 2)]
loop = helper.make_node(
    "Loop", ["", "go", "x"], ["y"], body=helper.make_graph(nodes, "body", before, after)
)
if INSIDE:  # the endless loop in the body of another node
    done = helper.make_graph([loop], "then", [], [port("y", F, 2)])
    kept = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["z"])], "else", [], [port("z", F, 2)]
    )
    loop = helper.make_node("If", ["go"], ["y"], then_branch=done, else_branch=kept)
ports = [port("go", TensorProto.BOOL), port("x", TensorProto.FLOAT, 2)]
graph = helper.make_graph([loop], "graph", ports, [port("y", TensorProto.FLOAT, 2)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
plan = onnx_backend.prepare(model, BACKEND).plan
x = np.ones(2, "float32")
plan(np.array(False), x)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    plan(np.array(True), x)
except KeyboardInterrupt:
    print("stopped")
print(plan(np.array(False), x)[0].tolist())
"""


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("inside", [False, True])
def test_an_endless_loop_is_stopped(inside, backend):
    if "onnx" not in [plugin["id"] for plugin in tenon.plugins()]:
        pytest.skip("the plugin onnx is not built")

    done = subprocess.run(
        [sys.executable, "-c", f"INSIDE, BACKEND = {inside}, '{backend}'\n{PROGRAM}"],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.stdout == "stopped\n[1.0, 1.0]\n", done.stderr


TRAINING = """
import os, signal, sys, threading
import numpy as np
import tenon as tn

x = np.random.default_rng(0).normal(size=(4000, 8)).astype("f")
rows = {"x": x, "label": (x.sum(1) > 0).astype("i8")}
model = tn.nn.build(tn.nn.Linear(2), {"x": ("N", 8)}, seed=1)
def begun(point):
    if point["step"] == 3 and not sys.argv[2:]:
        os.kill(os.getpid(), signal.SIGINT)
options = {"epochs": 2, "batch": 4, "callbacks": tn.callback(step=begun)}
if sys.argv[1]:
    options["run"] = sys.argv[1]
print(tn.train(model, rows, resume=len(sys.argv) > 2, **options).report["steps"])
"""


def trained(*arguments):
    command = [sys.executable, "-c", TRAINING, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_training_that_is_stopped_says_how_to_go_on(tmp_path):
    run = str(tmp_path / "run")
    stopped = trained(run)
    assert f"go on with run={run!r}, resume=True" in stopped.stderr, stopped.stderr
    assert trained(run, "resumed").stdout.split() == ["2000"]
    assert "nothing was kept: give run" in trained("").stderr
