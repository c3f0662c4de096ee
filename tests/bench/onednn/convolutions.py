# SPDX-License-Identifier: Apache-2.0
"""Convolutions in bf16 and f32 by this backend's kernels beside oneDNN's, over many shapes.

.venv/bin/python tests/bench/onednn/convolutions.py KIND [--shapes 70] [--runs 12] [--seed 1]

depthwise: a window over each channel alone. windows: windows of 3 and 5 over all channels, which
run on AMX tiles. pixels: windows of one pixel, the same; residual: with a residual behind them.
first: windows over the few channels of an input in f32, the same; wide: windows of 5 to 7 of
those, with strides. split: windows of one pixel in f32, as sums of bf16 parts on tiles; products of
matrices run in the same kernel; split residual: with a residual behind them; split windows: windows
of 3 over all channels, beside Winograd's algorithm or oneDNN. Shapes are drawn from
the table of the kind. Both plans of a shape run in turn on two threads; a line has
images, channels, filters, pixels of a side, window and stride, the shortest times of the layer in
both plans in us, with the reorder of an input, and their ratio (above 1: this backend's kernel is
faster). The last line is the geometric mean of the ratios with its 95 % interval over shapes, and
the least.
"""

import argparse
import itertools
import random
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import tenon as tn
from onnx import TensorProto, helper, numpy_helper
from shapes import shortest, summary

LAYER = "layer"
LEAST = {"bf16": 16384, "fp32": 1024}  # elements: smaller results stay in fp32
MOST = 8_000_000


@dataclass(frozen=True)
class Kind:
    """One kind of layer: what is left out for oneDNN's kernel, and the table of shapes."""

    without: str
    channels: tuple[int, ...]
    filters: tuple[int, ...]  # 0: as many as channels, each over its own alone
    sides: tuple[int, ...]
    windows: tuple[int, ...]
    strides: tuple[int, ...] = (1, 2)
    reads_input: bool = False
    has_residual: bool = False
    precision: str = "bf16"
    rival: str = ""  # left out where this backend's kernel is wanted: another one of its own


KINDS = {
    "depthwise": Kind(
        "float depthwise",
        channels=(16, 24, 32, 40, 96, 144, 240, 480, 960),
        filters=(0,),
        sides=(112, 56, 28, 14, 7),
        windows=(3, 5, 7),
    ),
    "windows": Kind(
        "amx windows",
        channels=(32, 64, 96, 128, 256, 512),
        filters=(32, 48, 64, 128, 256, 512),
        sides=(56, 28, 14, 7),
        windows=(3, 5),
    ),
    "pixels": Kind(
        "amx",
        channels=(128, 256, 384, 512, 1024, 2048),
        filters=(32, 48, 64, 96, 128, 256, 512, 1024, 2048),
        sides=(56, 28, 14, 7),
        windows=(1,),
    ),
    "first": Kind(
        "amx planes",
        channels=(1, 3, 4),
        filters=(16, 24, 32, 40, 48, 64, 96),
        sides=(28, 64, 96, 128, 224, 320),
        windows=(2, 3, 4, 5, 7),
        strides=(1, 2, 4),
        reads_input=True,
    ),
}
KINDS["split"] = Kind(
    "bf16x6",
    channels=(16, 32, 48, 64, 96, 128, 192, 256, 384, 768, 1024, 2048),
    filters=(16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048),
    sides=(56, 28, 20, 14, 10, 7, 6),
    windows=(1,),
    strides=(1,),
    precision="fp32",
)
KINDS["split windows"] = Kind(
    "bf16x6",
    channels=(32, 64, 96, 128, 256, 512),
    filters=(32, 48, 64, 96, 128, 256, 512),
    sides=(56, 28, 14, 7),
    windows=(3,),
    strides=(1, 1, 2),
    precision="fp32",
    rival="winograd",
)
KINDS["split residual"] = replace(KINDS["split"], has_residual=True)
KINDS["residual"] = replace(KINDS["pixels"], strides=(1,), has_residual=True)
KINDS["wide"] = replace(
    KINDS["first"],
    filters=(32, 64, 96, 128),
    sides=(64, 96, 128, 224, 320),
    windows=(5, 6, 7),
    strides=(2, 3, 4),
)
BATCHES = (1, 8)


def model(folder: Path, kind: Kind, images, channels, filters, side, window, stride) -> Path:
    """A mean behind the layer; in front of all but a first one, a pointwise one makes bf16."""
    draw = np.random.default_rng(0)
    results, seen = (filters, channels) if filters else (channels, 1)
    weights = {
        "first": np.eye(channels, dtype="f").reshape(channels, channels, 1, 1),
        "w": draw.uniform(-1, 1, (results, seen, window, window)).astype("f"),
        "b": draw.uniform(-1, 1, results).astype("f"),
    }
    groups = 1 if filters else channels
    geometry = {"group": groups, "pads": [window // 2] * 4, "strides": [stride] * 2}
    source = "x" if kind.reads_input else "y"
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["y"]),
        helper.make_node("Conv", [source, "w", "b"], ["z"], name=LAYER, **geometry),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["mean"]),
    ]
    if kind.reads_input:
        del nodes[0], weights["first"]
    if kind.has_residual:
        weights["other"] = draw.uniform(-1, 1, (results, seen, 1, 1)).astype("f")
        nodes.insert(0, helper.make_node("Conv", ["x", "other"], ["residual"]))
        nodes[-2:-1] = [
            helper.make_node("Add", ["z", "residual"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["r"]),
        ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        LAYER,
        [value("x", TensorProto.FLOAT, (images, channels, side, side))],
        [value("mean", TensorProto.FLOAT, (images, results, 1, 1))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "layer.onnx"
    onnx.save(made, path)
    return path


def drawn(kind: Kind, count: int, seed: int) -> list[tuple]:
    parts = (BATCHES, kind.channels, kind.filters, kind.sides, kind.windows, kind.strides)
    shapes = list(itertools.product(*parts))
    random.Random(seed).shuffle(shapes)

    def is_sized(images, channels, filters, side, window, stride) -> bool:
        results = images * (filters or channels) * (side // stride) ** 2
        return results >= LEAST[kind.precision] and images * channels * side**2 <= MOST

    return [shape for shape in shapes if is_sized(*shape)][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--shapes", type=int, default=70)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kind = KINDS[arguments.kind]
    names = {LAYER, "reorder source " + LAYER} if kind.reads_input else {LAYER}
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        for shape in drawn(kind, arguments.shapes, arguments.seed):
            loaded = tn.load(str(model(Path(folder), kind, *shape)))
            options = {"backend": "onednn", "precision": kind.precision, "threads": 2}
            rivals = [kind.rival] if kind.rival else []
            plans = [
                loaded.compile(**options, without=without) for without in ([kind.without], rivals)
            ]
            images, channels, _, side = shape[:4]
            x = np.random.default_rng(1).standard_normal((images, channels, side, side))
            there, here = shortest(plans, {"x": x.astype("f")}, arguments.runs, names)
            theirs.append(there)
            ours.append(here)
            text = " x ".join(map(str, shape))
            print(f"{text:32} {there:9.1f} {here:9.1f} {there / here:6.2f}", flush=True)
    print(summary(theirs, ours))


if __name__ == "__main__":
    main()
