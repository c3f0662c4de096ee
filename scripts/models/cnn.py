# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks with random weights whose activations stay sane.

Each layer is added to the graph and run in NumPy on a few images at once. Batch normalization takes
its running statistics from that run, so that values neither fade nor blow up over fifty layers.
Statistics only have to be sane, so a layer's are taken from the probe images alone.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto

from models.graph import Graph


def pad_images(x: np.ndarray, pad: int, value=0.0) -> np.ndarray:
    edges = ((0, 0), (0, 0), (pad, pad), (pad, pad))
    return np.pad(x, edges, constant_values=np.float32(value))


def windows(x: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    """[n, c, h_out, w_out, kernel, kernel], a view."""
    return sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]


def conv2d(x: np.ndarray, weight: np.ndarray, stride: int, pad: int, groups: int) -> np.ndarray:
    """x: [n, c, h, w]; weight: [m, c / groups, k, k]; groups is 1 or c."""
    kernel = weight.shape[2]
    view = windows(pad_images(x, pad), kernel, stride)
    if groups > 1:
        return np.einsum("nchwij,cij->nchw", view, weight[:, 0])
    n, _, h, w = view.shape[:4]
    columns = view.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1)
    flat = columns @ weight.reshape(len(weight), -1).T
    return np.ascontiguousarray(flat.reshape(n, h, w, -1).transpose(0, 3, 1, 2))


def probe_images(rng, n_images: int, size: int) -> np.ndarray:
    """Smooth random images with some noise, about mean 0 and deviation 1."""
    coarse = rng.standard_normal((n_images, 3, 8, 8), dtype=np.float32)
    smooth = coarse.repeat(size // 8, axis=2).repeat(size // 8, axis=3)
    return smooth + 0.3 * rng.standard_normal(smooth.shape, dtype=np.float32)


class ProbedCnn:
    """A graph together with the value of each of its tensors on the probe images."""

    def __init__(self, name: str, seed: int, size: int = 224, n_images: int = 2):
        self.graph = Graph(name)
        self.rng = np.random.default_rng(seed)
        self.values = {"image": probe_images(self.rng, n_images, size)}
        self.graph.input("image", TensorProto.FLOAT, ["batch", 3, size, size])

    def keep(self, name: str, value: np.ndarray) -> str:
        self.values[name] = value
        return name

    def conv(self, x: str, name: str, n_out: int, kernel: int, stride: int = 1, groups: int = 1):
        """Convolution without bias, He-initialized (He et al., 2015, equation 10)."""
        n_in = self.values[x].shape[1] // groups
        deviation = np.float32(np.sqrt(2 / (n_in * kernel * kernel)))
        dims = (n_out, n_in, kernel, kernel)
        weight = self.rng.standard_normal(dims, dtype=np.float32) * deviation
        pad = kernel // 2
        self.graph.node(
            "Conv",
            [x, self.graph.constant(name + ".weight", weight)],
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            dilations=[1, 1],
            group=groups,
        )
        return self.keep(name, conv2d(self.values[x], weight, stride, pad, groups))

    def norm(self, x: str, name: str, gain: float = 1.0) -> str:
        """Batch normalization; gain scales the branch that a residual sum receives."""
        value = self.values[x]
        mean = value.mean(axis=(0, 2, 3))
        variance = value.var(axis=(0, 2, 3)) + np.float32(1e-3)
        channels = len(mean)
        scale = (self.rng.uniform(0.5, 1.5, channels) * gain).astype(np.float32)
        shift = (self.rng.normal(0, 0.2, channels) * gain).astype(np.float32)
        parts = {"weight": scale, "bias": shift, "running_mean": mean, "running_var": variance}
        inputs = [x] + [self.graph.constant(f"{name}.{key}", part) for key, part in parts.items()]
        self.graph.node("BatchNormalization", inputs, name, epsilon=1e-5)
        factor = scale / np.sqrt(variance + np.float32(1e-5))
        offset = shift - mean * factor
        return self.keep(name, value * factor[:, None, None] + offset[:, None, None])

    def relu(self, x: str, name: str) -> str:
        self.graph.node("Relu", [x], name)
        return self.keep(name, np.maximum(self.values[x], 0))

    def relu6(self, x: str, name: str) -> str:
        low = self.graph.constant("relu6.low", np.float32(0))
        high = self.graph.constant("relu6.high", np.float32(6))
        self.graph.node("Clip", [x, low, high], name)
        return self.keep(name, np.clip(self.values[x], 0, 6))

    def add(self, a: str, b: str, name: str) -> str:
        self.graph.node("Add", [a, b], name)
        return self.keep(name, self.values[a] + self.values[b])

    def max_pool(self, x: str, name: str) -> str:
        """3x3, stride 2, padding 1."""
        self.graph.node(
            "MaxPool", [x], name, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
        )
        padded = pad_images(self.values[x], 1, -np.inf)
        return self.keep(name, windows(padded, 3, 2).max(axis=(4, 5)))

    def classify(self, x: str, n_classes: int) -> None:
        """Global average, flatten, one dense layer: the graph's output 'logits'."""
        self.graph.node("GlobalAveragePool", [x], "pool")
        self.graph.node("Flatten", ["pool"], "features", axis=1)
        n_in = self.values[x].shape[1]
        weight = self.rng.standard_normal((n_classes, n_in), dtype=np.float32)
        weight /= np.float32(np.sqrt(n_in))
        inputs = ["features", self.graph.constant("fc.weight", weight)]
        inputs.append(self.graph.constant("fc.bias", np.zeros(n_classes, np.float32)))
        self.graph.node("Gemm", inputs, "logits", transB=1)
        self.graph.output("logits", ["batch", n_classes])
        self.keep("logits", self.values[x].mean(axis=(2, 3)) @ weight.T)
