# SPDX-License-Identifier: Apache-2.0
"""Digits that are made here, and a script of the tree run on them."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def write(path: Path, seed: int, n: int) -> None:
    """Ten blurred patterns, moved and noisy: enough to learn something from."""
    patterns = np.random.default_rng(0).random((10, 7, 7)).repeat(4, 1).repeat(4, 2)
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 10, n)
    image = np.stack([np.roll(patterns[k], rng.integers(-2, 3, 2), (0, 1)) for k in label])
    image = image + 0.5 * rng.standard_normal(image.shape)
    np.savez(path, image=image[:, None].astype("f"), label=label)


def run(script: str, folder: Path, timeout: int, **settings: object) -> tuple[str, dict | list]:
    """The lines of `tenon run SCRIPT --json`, and its result."""
    write(folder / "mnist_train.npz", 1, 1280)
    write(folder / "mnist_test.npz", 2, 200)
    given = [f"--set={key}={value}" for key, value in {"models": folder, **settings}.items()]
    command = [os.environ["TENON_BIN"], "run", str(ROOT / script), "--json", *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout)
