# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on 4,000 digits and tests it on 1,000 others; mean of several seeds.

    scripts/fetch mnist
    python mnist.py cnn --data ../../../.cache/models --seeds 5

Forward, backward and update are one plan (`tn.Step`), whose state stays in the backend.
"""

import argparse
import pathlib
import sys
import time

import numpy as np
import tenon as tn

BATCH = 64


def he(rng: np.random.Generator, *shape: int, fan_in: int) -> np.ndarray:
    """He et al. 2015: keeps the variance through a ReLU."""
    return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype("f")


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, "f")


def mlp_parameters(rng: np.random.Generator) -> dict:
    return {
        "w1": he(rng, 784, 256, fan_in=784), "b1": zeros(256),
        "w2": he(rng, 256, 10, fan_in=256), "b2": zeros(10),
    }  # fmt: skip


def mlp(p: dict, x):
    """x: [n, 1, 28, 28] to logits [n, 10]."""
    h = tn.relu(x.reshape((x.shape[0], 784)) @ p["w1"] + p["b1"])
    return h @ p["w2"] + p["b2"]


def cnn_parameters(rng: np.random.Generator) -> dict:
    return {
        "c1": he(rng, 16, 1, 5, 5, fan_in=25), "b1": zeros(16),
        "c2": he(rng, 32, 16, 5, 5, fan_in=400), "b2": zeros(32),
        "w": he(rng, 1568, 10, fan_in=1568), "b": zeros(10),
    }  # fmt: skip


def cnn(p: dict, x):
    """x: [n, 1, 28, 28] to logits [n, 10]."""
    h = tn.max_pool(tn.relu(tn.conv(x, p["c1"], p["b1"], padding=2)), 2)
    h = tn.max_pool(tn.relu(tn.conv(h, p["c2"], p["b2"], padding=2)), 2)
    return h.reshape((h.shape[0], 1568)) @ p["w"] + p["b"]


NETWORKS = {"mlp": (mlp, mlp_parameters), "cnn": (cnn, cnn_parameters)}


def load(folder: pathlib.Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"mnist_{part}.npz") as data:
        images = data["image"].reshape(-1, 1, 28, 28).astype("f")
        return images / images.max(), data["label"].astype("i8")


def train(kind: str, seed: int, epochs: int, backend: str, folder: pathlib.Path) -> float:
    network, parameters = NETWORKS[kind]
    (x, y), (test_x, test_y) = load(folder, "train"), load(folder, "test")
    rng = np.random.default_rng(seed)

    def loss(p, images, labels):
        picked = tn.log_softmax(network(p, images)) * tn.one_hot(labels, 10)
        return -picked.sum(-1).mean()

    steps = epochs * (len(x) // BATCH)
    rate = tn.schedule.cosine(base=3e-3, steps=steps, warmup=20)
    step = tn.Step(loss, parameters(rng), tn.optim.adamw(lr=rate), backend=backend)
    begin = time.monotonic()
    for epoch in range(epochs):
        order = rng.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH)
        losses = [float(step(x[rows], y[rows])) for rows in order]
        took = time.monotonic() - begin
        print(f"\rseed {seed}, epoch {epoch + 1} of {epochs}: loss {np.mean(losses):.4f}, "
              f"{took:.0f} s", end="", file=sys.stderr)  # fmt: skip
    right = tn.jit(network)(step.parameters, test_x).argmax(-1) == test_y
    print(f", accuracy {right.mean():.4f}", file=sys.stderr)
    return float(right.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--backend", default="onednn")
    args = parser.parse_args()
    found = [
        train(args.network, seed, args.epochs, args.backend, args.data)
        for seed in range(args.seeds)
    ]
    print(f"{args.network}: held-out accuracy {np.mean(found):.4f} +- {np.std(found):.4f} "
          f"over {len(found)} seeds")  # fmt: skip


if __name__ == "__main__":
    main()
