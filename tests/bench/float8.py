# SPDX-License-Identifier: Apache-2.0
"""What training with products rounded to float8 costs: held out accuracy beside float32, by seed.

    PYTHONPATH=build/release/python python tests/bench/float8.py [--seeds 5] [--epochs 15]

A convolutional network on the digits of `scripts/fetch digits` (8x8), from the same weights and in
the same order of samples: precision fp32, bf16, fp8 (E4M3 forward, E5M2 backward, delayed scaling).
Differences are paired by seed, with their 95 % interval.
"""

import argparse
from pathlib import Path

import numpy as np
import tenon as tn
from figures import mean_interval
from layer_drop_data import DATA
from tenon import nn


def network():
    return nn.Sequential(
        nn.Conv(16, 3, padding=1), tn.relu, nn.Conv(32, 3, padding=1), tn.relu, nn.MaxPool(2),
        nn.Flatten(), nn.Linear(128), tn.relu, nn.Linear(10),
    )  # fmt: skip


def accuracy(precision, seed, epochs, train, test):
    shape = ("N", *train[0].shape[1:])
    model = nn.build(network(), {"image": shape}, seed=seed)
    trained = tn.train(
        model,
        {"image": train[0], "label": train[1]},
        epochs=epochs,
        batch=32,
        seed=seed,
        precision=precision,
        optimizer=tn.optim.adamw(lr=tn.schedule.cosine(base=2e-3, warmup=20)),
    )
    scores = np.asarray(trained(test[0]))
    return 100 * float((scores.argmax(1) == test[1]).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--data", type=Path, default=Path(".cache/models"))
    args = parser.parse_args()
    parts = {}
    for part in ("train", "test"):
        images, labels = DATA["digits"].read(args.data, part)
        parts[part] = images.reshape(len(images), 1, 8, 8).astype("f"), labels
    found = {}
    print("precision  held out % by seed")
    for precision in ("fp32", "bf16", "fp8"):
        found[precision] = [
            accuracy(precision, seed, args.epochs, parts["train"], parts["test"])
            for seed in range(args.seeds)
        ]
        print(f"{precision:9}", *(f"{one:.2f}" for one in found[precision]), flush=True)
    for precision in ("bf16", "fp8"):
        difference = np.subtract(found[precision], found["fp32"])
        mean, low, high = mean_interval(difference)
        print(f"{precision} less fp32: {mean:+.2f} [{low:+.2f}, {high:+.2f}]")


if __name__ == "__main__":
    main()
