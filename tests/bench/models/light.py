# SPDX-License-Identifier: Apache-2.0
"""The `light` models of the onnx package: real topologies whose weights are made from a seed here.

In the package each weight is a ConstantOfShape of an initializer with its shape.
"""

import os
import pathlib
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
NORM_PARTS = ("scale", "bias", "mean", "variance")


def roles(graph: onnx.GraphProto) -> dict[str, str]:
    """What each weight is to the node that reads it."""
    found = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if node.op_type == "BatchNormalization" and place > 0:
                found[name] = NORM_PARTS[place - 1]
            elif node.op_type in ("Conv", "Gemm") and place > 0:
                found[name] = ("", "weight", "shift")[place]
            elif node.op_type == "Unsqueeze":
                found.setdefault(name, "scale per channel")
    return found


def filled(role: str, shape, random: np.random.Generator) -> np.ndarray:
    if role == "weight":
        fan_in = np.prod(shape[1:]) if len(shape) > 2 else shape[-1]
        return random.standard_normal(shape) * np.sqrt(2 / fan_in)
    if role in ("scale", "variance", "scale per channel"):
        return random.uniform(0.5, 1.0, shape)
    return random.uniform(-0.1, 0.1, shape)


def obtain(name: str, folder: pathlib.Path) -> pathlib.Path:
    path = folder / f"light_{name}.onnx"
    if path.exists():
        return path
    source = pathlib.Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"
    model = onnx.load(source)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    found = roles(model.graph)
    gone = {n.output[0]: n for n in model.graph.node if n.op_type == "ConstantOfShape"}
    for weight, node in gone.items():
        random = np.random.default_rng(zlib.crc32(f"{name}/{weight}".encode()))
        array = filled(found.get(weight, ""), shapes[node.input[0]], random)
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), weight))
    kept = [node for node in model.graph.node if node.output[0] not in gone]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    onnx.save(model, scratch)
    os.replace(scratch, path)
    return path
