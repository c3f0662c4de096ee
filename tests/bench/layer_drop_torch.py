# SPDX-License-Identifier: Apache-2.0
"""The training of `layer_drop.py --accuracy` in PyTorch, for what layer dropping costs there.

    .venv-bench/bin/python tests/bench/layer_drop_torch.py [--layers 5] [--epochs 8] [--seeds 2]

The same network, recipe and schedule; each layer is drawn by itself (Zhang & He 2020), and one that
is left out has no gradient, so that AdamW leaves it alone. --draws sets: Tenon's systematic draws.
--count shared: bias correction by the number of all updates in place of a layer's own.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from figures import mean_interval
from layer_drop_data import BATCH, DATA
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        return x + self.think(self.norm2(x))


class Digits(nn.Module):
    def __init__(self, layers, width, size, patch):
        super().__init__()
        self.patch = nn.Conv2d(1, width, patch, patch)
        self.position = nn.Parameter(0.02 * torch.randn((size // patch) ** 2, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image, runs=None, shares=None):
        x = self.patch(image).flatten(2).transpose(1, 2) + self.position
        for i, block in enumerate(self.blocks):
            if runs is None:
                x = block(x)
            elif runs[i]:
                x = x + (block(x) - x) / (1 - shares[i])
        return self.head(self.norm(x).mean(1))


def drawn(rng, shares, how):
    """Which layers run; shares: how often each is left out."""
    if how == "independent":
        return rng.random(len(shares)) >= shares
    sums = np.concatenate([[0], np.cumsum(shares)])
    return np.diff(np.ceil(sums - rng.random())) == 0


def count_as_all(optimizer, updates) -> None:
    for state in optimizer.state.values():
        state["step"].fill_(updates)


def train(seed, drops, args) -> dict:
    torch.manual_seed(seed)
    data, rng, begin = DATA[args.data], np.random.default_rng(seed), time.monotonic()
    (x, y), test = (map(torch.from_numpy, data.read(args.models, p)) for p in ("train", "test"))
    net = Digits(args.layers, data.width, data.size, data.patch)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.01)
    per_epoch = len(y) // BATCH
    total, warmup, step, losses = args.epochs * per_epoch, 50, 0, []
    for _ in range(args.epochs):
        order, sum_of = torch.randperm(len(y))[: per_epoch * BATCH].split(BATCH), 0.0
        for rows in order:
            done = (step - warmup) / (total - warmup)
            rate = (step + 1) / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * done))
            optimizer.param_groups[0]["lr"] = 2e-3 * rate
            keep = args.keep + (1 - args.keep) * math.exp(-100 / total * step)
            shares = np.arange(1, args.layers + 1) / args.layers * (1 - keep)
            runs = drawn(rng, shares, args.draws) if drops else None
            loss = nn.functional.cross_entropy(net(x[rows], runs, shares), y[rows])
            optimizer.zero_grad()
            loss.backward()
            if args.count == "shared":
                count_as_all(optimizer, step)
            optimizer.step()
            sum_of, step = sum_of + loss.item(), step + 1
        losses.append(round(sum_of / per_epoch, 4))
    image, label = test
    with torch.no_grad():
        right = (net.eval()(image).argmax(-1) == label).float().mean().item()
    return {"seed": seed, "steps": "dropped" if drops else "plain",
            "accuracy": round(100 * right, 2), "seconds": round(time.monotonic() - begin, 1),
            "losses": losses}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=sorted(DATA), default="mnist")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2, choices=range(2, 11))
    parser.add_argument("--keep", type=float, default=0.5)
    parser.add_argument("--draws", choices=("independent", "sets"), default="independent")
    parser.add_argument("--count", choices=("own", "shared"), default="own")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", type=Path, default=Path(".cache/models"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    apart = []
    for seed in range(1, args.seeds + 1):
        made = [train(seed, drops, args) for drops in (False, True)]
        for one in made:
            print(json.dumps(one), flush=True)
        apart.append(made[1]["accuracy"] - made[0]["accuracy"])
    mean, low, high = mean_interval(apart)
    print(f"dropped - plain {mean:+.2f} [{low:+.2f}, {high:+.2f}] points")


if __name__ == "__main__":
    main()
