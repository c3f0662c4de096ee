# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions in bf16 by this backend's kernel beside oneDNN's, over many shapes.

.venv/bin/python tests/bench/onednn/depthwise.py [--shapes 70] [--runs 12] [--seed 1]

Shapes are drawn from batches of 1 and 8, 16 to 960 channels, images of 7 to 112 pixels, windows of
3, 5 and 7 and strides of 1 and 2. Both plans of a shape run in turn on two threads; a line has the
ratio of the shortest times of the layer (above 1: this backend's kernel is faster), and both in us.
The last line is the geometric mean of the ratios and its 95 % interval over shapes.
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
from onnx import TensorProto, helper, numpy_helper

BATCHES = (1, 8)
CHANNELS = (16, 24, 32, 40, 96, 144, 240, 480, 960)
SIDES = (112, 56, 28, 14, 7)
WINDOWS = (3, 5, 7)
STRIDES = (1, 2)
LEAST, MOST = 16384, 8_000_000  # elements: smaller results stay in fp32
LAYER = "depthwise"


def model(folder: Path, images: int, channels: int, side: int, window: int, stride: int) -> Path:
    """A pointwise convolution in front, so that the layer reads bf16, and a mean behind."""
    draw = np.random.default_rng(0)
    weights = {
        "first": np.eye(channels, dtype="f").reshape(channels, channels, 1, 1),
        "w": draw.uniform(-1, 1, (channels, 1, window, window)).astype("f"),
        "b": draw.uniform(-1, 1, channels).astype("f"),
    }
    window_of = {"group": channels, "pads": [window // 2] * 4, "strides": [stride] * 2}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["y"]),
        helper.make_node("Conv", ["y", "w", "b"], ["z"], name=LAYER, **window_of),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["mean"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        LAYER,
        [value("x", TensorProto.FLOAT, (images, channels, side, side))],
        [value("mean", TensorProto.FLOAT, (images, channels, 1, 1))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "depthwise.onnx"
    onnx.save(made, path)
    return path


def shortest(plans: list, x: np.ndarray, runs: int) -> list[float]:
    """Of the layer in each plan, in us."""
    best = [math.inf] * len(plans)
    for _ in range(runs):
        for i, plan in enumerate(plans):
            layer = next(row for row in plan.profile(x=x) if row["name"] == LAYER)
            best[i] = min(best[i], layer["ns"] / 1e3)
    return best


def drawn(count: int, seed: int) -> list[tuple]:
    shapes = list(itertools.product(BATCHES, CHANNELS, SIDES, WINDOWS, STRIDES))
    random.Random(seed).shuffle(shapes)
    sized = [s for s in shapes if LEAST <= s[0] * s[1] * (s[2] // s[4]) ** 2]
    return [s for s in sized if s[0] * s[1] * s[2] ** 2 <= MOST][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=70)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logs = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in drawn(arguments.shapes, arguments.seed):
            loaded = tn.load(str(model(Path(folder), *shape)))
            options = {"backend": "onednn", "precision": "bf16", "threads": 2}
            plans = [
                loaded.compile(**options, without=["float depthwise"]),
                loaded.compile(**options),
            ]
            x = np.random.default_rng(1).standard_normal((*shape[:2], shape[2], shape[2]))
            theirs, ours = shortest(plans, x.astype("f"), arguments.runs)
            logs.append(math.log(theirs / ours))
            text = " x ".join(map(str, shape))
            print(f"{text:28} {theirs:9.1f} {ours:9.1f} {theirs / ours:6.2f}", flush=True)
    mean = sum(logs) / len(logs)
    half = 2 * (sum((x - mean) ** 2 for x in logs) / max(1, len(logs) - 1) / len(logs)) ** 0.5
    low, high = math.exp(mean - half), math.exp(mean + half)
    print(f"{len(logs)} shapes: {math.exp(mean):.2f} [{low:.2f}, {high:.2f}], slowest", end=" ")
    print(f"{math.exp(min(logs)):.2f}")


if __name__ == "__main__":
    main()
