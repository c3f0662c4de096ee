# SPDX-License-Identifier: Apache-2.0
"""The comparison alternates, takes medians, and reports who failed; no peer is needed for that."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import peer_inputs  # noqa: E402
import peer_rows  # noqa: E402
import peers  # noqa: E402
import versus  # noqa: E402


@pytest.fixture
def fake(tmp_path):
    """An executable that prints the next of some latencies, and logs each call's arguments."""

    def make(name: str, figures: list[float]) -> Path:
        path = tmp_path / name
        state = tmp_path / "calls.txt"
        path.write_text(
            f"#!{sys.executable}\n"
            "import json, pathlib, sys\n"
            f"state, figures = pathlib.Path({str(state)!r}), {figures!r}\n"
            "calls = state.read_text().splitlines() if state.exists() else []\n"
            f"mine = [call for call in calls if call.startswith({name!r})]\n"
            f"state.write_text('\\n'.join([*calls, ' '.join([{name!r}, *sys.argv[1:]])]))\n"
            "ms = figures[len(mine) % len(figures)]\n"
            "if ms < 0: sys.exit('tenon: out of luck')\n"
            "out = {'latency_ms': {'median': ms, 'min': ms / 2, 'p90': 2 * ms}}\n"
            "if 'peers.py' in ' '.join(sys.argv):\n"
            "    out = {'median_ms': ms, 'min_ms': ms / 2, 'p90_ms': 2 * ms}\n"
            "print(json.dumps(out))\n"
        )
        os.chmod(path, 0o755)
        return path

    return make


def test_ratio_is_better_peer_over_tenon(fake, tmp_path, capsys):
    tenon = fake("tenon", [2.0, 9.0, 2.0])
    peers = fake("python", [8.0, 4.0])

    argv = ["m.onnx", "--tenon", str(tenon), "--python", str(peers), "--rounds", "3", "--json"]
    code = versus.main(argv)

    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [row["contestant"] for row in result["figures"]] == ["tenon", "onnxruntime", "openvino"]
    assert result["figures"][0]["median_ms"] == 2 and result["figures"][0]["min_ms"] == 1
    assert result["ratio"] == 2  # openvino's 4 over 2; one slow round does not count
    assert result["best_peer"] == "openvino"
    order = [line.split()[0] for line in (tmp_path / "calls.txt").read_text().splitlines()]
    assert order == ["tenon", "python", "python"] * 3


def test_a_contestant_that_fails_is_named_and_not_asked_again(fake, tmp_path, capsys):
    tenon = fake("tenon", [-1.0])

    code = versus.main(["m.onnx", "--tenon", str(tenon), "--only", "tenon", "--json"])

    result = json.loads(capsys.readouterr().out)
    assert code == 1
    assert result["failed"][0]["why"] == "tenon: out of luck"
    assert result["ratio"] is None
    assert len((tmp_path / "calls.txt").read_text().splitlines()) == 1


def test_int8_runs_each_file_given_for_a_contestant(fake, capsys):
    tenon, peers = fake("tenon", [3.0]), fake("python", [5.0, 1.0])
    files = ["--int8", "all=ours.onnx", "--int8", "openvino=theirs.onnx"]

    argv = ["m.onnx", "--precision", "int8", "--only", "tenon,openvino", *files, "--json"]
    versus.main([*argv, "--tenon", str(tenon), "--python", str(peers), "--rounds", "1"])

    result = json.loads(capsys.readouterr().out)
    rows = [(row["contestant"], row["model"]) for row in result["figures"]]
    assert rows == [
        ("tenon", "ours.onnx"),
        ("openvino", "ours.onnx"),
        ("openvino", "theirs.onnx"),
    ]
    assert result["ratio"] == pytest.approx(1 / 3)


def test_data_gives_everyone_the_same_rows(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(12).reshape(6, 2), label=np.arange(6))

    options = versus.slice_data(str(tmp_path / "d.npz"), {"x": (4, 2)}, str(tmp_path))

    assert options == ["--input", f"x={tmp_path / 'x.npy'}"]
    assert np.load(tmp_path / "x.npy").shape == (4, 2)


def test_inputs_are_random_floats_and_zero_integers():
    wanted = {"x": (np.dtype("f4"), [None, 3]), "ids": (np.dtype("i8"), [2])}

    made = peer_inputs.make(wanted, {"x": (5, 3)}, {})

    assert made["x"].shape == (5, 3) and made["x"].std() > 0.3
    assert made["ids"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "shapes, text",
    [({}, "expected --shape for dynamic dims"), ({"y": (1,)}, "input y: expected one of x")],
)
def test_wrong_inputs_are_named(shapes, text):
    with pytest.raises(ValueError, match=text):
        peer_inputs.make({"x": (np.dtype("f4"), [None])}, shapes, {})


@pytest.mark.parametrize("text", ["x", "x=", "x=1xa"])
def test_a_bad_shape_is_refused(text):
    with pytest.raises(ValueError, match="expected NAME="):
        peer_inputs.shapes_of([text])


def test_calibration_rows_come_in_batches(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(5), label=np.arange(5))
    rows = peer_rows.Rows(str(tmp_path / "d.npz"), ["x"], n_samples=0, batch=2)

    batches = [batch["x"].tolist() for batch in iter(rows.get_next, None)]

    assert batches == [[0, 1], [2, 3], [4]]
    assert len(rows) == 3


def test_a_symbol_of_two_extents_is_not_fixed(tmp_path):
    made = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", "?", "?"])
    graph = onnx.helper.make_graph([], "g", [made], [])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")

    found = peers.fixed_symbols(str(tmp_path / "m.onnx"), {"x": np.zeros((2, 3, 4))})

    assert found == {"n": 2}
