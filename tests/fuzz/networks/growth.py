# SPDX-License-Identifier: Apache-2.0
"""Small random networks of layers, grown from a seed and a number, the same everywhere.

A block takes (rng, value, width) and gives a value with its new width on axis 1 (images,
[N, width, height, height]) or the last axis (sequences, [N, steps, width]). To add one: a function
and its word in `IMAGES` or `SEQUENCES`. Everything random is drawn when a network is grown, so that
it can be built again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tenon as tn
from tenon import nn

Layer = Callable
Block = Callable[[np.random.Generator, int], tuple[str, Layer, int]]

ACTIVATIONS = [
    "Relu",
    "Gelu",
    "Tanh",
    "Sigmoid",
    "Elu",
    "Softplus",
    "HardSwish",
    "LeakyRelu",
    "Mish",
]
CLASSES = 5


@dataclass
class Network:
    """What was grown: a line that describes it, the model, and arrays for `samples` samples."""

    text: str
    model: tn.Model
    x: np.ndarray
    label: np.ndarray

    @property
    def data(self) -> dict[str, np.ndarray]:
        return {"x": self.x, "label": self.label}

    @property
    def has_batch_statistics(self) -> bool:
        return "BatchNorm" in self.text


def pick(rng: np.random.Generator, choices):
    return choices[int(rng.integers(len(choices)))]


def activation(rng: np.random.Generator) -> tuple[str, Layer]:
    name = pick(rng, ACTIVATIONS)
    return name, lambda x: tn.op(name, x)


def norm_of_images(rng: np.random.Generator, width: int) -> tuple[str, Layer]:
    kind = pick(rng, ["none", "batch", "batch", "group"])
    if kind == "batch":
        return "BatchNorm", nn.BatchNorm()
    groups = pick(rng, [g for g in (1, 2, 4, width) if width % g == 0])
    return (f"GroupNorm({groups})", nn.GroupNorm(groups)) if kind == "group" else ("", lambda x: x)


def convolution(rng, width):
    groups = int(pick(rng, [g for g in (1, 1, 2, 3, width) if width % g == 0]))
    out = groups * int(rng.integers(1, max(2, 20 // groups)))
    kernel = int(pick(rng, [1, 3, 3, 5]))
    bias = bool(rng.integers(2))
    conv = nn.Conv(out, kernel, padding=kernel // 2, groups=groups, bias=bias)
    norm, normalize = norm_of_images(rng, out)
    name, act = activation(rng)
    text = f"Conv({out}, {kernel}, groups={groups}, bias={bias}) {norm} {name}"
    return text, lambda x: act(normalize(conv(x))), out


def bottleneck(rng, width):
    inner = int(rng.integers(1, 12))
    name, act = activation(rng)
    narrow, middle = nn.Conv(inner, 1, bias=False), nn.Conv(inner, 3, padding=1)
    wide, norm = nn.Conv(width, 1), nn.BatchNorm()
    text = f"bottleneck({inner}) BatchNorm {name}"
    return text, lambda x: act(norm(wide(act(middle(narrow(x))))) + x), width


def gate(rng, width):
    inner = int(rng.integers(1, 6))
    pool, first, second = nn.GlobalAvgPool(), nn.Linear(inner), nn.Linear(width)

    def squeeze_excite(x):
        share = tn.sigmoid(second(tn.relu(first(pool(x)))))
        return x * share[:, :, None, None]

    return f"squeeze_excite({inner})", squeeze_excite, width


def branches(rng, width):
    left, right = (int(n) for n in rng.integers(1, 9, 2))
    one, three = nn.Conv(left, 1), nn.Conv(right, 3, padding=1)
    text = f"concat({left}, {right})"
    return text, lambda x: tn.relu(tn.concat([one(x), three(x)], axis=1)), left + right


def shuffle(rng, width):
    groups = int(pick(rng, [g for g in (1, 2, 3) if width % g == 0]))

    def channels(x):
        n, _, height, breadth = x.shape
        x = x.reshape((-1, groups, width // groups, height, breadth))
        return tn.permute_dims(x, (0, 2, 1, 3, 4)).reshape((-1, width, height, breadth))

    return f"shuffle({groups})", channels, width


def halves(rng, width):
    name, act = activation(rng)
    conv = nn.Conv(width - width // 2, 3, padding=1)
    if width < 2:
        return "", lambda x: x, width
    kept = width // 2
    text = f"halves {name}"
    return text, lambda x: tn.concat([x[:, :kept], act(conv(x[:, kept:]))], axis=1), width


def attention(rng, width):
    heads = int(pick(rng, [h for h in (1, 2, 4) if width % h == 0]))
    norm, attend = nn.LayerNorm(), nn.MultiHeadAttention(heads)
    return f"attention({heads})", lambda x: x + attend(norm(x)), width


def feed_forward(rng, width):
    inner, out = (int(n) for n in rng.integers(1, 28, 2))
    name, act = activation(rng)
    norm = pick(rng, [nn.LayerNorm, nn.RMSNorm])()
    first, second, back = nn.Linear(inner), nn.Linear(out), nn.Linear(width)
    text = f"feed_forward({inner}, {out}) {name}"
    return text, lambda x: x + back(act(second(act(first(norm(x)))))), width


def gated(rng, width):
    inner = int(rng.integers(1, 20))
    up, gated_by, down = nn.Linear(inner), nn.Linear(inner), nn.Linear(width)
    return f"gated({inner})", lambda x: x + down(tn.silu(gated_by(x)) * up(x)), width


def recurrent(rng, width):
    hidden, kind = int(rng.integers(2, 14)), pick(rng, ["LSTM", "GRU"])
    both = bool(rng.integers(2))
    layer = getattr(nn, kind)(hidden, bidirectional=both)
    text = f"{kind}({hidden}, bidirectional={both})"
    return text, lambda x: layer(x), hidden * (1 + both)


def widen(rng, width):
    out = 4 * int(rng.integers(1, 8))
    layer = nn.Linear(out, bias=bool(rng.integers(2)))
    name, act = activation(rng)
    return f"Linear({out}) {name}", lambda x: act(layer(x)), out


IMAGES: list[Block] = [convolution, convolution, bottleneck, gate, branches, shuffle, halves]
SEQUENCES: list[Block] = [attention, feed_forward, gated, recurrent, widen]


def chain(rng: np.random.Generator, blocks: list[Block], width: int) -> tuple[str, list[Layer]]:
    texts, layers = [], []
    for _ in range(int(rng.integers(2, 6))):
        text, layer, width = pick(rng, blocks)(rng, width)
        texts.append(text)
        layers.append(layer)
    return "; ".join(text for text in texts if text), layers


def disturbed(model: tn.Model, rng: np.random.Generator) -> tn.Model:
    """Parameters and statistics away from their initial values, most of which are 0 or 1."""
    moved = {}
    for name, value in model.constants().items():
        x = np.asarray(value)
        if x.dtype != np.float32 or x.ndim == 0:
            continue
        noise = rng.standard_normal(x.shape)
        moved[name] = (x * (1 + 0.3 * np.tanh(noise)) if "var" in name else x + 0.1 * noise).astype(
            "float32"
        )
    return nn.load(model, moved, update=True, partial=True)


def grow(seed: int, number: int, samples: int = 12) -> Network:
    rng = np.random.default_rng([seed, number])
    head = nn.Linear(CLASSES)
    if rng.integers(2):
        width, size = int(rng.integers(1, 7)), int(rng.integers(5, 14))
        shape = (width, size, size)
        text, layers = chain(rng, IMAGES, width)
        pool = nn.GlobalAvgPool()

        def network(x):
            for layer in layers:
                x = layer(x)
            return head(pool(x))
    else:
        steps, width = int(rng.integers(1, 11)), 4 * int(rng.integers(1, 7))
        shape = (steps, width)
        text, layers = chain(rng, SEQUENCES, width)

        def network(x):
            for layer in layers:
                x = layer(x)
            return head(x.mean(axis=1))

    model = disturbed(nn.build(network, {"x": ("N", *shape)}, seed=number), rng)
    x = rng.standard_normal((samples, *shape)).astype("float32")
    return Network(f"x {list(shape)}: {text}", model, x, rng.integers(0, CLASSES, samples))
