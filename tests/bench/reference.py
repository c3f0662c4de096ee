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
With --set precision=bf16 and --bf16 both sides are in bfloat16.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import reference_networks
import torch
from reference_first import first_steps
from reference_networks import NETWORKS, Encoder, load, load_weights, rate_at
from safetensors.torch import load_file
from torch import nn

BF16 = False  # an argument of main()


@torch.no_grad()
def accuracy(net, fields, y) -> float:
    net.eval()
    parts = zip(*(field.split(100) for field in [*fields, y]))
    right = sum((net(*x).argmax(-1) == b).sum().item() for *x, b in parts)
    return 100 * right / y.numel()


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
    global BF16
    BF16, reference_networks.MODELS = args.bf16, args.models
    torch.set_num_threads(args.threads)
    for name in args.networks:
        if args.first:
            first_steps(name, 1, args.runs, args.models, args.bf16)
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
