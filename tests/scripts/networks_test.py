# SPDX-License-Identifier: Apache-2.0
"""A ResNet, a transformer, a U-Net and an LSTM, in Python and in Lua in under 40 lines each: they
train on small made data, and are the same networks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon as tn

ROOT = Path(__file__).parent.parent.parent
PYTHON, LUA = ROOT / "bindings" / "python" / "examples", ROOT / "scripts" / "networks"
NETWORKS = ["lstm", "resnet", "transformer", "unet"]


def images(rng):
    """Ten textures in noise."""
    label = rng.integers(0, 10, 640)
    texture = rng.standard_normal((10, 1, 8, 8))
    image = texture[label] + rng.standard_normal((640, 1, 8, 8)) * 0.3
    return {"image": image.astype("f"), "label": label}


def texts(rng):
    """Runs of an alphabet that goes on from any letter, three in four times."""
    token = np.zeros((160, 33), "i8")
    token[:, 0] = rng.integers(0, 64, 160)
    for i in range(32):
        jump = rng.random(160) < 0.1
        token[:, i + 1] = np.where(jump, rng.integers(0, 64, 160), (token[:, i] + 7) % 64)
    return {"token": token[:, :-1], "next": token[:, 1:]}


def shapes(rng):
    """Squares in noise."""
    mask = np.zeros((64, 16, 16), "i8")
    for one in mask:
        y, x, size = rng.integers(0, 9, 2).tolist() + [rng.integers(4, 8)]
        one[y : y + size, x : x + size] = 1
    noise = rng.standard_normal(mask.shape) * 0.5
    return {"image": (mask + noise)[:, None].astype("f"), "mask": mask}


def series(rng):
    """Sines of three rates."""
    label = rng.integers(0, 3, 96)
    phase, step = rng.random((96, 1)) * 6, np.arange(24)
    wave = np.sin(phase + step * (0.3 + 0.4 * label[:, None]))
    return {"series": (wave + rng.standard_normal(wave.shape) * 0.1)[..., None].astype("f"),
            "label": label}  # fmt: skip


DATA = {"resnet": images, "transformer": texts, "unet": shapes, "lstm": series}
EPOCHS = {"resnet": 4, "transformer": 6, "unet": 3, "lstm": 12}
FALLS_TO = {"resnet": 0.6, "transformer": 0.8, "unet": 0.7, "lstm": 0.7}


def run(command, tmp_path):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, make in DATA.items():
        np.savez(folder / f"{name}.npz", **make(np.random.default_rng(0)))
    return folder


def python_run(name, files, out, epochs):
    command = [sys.executable, "-B", PYTHON / f"{name}.py", files / f"{name}.npz", out, str(epochs)]
    return [float(loss) for loss in run(command, files).split()]


def lua_run(name, files, out, epochs):
    sets = {"data": files / f"{name}.npz", "out": out, "epochs": epochs}
    command = [os.environ["TENON_BIN"], "train", "--json", LUA / f"{name}.lua"]
    command += [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    return [epoch["loss"] for epoch in json.loads(run(command, files))]


@pytest.mark.parametrize("name", NETWORKS)
def test_they_train_and_are_the_same_network(name, files):
    found = {}
    for language, trained in [("python", python_run), ("lua", lua_run)]:
        out = files / f"{name}_{language}.onnx"
        losses = trained(name, files, out, EPOCHS[name])
        assert losses[-1] < losses[0] * FALLS_TO[name], f"{language}: {losses}"
        constants = tn.load(out).constants()
        found[language] = {k: np.shape(v) for k, v in constants.items() if "." in k}
    assert found["python"] == found["lua"]


@pytest.mark.parametrize("name", NETWORKS)
def test_they_are_short(name):
    for path in (PYTHON / f"{name}.py", LUA / f"{name}.lua"):
        assert len(path.read_text().splitlines()) < 40, path


@pytest.mark.parametrize(
    ("variant", "count"),
    [("a", 25_557_032), ("b", 25_557_032), ("c", 25_576_264), ("d", 25_576_264)],
)
def test_resnet50_has_the_parameters_of_its_variant(variant, count, tmp_path):
    """Those of torchvision's (b) and timm's (c, d); statistics are two for each two of a norm."""
    command = [os.environ["TENON_BIN"], "run", "--json", LUA / "resnet50.lua"]
    report = json.loads(run([*command, "--set", f"variant={variant}"], tmp_path))
    statistics = 2 * (26_560 if variant in "ab" else 26_624)
    assert report["parameters"] == count + statistics


def test_resnet50_trains_with_all_tricks_and_without(tmp_path):
    rng = np.random.default_rng(0)
    label = np.arange(16) % 2
    image = rng.standard_normal((16, 3, 32, 32)) * 0.1 + label[:, None, None, None]
    np.savez(tmp_path / "data.npz", image=image.astype("f"), label=label)
    for tricks in ("true", "false"):
        command = [os.environ["TENON_BIN"], "train", "--json", LUA / "resnet50.lua"]
        sets = {"data": "data.npz", "out": "out.onnx", "epochs": 2, "batch": 8, "classes": 2,
                "tricks": tricks}  # fmt: skip
        command += [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        history = json.loads(run(command, tmp_path))
        assert np.isfinite([epoch["loss"] for epoch in history]).all()
