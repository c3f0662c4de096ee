# SPDX-License-Identifier: Apache-2.0
"""What a training step with dropped layers takes of one without, in pairs, and what they cost.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/layer_drop.py [--layers 12]
    PYTHONPATH=build/release/python .venv/bin/python tests/bench/layer_drop.py --accuracy

A transformer encoder (pre-norm, width 256, 4 heads) on 8 x 64 tokens; each pair is one training of
so many steps without and one with the schedule's end, keep 0.5 (mean keep 0.729 for 12 layers). The
steps that are timed come behind those in which sets of layers are compiled, whose seconds are
printed apart. --accuracy: one of width 64 on 49 patches of 4x4 of digits (`scripts/fetch mnist`),
trained with and without under the paper's schedule (keep 1 to 0.5), held out accuracy by seed;
--data digits: 8x8 digits (`scripts/fetch digits`), which are soon learnt whole, width 32, 16
patches. `layer_drop_torch.py` is the same in PyTorch.
"""

import argparse
import json
import math
import tempfile
import time
from pathlib import Path

import numpy as np
import tenon as tn
from figures import mean_interval
from layer_drop_data import BATCH, DATA
from tenon import nn

WARM = 60  # steps that do not count: by then each set of layers has been drawn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attend = nn.Residual(nn.Sequential(nn.LayerNorm(), nn.MultiHeadAttention(4)))
        hidden = (nn.LayerNorm(), nn.Linear(4 * width), tn.gelu, nn.Linear(width))
        self.think = nn.Residual(nn.Sequential(*hidden))

    def forward(self, x):
        return self.think(self.attend(x))


class Encoder(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.token = nn.Embedding(96, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.head = nn.Linear(96)

    def forward(self, token):
        return self.head(self.blocks(self.token(token)))


class Digits(nn.Module):
    def __init__(self, layers, data):
        super().__init__()
        self.shape = (-1, data.width, (data.size // data.patch) ** 2)
        small = nn.init.normal(deviation=0.02)
        self.patch = nn.Conv(data.width, data.patch, stride=data.patch)
        self.position = nn.Parameter(self.shape[:0:-1], init=small)
        self.blocks = nn.Sequential(*(Block(data.width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(), nn.Linear(10)

    def forward(self, image):
        tokens = tn.permute_dims(tn.reshape(self.patch(image), self.shape), (0, 2, 1))
        return self.head(tn.mean(self.norm(self.blocks(tokens + self.position())), axis=1))


def timed(model, data, more, threads):
    """Seconds of a step, and what was compiled."""
    times: list[float] = []
    trained = tn.train(
        model, data=data, batch=8, threads=threads, optimizer="adamw",
        loss=tn.loss.cross_entropy(axis=-1), **more,
        callbacks=[tn.callback(step=lambda point: times.append(time.perf_counter()))],
    )  # fmt: skip
    return (times[-1] - times[WARM]) / (len(times) - 1 - WARM), trained.report["compiled"]


def measure_time(args) -> None:
    rng = np.random.default_rng(0)
    token = rng.integers(0, 96, (8 * args.steps, 64))
    net = Encoder(args.layers, 256)
    model = nn.build(net, {"token": nn.Input(("N", 64), "int64")}, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "text.npz", token=token, label=np.roll(token, -1, 1))
        data = tn.data.npz(Path(folder) / "text.npz")
        drop = {"drop_layers": {"layers": "blocks.*", "keep": 0.5}}
        ratios = []
        for _ in range(args.pairs):
            made = [timed(model, data, more, args.threads) for more in ({}, drop)]
            took = [seconds for seconds, _ in made]
            ratios.append(took[1] / took[0])
            plans = ", ".join(f"{c['steps']} in {c['seconds']:.2f} s" for _, c in made)
            print(f"plain {1e3 * took[0]:.1f} ms, dropped {1e3 * took[1]:.1f} ms; "
                  f"compiled {plans}", flush=True)  # fmt: skip
    mid, low, high = np.exp(mean_interval(np.log(ratios)))
    print(f"dropped / plain {mid:.3f} [{low:.3f}, {high:.3f}]")


def images(data, folder, models, part):
    image, label = data.read(models, part)
    np.savez(Path(folder) / f"{part}.npz", image=image, label=label)
    return tn.data.npz(Path(folder) / f"{part}.npz")


def measure_accuracy(args, folder) -> None:
    data = DATA[args.data]
    train, test = (images(data, folder, args.models, part) for part in ("train", "test"))
    steps = args.epochs * (len(train) // BATCH)
    # Section 4 of the paper: gamma = 100 / T.
    keep = tn.schedule.exponential(base=1.0, end=0.5, gamma=math.exp(-100 / steps))
    drop = {"drop_layers": {"layers": "blocks.*", "keep": 0.5}, "schedules": {"layer_keep": keep}}
    apart = []
    for seed in range(args.begin, args.begin + args.seeds):
        right = {}
        for name, more in (("plain", {}), ("dropped", drop)):
            model = nn.build(
                Digits(args.layers, data), {"image": ("N", 1, data.size, data.size)}, seed=seed
            )
            rate = tn.schedule.cosine(base=2e-3, warmup=50)
            trained = tn.train(
                model, data=train, batch=BATCH, epochs=args.epochs, seed=seed, drop_last=True,
                threads=args.threads, optimizer=tn.optim.adamw(lr=rate, weight_decay=0.01), **more,
            )  # fmt: skip
            right[name] = 100 * tn.evaluate(trained, test, "accuracy", batch=100)["accuracy"]
            record = {
                "seed": seed,
                "steps": name,
                "accuracy": round(right[name], 2),
                "seconds": round(sum(one["seconds"] for one in trained.report["history"]), 1),
                "compiled": trained.report["compiled"],
                "losses": [round(one["loss"], 4) for one in trained.report["history"]],
            }
            print(json.dumps(record), flush=True)
        apart.append(right["dropped"] - right["plain"])
    mean, low, high = mean_interval(apart)
    print(f"dropped - plain {mean:+.2f} [{low:+.2f}, {high:+.2f}] points")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--pairs", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--accuracy", action="store_true", help="of digits, in place of the time")
    parser.add_argument("--data", choices=sorted(DATA), default="mnist", help="of --accuracy")
    parser.add_argument("--seeds", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--begin", type=int, default=1, help="the first seed")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--models", type=Path, default=Path(".cache/models"))
    args = parser.parse_args()
    if not args.accuracy:
        return measure_time(args)
    with tempfile.TemporaryDirectory() as folder:
        measure_accuracy(args, folder)


if __name__ == "__main__":
    main()
