# SPDX-License-Identifier: Apache-2.0
"""Products of two computed matrices on AMX tiles beside oneDNN's, over many shapes.

.venv/bin/python tests/bench/onednn/computed.py [--without bf16x6] [--shapes 100] [--seed 1]

Such are the products of a training step: of activations and weights, of gradients and weights
that are transposed, of activations that are transposed and gradients. Both plans of a shape run in
turn on two threads; a line has rows, columns, the length of the sums and the order of the operands
(nn, nt, tn: which one is transposed), the shortest times of all steps in both plans in us, and
their ratio (above 1: this backend's kernel is faster). The last line is the geometric mean of the
ratios with its 95 % interval over shapes, and the least.
"""

import argparse
import itertools
import math
import random
import tempfile
from pathlib import Path

import numpy as np
import onnx
import tenon as tn
from onnx import TensorProto, helper
from shapes import shortest, summary

ROWS = (16, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096)
COLUMNS = (10, 16, 32, 48, 64, 100, 128, 256, 384, 512, 768, 1024, 1536, 3072)
DEPTHS = (32, 48, 64, 128, 256, 384, 768, 1024, 1536, 2048, 3072)
ORDERS = ("nn", "nt", "tn")
PRODUCTS = (100_000, 3_000_000_000)


def model(folder: Path, rows: int, columns: int, depth: int, order: str) -> Path:
    a = (depth, rows) if order[0] == "t" else (rows, depth)
    b = (columns, depth) if order[1] == "t" else (depth, columns)
    value = helper.make_tensor_value_info
    flags = {"transA": int(order[0] == "t"), "transB": int(order[1] == "t")}
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["a", "b"], ["y"], **flags)],
        "product",
        [value("a", TensorProto.FLOAT, a), value("b", TensorProto.FLOAT, b)],
        [value("y", TensorProto.FLOAT, (rows, columns))],
    )
    path = folder / "product.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def drawn(count: int, seed: int) -> list[tuple]:
    shapes = list(itertools.product(ROWS, COLUMNS, DEPTHS, ORDERS))
    random.Random(seed).shuffle(shapes)
    least, most = PRODUCTS
    return [shape for shape in shapes if least <= math.prod(shape[:3]) <= most][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", default="bf16x6", help="implementation left out for oneDNN's")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    theirs, ours = [], []
    draw = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for rows, columns, depth, order in drawn(arguments.shapes, arguments.seed):
            loaded = tn.load(str(model(Path(folder), rows, columns, depth, order)))
            options = {"backend": "onednn", "precision": arguments.precision, "threads": 2}
            plans = [
                loaded.compile(**options, without=without) for without in ([arguments.without], [])
            ]
            inputs = {
                value.name: draw.standard_normal(value.shape, dtype="f") for value in loaded.inputs
            }
            there, here = shortest(plans, inputs, arguments.runs)
            theirs.append(there)
            ours.append(here)
            text = f"{rows} x {columns} x {depth} {order}"
            print(f"{text:24} {there:9.1f} {here:9.1f} {there / here:6.2f}", flush=True)
    print(summary(theirs, ours))


if __name__ == "__main__":
    main()
