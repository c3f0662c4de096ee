# SPDX-License-Identifier: Apache-2.0
"""The networks, once for all engines: a function over `ops` and weights by name.

A network says what its weights are (seeded), what a batch is, and how the loss comes from both.
`ops` is torch_ops or tenon_ops: the same few layers in each engine's own words.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class Weights:
    """Weights by name, drawn as they are asked for: the same in every engine."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.trained: dict[str, np.ndarray] = {}
        self.running: dict[str, np.ndarray] = {}

    def normal(self, name: str, shape: tuple[int, ...], deviation: float) -> None:
        drawn = self._random.standard_normal(shape, dtype=np.float32)
        self.trained[name] = drawn * np.float32(deviation)

    def conv(self, name: str, out: int, of: int, kernel: int) -> None:
        deviation = (2 / (of * kernel * kernel)) ** 0.5
        self.normal(f"{name}.weight", (out, of, kernel, kernel), deviation)

    def linear(self, name: str, of: int, out: int, deviation: float | None = None) -> None:
        self.normal(f"{name}.weight", (of, out), deviation or (1 / of) ** 0.5)
        self.trained[f"{name}.bias"] = np.zeros(out, np.float32)

    def norm(self, name: str, channels: int) -> None:
        self.trained[f"{name}.weight"] = np.ones(channels, np.float32)
        self.trained[f"{name}.bias"] = np.zeros(channels, np.float32)

    def batch_norm(self, name: str, channels: int) -> None:
        self.norm(name, channels)
        self.running[f"{name}.mean"] = np.zeros(channels, np.float32)
        self.running[f"{name}.variance"] = np.ones(channels, np.float32)


@dataclass
class Network:
    """A network with its batch; loss(ops, weights, running, x, y) also renews `running`."""

    weights: Weights
    batch: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    loss: Callable
    optimizer: str = "sgd"
    rate: float = 0.01


def images(count: int, channels: int, size: int, classes: int):
    def draw(random):
        x = random.standard_normal((count, channels, size, size), dtype=np.float32)
        return x, random.integers(0, classes, count)

    return draw


def mnist_cnn() -> Network:
    weights = Weights(1)
    weights.conv("conv1", 32, 1, 3)
    weights.conv("conv2", 64, 32, 3)
    weights.linear("hidden", 3136, 128)
    weights.linear("out", 128, 10)

    def loss(ops, w, running, x, y):
        x = ops.max_pool(ops.relu(ops.conv(x, w["conv1.weight"], 1, 1)), 2, 2, 0)
        x = ops.max_pool(ops.relu(ops.conv(x, w["conv2.weight"], 1, 1)), 2, 2, 0)
        x = ops.relu(ops.linear(ops.flatten(x), w["hidden.weight"], w["hidden.bias"]))
        return ops.cross_entropy(ops.linear(x, w["out.weight"], w["out.bias"]), y)

    return Network(weights, images(128, 1, 28, 10), loss)


def conv_norm(ops, w, running, name, x, stride, padding):
    made = ops.conv(x, w[f"{name}.weight"], stride, padding)
    return ops.batch_norm(made, w, running, f"{name}.norm")


def add_conv_norm(weights: Weights, name: str, out: int, of: int, kernel: int) -> None:
    weights.conv(name, out, of, kernel)
    weights.batch_norm(f"{name}.norm", out)


def basic_block(ops, w, running, name, x, stride, shrinks):
    y = ops.relu(conv_norm(ops, w, running, f"{name}.conv1", x, stride, 1))
    y = conv_norm(ops, w, running, f"{name}.conv2", y, 1, 1)
    if shrinks:
        x = conv_norm(ops, w, running, f"{name}.side", x, stride, 0)
    return ops.relu(y + x)


def bottleneck(ops, w, running, name, x, stride, shrinks):
    y = ops.relu(conv_norm(ops, w, running, f"{name}.conv1", x, 1, 0))
    y = ops.relu(conv_norm(ops, w, running, f"{name}.conv2", y, stride, 1))
    y = conv_norm(ops, w, running, f"{name}.conv3", y, 1, 0)
    if shrinks:
        x = conv_norm(ops, w, running, f"{name}.side", x, stride, 0)
    return ops.relu(y + x)


def resnet(depths, is_deep: bool, count: int, size: int, classes: int) -> Network:
    """He et al. 2016 with torchvision's strides; images below 64 have a stem of stride 1."""
    weights = Weights(2)
    is_small = size < 64
    add_conv_norm(weights, "stem", 64, 3, 3 if is_small else 7)
    channels = 64
    blocks = []
    for stage, depth in enumerate(depths):
        width = 64 << stage
        out = width * 4 if is_deep else width
        for i in range(depth):
            name = f"stage{stage}.block{i}"
            stride = 2 if i == 0 and stage > 0 else 1
            sizes = [(1, width, channels), (3, width, width), (1, out, width)]
            if not is_deep:
                sizes = [(3, width, channels), (3, width, width)]
            for k, (kernel, to, of) in enumerate(sizes):
                add_conv_norm(weights, f"{name}.conv{k + 1}", to, of, kernel)
            shrinks = stride != 1 or channels != out
            if shrinks:
                add_conv_norm(weights, f"{name}.side", out, channels, 1)
            blocks.append((name, stride, shrinks))
            channels = out
    weights.linear("out", channels, classes)
    block = bottleneck if is_deep else basic_block

    def loss(ops, w, running, x, y):
        stem = (1, 1) if is_small else (2, 3)
        x = ops.relu(conv_norm(ops, w, running, "stem", x, *stem))
        if not is_small:
            x = ops.max_pool(x, 3, 2, 1)
        for name, stride, shrinks in blocks:
            x = block(ops, w, running, name, x, stride, shrinks)
        x = ops.linear(ops.mean_of_image(x), w["out.weight"], w["out.bias"])
        return ops.cross_entropy(x, y)

    return Network(weights, images(count, 3, size, classes), loss)


def inverted_residual(ops, w, running, name, x, stride, adds):
    y = ops.relu6(conv_norm(ops, w, running, f"{name}.wide", x, 1, 0))
    groups = y.shape[1]
    y = ops.conv(y, w[f"{name}.depthwise.weight"], stride, 1, groups)
    y = ops.relu6(ops.batch_norm(y, w, running, f"{name}.depthwise.norm"))
    y = conv_norm(ops, w, running, f"{name}.narrow", y, 1, 0)
    return x + y if adds else y


def mobilenet(count=64, size=32, classes=94) -> Network:
    """Sandler et al. 2018, table 2, as scripts/reference.lua has it for glyphs, without Dropout."""
    weights = Weights(4)
    add_conv_norm(weights, "stem", 32, 1, 3)
    channels, blocks = 32, []
    rows = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for expansion, width, depth, first in rows:
        for i in range(depth):
            name, wide = f"block{len(blocks)}", expansion * channels
            add_conv_norm(weights, f"{name}.wide", wide, channels, 1)
            weights.conv(f"{name}.depthwise", wide, 1, 3)
            weights.batch_norm(f"{name}.depthwise.norm", wide)
            add_conv_norm(weights, f"{name}.narrow", width, wide, 1)
            blocks.append((name, first if i == 0 else 1, i > 0))
            channels = width
    add_conv_norm(weights, "head", 1280, channels, 1)
    weights.linear("out", 1280, classes)

    def loss(ops, w, running, x, y):
        x = ops.relu6(conv_norm(ops, w, running, "stem", x, 2, 1))
        for name, stride, adds in blocks:
            x = inverted_residual(ops, w, running, name, x, stride, adds)
        x = ops.relu6(conv_norm(ops, w, running, "head", x, 1, 0))
        x = ops.linear(ops.mean_of_image(x), w["out.weight"], w["out.bias"])
        return ops.cross_entropy(x, y)

    return Network(weights, images(count, 1, size, classes), loss)


def minilm(
    layers=6, width=384, heads=12, inner=1536, words=30522, count=16, length=128, dropout=0.0
) -> Network:
    """The encoder of all-MiniLM-L6 with a classifier of two classes over the first token. dropout:
    of the embedding and of what is added to each residual, as BERT is trained with 0.1."""
    weights = Weights(3)
    weights.normal("words", (words, width), 0.02)
    weights.normal("places", (512, width), 0.02)
    weights.norm("embedding.norm", width)
    for i in range(layers):
        for part in ("query", "key", "value", "attended"):
            weights.linear(f"layer{i}.{part}", width, width, 0.02)
        weights.norm(f"layer{i}.norm1", width)
        weights.linear(f"layer{i}.inner", width, inner, 0.02)
        weights.linear(f"layer{i}.outer", inner, width, 0.02)
        weights.norm(f"layer{i}.norm2", width)
    weights.linear("out", width, 2, 0.02)

    def batch(random):
        return random.integers(0, words, (count, length)), random.integers(0, 2, count)

    def loss(ops, w, running, x, y):
        def linear(x, name):
            return ops.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

        def norm(x, name):
            return ops.layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"])

        def drop(x):
            return ops.dropout(x, dropout) if dropout else x

        x = drop(norm(ops.rows(w["words"], x) + w["places"][:length], "embedding.norm"))
        for i in range(layers):
            name = f"layer{i}"
            q, k, v = (
                ops.heads(linear(x, f"{name}.{part}"), heads) for part in ("query", "key", "value")
            )
            attended = linear(ops.attention(q, k, v), f"{name}.attended")
            x = norm(x + drop(attended), f"{name}.norm1")
            inner_ = ops.gelu(linear(x, f"{name}.inner"))
            x = norm(x + drop(linear(inner_, f"{name}.outer")), f"{name}.norm2")
        return ops.cross_entropy(linear(x[:, 0], "out"), y)

    return Network(weights, batch, loss, "adamw", 2e-5)


def bert(count=8) -> Network:
    """BERT-base (Devlin et al. 2019) with a classifier, sentences of 128 tokens."""
    return minilm(12, 768, 12, 3072, count=count)


def gpt2(layers=12, width=768, heads=12, words=50257, count=4, length=256) -> Network:
    """Radford et al. 2019: norms before each part, the table of words for the scores as well."""
    weights = Weights(5)
    weights.normal("words", (words, width), 0.02)
    weights.normal("places", (1024, width), 0.02)
    for i in range(layers):
        weights.norm(f"layer{i}.norm1", width)
        for part in ("query", "key", "value", "attended"):
            weights.linear(f"layer{i}.{part}", width, width, 0.02)
        weights.norm(f"layer{i}.norm2", width)
        weights.linear(f"layer{i}.inner", width, 4 * width, 0.02)
        weights.linear(f"layer{i}.outer", 4 * width, width, 0.02)
    weights.norm("norm", width)

    def batch(random):
        text = random.integers(0, words, (count, length + 1))
        return np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])

    def loss(ops, w, running, x, y):
        def linear(x, name):
            return ops.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

        def norm(x, name):
            return ops.layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"])

        x = ops.rows(w["words"], x) + w["places"][:length]
        for i in range(layers):
            name = f"layer{i}"
            seen = norm(x, f"{name}.norm1")
            q, k, v = (
                ops.heads(linear(seen, f"{name}.{part}"), heads)
                for part in ("query", "key", "value")
            )
            x = x + linear(ops.attention(q, k, v, True), f"{name}.attended")
            inner = ops.gelu(linear(norm(x, f"{name}.norm2"), f"{name}.inner"), True)
            x = x + linear(inner, f"{name}.outer")
        return ops.cross_entropy(ops.scores_of_rows(norm(x, "norm"), w["words"]), y)

    return Network(weights, batch, loss, "adamw", 1e-4)


def unet(width=32, depth=4, count=4, size=256) -> Network:
    """Ronneberger et al. 2015 with BatchNormalization and padding: which class each pixel is of."""
    weights = Weights(6)

    def add_double(name, out, of):
        add_conv_norm(weights, f"{name}.conv1", out, of, 3)
        add_conv_norm(weights, f"{name}.conv2", out, out, 3)

    for i in range(depth + 1):
        add_double(f"down{i}", width << i, width << i - 1 if i else 3)
    for i in reversed(range(depth)):
        wide = width << i
        weights.normal(f"up{i}.weight", (2 * wide, wide, 2, 2), (1 / (2 * wide)) ** 0.5)
        add_double(f"join{i}", wide, 2 * wide)
    weights.conv("out", 2, width, 1)

    def loss(ops, w, running, x, y):
        def double(x, name):
            x = ops.relu(conv_norm(ops, w, running, f"{name}.conv1", x, 1, 1))
            return ops.relu(conv_norm(ops, w, running, f"{name}.conv2", x, 1, 1))

        kept = []
        for i in range(depth):
            kept.append(double(x, f"down{i}"))
            x = ops.max_pool(kept[i], 2, 2, 0)
        x = double(x, f"down{depth}")
        for i in reversed(range(depth)):
            x = ops.conv_transpose(x, w[f"up{i}.weight"], 2)
            x = double(ops.joined(kept[i], x), f"join{i}")
        return ops.cross_entropy(ops.conv(x, w["out.weight"], 1, 0), y, 1)

    def batch(random):
        x = random.standard_normal((count, 3, size, size), dtype=np.float32)
        return x, random.integers(0, 2, (count, size, size))

    return Network(weights, batch, loss, "adamw", 1e-3)


def lstm(of=64, width=512, layers=2, count=32, length=100, classes=10) -> Network:
    """Two layers of an LSTM, a class by the last step. Gates: i, f, g, o, as PyTorch's."""
    weights = Weights(7)
    deviation = (1 / width) ** 0.5 / 3**0.5
    for i in range(layers):
        weights.normal(f"lstm{i}.input_gates", (4 * width, width if i else of), deviation)
        weights.normal(f"lstm{i}.hidden_gates", (4 * width, width), deviation)
        weights.normal(f"lstm{i}.input_bias_gates", (4 * width,), deviation)
        weights.normal(f"lstm{i}.hidden_bias_gates", (4 * width,), deviation)
    weights.linear("out", width, classes)

    def batch(random):
        x = random.standard_normal((length, count, of), dtype=np.float32)
        return x, random.integers(0, classes, count)

    def loss(ops, w, running, x, y):
        last = ops.lstm(x, w, [f"lstm{i}" for i in range(layers)])[-1]
        return ops.cross_entropy(ops.linear(last, w["out.weight"], w["out.bias"]), y)

    return Network(weights, batch, loss, "adamw", 1e-3)


def mlp(widths=(784, 1024, 1024, 10), count=128) -> Network:
    weights = Weights(8)
    for i in range(len(widths) - 1):
        weights.linear(f"layer{i}", widths[i], widths[i + 1], (2 / widths[i]) ** 0.5)

    def batch(random):
        x = random.standard_normal((count, widths[0]), dtype=np.float32)
        return x, random.integers(0, widths[-1], count)

    def loss(ops, w, running, x, y):
        for i in range(len(widths) - 1):
            x = ops.linear(x, w[f"layer{i}.weight"], w[f"layer{i}.bias"])
            x = ops.relu(x) if i < len(widths) - 2 else x
        return ops.cross_entropy(x, y)

    return Network(weights, batch, loss, "adamw", 1e-3)


NETWORKS = {
    "mnist": mnist_cnn,
    "resnet18": lambda: resnet((2, 2, 2, 2), False, 64, 32, 10),
    "resnet50": lambda: resnet((3, 4, 6, 3), True, 16, 224, 1000),
    "mobilenet": mobilenet,
    "minilm": minilm,
    "minilm_dropout": lambda: minilm(dropout=0.1),
    "bert": bert,
    "gpt2": gpt2,
    "unet": unet,
    "lstm": lstm,
    "mlp": mlp,
}
