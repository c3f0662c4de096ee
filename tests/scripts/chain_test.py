# SPDX-License-Identifier: Apache-2.0
"""`scripts/chain.lua` from end to end, quick, on made digits and a network that learned them."""

import json
import os
import shutil
import subprocess

import made_digits
import onnx
import pytest

STAGES = ["shallower", "narrower", "decomposed", "taught", "int8", "stored sparse"]
FIGURES = ["KB", "ms", "held out %"]
CHAIN = "scripts/chain.lua"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What scripts/reference is: the weights of a network that was trained."""
    made = tmp_path_factory.mktemp("chain")
    settings = {"networks": "mnist_cnn", "epochs": 6, "keep": made, "out": made}
    made_digits.run("scripts/reference.lua", made, timeout=600, **settings)
    return made


@pytest.fixture(scope="module")
def chain(folder):
    return run(folder)


def run(folder, **settings):
    """The text that was printed, and the result. Channels go by a share of the parameters: the
    script's own share of the measured time differs between CPUs."""
    narrower = json.dumps({"parameters": 0.4})
    given = {"out": folder, "kept": folder, "quick": "true", "narrower": narrower, **settings}
    return made_digits.run(CHAIN, folder, timeout=900, **given)


def by_stage(result) -> dict:
    return {row["stage"]: row for row in result["rows"]}


def test_each_stage_has_its_figures_or_the_reason_why_it_has_none(chain):
    text, result = chain
    rows = result["rows"]
    assert [row["stage"] for row in rows] == ["float", *STAGES, "all of it"]
    for row in rows:
        assert row["stage"] in text
        if "KB" not in row:
            assert row["verdict"].startswith("left out: ")
            continue
        assert all(row[figure] > 0 for figure in FIGURES), row
        if row["stage"] != "float":
            assert row["faster"]["low"] <= row["faster"]["times"] <= row["faster"]["high"]
            assert row["smaller"] > 0 and "[" in row["points"]
    assert by_stage(result)["shallower"]["verdict"] == "left out: no block can go"


def test_no_stage_stands_in_it_that_does_not_pay(chain):
    rows = [row for row in chain[1]["rows"] if row["stage"] in STAGES and "KB" in row]
    kept = [row for row in rows if not row["verdict"].startswith("left out: ")]
    assert {"narrower", "int8"} <= {row["stage"] for row in kept}
    for row in kept:
        assert row["smaller"] > 1.05 or row["faster"]["low"] > 1.02 or row["gain"] > row["half"]
    share = 1.0
    for row in kept:
        share *= row["smaller"]
    assert share == pytest.approx(chain[1]["smaller"])  # the others have left nothing behind


def test_bytes_pay_for_time_only_where_numbers_are_stored_otherwise(tmp_path):
    """What a stage pays in, of rows as they may be measured: times smaller, faster, better."""
    cases = [
        ("1.5, 0.97, 0.99, false, true", "smaller"),  # the interval has what is no slower
        ("1.5, 0.93, 0.97, false, true", "nil: slower"),
        ("1.5, 0.93, 0.97, true, true", "smaller, better"),
        ("1.5, 0.93, 0.97, false, false", "smaller"),
        ("1.04, 1.03, 1.05, false, true", "faster"),
        ("1.04, 1.01, 1.05, false, true", "nil: neither smaller nor faster nor better"),
    ]
    calls = "\n".join(f"say({given})" for given, _ in cases)
    script = tmp_path / "rows.lua"
    shutil.copy(made_digits.ROOT / "scripts/chain_figures.lua", tmp_path)
    script.write_text(
        f"""local figures = require "chain_figures"
        local function say(smaller, low, high, better, shape)
          local faster = {{ low = low, high = high }}
          local row = {{ smaller = smaller, faster = faster, better = better }}
          local paid, why = figures.payment(row, shape)
          print(paid or "nil: " .. why)
        end
        {calls}"""
    )
    command = [os.environ["TENON_BIN"], "run", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [wanted for _, wanted in cases]


def test_the_whole_is_small_and_no_worse(chain):
    whole, end = chain[1]["rows"][0], chain[1]["rows"][-1]
    assert whole["held out %"] > 90
    assert end["held out %"] > whole["held out %"] - 3
    assert end["KB"] < whole["KB"] / 8
    assert chain[1]["points"] == pytest.approx(end["held out %"] - whole["held out %"])


def test_the_model_that_was_saved_is_onnx(chain, folder):
    path, end = folder / "chain_mnist_cnn.onnx", chain[1]["rows"][-1]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {node.op_type for node in model.graph.node} >= {"QuantizeLinear", "DequantizeLinear"}
    assert all(node.domain == "" for node in model.graph.node)
    assert path.stat().st_size == pytest.approx(end["KB"] * 1e3, rel=0.02)
    command = [os.environ["TENON_BIN"], "evaluate", path, "--data", folder / "mnist_test.npz"]
    done = subprocess.run(
        [*command, "--metric", "accuracy", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Of all samples, where the table has three quarters of them.
    assert json.loads(done.stdout)["value"] * 100 == pytest.approx(end["held out %"], abs=3)


def test_called_again_it_goes_on_where_it_was(chain, folder):
    """Without what came last: the stages before have their folders, and are not trained again."""
    before = {path.name: path.read_bytes() for path in folder.glob("chain_*_done.onnx")}
    (folder / "chain_mnist_cnn_int8_done.onnx").unlink()
    _, again = run(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("chain_*_done.onnx")} == before
    shown = ["stage", "KB", "held out %"]
    for row, then in zip(chain[1]["rows"], again["rows"]):
        assert [row.get(key) for key in shown] == [then.get(key) for key in shown]


def test_stages_are_left_out_as_asked(folder, tmp_path):
    left = "shallower,narrower,decomposed,taught,stored sparse,teacher"
    _, result = run(folder, out=tmp_path, without=left)
    rows = by_stage(result)
    for name in left.split(",")[:-1]:
        assert rows[name] == {"stage": name, "verdict": "left out: as asked"}
    assert not (tmp_path / "chain_mnist_cnn_narrower_start.onnx").exists()
    assert 3 < result["smaller"] < 4.1  # int8 alone


def test_an_unknown_network_is_named(folder):
    command = [os.environ["TENON_BIN"], "run", made_digits.ROOT / CHAIN, "--set", "network=vgg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1
    assert "expected some of lenet, mnist_cnn, " in done.stderr and "got vgg" in done.stderr


def test_an_unknown_stage_is_not_left_out_in_silence(tmp_path):
    with pytest.raises(AssertionError, match="expected some of the chain's stages, or teacher"):
        run(tmp_path, without="shalower")
