# SPDX-License-Identifier: Apache-2.0
"""The kept reference networks, draws of their data, and what the tables here have in common."""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tenon as tn

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench"))
import figures  # noqa: E402

MODELS = ROOT / ".cache/models"
DATA = {
    "lenet": "mnist",
    "mnist_cnn": "mnist",
    "resnet20": "glyphs",
    "mobilenet": "glyphs",
    "unet": "shapes",
    "transformer": "characters",
    "lstm": "leaves",
    "minilm_head": "sentences",
}
LAST_AXIS = -1  # of the classes, in all of them


class Network:
    """A trained network, its data, and folders of its own."""

    def __init__(self, name: str, folder: pathlib.Path, tests: int = 0):
        self.name, self.folder, self.tests = name, folder, tests
        options = {"networks": name, "kept": ROOT / "scripts/reference", "onnx": folder}
        options["models"] = MODELS
        sets = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "tenon", "run", "--trust"]
        done = subprocess.run(
            [*command, ROOT / "scripts/reference.lua", *sets], capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stderr)
        # Weights behind a Transpose become constants of their layers; normalization stays.
        self.model = tn.load(folder / f"{name}.onnx").apply("fusion.fold")
        self.test = tn.data.npz(MODELS / f"{DATA[name]}_test.npz")
        with np.load(MODELS / f"{DATA[name]}_train.npz") as train:
            self.train = dict(train)

    def draw(self, seed: int, samples: int, labels: bool = True) -> pathlib.Path:
        """So many training samples, drawn without replacement, as a file."""
        chosen = np.random.default_rng(seed).permutation(len(self.train["label"]))[:samples]
        fields = {key: array[chosen] for key, array in self.train.items()}
        if not labels:
            del fields["label"]
        path = self.folder / f"{self.name}_{seed}_{samples}{'' if labels else '_bare'}.npz"
        np.savez(path, **fields)
        return path

    def accuracy(self, model: tn.Model) -> float:
        """Percent of the held-out answers that are right: of all, or of the first `tests`."""
        found = tn.evaluate(model, self.test, metric="accuracy", batch=100, limit=self.tests)
        return 100 * found["accuracy"]


def folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="tenon_slim_")


def with_interval(values: list[float]) -> str:
    """The mean and the half width of its 95 % interval."""
    mean, _, high = figures.mean_interval(values)
    return f"{mean:7.2f} ± {high - mean:5.2f}"


def say(row: dict, path: pathlib.Path | None) -> None:
    """Keeps a row of figures, so that a table that was stopped is not lost."""
    if path:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
