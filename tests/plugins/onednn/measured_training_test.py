# SPDX-License-Identifier: Apache-2.0
"""A training whose implementations were chosen by measured times: its checkpoint has the choices,
and a run that is resumed elsewhere builds the same steps."""

import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest
import tenon as tn

# Trains for so many epochs, resuming what the folder holds.
TRAIN = """
import hashlib, sys
import numpy as np
import tenon as tn

folder, epochs = sys.argv[1], int(sys.argv[2])
random = np.random.default_rng(0)
rows = {"x": random.standard_normal((64, 8, 20, 20)).astype("float32"),
        "label": random.integers(0, 4, 64)}
network = tn.nn.Sequential(tn.nn.Conv(16, 3), tn.relu, tn.nn.Conv(16, 3), tn.relu,
                           tn.nn.GlobalAvgPool(), tn.nn.Linear(4))
model = tn.nn.build(network, {"x": ("N", 8, 20, 20)}, seed=0)
trained = tn.train(model, rows, epochs=epochs, batch=16, run=folder, resume=True, threads=2,
                   backend="onednn", backend_options={"choose": "measured"})
numbers = trained.constants()
print(hashlib.sha256(b"".join(np.asarray(numbers[name]).tobytes()
                              for name in sorted(numbers))).hexdigest())
"""


def train(folder: pathlib.Path, epochs: int, cache: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, folder, str(epochs)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def decisions(folder: pathlib.Path) -> list[str]:
    """Of the checkpoint."""
    data = (folder / "checkpoint.safetensors").read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    meta = json.loads(data[8 : 8 + size])["__metadata__"]
    return next(json.loads(text)["decisions"] for text in meta.values() if '"decisions"' in text)


def test_a_resumed_run_builds_what_its_checkpoint_says(tmp_path):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    elsewhere.write_text("no folder: nothing can be kept, and nothing is measured")
    whole = train(tmp_path / "whole", 4, here)
    train(tmp_path / "run", 2, here)
    before = decisions(tmp_path / "run")
    assert before == decisions(tmp_path / "whole")
    assert any(line.count("#") > 1 for line in before), "none was measured"

    assert train(tmp_path / "run", 4, elsewhere) == whole
    assert decisions(tmp_path / "run") == before
    # Without a checkpoint nothing is known there.
    train(tmp_path / "new", 2, elsewhere)
    assert not any(line.count("#") > 1 for line in decisions(tmp_path / "new"))


def test_options_of_the_training_are_no_options_of_the_backend():
    model = tn.nn.build(tn.nn.Linear(2), {"x": ("N", 3)}, seed=0)
    rows = {"x": np.zeros((8, 3), "float32"), "label": np.zeros(8, "int64")}
    with pytest.raises(tn.errors.InvalidArgument, match="option backend_options: .*, got threads"):
        tn.train(model, rows, backend_options={"threads": 1})
    with pytest.raises(tn.errors.InvalidArgument, match="chose"):
        tn.train(model, rows, backend="onednn", backend_options={"chose": "measured"})
