# SPDX-License-Identifier: Apache-2.0
"""Channels go where exporters compute sizes in the model, and where channels are normalized in
groups: what is removed is what was masked."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of, ran

WIDE, UNITS, STEPS = 6, 12, 5


def random(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def check(model: tenon.Model, x: np.ndarray) -> dict:
    """At two ratios; the report of the larger one."""
    for ratio in (0.34, 0.6):
        masked = model.apply("pruner.structured", ratio=ratio, apply="mask")
        removed = model.apply("pruner.structured", ratio=ratio)
        for one in (x, x[:1]):  # the batch stays open
            wanted, found = (
                np.asarray(m.compile(backend="reference").run({"x": one})[0])
                for m in (masked, removed)
            )
            assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    return removed.report


def open_batch() -> list:
    """`n`: how many samples x has, as a list of one size."""
    return [helper.make_node("Shape", ["x"], ["n"], start=0, end=1)]


@pytest.mark.parametrize("zeros", ["Expand", "ConstantOfShape"])
def test_units_go_where_the_first_state_is_made_of_zeros(tmp_path: Path, zeros: str) -> None:
    """As PyTorch exports an LSTM without a state: [directions, batch, units] of zeros."""
    units = constant("units", np.array([UNITS]))
    made = ["none", "sizes"] if zeros == "Expand" else ["sizes"]
    nodes = [
        *open_batch(),
        helper.make_node("Concat", ["one", "n", "units"], ["sizes"], axis=0),
        helper.make_node(zeros, made, ["h"], "state"),
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["steps", "w", "r", "", "", "h", "h"], ["", "last"], "cell",
                         hidden_size=UNITS),
        helper.make_node("Squeeze", ["last", "zero"], ["flat"]),
        helper.make_node("MatMul", ["flat", "out"], ["y"], "head"),
    ]  # fmt: skip
    constants = [
        units,
        constant("one", np.array([1])),
        constant("zero", np.array([0])),
        constant("none", np.zeros((1, 1, 1), "f")),
        constant("w", random(1, 4 * UNITS, WIDE) / 3),
        constant("r", random(1, 4 * UNITS, UNITS, seed=2) / 3),
        constant("out", random(UNITS, 3, seed=3)),
    ]
    model = model_of(nodes, [info("x", ["N", STEPS, WIDE])], [info("y", ["N", 3])], constants)

    report = check(ran(tmp_path, model), random(4, STEPS, WIDE, seed=4))

    assert [one["channels"] for one in report["groups"]] == [UNITS]


def test_a_state_of_other_numbers_stays_whole(tmp_path: Path) -> None:
    """Masked units would be read as these numbers, removed ones would not."""
    nodes = [
        *open_batch(),
        helper.make_node("Concat", ["n", "units"], ["sizes"], axis=0),
        helper.make_node("Expand", ["ones", "sizes"], ["h"], "state"),
        helper.make_node("MatMul", ["x", "w"], ["a"], "fc"),
        helper.make_node("Add", ["a", "h"], ["s"]),
        helper.make_node("MatMul", ["s", "out"], ["y"], "head"),
    ]
    constants = [
        constant("units", np.array([UNITS])),
        constant("ones", np.ones((1, 1), "f")),
        constant("w", random(WIDE, UNITS)),
        constant("out", random(UNITS, 3, seed=3)),
    ]
    model = model_of(nodes, [info("x", ["N", WIDE])], [info("y", ["N", 3])], constants)

    with pytest.raises(tenon.TenonError, match="state .Expand. states its size"):
        ran(tmp_path, model).apply("pruner.structured", only=["fc"], skip=["head"])


def test_width_goes_through_a_token_that_is_repeated(tmp_path: Path) -> None:
    """As of a ViT: a learned [1, 1, width] for each sample, in front of what the patches give."""
    nodes = [
        *open_batch(),
        helper.make_node("Concat", ["n", "one", "width"], ["sizes"], axis=0),
        helper.make_node("Expand", ["token", "sizes"], ["first"], "repeated"),
        helper.make_node("MatMul", ["x", "w"], ["patches"], "embed"),
        helper.make_node("Concat", ["first", "patches"], ["tokens"], axis=1),
        helper.make_node("LayerNormalization", ["tokens", "scale", "bias"], ["normed"], axis=-1),
        helper.make_node("MatMul", ["normed", "out"], ["y"], "head"),
    ]
    constants = [
        constant("one", np.array([1])),
        constant("width", np.array([UNITS])),
        constant("token", random(1, 1, UNITS)),
        constant("w", random(WIDE, UNITS, seed=2)),
        constant("scale", random(UNITS, seed=3)),
        constant("bias", random(UNITS, seed=4)),
        constant("out", random(UNITS, 3, seed=5)),
    ]
    shapes = [info("x", ["N", STEPS, WIDE])], [info("y", ["N", STEPS + 1, 3])]
    model = model_of(nodes, *shapes, constants)

    report = check(ran(tmp_path, model), random(4, STEPS, WIDE, seed=6))

    assert [one["channels"] for one in report["groups"]] == [UNITS]


@pytest.mark.parametrize("groups", [1, 3])
def test_channels_go_evenly_where_they_are_normalized_in_groups(tmp_path: Path, groups) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv", pads=[1] * 4),
        helper.make_node("GroupNormalization", ["a", "scale", "bias"], ["n"], "norm",
                         num_groups=groups),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "out"], ["y"], "head"),
    ]  # fmt: skip
    constants = [
        constant("w", random(UNITS, 3, 3, 3)),
        constant("scale", random(UNITS, seed=2)),
        constant("bias", random(UNITS, seed=3)),
        constant("out", random(2, UNITS, 1, 1, seed=4)),
    ]
    shapes = [info("x", ["N", 3, 7, 7])], [info("y", ["N", 2, 7, 7])]
    model = model_of(nodes, *shapes, constants, opset=21, ir=10)

    report = check(ran(tmp_path, model), random(2, 3, 7, 7, seed=5))

    assert [one["channels"] for one in report["groups"]] == [UNITS // groups]


def test_wanda_ranks_channels_that_no_weight_reads(tmp_path: Path) -> None:
    """As the half of a last residual layer that nothing uses."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"),
        helper.make_node("Split", ["a"], ["used", "unused"], axis=1, num_outputs=2),
        helper.make_node("Conv", ["used", "out"], ["y"], "head"),
    ]
    constants = [
        constant("w", random(2 * UNITS, 3, 1, 1)),
        constant("out", random(2, UNITS, 1, 1, seed=4)),
    ]
    shapes = [info("x", ["N", 3, 7, 7])], [info("y", ["N", 2, 7, 7])]
    model = ran(tmp_path, model_of(nodes, *shapes, constants, opset=18))
    np.savez(tmp_path / "x.npz", x=random(8, 3, 7, 7, seed=5))

    pruned = model.apply(
        "pruner.structured", ratio=0.5, importance="wanda", data=str(tmp_path / "x.npz")
    )

    assert np.asarray(pruned.constants()["w"]).shape[0] == UNITS


def test_experts_are_pruned_through_their_equations(tmp_path: Path) -> None:
    """A mixture of experts that each sample goes through at once, weighed by a gate: widths go in
    front of the experts, inside of them and behind them; experts stay, as the gate mixes them."""
    experts, wide, hidden = 3, 10, 12
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["e"], "embed"),
        helper.make_node("MatMul", ["e", "router"], ["scores"], "router"),
        helper.make_node("Softmax", ["scores"], ["gate"], axis=-1),
        helper.make_node("Einsum", ["e", "up"], ["u"], "up", equation="bsd,edf->bsef"),
        helper.make_node("Add", ["u", "shift"], ["s"]),
        helper.make_node("Relu", ["s"], ["h"]),
        helper.make_node("Einsum", ["h", "down"], ["d"], "down", equation="...ef, efd -> ...ed"),
        helper.make_node("Einsum", ["d", "gate"], ["m"], "mix", equation="bsed,bse->bsd"),
        helper.make_node("MatMul", ["m", "out"], ["y"], "head"),
    ]
    constants = [
        constant("w0", random(WIDE, wide)),
        constant("router", random(wide, experts, seed=2)),
        constant("up", random(experts, wide, hidden, seed=3)),
        constant("shift", random(experts, hidden, seed=4)),
        constant("down", random(experts, hidden, wide, seed=5)),
        constant("out", random(wide, 3, seed=6)),
    ]
    shapes = [info("x", ["N", STEPS, WIDE])], [info("y", ["N", STEPS, 3])]
    model = ran(tmp_path, model_of(nodes, *shapes, constants))

    report = check(model, random(4, STEPS, WIDE, seed=7))

    assert {one["layer"]: one["channels"] for one in report["groups"]} == {
        "embed": wide, "up": hidden, "down": wide,
    }  # fmt: skip
    assert any("mixes its entries" in one["why"] for one in report["barriers"])
    # Products of experts count, before and after: x w0, router, up, down, mix, head.
    each = WIDE * wide + wide * experts + 2 * experts * wide * hidden + experts * wide + wide * 3
    assert report["macs"]["before"] == STEPS * each
    assert report["macs"]["after"] < 0.3 * report["macs"]["before"]


@pytest.mark.parametrize("equation", ["bsd,df->bs", "bsd,sd->bd"])
def test_what_an_equation_sums_alone_stays(tmp_path: Path, equation: str) -> None:
    """f, of the weight alone, or s, of the samples: a sum over the whole axis."""
    weight = random(UNITS, 4, seed=2) if equation.endswith("bs") else random(STEPS, UNITS, seed=2)
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["e"], "embed"),
        helper.make_node("Einsum", ["e", "w"], ["m"], "sum", equation=equation),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    constants = [constant("w0", random(WIDE, UNITS)), constant("w", weight)]
    sizes = ["N", STEPS] if equation.endswith("bs") else ["N", UNITS]
    shapes = [info("x", ["N", STEPS, WIDE])], [info("y", sizes)]
    model = ran(tmp_path, model_of(nodes, *shapes, constants))
    if equation.endswith("bd"):  # its width is that of the output
        with pytest.raises(tenon.TenonError, match="it is of the model's output y"):
            model.apply("pruner.structured", ratio=0.5)
        return
    report = check(model, random(4, STEPS, WIDE, seed=7))
    assert [one["layer"] for one in report["groups"]] == ["embed"]


def test_a_weight_without_rows_keeps_nothing_from_going(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], "first"),
        helper.make_node("Slice", ["h", "none", "none", "one"], ["e"]),
        helper.make_node("MatMul", ["e", "empty"], ["z"], "nothing"),
        helper.make_node("MatMul", ["h", "w2"], ["m"], "second"),
        helper.make_node("Add", ["m", "z"], ["y"]),
    ]
    given = [
        constant("w1", random(8, UNITS)),
        constant("w2", random(UNITS, 4, seed=2)),
        constant("empty", np.zeros((0, 4), "f")),
        constant("none", np.array([0])),
        constant("one", np.array([1])),
    ]
    model = ran(tmp_path, model_of(nodes, [info("x", ["n", 8])], ["y"], given))

    check(model, random(3, 8, seed=3))


def test_one_channel_that_stays_is_an_axis_where_others_are_squeezed(tmp_path: Path) -> None:
    """Squeeze without axes takes all of one entry."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Squeeze", ["p"], ["flat"]),
        helper.make_node("MatMul", ["flat", "out"], ["y"]),
    ]
    constants = [constant("w", random(2, 3, 1, 1)), constant("out", random(2, 5))]
    graph = model_of(nodes, [info("x", (2, 3, 4, 4))], [info("y", (2, 5))], constants)
    model, x = ran(tmp_path, graph), random(2, 3, 4, 4, seed=3)

    masked, removed = (model.apply("pruner.structured", apply=how) for how in ("mask", "remove"))

    assert [one["channels"] for one in removed.report["groups"]] == [2]
    np.testing.assert_allclose(removed.compile()(x)[0], masked.compile()(x)[0], atol=1e-5)
