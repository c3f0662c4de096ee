# SPDX-License-Identifier: Apache-2.0
"""`scripts/chain.lua` from end to end, on made digits, with three epochs where it has eight."""

import json
import os
import subprocess

import made_digits
import onnx
import pytest

STAGES = ["trained", "int8 alone", "pruned", "decomposed", "taught, bf16", "int8", "only pruned"]
COLUMNS = ["accuracy", "spread", "parameters", "KB", "MMACs", "ms, batch 1", "ms, batch 64"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The rows of the table, the text, and the model that was saved."""
    folder = tmp_path_factory.mktemp("chain")
    table, result = made_digits.run(
        "scripts/chain.lua", folder, timeout=1200, out=folder, epochs=3, rounds=3
    )
    return result["rows"], table, folder / "chain_int8.onnx"


def test_each_stage_has_a_row_with_all_its_figures(chain):
    rows, table, _ = chain
    assert [row["stage"] for row in rows] == STAGES
    for row in rows:
        assert len(row["scores"]) == 1 and row["spread"] == 0
        assert all(row[column] > 0 for column in COLUMNS if column != "spread"), row
    for name in ["stage", *COLUMNS, *STAGES]:
        assert name in table
    assert "points ahead of only pruned, standard error 0.00" in table


def test_each_stage_does_what_its_name_says(chain):
    by_stage = {row["stage"]: row for row in chain[0]}
    trained, small = by_stage["trained"], by_stage["decomposed"]
    assert trained["accuracy"] > 50
    assert by_stage["int8 alone"]["KB"] < 0.3 * trained["KB"]
    assert small["parameters"] < by_stage["pruned"]["parameters"] < 0.3 * trained["parameters"]
    assert small["MMACs"] < by_stage["pruned"]["MMACs"] < 0.3 * trained["MMACs"]
    assert by_stage["int8"]["accuracy"] >= small["accuracy"]  # it was taught
    assert by_stage["int8"]["KB"] < trained["KB"] / 8


def test_the_model_that_was_saved_is_onnx(chain):
    rows, _, path = chain
    by_stage = {row["stage"]: row for row in rows}
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {node.op_type for node in model.graph.node} >= {"QuantizeLinear", "DequantizeLinear"}
    assert all(node.domain == "" for node in model.graph.node)
    assert 8 * path.stat().st_size <= by_stage["trained"]["KB"] * 1e3
    assert 0 < path.stat().st_size - by_stage["int8"]["KB"] * 1e3 < 10_000  # nodes and names
    command = [os.environ["TENON_BIN"], "evaluate", path, "--data", path.parent / "mnist_test.npz"]
    done = subprocess.run(
        [*command, "--metric", "accuracy", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    accuracy = json.loads(done.stdout)["value"] * 100
    assert accuracy == pytest.approx(by_stage["int8"]["accuracy"], abs=0.51)
