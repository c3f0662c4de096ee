# SPDX-License-Identifier: Apache-2.0
"""scripts/reference.lua on small made data: it trains what it is asked for, and goes on."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tenon as tn

ROOT = Path(__file__).parent.parent.parent
SCRIPT, KEPT = ROOT / "scripts" / "reference.lua", ROOT / "scripts" / "reference"
DATA = ROOT / ".cache" / "models"
OF = {"resnet20": "glyphs", "mobilenet": "glyphs", "unet": "shapes", "transformer": "characters"}
OF |= {"lstm": "leaves", "minilm_head": "sentences"}
TUNED = {"minilm_head"}  # of these, only what was trained is kept
TABLE = [line.split("|")[1:3] for line in (KEPT / "README.md").read_text().splitlines()[12:]]
ACCURACIES = {row[0].strip(): float(row[1]) for row in TABLE if len(row) == 2 and "." in row[1]}

NETWORKS = ["lenet", "mnist_cnn", "resnet20", "mobilenet", "unet", "transformer", "lstm"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Textures in noise under the names of the real data."""
    made = tmp_path_factory.mktemp("reference")
    rng = np.random.default_rng(0)
    for name, size, classes, count in [("mnist", 28, 10, 256), ("glyphs", 32, 94, 64)]:
        texture = rng.standard_normal((classes, 1, size, size))
        for part in ("train", "test"):
            label = rng.integers(0, classes, count)
            image = texture[label] + rng.standard_normal((count, 1, size, size)) * 0.3
            np.savez(made / f"{name}_{part}.npz", image=image.astype("f"), label=label)
            token, mask = rng.integers(0, 96, (64, 65)), rng.integers(0, 5, (64, 64, 64))
            image = rng.random((64, 1, 64, 64)).astype("f")
            series = rng.standard_normal((64, 427, 1)).astype("f")
            np.savez(made / f"leaves_{part}.npz", series=series, label=rng.integers(0, 6, 64))
            np.savez(made / f"characters_{part}.npz", token=token[:, :-1], label=token[:, 1:])
            np.savez(made / f"shapes_{part}.npz", image=image, label=mask)
    return made


def run(folder, **sets):
    command = [os.environ["TENON_BIN"], "run", "--json", SCRIPT]
    for key, value in {"models": ".", "out": "runs", **sets}.items():
        command += ["--set", f"{key}={value}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)


def rows(done):
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_it_trains_and_goes_on(folder):
    first = rows(run(folder, networks="lenet", epochs=10))
    assert [row["network"] for row in first] == ["lenet"]
    assert first[0]["epochs"] == 10 and first[0]["hours"] > 0
    longer = rows(run(folder, networks="lenet", epochs=40))
    again = rows(run(folder, networks="lenet", epochs=40))
    assert longer[0]["epochs"] == 40 and longer[0]["accuracy"] > 90
    assert again == longer  # it had ended: nothing is trained, the hours are those that it took
    weights = tn.load(folder / "runs" / "lenet_1.safetensors").constants()
    assert np.shape(weights["11.weight"]) == (10, 84)


def test_every_other_network_takes_a_step(folder):
    made = rows(run(folder, networks=",".join(NETWORKS[2:]), epochs=1, out="others"))
    assert [row["network"] for row in made] == NETWORKS[2:]
    sizes = {}
    for row in made:
        assert np.isfinite(row["loss"]) and 0 <= row["accuracy"] <= 100
        constants = tn.load(folder / "others" / f"{row['network']}_1.safetensors").constants()
        sizes[row["network"]] = sum(np.size(x) for k, x in constants.items() if ".running" not in k)
    assert 270_000 < sizes["resnet20"] < 290_000
    assert 2_000_000 < sizes["mobilenet"] < 2_500_000


def test_first_steps_are_kept_for_a_comparison(folder):
    """The weights that they begin with, and each step's loss, the same each time."""
    texts = []
    for _ in range(2):
        rows(run(folder, networks="lenet,mnist_cnn", first=6, out="first"))
        texts.append((folder / "first" / "mnist_cnn_1.first.jsonl").read_text())
    assert texts[0] == texts[1]
    lines = [json.loads(line) for line in texts[0].splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["rate"] for line in lines] == pytest.approx([2e-3 * i / 50 for i in range(1, 7)])
    begin = tn.load(folder / "first" / "lenet_1.initial.safetensors").constants()
    assert np.shape(begin["11.weight"]) == (10, 84)


def test_what_is_kept_is_whole_and_small(folder):
    """Judged on made data: each file fits its network."""
    files = sorted(path.stem for path in KEPT.glob("*.safetensors"))
    assert files == sorted(ACCURACIES) and len(files) >= 5
    assert sum(path.stat().st_size for path in KEPT.glob("*.safetensors")) < 12e6
    whole = [name for name in files if name not in TUNED]
    judged = rows(run(folder, networks=",".join(whole), kept=KEPT))
    assert sorted(row["network"] for row in judged) == whole
    for name in files:
        constants = tn.load(KEPT / f"{name}.safetensors").constants()
        kinds = {str(x.dtype) for key, x in constants.items() if key.endswith(("weight", "bias"))}
        assert kinds == {"bfloat16"}, name


@pytest.mark.parametrize("name", sorted(ACCURACIES))
def test_what_is_kept_is_as_good_as_its_table_says(name):
    data = OF.get(name, "mnist")
    if not (DATA / f"{data}_test.npz").exists():
        pytest.skip(f"scripts/fetch {data} brings the samples")
    judged = rows(run(ROOT, networks=name, kept=KEPT, models=DATA))
    assert judged[0]["accuracy"] == pytest.approx(ACCURACIES[name], abs=0.15)


def test_an_unknown_network_is_named(folder):
    done = run(folder, networks="lenett")
    assert done.returncode == 1
    assert f"expected some of {', '.join(NETWORKS)}, " in done.stderr
    assert "got lenett" in done.stderr
