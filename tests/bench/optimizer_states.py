# SPDX-License-Identifier: Apache-2.0
"""Bytes of optimizer states, and what is learnt with them: AdamW, in 8 bits, and Adafactor.

    PYTHONPATH=build/release/python python tests/bench/optimizer_states.py [--seeds 3]

An MLP of 64-512-512-10 on the digits of `scripts/fetch`, from the same weights and batches.
"""

import argparse
from pathlib import Path

import numpy as np
import tenon as tn
from layer_drop_data import DATA

NAMES = {"adamw": 1e-3, "adamw_8bit": 1e-3, "adafactor": 1e-2}


def network(p, x):
    h = tn.relu(tn.linear(x, p["w1"], p["b1"]))
    return tn.linear(tn.relu(tn.linear(h, p["w2"], p["b2"])), p["w3"], p["b3"])


def loss(p, x, y):
    return -(tn.log_softmax(network(p, x)) * tn.one_hot(y, 10)).sum(-1).mean()


def weights(seed):
    rng, out = np.random.default_rng(seed), {}
    for i, (n, m) in enumerate([(64, 512), (512, 512), (512, 10)], 1):
        out[f"w{i}"] = (rng.standard_normal((n, m)) * (2 / n) ** 0.5).astype("f")
        out[f"b{i}"] = np.zeros(m, "f")
    return out


def trained(name, seed, epochs, train, test):
    images, labels = train
    parameters = weights(seed)
    step = tn.Step(loss, parameters, getattr(tn.optim, name)(lr=NAMES[name]), threads=1)
    model, _ = step.trace(images[:64], labels[:64])
    names = {port.name for port in model.states}
    owners = {
        name.split("/exp_avg")[0].split("/row_var")[0].split("/variance")[0] for name in names
    }
    states = [one for one in model.states if one.name not in owners or one.name.endswith("/step")]
    size = sum(np.dtype(one.dtype).itemsize * int(np.prod(one.shape)) for one in states)
    rng, last = np.random.default_rng(seed), []
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for begin in range(0, len(order) - 63, 64):
            some = order[begin : begin + 64]
            value = float(step(images[some], labels[some]))
            if epoch == epochs - 1:
                last.append(value)
    right = np.asarray(tn.jit(network)(step.parameters, test[0])).argmax(1) == test[1]
    return size, np.mean(last), right.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--data", type=Path, default=Path(".cache/models"))
    args = parser.parse_args()
    parts = {}
    for part in ("train", "test"):
        images, labels = DATA["digits"].read(args.data, part)
        parts[part] = images.reshape(len(images), -1).astype("f"), labels
    base = None
    print("optimizer    seed  state bytes  of AdamW's  last epoch's loss  held out %")
    for name in NAMES:
        for seed in range(args.seeds):
            size, value, share = trained(name, seed, args.epochs, parts["train"], parts["test"])
            base = base or size
            columns = f"{size / base:11.3f} {value:18.5f} {100 * share:11.2f}"
            print(f"{name:11} {seed:5} {size:12} {columns}", flush=True)


if __name__ == "__main__":
    main()
