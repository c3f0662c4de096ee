# SPDX-License-Identifier: Apache-2.0
"""Nodes behind sizes that only a run knows: with much to compute they are compiled for the sizes of
each run."""

import numpy as np
import pytest
import tenon as tn
from onnx import helper
from onnx_models import INT64, constant, info, model_of, ran

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(256, 512)).astype("f") / 16
BOOL = 9
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


@pytest.mark.parametrize(("channels", "is_compiled"), [(128, True), (2, False)])
def test_windows_of_as_many_boxes_as_a_run_keeps(tmp_path, channels, is_compiled) -> None:
    """A level of a detector's pyramid. The work counts: there are no weights."""
    nodes = [
        helper.make_node("Compress", ["boxes", "keep"], ["kept"], axis=0),
        helper.make_node("Compress", ["of", "keep"], ["kept_of"], axis=0),
        helper.make_node(
            "RoiAlign",
            ["maps", "kept", "kept_of"],
            ["y"],
            output_height=7,
            output_width=7,
            sampling_ratio=2,
        ),
    ]
    inputs = [
        info("maps", [1, channels, 16, 16]),
        info("boxes", ["n", 4]),
        info("of", ["n"], INT64),
        info("keep", ["n"], BOOL),
    ]
    loaded = ran(tmp_path, model_of(nodes, inputs, ["y"], []))
    plan, reference = (loaded.compile(backend=name) for name in ("onednn", "reference"))
    for n in (6, 9):
        corners = RNG.uniform(0, 8, (n, 4)).astype("f")
        feeds = {
            "maps": RNG.normal(size=(1, channels, 16, 16)).astype("f"),
            "boxes": corners + np.array([0, 0, 7, 7], "f"),
            "of": np.zeros(n, np.int64),
            "keep": np.arange(n) % 3 != 0,
        }
        np.testing.assert_allclose(
            plan.run(feeds)[0], reference.run(feeds)[0], rtol=1e-4, atol=1e-5
        )
    falls_back = any(f["op"] == "RoiAlign" for f in plan.describe()["fallback_nodes"])
    assert falls_back != is_compiled
