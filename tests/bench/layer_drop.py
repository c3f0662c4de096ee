# SPDX-License-Identifier: Apache-2.0
"""What a training step with dropped layers takes of one without, in pairs.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/layer_drop.py [--layers 12]

A transformer encoder (pre-norm, width 256, 4 heads) on 8 x 64 tokens; each pair is one training of
so many steps without and one with the schedule's end, keep 0.5 (mean keep 0.729 for 12 layers). The
steps that are timed come behind those in which sets of layers are compiled, whose seconds are
printed apart.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import tenon as tn
from tenon import nn

WARM = 60  # steps that do not count: by then each set of layers has been drawn
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 95 %, from 2 pairs on


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--pairs", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
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
            took, compiled = [], []
            for more in ({}, drop):
                times: list[float] = []

                def report_to(point, times=times):
                    times.append(time.perf_counter())

                trained = tn.train(model, data=data, batch=8, threads=args.threads, optimizer="adamw",
                         loss=tn.loss.cross_entropy(axis=-1), **more,
                         callbacks=[tn.callback(step=report_to)])  # fmt: skip
                compiled.append(trained.report["compiled"])
                took.append((times[-1] - times[WARM]) / (len(times) - 1 - WARM))
            ratios.append(took[1] / took[0])
            plans = ", ".join(f"{c['steps']} in {c['seconds']:.2f} s" for c in compiled)
            print(f"plain {1e3 * took[0]:.1f} ms, dropped {1e3 * took[1]:.1f} ms; "
                  f"compiled {plans}", flush=True)  # fmt: skip
    logs = np.log(ratios)
    margin = STUDENT[len(logs) - 2] * logs.std(ddof=1) / len(logs) ** 0.5
    low, mid, high = np.exp([logs.mean() - margin, logs.mean(), logs.mean() + margin])
    print(f"dropped / plain {mid:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
