# SPDX-License-Identifier: Apache-2.0
"""What augmentation costs a training: steps a second and the share of time that the loop waits.

    PYTHONPATH=build/release/python python tests/bench/augmented.py [--images 512] [--rounds 3]

A small residual network on made pictures [3, 32, 32], batch 64: from memory, with crop and flip,
and with colour jitter, resized crop and mixup as well. Rounds are interleaved; medians, and the
time by that from memory, round by round, with its 95 % interval.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
import tenon as tn
from figures import paired_ratio
from tenon import nn


def network() -> tn.Model:
    layers = [nn.Conv(16, 3, padding=1), nn.BatchNorm(), tn.relu]
    for stage in range(3):
        width = 16 << stage
        if stage:
            layers += [nn.Conv(width, 3, padding=1, stride=2), nn.BatchNorm(), tn.relu]
        for _ in range(2):
            body = nn.Sequential(
                nn.Conv(width, 3, padding=1), nn.BatchNorm(), tn.relu,
                nn.Conv(width, 3, padding=1), nn.BatchNorm(),
            )  # fmt: skip
            layers.append(nn.Residual(body, activation=tn.relu))
    return nn.build(nn.Sequential(*layers, nn.GlobalAvgPool(), nn.Linear(10)),
                    {"image": ("N", 3, 32, 32)})  # fmt: skip


def feeds(path: Path) -> dict[str, tn.Dataset]:
    data = tn.data.npz(path)
    plain = tn.data.flip(data=tn.data.crop(data=data, padding=4))
    rich = tn.data.resized_crop(data=data, scale=[0.5, 1])
    rich = tn.data.color_jitter(data=tn.data.flip(data=rich), brightness=0.4, hue=0.1)
    rich = tn.data.mixup(data=tn.data.erasing(data=rich), classes=10)
    return {"memory": data, "crop, flip": plain, "all": rich}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rng, rows = np.random.default_rng(0), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npz"
        image = rng.random((args.images, 3, 32, 32)).astype("f")
        np.savez(path, image=image, label=rng.integers(0, 10, args.images))
        for _ in range(args.rounds):
            for name, data in feeds(path).items():
                report = tn.train(network(), data, epochs=4, batch=64).report
                seconds = sum(epoch["seconds"] for epoch in report["history"][1:])
                steps = 3 * args.images / 64
                waited = 100 * report["seconds_waited"] / report["seconds"]
                rows.setdefault(name, []).append((1000 * seconds / steps, waited))
    for name, measured in rows.items():
        step, waited = (statistics.median(column) for column in zip(*measured))
        slices = [[[ms] for ms, _ in rows[of]] for of in (name, "memory")]
        ratio, low, high = paired_ratio(*slices)
        times = f"{ratio:.3f} [{low:.3f}, {high:.3f}] of memory's"
        print(f"{name:12} {step:8.2f} ms a step, {times}, waited {waited:5.2f} %")


if __name__ == "__main__":
    main()
