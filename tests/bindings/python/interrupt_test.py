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
