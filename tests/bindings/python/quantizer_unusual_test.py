# SPDX-License-Identifier: Apache-2.0
"""Models that are written in unusual ways, through passes that prepare and repair: none is changed
in what it computes, and what cannot be repaired is left and named."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import NodeProto, TensorProto, helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, mlp, ran, random_mlp, saved, snr


def uneven(folder: Path, between: list[NodeProto], constants=(), outputs=("y",)) -> tenon.Model:
    """x [N, 8] -> MatMul -> h -> between -> r -> MatMul -> y; the channels of h differ much."""
    first, second = random_mlp(31, [8, 8, 8])
    first *= (10.0 ** np.linspace(-2, 3, 8)).astype("f")
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"], "fc0"),
        *between,
        helper.make_node("MatMul", ["r", "w1"], ["y"], "fc1"),
    ]
    weights = [constant("w0", first), constant("w1", second), *constants]
    return ran(folder, model_of(nodes, [info("x", ["N", 8])], list(outputs), weights))


def samples(*shape: int) -> np.ndarray:
    return np.random.default_rng(32).standard_normal(shape).astype("f")


NOT_HOMOGENEOUS = {
    "a large end": [helper.make_node("Clip", ["h", "low", "high"], ["r"])],
    "a large threshold": [helper.make_node("ThresholdedRelu", ["h"], ["r"], alpha=800.0)],
    "a small threshold": [helper.make_node("Shrink", ["h"], ["r"], lambd=0.004)],
    "truth values": [
        helper.make_node("Greater", ["h", "low"], ["is_above"]),
        helper.make_node("Cast", ["is_above"], ["r"], to=TensorProto.FLOAT),
    ],
}


@pytest.mark.parametrize("kind", NOT_HOMOGENEOUS)
def test_what_is_not_homogeneous_is_not_equalized_across(tmp_path: Path, kind: str) -> None:
    ends = [constant("low", np.float32(0)), constant("high", np.float32(500))]
    read = {name for node in NOT_HOMOGENEOUS[kind] for name in node.input}
    model = uneven(tmp_path, NOT_HOMOGENEOUS[kind], [one for one in ends if one.name in read])

    even = model.apply("quantizer.equalize")

    assert even.report["equalized"] == []
    assert "comes after it" in even.report["left"][0]["why"]


def test_an_equalized_weight_stays_as_an_output(tmp_path: Path) -> None:
    model = uneven(tmp_path, [helper.make_node("Relu", ["h"], ["r"])], (), ("y", "w0"))

    even = model.apply("quantizer.equalize")

    assert len(even.report["equalized"]) == 1
    x = samples(16, 8)
    right, found = (m.compile(backend="reference").run({"x": x}) for m in (model, even))
    np.testing.assert_array_equal(found[1], right[1])
    assert snr(right[0], found[0]) > 100


def test_a_summand_of_columns_is_no_bias_of_channels(tmp_path: Path) -> None:
    """Behind a convolution a vector lies along the last axis, as long as that of channels here."""
    w = np.random.default_rng(33).standard_normal((6, 3, 3, 3)).astype("f")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], "conv", pads=[1] * 4),
        helper.make_node("Add", ["h", "b"], ["y"], "columns"),
    ]
    constants = [constant("w", w), constant("b", samples(6))]
    model = ran(tmp_path, model_of(nodes, [info("x", ["N", 3, 6, 6])], ["y"], constants))
    data = saved(tmp_path, np.abs(samples(32, 3, 6, 6)))
    small = model.apply("quantizer.static", data=data, weight_bits=3)

    better = small.apply("quantizer.correct_bias", data=data, original=model)

    assert better.report["corrected"] == []
    assert better.report["left"] == [{"node": "conv", "why": "it has no constant bias"}]


def test_sums_of_many_terms_are_prepared_but_not_rounded_again(tmp_path: Path) -> None:
    """The matrix of all inputs, which is what grows with the square, is that of rounding alone."""
    model = mlp(tmp_path, random_mlp(38, [2100, 16, 4]))
    x = samples(64, 2100)
    x[:, 3] *= 100
    data = saved(tmp_path, x)

    even = model.apply("quantizer.equalize")
    smooth = model.apply("quantizer.smooth", data=data)
    scaled = model.apply("quantizer.awq", data=data)
    rounded = even.apply("quantizer.static", data=data)
    rounded = rounded.apply("quantizer.gptq", data=data, original=even)

    assert even.report["equalized"][0]["from"] == "fc0"
    for one in (smooth, scaled):
        assert one.report["layers"][0]["nodes"] == ["fc0"]
        assert one.report["layers"][0]["how"] == "inserted"
        assert snr(answers(model, x), answers(one, x)) > 100
    why = {"node": "fc0", "why": "its sums go over 2100 numbers, more than 2048"}
    assert rounded.report["left"] == [why]


@pytest.mark.parametrize("component", ["quantizer.smooth", "quantizer.awq"])
def test_products_that_are_not_scaled_are_named(tmp_path: Path, component: str) -> None:
    w = random_mlp(39, [8, 8])[0]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("MatMul", ["a", "w"], ["b"], "second"),
        helper.make_node("Cast", ["b"], ["c"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["c", "half"], ["y"], "third"),
    ]
    constants = [constant("w", w), constant("half", w.astype(np.float16))]
    model = ran(tmp_path, model_of(nodes, [info("x", ["N", 8])], ["y"], constants))

    even = model.apply(component, data=saved(tmp_path, samples(32, 8)))

    why = {row["node"]: row["why"] for row in even.report["left"]}
    assert why == {
        "first": "several nodes share its weight",
        "second": "several nodes share its weight",
        "third": "it does not compute in float32",
    }


COLUMNS, BLOCK = 16, 8


def stored_by_others(folder: Path, kind: str) -> tuple[tenon.Model, tenon.Model]:
    """A product in float, and with a weight whose scales lie as no pass of ours writes them."""
    w = random_mlp(34, [COLUMNS, COLUMNS])[0]
    w *= (10.0 ** np.linspace(-1, 1, COLUMNS)).astype("f")[:, None]
    attributes: dict = {"axis": 1 if "blocks" in kind else 0}
    if "blocks" in kind:
        attributes["block_size"] = BLOCK
        scale = np.abs(w.reshape(COLUMNS, -1, BLOCK)).max(2) / 7
        each, ends = np.repeat(scale, BLOCK, 1), (-8, 7)
    else:
        scale = np.abs(w).max(1) / 127
        each, ends = scale[:, None], (-127, 127)
    numbers = np.clip(np.round(w / each), *ends).astype("i1")
    product = helper.make_node("MatMul", ["x", "w"], ["y"], "fc")
    dequantize = helper.make_node("DequantizeLinear", ["q", "s"], ["w"], "dq", **attributes)
    x = info("x", ["N", COLUMNS])
    dtype = TensorProto.INT4 if "blocks" in kind else TensorProto.INT8
    q = helper.make_tensor("q", dtype, numbers.shape, numbers.flatten())
    constants = [q, constant("s", scale.astype("f"))]
    whole = model_of([product], [x], ["y"], [constant("w", w)])
    small = model_of([dequantize, product], [x], ["y"], constants, opset=21, ir=10)
    return ran(folder, whole), ran(folder, small)


@pytest.mark.parametrize("component", ["quantizer.gptq", "quantizer.adaround"])
@pytest.mark.parametrize("kind", ["scales of inputs", "blocks of outputs"])
def test_scales_along_another_axis_are_not_taken(tmp_path: Path, kind: str, component: str) -> None:
    model, small = stored_by_others(tmp_path, kind)
    x = samples(64, COLUMNS)
    assert snr(answers(model, x), answers(small, x)) > 15
    why = "blocks do not lie" if "blocks" in kind else "scales are not those of channels"

    with pytest.raises(tenon.TenonError, match=f"nothing to round again.*{why}"):
        small.apply(component, data=saved(tmp_path, x), original=model)


def test_integers_from_end_to_end_of_a_range_keep_both_ends(tmp_path: Path) -> None:
    w = random_mlp(35, [COLUMNS, COLUMNS])[0]
    scale = ((w.max(0) - w.min(0)) / 255).astype("f")
    zero = np.clip(np.round(-128 - w.min(0) / scale), -128, 127)
    numbers = np.clip(np.round(w / scale) + zero, -128, 127)
    x, product = samples(64, COLUMNS), helper.make_node("MatMul", ["x", "w"], ["y"], "fc")
    dequantize = helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], "dq", axis=1)
    q, z = constant("q", numbers.astype("i1")), constant("z", zero.astype("i1"))
    inputs, nodes = [info("x", ["N", COLUMNS])], [dequantize, product]
    model = ran(tmp_path, model_of([product], inputs, ["y"], [constant("w", w)]))
    small = ran(tmp_path, model_of(nodes, inputs, ["y"], [q, constant("s", scale), z]))

    better = small.apply("quantizer.gptq", data=saved(tmp_path, x), original=model)

    right = answers(model, x)
    assert snr(right, answers(better, x)) > snr(right, answers(small, x))


def computed_zero_points(folder: Path) -> tenon.Model:
    """x -> Q -> DQ -> MatMul -> Q -> DQ -> y; an Identity makes the zero points of the weight."""
    w = random_mlp(36, [COLUMNS, COLUMNS])[0]
    scale = (np.abs(w).max(0) / 127).astype("f")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["x8"], "q0"),
        helper.make_node("DequantizeLinear", ["x8", "xs", "xz"], ["xd"], "d0"),
        helper.make_node("Identity", ["zeros"], ["z"], "zero"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], "dq", axis=1),
        helper.make_node("MatMul", ["xd", "w"], ["h"], "fc"),
        helper.make_node("QuantizeLinear", ["h", "hs", "xz"], ["h8"], "q1"),
        helper.make_node("DequantizeLinear", ["h8", "hs", "xz"], ["y"], "d1"),
    ]
    constants = [
        constant("q", np.round(w / scale).astype("i1")),
        constant("s", scale),
        constant("zeros", np.zeros(COLUMNS, "i1")),
        constant("xs", np.float32(0.03)),
        constant("xz", np.uint8(128)),
        constant("hs", np.float32(0.06)),
    ]
    return ran(folder, model_of(nodes, [info("x", ["N", COLUMNS])], ["y"], constants))


def test_zero_points_that_are_computed_are_no_known_ones(tmp_path: Path) -> None:
    small, x = computed_zero_points(tmp_path), samples(64, COLUMNS)
    model = small.apply("quantizer.dequantize")

    with pytest.raises(tenon.TenonError, match="nothing to round again"):
        small.apply("quantizer.gptq", data=saved(tmp_path, x), original=model)
    integers = small.apply("quantizer.integers", floats="allow")

    assert "zero point 0" in integers.report["refused"][0]["why"]
    np.testing.assert_array_equal(answers(integers, x), answers(small, x))


def test_a_range_that_stands_for_a_relu_is_no_shift_of_the_bias(tmp_path: Path) -> None:
    """As ONNX Runtime's quantizer writes it: the layer's own result has the name of the Relu's."""
    random = np.random.default_rng(33)
    weights = [random.standard_normal(shape).astype("f") for shape in ((8, 3, 3, 3), (8, 8, 3, 3))]
    whole, small, kept, stored = [], [], [], []
    scale = np.float32(0.2)
    stored += [constant("s", scale), constant("z", np.uint8(0)), constant("m", np.uint8(128))]
    before, rounded = "x", "x"
    for i, w in enumerate(weights):
        bias, by = random.standard_normal(8).astype("f"), np.abs(w).max() / np.float32(31)
        kept += [constant(f"w{i}", w), constant(f"b{i}", bias)]
        coarse = np.floor(w / by).astype("i1")  # rounded down: a shift to correct
        stored += [constant(f"q{i}", coarse), constant(f"by{i}", by), constant(f"b{i}", bias)]
        inner = helper.make_node("Conv", [before, f"w{i}", f"b{i}"], [f"c{i}"], f"conv{i}")
        whole += [inner, helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
        small += [
            helper.make_node("DequantizeLinear", [f"q{i}", f"by{i}"], [f"d{i}"]),
            helper.make_node("Conv", [rounded, f"d{i}", f"b{i}"], [f"r{i}"], f"conv{i}"),
            helper.make_node("QuantizeLinear", [f"r{i}", "s", "z"], [f"n{i}"]),
            helper.make_node("DequantizeLinear", [f"n{i}", "s", "z"], [f"f{i}"]),
        ]
        before, rounded = f"r{i}", f"f{i}"
    used = {name for node in small for name in node.input}
    stored = [one for one in stored if one.name in used]
    for nodes in (whole, small):
        nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["y"]))
    x = samples(64, 3, 9, 9)
    ports = [info("x", ["N", 3, 9, 9])]
    original = ran(tmp_path, model_of(whole, ports, ["y"], kept))
    model = ran(tmp_path, model_of(small, ports, ["y"], stored))

    better = model.apply("quantizer.correct_bias", data={"x": x}, original=original)

    assert [row["node"] for row in better.report["corrected"]] == ["conv0", "conv1"]
    held_out = np.random.default_rng(34).standard_normal((64, 3, 9, 9)).astype("f")
    wanted = answers(original, held_out)
    assert snr(wanted, answers(better, held_out)) > snr(wanted, answers(model, held_out)) + 2
