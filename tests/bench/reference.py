# SPDX-License-Identifier: Apache-2.0
"""The recipes of scripts/reference.lua in PyTorch, beside what Tenon's runs gave.

    tenon run scripts/reference.lua --set networks=lenet --set seeds=3
    .venv-bench/bin/python tests/bench/reference.py lenet --seeds 3 [--runs runs/reference]

Prints for each seed the accuracy, the seconds and the losses of the epochs, and the mean of both
sides with the standard error of the difference. Tenon's weights go into PyTorch's network by
name, and are judged there. What PyTorch gave is kept beside Tenon's runs, as
RUNS/NETWORK_SEED.pytorch.json, and taken from there the next time; --train only makes those.

    tenon run scripts/reference.lua --set networks=lenet --set first=100 --set out=runs/first
    .venv-bench/bin/python tests/bench/reference.py lenet --first --runs runs/first

compares the recipes themselves: the first steps from Tenon's initial weights, the same batches in
float32 and without dropout. Prints the spread of each initial parameter over that of PyTorch's
own, and how far the losses of either side are from PyTorch's in float64: networks of ReLUs and
batch statistics multiply what rounding does at a high rate, so that two float32 runs part soon.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

# The arguments of main().
MODELS, BF16 = Path(".cache/models"), False


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


def load(folder: Path, data: str, part: str):
    """The fields that are no label, by name, and the labels."""
    with np.load(folder / f"{data}_{part}.npz") as arrays:
        names = sorted(name for name in arrays if name != "label")
        return [torch.from_numpy(arrays[name]) for name in names], torch.from_numpy(arrays["label"])


@torch.no_grad()
def accuracy(net, fields, y) -> float:
    net.eval()
    parts = zip(*(field.split(100) for field in [*fields, y]))
    right = sum((net(*x).argmax(-1) == b).sum().item() for *x, b in parts)
    return 100 * right / y.numel()


def rate_at(step: int, warmup: int, total: int) -> float:
    """scheduler.cosine: a line up to `warmup`, half a cosine down from there; step from 0."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def load_weights(net, file: str) -> None:
    """Tenon's, by name."""
    weights = load_file(file)
    kept = {key: weights[key] for key in net.state_dict() if key in weights}
    missing = [k for k in net.state_dict() if k not in kept and "num_batches" not in k]
    assert not missing, f"{file}: expected {missing}"
    net.load_state_dict(kept, strict=False)


def without_dropout(net) -> None:
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module, nn.LSTM):
            module.dropout = 0.0


def spreads(name: str, net, draws: int = 8) -> None:
    """Of each parameter as it begins: Tenon's deviation and largest value over PyTorch's own."""
    own = [dict(NETWORKS[name].make().named_parameters()) for _ in range(draws)]
    for key, parameter in net.named_parameters():
        values = parameter.detach().flatten()
        others = torch.cat([one[key].detach().flatten() for one in own])
        if others.abs().max() == 0 or others.std() == 0:
            same = "same" if torch.equal(values, others[: len(values)]) else "DIFFERS"
            print(f"  {key:40} constant {others[0]:.3f}: {same}")
            continue
        wide = (values.pow(2).mean() / others.pow(2).mean()).sqrt()
        far = values.abs().max() / others.abs().max()
        print(f"  {key:40} {len(values):8} numbers, deviation {wide:.3f}, largest {far:.3f}")


def losses_of(name: str, net, lines: list[dict], folder: Path, dtype) -> list[float]:
    """PyTorch's at each of these steps, which say what rates they had."""
    of, (fields, y) = NETWORKS[name], load(folder, NETWORKS[name].data, "train")
    without_dropout(net)
    net.to(dtype).train()
    optimizer, base, warmup = of.optimizer(net)
    per_epoch, losses = len(y) // of.batch, []
    for step, line in enumerate(lines):
        begin = step % per_epoch * of.batch
        rate = base * rate_at(step, warmup, per_epoch * of.epochs)
        assert math.isclose(rate, line["rate"], rel_tol=1e-6), (step, rate, line["rate"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = slice(begin, begin + of.batch)
        inputs = (x[rows].to(dtype) if x.is_floating_point() else x[rows] for x in fields)
        loss = nn.functional.cross_entropy(net(*inputs).flatten(0, -2), y[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        if of.clip_norm:
            nn.utils.clip_grad_norm_(net.parameters(), of.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def first_steps(name: str, seed: int, runs: Path, folder: Path) -> None:
    place, sides = runs / f"{name}_{seed}", {}
    lines = [json.loads(one) for one in Path(f"{place}.first.jsonl").read_text().splitlines()]
    for dtype in (torch.float64, torch.float32):
        net = NETWORKS[name].make()
        load_weights(net, f"{place}.initial.safetensors")
        if not sides:
            spreads(name, net)
        sides[dtype] = np.array(losses_of(name, net, lines, folder, dtype))
    exact = sides.pop(torch.float64)
    for who, losses in (("tenon", [one["loss"] for one in lines]), ("pytorch", *sides.values())):
        apart = np.abs(losses / exact - 1)
        upto = ", ".join(
            f"{n}: {apart[:n].max():.1e}" for n in (1, 3, 10, 30, 100) if n <= len(apart)
        )
        print(f"{name} {seed} {who:8} beside float64, up to step {upto}", flush=True)


def train(name: str, seed: int, folder: Path, epochs: int | None):
    of = NETWORKS[name]
    torch.manual_seed(seed)
    net, (fields, y) = of.make(), load(folder, of.data, "train")
    optimizer, base, warmup = of.optimizer(net)
    per_epoch, epochs = len(y) // of.batch, epochs or of.epochs
    total, step, losses, begin = per_epoch * epochs, 0, [], time.monotonic()
    for _ in range(epochs):
        net.train()
        order, sum_of = torch.randperm(len(y))[: per_epoch * of.batch].split(of.batch), 0.0
        for rows in order:
            for group in optimizer.param_groups:
                group["lr"] = base * rate_at(step, warmup, total)
            with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
                scores = net(*(field[rows] for field in fields)).float()
            loss = nn.functional.cross_entropy(scores.flatten(0, -2), y[rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            if of.clip_norm:
                nn.utils.clip_grad_norm_(net.parameters(), of.clip_norm)
            optimizer.step()
            sum_of, step = sum_of + loss.item(), step + 1
        losses.append(sum_of / per_epoch)
    seconds = time.monotonic() - begin
    return accuracy(net, *load(folder, of.data, "test")), seconds, losses


def of_pytorch(name: str, seed: int, runs: Path, folder: Path, epochs: int | None):
    """What it gave earlier, or gives now."""
    kept = runs / f"{name}_{seed}.pytorch.json"
    if not kept.exists():
        made = json.dumps(train(name, seed, folder, epochs))
        runs.mkdir(parents=True, exist_ok=True)
        kept.write_text(made)
    return json.loads(kept.read_text())


def of_history(history):
    return sum(one["seconds"] for one in history), [one["loss"] for one in history]


def of_tenon(name: str, seed: int, runs: Path, folder: Path):
    """Accuracy of its weights in PyTorch's network, seconds, losses."""
    place = runs / f"{name}_{seed}"
    lines = (place / "history.jsonl").read_text().splitlines()
    history = [json.loads(line) for line in lines]
    net = NETWORKS[name].make()
    if isinstance(net, Encoder):
        net.load_named(load_file(f"{place}.safetensors"))
    else:
        load_weights(net, f"{place}.safetensors")
    judged = accuracy(net, *load(folder, NETWORKS[name].data, "test"))
    return judged, *of_history(history)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", choices=sorted(NETWORKS))
    parser.add_argument("--models", type=Path, default=Path(".cache/models"))
    parser.add_argument("--runs", type=Path, default=Path("runs/reference"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--train", action="store_true", help="PyTorch's side alone")
    parser.add_argument("--first", action="store_true", help="the first steps of both, in step")
    parser.add_argument("--bf16", action="store_true", help="PyTorch under autocast")
    args = parser.parse_args()
    global MODELS, BF16
    MODELS, BF16 = args.models, args.bf16
    torch.set_num_threads(args.threads)
    for name in args.networks:
        if args.first:
            first_steps(name, 1, args.runs, args.models)
            continue
        sides: dict[str, list[float]] = {"tenon": [], "pytorch": []}
        for seed in range(1, args.seeds + 1):
            made = {"pytorch": of_pytorch(name, seed, args.runs, args.models, args.epochs)}
            if not args.train:
                made["tenon"] = of_tenon(name, seed, args.runs, args.models)
            for side, (right, seconds, losses) in sorted(made.items()):
                sides[side].append(right)
                curve = " ".join(f"{loss:.3f}" for loss in losses)
                print(
                    f"{name} {seed} {side:8} {right:6.2f} % {seconds:7.1f} s  {curve}", flush=True
                )
        if args.train:
            continue
        tenon, torchs = np.array(sides["tenon"]), np.array(sides["pytorch"])
        apart = tenon - torchs
        spread = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else math.nan
        print(f"{name}: tenon {tenon.mean():.2f}, pytorch {torchs.mean():.2f}, "
              f"difference {apart.mean():+.2f}, standard error {spread:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
