# SPDX-License-Identifier: Apache-2.0
"""Nodes behind sizes that only a run knows: with weights among them they are compiled for the sizes
of each run."""

import numpy as np
import pytest
import tenon as tn
from onnx import helper
from onnx_models import constant, info, model_of, ran

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(256, 512)).astype("f") / 16
BACK = RNG.normal(size=(512, 256)).astype("f") / 16


def model(tmp_path, levels: int = 1) -> tn.Model:
    """Rows whose first element is positive, through two products; as often as there are levels."""
    nodes, x = [], "x"
    for i in range(levels):
        nodes += [
            helper.make_node("Gather", [x, "zero"], [f"first{i}"], axis=1),
            helper.make_node("Greater", [f"first{i}", "none"], [f"keep{i}"]),
            helper.make_node("Compress", [x, f"keep{i}"], [f"rows{i}"], axis=0),
            helper.make_node("MatMul", [f"rows{i}", "wide"], [f"wide{i}"]),
            helper.make_node("Relu", [f"wide{i}"], [f"relu{i}"]),
            helper.make_node("MatMul", [f"relu{i}", "back"], [f"y{i}"]),
        ]
        x = f"y{i}"
    numbers = {"wide": WIDE, "back": BACK, "zero": np.array(0), "none": np.float32(0)}
    constants = [constant(name, value) for name, value in numbers.items()]
    return ran(tmp_path, model_of(nodes, [info("x", ["n", 256])], [x], constants))


def expected(x: np.ndarray, levels: int) -> np.ndarray:
    for _ in range(levels):
        x = np.maximum(x[x[:, 0] > 0] @ WIDE, 0) @ BACK
    return x


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_products_of_as_many_rows_as_a_run_keeps_do_not_fall_back(tmp_path, levels) -> None:
    plan = model(tmp_path, levels).compile(backend="onednn")
    for n in (5, 40, 5, 17):
        x = RNG.normal(size=(n, 256)).astype("f")
        np.testing.assert_allclose(plan(x)[0], expected(x, levels), rtol=1e-4, atol=1e-5)
    about = plan.describe()
    assert not [f for f in about["fallback_nodes"] if f["op"] in ("MatMul", "Relu")], about
    assert any(p["backend"] == "host" for p in about["partitions"])


def test_no_row_at_all_is_a_result_as_well(tmp_path) -> None:
    plan = model(tmp_path, 2).compile(backend="onednn")
    assert plan(np.full((3, 256), -1, "f"))[0].shape == (0, 256)


def test_taps_and_profiles_reach_behind_late_sizes(tmp_path) -> None:
    loaded = model(tmp_path, 2)
    plan = loaded.compile(backend="onednn")
    x = RNG.normal(size=(9, 256)).astype("f")
    ops = {row["op"] for row in plan.profile(x=x)}
    assert "MatMul" in ops, ops
