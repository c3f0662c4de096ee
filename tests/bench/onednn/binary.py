# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products of signs beside the same in fp32, bf16 and int8: models of one layer.

.venv/bin/python tests/bench/onednn/binary.py [--threads 1] [--rounds 200]

All models take the same floats, channels-last, and give floats: binary packs its signs, int8
quantizes its input with one scale, and each is what the backend chooses for it: minimal filtering
in fp32 included, without it in the column `direct`.
Plans run in turns; medians in us, and how many times faster binary is than each, with the 95 %
interval of the mean of paired logarithms.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import tenon
from onnx import TensorProto, helper, numpy_helper

# channels in, channels out, side, window; side 0: a product of so many rows
LAYERS = [
    (256, 256, 14, 3),
    (256, 256, 28, 3),
    (512, 512, 7, 3),
    (128, 128, 28, 3),
    (64, 64, 56, 3),
    (256, 256, 14, 1),
    (256, 256, -256, 1),
    (1024, 1024, -128, 1),
    (1024, 1024, -1, 1),
]


def constants_of(kind, w, scale):
    made = {"one": np.float32(1), "minus": np.float32(-1), "zero": np.float32(0)}
    if kind == "float":
        return made | {"w": (w * 0.02).astype("f")}
    rng = np.random.default_rng(2)
    codes = w if kind == "binary" else rng.integers(-127, 128, w.shape)
    return made | {
        "codes": codes.astype(np.int8),
        "scale": scale,
        "step": np.float32(1 / 64),
        "middle": np.uint8(128),
    }


def model(folder, kind, layer):
    c, n, side, window = layer
    is_conv = side > 0
    rng = np.random.default_rng(1)
    shape = [1, side, side, c] if is_conv else [-side, c]
    w = rng.choice([-1, 1], (n, c, window, window) if is_conv else (c, n))
    constants = constants_of(kind, w, np.full(n, 0.02, "f"))
    nodes, x = [], "x"
    if is_conv:  # a view: inside of a network activations lie channels-last
        nodes.append(helper.make_node("Transpose", ["x"], ["image"], perm=[0, 3, 1, 2]))
        x = "image"
    if kind == "binary":
        nodes += [
            helper.make_node("GreaterOrEqual", [x, "zero"], ["is"]),
            helper.make_node("Where", ["is", "one", "minus"], ["s"]),
        ]
        x = "s"
    elif kind == "int8":
        nodes += [
            helper.make_node("QuantizeLinear", [x, "step", "middle"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "step", "middle"], ["d"]),
        ]
        x = "d"
    if kind != "float":
        axis = 0 if is_conv else 1
        nodes.append(helper.make_node("DequantizeLinear", ["codes", "scale"], ["w"], axis=axis))
    if is_conv:
        nodes.append(helper.make_node("Conv", [x, "w"], ["c"], pads=[window // 2] * 4))
        nodes.append(helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]))
    else:
        nodes.append(helper.make_node("MatMul", [x, "w"], ["y"]))
    read = {i for node in nodes for i in node.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), k) for k, a in constants.items() if k in read],
    )
    path = folder / f"{kind}.onnx"
    onnx.save(
        helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path
    )
    return str(path), rng.uniform(-1, 1, shape).astype("f")


def layers_of(plan):
    return [layer for part in plan.describe()["partitions"] for layer in part["layers"]]


def ratio(others, ours):
    logs = sorted(math.log(a / b) for a, b in zip(others, ours, strict=True))
    logs = logs[len(logs) // 10 : len(logs) - len(logs) // 10]
    mean = statistics.fmean(logs)
    half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):5.1f} [{math.exp(mean - half):.1f}, {math.exp(mean + half):.1f}]"


def compare(layer, arguments):
    kinds = {
        "binary": ("binary", {}),
        "fp32": ("float", {}),
        "direct": ("float", {"winograd": "off"}),
        "bf16": ("float", {"precision": "bf16"}),
        "int8": ("int8", {}),
    }
    plans, times = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (kind, options) in kinds.items():
            path, x = model(Path(folder), kind, layer)
            plans[name] = tenon.load(path).compile(
                backend="onednn", threads=arguments.threads, **options
            )
            times[name] = []
    for turn in range(arguments.rounds + 10):
        for name, plan in plans.items():
            begin = time.perf_counter()
            plan(x)
            if turn >= 10:
                times[name].append((time.perf_counter() - begin) * 1e6)
    assert "tenon:binary_product" in [layer["kernel"] for layer in layers_of(plans["binary"])]
    c, n, side, window = layer
    shape = f"{window}x{window}, {side}x{side}" if side > 0 else f"{-side} rows"
    medians = " ".join(f"{statistics.median(t):8.1f}" for t in times.values())
    ratios = "  ".join(ratio(times[name], times["binary"]) for name in list(times)[1:])
    print(f"{shape:12} {c:4} -> {n:4}  {medians}  {ratios}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="the first so many")
    arguments = parser.parse_args()
    print(
        f"us with {arguments.threads} threads: binary, fp32, direct, bf16, int8; each over binary"
    )
    for layer in LAYERS[: arguments.layers]:
        compare(layer, arguments)


if __name__ == "__main__":
    main()
