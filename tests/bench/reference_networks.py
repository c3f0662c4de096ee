# SPDX-License-Identifier: Apache-2.0
"""The networks of scripts/reference.lua and their recipes in PyTorch, for `reference.py`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

MODELS = Path(".cache/models")  # where files are that networks begin with


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 10),
    )  # fmt: skip


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, activation=None):
        super().__init__()
        self.body, self.shortcut, self.activation = body, shortcut, activation

    def forward(self, x):
        total = self.body(x) + (self.shortcut(x) if self.shortcut else x)
        return total.relu() if self.activation else total


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def conv(of, width, kernel, stride=1, groups=1):
    made = nn.Conv2d(of, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(made.weight, mode="fan_out")
    return made


def resnet20():
    layers, of = [conv(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU()], 16
    for stage in range(3):
        for i in range(3):
            width, stride = 16 << stage, 2 if stage and not i else 1
            body = nn.Sequential(conv(of, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(),
                                 conv(width, width, 3), nn.BatchNorm2d(width))  # fmt: skip
            shortcut = None
            if stride > 1:
                shortcut = nn.Sequential(conv(of, width, 1, stride), nn.BatchNorm2d(width))
            layers.append(Residual(body, shortcut, True))
            of = width
    return nn.Sequential(*layers, GlobalAvgPool(), nn.Linear(64, 94))


def mobilenet():
    layers, of = [conv(1, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU6()], 32
    rows = [(1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)]  # fmt: skip
    for expansion, width, blocks, stride in rows:
        for i in range(blocks):
            wide = expansion * of
            first = nn.Identity()
            if expansion > 1:
                first = nn.Sequential(conv(of, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6())
            depthwise = conv(wide, wide, 3, 1 if i else stride, wide)
            body = nn.Sequential(first, depthwise, nn.BatchNorm2d(wide), nn.ReLU6(),
                                 conv(wide, width, 1), nn.BatchNorm2d(width))  # fmt: skip
            layers.append(Residual(body) if i else body)
            of = width
    end = [conv(of, 1280, 1), nn.BatchNorm2d(1280), nn.ReLU6(), GlobalAvgPool(), nn.Dropout(0.2)]
    return nn.Sequential(*layers, *end, nn.Linear(1280, 94))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def double(of, width):
            first = [conv(of, width, 3), nn.BatchNorm2d(width), nn.ReLU()]
            second = [conv(width, width, 3), nn.BatchNorm2d(width), nn.ReLU()]
            return nn.Sequential(*first, *second)

        widths = [16, 32, 64]
        self.down = nn.ModuleList(double(o, w) for o, w in zip([1, *widths], widths))
        self.join = nn.ModuleList(double(2 * w, w) for w in widths)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths)
        self.bottom, self.head = double(64, 128), nn.Conv2d(16, 5, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(down(x))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = self.bottom(x)
        for i in (2, 1, 0):
            x = self.join[i](torch.cat((kept[i], self.up[i](x)), 1))
        return self.head(x).permute(0, 2, 3, 1)


class Attention(nn.MultiheadAttention):
    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return super().forward(x, x, x, need_weights=False, attn_mask=mask, is_causal=True)[0]


class Transformer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.token = nn.Embedding(96, width)
        self.position = nn.Parameter(torch.empty(64, width))
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position, std=0.02)
        blocks = []
        for _ in range(4):
            attention = Attention(width, 4, batch_first=True)
            hidden = [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
            for body in ([attention], hidden):
                body = nn.Sequential(nn.LayerNorm(width), *body, nn.Dropout(0.1))
                blocks.append(Residual(body))
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)
        self.head = nn.Linear(width, 96, bias=False)

    def forward(self, token):
        return self.head(self.norm(self.blocks(self.token(token) + self.position)))


class Encoder(nn.Module):
    """MiniLM-L6 with a head, under the names of its file; weights are [in, out], ONNX's way."""

    def __init__(self, weights: dict[str, np.ndarray]):
        super().__init__()
        self.names = [name for name in weights if name.endswith((".weight", ".bias"))]
        for i, name in enumerate(self.names):
            setattr(self, f"p{i}", nn.Parameter(torch.from_numpy(weights[name].copy())))

    def by_name(self) -> dict[str, torch.Tensor]:
        return {name: getattr(self, f"p{i}") for i, name in enumerate(self.names)}

    def load_named(self, weights) -> None:
        for name, parameter in self.by_name().items():
            parameter.data.copy_(weights[name])

    def forward(self, mask, ids, types):
        of, (n, length) = self.by_name(), ids.shape

        def dense(x, name):
            return x @ of[name + ".weight"] + of[name + ".bias"]

        def norm(x, name):
            scale, bias = of[name + ".weight"], of[name + ".bias"]
            return nn.functional.layer_norm(x, (384,), scale, bias, 1e-12)

        def split(x):
            return x.reshape(n, length, 12, 32).transpose(1, 2)

        x = of["embeddings.word_embeddings.weight"][ids]
        x = x + of["embeddings.token_type_embeddings.weight"][types]
        x = norm(x + of["embeddings.position_embeddings.weight"][:length], "embeddings.LayerNorm")
        bias = ((1 - mask.float()) * -10000)[:, None, None]
        for i in range(6):
            name = f"encoder.layer.{i}."
            q, k, v = (split(dense(x, f"{name}attention.self.{part}"))
                       for part in ("query", "key", "value"))  # fmt: skip
            y = nn.functional.scaled_dot_product_attention(q, k, v, bias)
            y = dense(y.transpose(1, 2).reshape(n, length, 384), name + "attention.output.dense")
            x = norm(x + y, name + "attention.output.LayerNorm")
            y = nn.functional.gelu(dense(x, name + "intermediate.dense"))
            x = norm(x + dense(y, name + "output.dense"), name + "output.LayerNorm")
        kept = mask.float()[..., None]
        mean = (x * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return mean @ of["head.weight"] + of["head.bias"]


def minilm():
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(MODELS / "minilm_classifier.onnx").graph
    return Encoder({one.name: numpy_helper.to_array(one) for one in graph.initializer})


def minilm_head():
    net = minilm()
    for name, parameter in net.by_name().items():
        parameter.requires_grad_(name.startswith("head."))
    return net


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(7, 64, 2, batch_first=True, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(128, 6)

    def forward(self, series):
        return self.head(self.lstm(series.reshape(-1, 61, 7))[0].mean(1))


def adamw(net, base=2e-3):
    """Weight decay as `trainer.adamw` has it: on everything."""
    return torch.optim.AdamW(net.parameters(), base, weight_decay=0.01), base, 50


def nesterov(net):
    optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9, nesterov=True, weight_decay=5e-4)
    return optimizer, 0.1, 100


def tuning(net, base=1e-4):
    """Decay on matrices alone."""
    trained = [p for p in net.parameters() if p.requires_grad]
    matrices, vectors = [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0}]
    return torch.optim.AdamW(groups, base), base, 75


@dataclass
class Recipe:
    make: Callable
    data: str
    epochs: int
    optimizer: Callable = adamw
    batch: int = 64
    clip_norm: float = 0


NETWORKS = {
    "lenet": Recipe(lenet, "mnist", 20),
    "mnist_cnn": Recipe(mnist_cnn, "mnist", 12),
    "resnet20": Recipe(resnet20, "glyphs", 12, nesterov),
    "mobilenet": Recipe(mobilenet, "glyphs", 12),
    "unet": Recipe(UNet, "shapes", 20),
    "transformer": Recipe(Transformer, "characters", 10),
    "lstm": Recipe(Lstm, "leaves", 15, lambda net: adamw(net, 5e-3), clip_norm=1),
    "minilm": Recipe(minilm, "sentences", 3, tuning, 32, 1),
    "minilm_head": Recipe(minilm_head, "sentences", 3, lambda net: tuning(net, 1e-2), 32),
}


def rate_at(step: int, warmup: int, total: int) -> float:
    """scheduler.cosine: a line up to `warmup`, half a cosine down from there; step from 0."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def load(folder: Path, data: str, part: str):
    """The fields that are no label, by name, and the labels."""
    with np.load(folder / f"{data}_{part}.npz") as arrays:
        names = sorted(name for name in arrays if name != "label")
        return [torch.from_numpy(arrays[name]) for name in names], torch.from_numpy(arrays["label"])


def load_weights(net, file: str) -> None:
    """Tenon's, by name."""
    weights = load_file(file)
    kept = {key: weights[key] for key in net.state_dict() if key in weights}
    missing = [k for k in net.state_dict() if k not in kept and "num_batches" not in k]
    assert not missing, f"{file}: expected {missing}"
    net.load_state_dict(kept, strict=False)
