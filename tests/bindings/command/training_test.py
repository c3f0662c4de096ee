# SPDX-License-Identifier: Apache-2.0
"""`tenon train`: stopped, killed, gone on with."""

import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from running import TENON, failed, tenon

SCRIPT = """
local tn = require "tenon"
local x = tn.tensor({ { 0.5, -0.25, 0.125, 1 } }, "float32")
local w1, b1 = tn.npy("w1.npy"), tn.zeros({ 16 }, "float32")
local w2, b2 = tn.npy("w2.npy"), tn.zeros({ 3 }, "float32")
local net = tn.jit(function(x) return tn.linear(tn.relu(tn.linear(x, w1, b1)), w2, b2) end)
local model = net:trace(x)
local trained, report = tn.train(model, {
  data = tn.data.npz("train.npz"), validation = 0.2, metric = "accuracy", patience = 1000,
  optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = 1e-2, warmup = 20 } },
  epochs = tn.args.epochs, batch = 8, clip_norm = 1, checkpoint_steps = 7, backend = "reference",
})
trained:save(tn.args.out)
return report
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A script, its data and its first weights."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((230, 4)).astype("f")
    np.savez(tmp_path / "train.npz", x1=x, label=x[:, :3].argmax(1))
    np.save(tmp_path / "w1.npy", rng.standard_normal((4, 16)).astype("f"))
    np.save(tmp_path / "w2.npy", rng.standard_normal((16, 3)).astype("f"))
    (tmp_path / "train.lua").write_text(SCRIPT)
    return tmp_path


def train(folder: Path, out: str, *more: str, epochs: int = 3) -> subprocess.CompletedProcess:
    sets = ["--set", f"out={out}", "--set", f"epochs={epochs}"]
    return tenon("train", "train.lua", "--json", *sets, *more, cwd=folder)


def losses(result: subprocess.CompletedProcess) -> list[float]:
    return [record["loss"] for record in json.loads(result.stdout)["history"]]


def start_to_be_killed(folder: Path, *args: str) -> subprocess.Popen:
    return subprocess.Popen(
        [TENON, "train", "train.lua", *args],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


# TENON_KILLS=100 pytest tests/bindings/command/training_test.py -k any_moment
KILLS = int(os.environ.get("TENON_KILLS", "20"))
EPOCHS = 6 * KILLS  # many: it is still training when it is killed, on a busy machine too


def epochs_of(run: Path) -> int:
    history = run / "history.jsonl"
    return len(history.read_text().splitlines()) if history.exists() else 0


def test_a_run_killed_at_any_moment_ends_the_same(folder: Path) -> None:
    begin = time.monotonic()
    whole = train(folder, "whole.onnx", "--run", "undisturbed", epochs=EPOCHS)
    assert whole.returncode == 0, whole.stderr
    epoch = (time.monotonic() - begin) / EPOCHS
    rng = random.Random(1)
    sets = ["--set", "out=killed.onnx", "--set", f"epochs={EPOCHS}"]
    for killed in range(KILLS):
        going = (folder / "run" / "checkpoint.safetensors").exists()
        process = start_to_be_killed(folder, *sets, "--resume" if going else "--run", "run")
        while process.poll() is None and epochs_of(folder / "run") < 2 * killed:
            time.sleep(epoch / 50)
        time.sleep(rng.uniform(0, epoch))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, f"it had come to its end at kill {killed + 1}"
    end = train(folder, "killed.onnx", "--resume", "run", epochs=EPOCHS)
    assert end.returncode == 0, end.stderr
    assert losses(end) == losses(whole)
    whole_bytes = (folder / "whole.onnx").read_bytes()
    assert (folder / "killed.onnx").read_bytes() == whole_bytes
    history = (folder / "run" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in history] == list(range(1, EPOCHS + 1))
    left = sorted(path.name for path in (folder / "run").iterdir())
    assert left == ["checkpoint.safetensors", "history.jsonl"]


def test_each_epoch_reports_its_rate_and_the_time_left(folder: Path) -> None:
    summary = [line for line in train(folder, "o.onnx").stderr.splitlines() if " epoch " in line]
    number = r"[\d.e+-]+"
    for i, line in enumerate(summary, 1):
        figures = f"accuracy {number}, loss {number}, validation_loss {number}"
        rate = rf"{number} samples/s, \d+:\d\d left"
        assert re.fullmatch(rf"info: trainer: epoch {i} of 3, {figures}, {rate}", line), line
    assert len(summary) == 3


def test_checkpoints_without_a_folder_are_reported(folder: Path) -> None:
    line = "info: trainer: no checkpoint is written: there is no folder for it (option run)"
    assert line in train(folder, "o.onnx", epochs=1).stderr.splitlines()
    assert line not in train(folder, "o.onnx", "--run", "run", epochs=1).stderr.splitlines()


def test_an_interrupt_saves_and_says_how_to_go_on(folder: Path) -> None:
    command = [TENON, "train", "train.lua", "--set", "out=o.onnx", "--set", "epochs=100000"]
    process = subprocess.Popen(
        [*command, "--run", "run"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    while not (folder / "run" / "history.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with --resume run" in errors.splitlines()[-1]
    assert not (folder / "o.onnx").exists()


def test_what_cannot_be_resumed_is_reported(folder: Path) -> None:
    failed(train(folder, "o", "--resume", "nowhere"), 1, "--resume: nowhere: expected the folder")
    assert train(folder, "o.onnx", "--run", "run").returncode == 0
    again = train(folder, "o.onnx", "--run", "run")
    assert again.returncode == 1
    assert "run holds a run already" in again.stderr
    both = train(folder, "o", "--run", "a", "--resume", "b")
    assert both.returncode == 2


STAGES = SCRIPT.replace(
    "trained:save",
    """
trained = tn.train(trained, {
  data = tn.data.npz("train.npz"), loss = tn.loss.cross_entropy { label_smoothing = 0.1 },
  optimizer = tn.optim.sgd { lr = 0.01, momentum = 0.9 }, epochs = 40, batch = 16,
  backend = "reference",
})
trained:save""",
)


def test_a_script_of_two_trainings_goes_on_in_the_second(folder: Path) -> None:
    (folder / "train.lua").write_text(STAGES)
    assert train(folder, "whole.onnx", "--run", "undisturbed").returncode == 0
    sets = ["--set", "out=k.onnx", "--set", "epochs=3"]
    process = start_to_be_killed(folder, *sets, "--run", "run")
    while not (folder / "run" / "2" / "history.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    end = train(folder, "killed.onnx", "--resume", "run")
    assert end.returncode == 0, end.stderr
    assert (folder / "killed.onnx").read_bytes() == (folder / "whole.onnx").read_bytes()


def test_two_trainings_in_one_folder_are_refused(folder: Path) -> None:
    long = ["--set", "out=o.onnx", "--set", "epochs=100000", "--run", "run"]
    process = start_to_be_killed(folder, *long)
    while epochs_of(folder / "run") == 0:
        assert process.poll() is None
        time.sleep(0.02)
    for way in ("--run", "--resume"):
        failed(
            train(folder, "p.onnx", way, "run"), 1, "run: expected a folder in which no training"
        )
    assert process.poll() is None
    process.kill()
    process.wait()
    history = epochs_of(folder / "run")
    assert train(folder, "p.onnx", "--resume", "run", epochs=history + 3).returncode == 0


def test_it_reports_what_float16_makes_of_gradients(folder: Path) -> None:
    made = train(folder, "o.onnx", "--grad-histogram", epochs=1)
    assert made.returncode == 0, made.stderr
    record = json.loads(made.stdout)["history"][0]
    assert record["advised_loss_scale"] > 1
    assert "gradients_flushed" in record
    assert re.search(r"float16 (keeps|without a loss scale)", made.stderr), made.stderr
