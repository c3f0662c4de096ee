# SPDX-License-Identifier: Apache-2.0
"""What prepares a model for few bits and what repairs it afterwards: each on a model that plain
quantization spoils, beside the same algorithm in NumPy."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of


def snr(right: np.ndarray, found: np.ndarray) -> float:
    return 10 * np.log10(np.sum(right**2) / np.sum((right - found) ** 2))


def answers(model: tenon.Model, x: np.ndarray) -> np.ndarray:
    return model.compile(backend="reference").run({"x": x})[0]


def ran(folder: Path, model) -> tenon.Model:
    """A file for each: the weights of one that is loaded stay in it."""
    path = folder / f"model{len(list(folder.glob('*.onnx')))}.onnx"
    path.write_bytes(model.SerializeToString())
    return tenon.load(path)


def stored(model: tenon.Model) -> int:
    return model.inspect()["bytes"]


def saved(folder: Path, x: np.ndarray) -> str:
    np.savez(folder / "data.npz", x=x)
    return str(folder / "data.npz")


def mlp(folder: Path, weights: list[np.ndarray], biases=None) -> tenon.Model:
    """x [N, n] -> fc0 -> relu0 -> fc1 -> ... -> y; Gemm where there are biases, else MatMul."""
    nodes, constants, value = [], [], "x"
    for i, w in enumerate(weights):
        constants.append(constant(f"w{i}", w))
        inputs = [value, f"w{i}"]
        if biases is not None:
            constants.append(constant(f"b{i}", biases[i]))
            inputs.append(f"b{i}")
        last = i == len(weights) - 1
        made = "y" if last else f"h{i}"
        op = "MatMul" if biases is None else "Gemm"
        nodes.append(helper.make_node(op, inputs, [made], f"fc{i}"))
        value = made if last else f"r{i}"
        if not last:
            nodes.append(helper.make_node("Relu", [made], [value], f"relu{i}"))
    n_in = weights[0].shape[0]
    return ran(folder, model_of(nodes, [info("x", ["N", n_in])], [info("y", None)], constants))


def random_mlp(seed: int, widths: list[int], gain: float = 1.4) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = zip(widths, widths[1:], strict=False)
    return [(rng.standard_normal((a, b)) * gain / np.sqrt(a)).astype("f") for a, b in pairs]


# ---- sensitivity


def int8_by_column(w: np.ndarray) -> np.ndarray:
    scale = np.abs(w).max(0) / np.float32(127)
    return np.clip(np.round(w / scale), -127, 127) * scale


def uint8_by_ends(x: np.ndarray) -> np.ndarray:
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255)
    zero = np.round(-low / scale)
    return (np.clip(np.round(x / scale) + zero, 0, 255) - zero) * scale


def test_sensitivity_measures_each_layer_alone(tmp_path: Path) -> None:
    weights = random_mlp(1, [16, 32, 24, 8])
    weights[1][3, :] *= 40  # one input's weights cover the others
    x = np.random.default_rng(2).standard_normal((64, 16)).astype("f")
    x[:, 5] *= 60  # and one input of the model
    model = mlp(tmp_path, weights)
    summary = model.apply(
        "quantizer.sensitivity", data=saved(tmp_path, x), observer="minmax", backend="reference"
    ).report
    rows = {row["node"]: row for row in summary["layers"]}
    value = x
    for i, w in enumerate(weights):
        row, y = rows[f"fc{i}"], value @ w
        by_weights = snr(y, value @ int8_by_column(w))
        by_inputs = snr(y, uint8_by_ends(value) @ w)
        assert row["weights_snr_db"] == pytest.approx(by_weights, abs=0.02), i
        assert row["activations_snr_db"] == pytest.approx(by_inputs, abs=0.02), i
        assert row["noise"] == pytest.approx(
            10 ** (-by_weights / 10) + 10 ** (-by_inputs / 10), 0.01
        )
        assert row["role"] == "compute" and row["weight_elements"] == w.size
        value = np.maximum(y, 0)
    noises = [row["noise"] for row in summary["layers"]]
    assert noises == sorted(noises, reverse=True) and summary["layers"][0]["node"] == "fc1"
    assert rows["fc0"]["activations_snr_db"] < rows["fc0"]["weights_snr_db"] - 5
    assert rows["fc1"]["weights_snr_db"] < rows["fc2"]["weights_snr_db"] - 5


def test_sensitivity_counts_stored_weights_and_skipped_nodes(tmp_path: Path) -> None:
    table = np.random.default_rng(3).standard_normal((50, 16)).astype("f")
    w = random_mlp(4, [16, 8])[0]
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], "look"),
        helper.make_node("MatMul", ["e", "w"], ["y"], "fc"),
    ]
    constants = [constant("table", table), constant("w", w)]
    graph = model_of(nodes, [info("ids", ["N"], 7)], [info("y", None)], constants)
    ids = np.arange(50)
    np.savez(tmp_path / "ids.npz", ids=ids)
    model = ran(tmp_path, graph)
    summary = model.apply(
        "quantizer.sensitivity", data=str(tmp_path / "ids.npz"), backend="reference"
    )
    rows = {row["node"]: row for row in summary.report["layers"]}
    assert rows["look"]["role"] == "stored" and rows["fc"]["role"] == "compute"
    rounded = int8_by_column(table.T).T
    assert rows["look"]["weights_snr_db"] == pytest.approx(snr(table, rounded), abs=0.02)
    assert summary.text() == model.text()  # the report is the answer
    with pytest.raises(tenon.TenonError, match="'lok' matches no node"):
        model.apply("quantizer.sensitivity", data=str(tmp_path / "ids.npz"), skip=["lok"])


# ---- sequential bias correction


def floored(weights: list[np.ndarray], bits: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Quantized weights that are all too small, as a bad rounding rule would have them."""
    scales = [np.abs(w).max(0) / np.float32(2 ** (bits - 1) - 1) for w in weights]
    return [np.floor(w / s).astype("i1") for w, s in zip(weights, scales, strict=True)], scales


def floored_mlp(folder: Path, codes, scales, biases) -> tenon.Model:
    nodes, constants, value = [], [], "x"
    for i, (q, s) in enumerate(zip(codes, scales, strict=True)):
        constants += [constant(f"q{i}", q), constant(f"s{i}", s), constant(f"b{i}", biases[i])]
        nodes.append(
            helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}"], [f"w{i}"], f"dq{i}", axis=1)
        )
        made = "y" if i == len(codes) - 1 else f"h{i}"
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [made], f"fc{i}"))
        if made == "y":
            break
        value = f"r{i}"
        nodes.append(helper.make_node("Relu", [made], [value], f"relu{i}"))
    n = codes[0].shape[0]
    return ran(folder, model_of(nodes, [info("x", ["N", n])], [info("y", None)], constants, 21))


def corrected_in_turn(weights, rounded, biases, x):
    """Nagel et al. 2019, 4.2, and the result that all corrections at once would give."""
    found, at_once = [], []
    whole = small = first = x
    for w, q, b in zip(weights, rounded, biases, strict=True):
        right, ours, naive = whole @ w + b, small @ q + b, first @ q + b
        shift = (right - ours).mean(0)
        at_once.append(b + (right - naive).mean(0))
        found.append(b + shift)
        whole, small, first = (np.maximum(v, 0) for v in (right, ours + shift, naive))
    return found, at_once


def test_biases_are_corrected_one_after_the_other(tmp_path: Path) -> None:
    weights = random_mlp(5, [64] * 7)
    rng = np.random.default_rng(6)
    biases = [(0.1 * rng.standard_normal(64)).astype("f") for _ in weights]
    codes, scales = floored(weights, 6)
    rounded = [q * s for q, s in zip(codes, scales, strict=True)]
    x, other = (rng.standard_normal((256, 64)).astype("f") for _ in range(2))
    model = mlp(tmp_path, weights, biases)
    small = floored_mlp(tmp_path, codes, scales, biases)
    better = small.apply(
        "quantizer.correct_bias", data=saved(tmp_path, x), original=model, samples=256
    )
    in_turn, at_once = corrected_in_turn(weights, rounded, biases, x)
    assert len(better.report["corrected"]) == 6 and not better.report["left"]
    for i, wanted in enumerate(in_turn):
        found = np.asarray(better.constants()[f"fc{i}_corrected_bias"])
        np.testing.assert_allclose(found, wanted, atol=2e-4)
    right = answers(model, other)
    naive = answers(floored_mlp(tmp_path, codes, scales, at_once), other)
    plain, repaired = (snr(right, answers(m, other)) for m in (small, better))
    assert repaired > plain + 6  # less than half of the error, on samples that it has not seen
    assert snr(right, naive) < plain  # what all at once makes of it


def test_integer_biases_of_a_quantized_model_are_corrected(tmp_path: Path) -> None:
    weights = random_mlp(7, [32] * 5)
    biases = [np.full(32, 0.1, "f") for _ in weights]
    rng = np.random.default_rng(8)
    x, other = (np.abs(rng.standard_normal((256, 32))).astype("f") for _ in range(2))
    model = mlp(tmp_path, weights, biases)
    data = saved(tmp_path, x)
    small = model.apply("quantizer.static", data=data, weight_bits=3)
    better = small.apply("quantizer.correct_bias", data=data, original=model, samples=256)
    assert len(better.report["corrected"]) == 4
    assert stored(better) == stored(small)
    right = answers(model, other)
    assert snr(right, answers(better, other)) > snr(right, answers(small, other)) + 1


def test_bias_correction_says_what_it_cannot_do(tmp_path: Path) -> None:
    weights = random_mlp(9, [16, 16, 16])
    model = mlp(tmp_path, weights)
    data = saved(tmp_path, np.random.default_rng(1).standard_normal((32, 16)).astype("f"))
    small = model.apply("quantizer.static", data=data)
    summary = small.apply("quantizer.correct_bias", data=data, original=model).report
    assert {row["why"] for row in summary["left"]} == {"it has no constant bias"}
    with pytest.raises(tenon.TenonError, match="nothing to correct"):
        model.apply("quantizer.correct_bias", data=data, original=model)
    with pytest.raises(tenon.TenonError, match="original"):
        small.apply("quantizer.correct_bias", data=data)
    with pytest.raises(
        tenon.TenonError, match="has no value of its result's name|expected the shape"
    ):
        wide = mlp(tmp_path, random_mlp(9, [16, 24, 16]), [np.ones(24), np.ones(16)])
        biased = mlp(tmp_path, weights, [np.ones(16, "f")] * 2)
        biased = biased.apply("quantizer.static", data=data)
        biased.apply("quantizer.correct_bias", data=data, original=wide)


# ---- GPTQ


def gptq(w, grid, hessian, damping=0.01):
    """w [columns, outputs] in the words of the paper: Cholesky factor of the inverse, one column
    after the other, largest diagonal first. grid(i, w_i) rounds column i."""
    order = np.argsort(-np.diag(hessian), kind="stable")
    h = hessian[np.ix_(order, order)]
    h = h + damping * np.mean(np.diag(h)) * np.eye(len(h))
    upper = np.linalg.cholesky(np.linalg.inv(h)).T
    left, out = w[order].astype(float), np.empty_like(w)
    for i, column in enumerate(order):
        out[column] = grid(column, left[i])
        left[i:] -= np.outer(upper[i, i:], (left[i] - out[column]) / upper[i, i])
    return out


def correlated(seed: int, n: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((k // 4, k)) + 0
    return (rng.standard_normal((n, k // 4)) @ mix + 0.3 * rng.standard_normal((n, k))).astype("f")


@pytest.mark.parametrize("clip", [False, True])
def test_gptq_in_groups_is_that_of_the_paper(tmp_path: Path, clip: bool) -> None:
    w = random_mlp(11, [64, 48])[0]
    x, other = correlated(12, 512, 64), correlated(12, 1024, 64)[512:]
    model = mlp(tmp_path, [w])
    plain = model.apply("quantizer.weights", bits=4, group=32, clip=clip)
    better = plain.apply(
        "quantizer.gptq", data=saved(tmp_path, x), original=model, samples=512, backend="reference"
    )
    scale = np.asarray(plain.constants()["w0_scale"])
    assert scale.shape == (2, 48)
    if not clip:
        largest = np.abs(w.reshape(2, 32, 48)).max(1)
        np.testing.assert_allclose(scale, largest / 7, rtol=1e-6)

    def grid(i, v):
        return np.clip(np.round(v / scale[i // 32]), -8, 7) * scale[i // 32]

    wanted = gptq(w, grid, x.T.astype(float) @ x)
    eye = np.eye(64, dtype="f")
    found, nearest = answers(better, eye), answers(plain, eye)
    np.testing.assert_allclose(nearest, np.stack([grid(i, w[i]) for i in range(64)]), atol=1e-6)
    same = np.isclose(found, wanted, atol=1e-6).mean()
    assert same > 0.99  # sums in float32 move a number that lies between two quantized values
    right = answers(model, other)
    assert snr(right, answers(better, other)) > snr(right, answers(plain, other)) + 1.5
    assert stored(better) == stored(plain) < 0.16 * w.nbytes
    assert better.report["rounded"][0]["error"] < 0.8


def test_gptq_rounds_int8_of_convolutions_and_depthwise_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    a = (rng.standard_normal((12, 6, 3, 3)) / 8).astype("f")
    b = (rng.standard_normal((12, 1, 3, 3)) / 3).astype("f")
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["h"], "wide", **same),
        helper.make_node("Conv", ["h", "b"], ["y"], "deep", group=12, **same),
    ]
    constants = [constant("a", a), constant("b", b)]
    graph = model_of(nodes, [info("x", ["N", 6, 8, 8])], [info("y", None)], constants)
    model = ran(tmp_path, graph)
    smooth = np.cumsum(rng.standard_normal((96, 6, 8, 8)), -1).astype("f")
    data = saved(tmp_path, smooth[:64])
    small = model.apply("quantizer.static", data=data, weight_bits=4)
    better = small.apply("quantizer.gptq", data=data, original=model)
    assert {row["node"] for row in better.report["rounded"]} == {"wide", "deep"}
    assert all(row["error"] < 1 for row in better.report["rounded"])
    right = answers(model, smooth[64:])
    assert snr(right, answers(better, smooth[64:])) > snr(right, answers(small, smooth[64:])) + 1
    assert stored(better) == stored(small)


def test_gptq_leaves_what_it_has_not_seen_enough_of(tmp_path: Path) -> None:
    w = random_mlp(14, [64, 16])[0]
    model = mlp(tmp_path, [w])
    plain = model.apply("quantizer.weights", bits=4)
    few = saved(tmp_path, correlated(1, 16, 64))
    summary = plain.apply("quantizer.gptq", data=few, original=model)
    assert "fewer than the 64 numbers" in summary.report["left"][0]["why"]
    np.testing.assert_array_equal(
        answers(summary, np.eye(64, dtype="f")), answers(plain, np.eye(64, dtype="f"))
    )
    with pytest.raises(tenon.TenonError, match="nothing to round again"):
        model.apply("quantizer.gptq", data=few, original=model)


@pytest.mark.parametrize(("columns", "group"), [(80, 32), (33, 16), (8, 32)])
def test_a_group_need_not_divide(tmp_path: Path, columns: int, group: int) -> None:
    w = random_mlp(15, [columns, 24])[0]
    model = mlp(tmp_path, [w]).apply("quantizer.weights", bits=4, group=group, clip=False)
    eye = np.eye(columns, dtype="f")
    found = answers(model, eye)
    for begin in range(0, columns, group):
        part = w[begin : begin + group]
        scale = np.abs(part).max(0) / np.float32(7)
        wanted = np.clip(np.round(part / scale), -8, 7) * scale
        np.testing.assert_allclose(found[begin : begin + group], wanted, atol=1e-6)


# ---- equalization and smoothing


def test_equalized_channels_survive_one_scale(tmp_path: Path) -> None:
    weights = random_mlp(16, [24, 32, 24])
    sizes = (10.0 ** np.random.default_rng(17).uniform(-2, 2, 32)).astype("f")
    weights[0] *= sizes
    weights[1] /= sizes[:, None]
    biases = [0.2 * sizes, np.zeros(24, "f")]
    rng = np.random.default_rng(18)
    x, other = (rng.standard_normal((128, 24)).astype("f") for _ in range(2))
    model = mlp(tmp_path, weights, biases)
    even = model.apply("quantizer.equalize")
    right = answers(model, other)
    np.testing.assert_allclose(answers(even, other), right, atol=1e-4 * np.abs(right).max())
    assert (
        even.report["equalized"][0]["from"] == "fc0"
        and even.report["equalized"][0]["channels"] == 32
    )
    made = [np.asarray(even.constants()[f"w{i}_equalized"]) for i in (0, 1)]
    first, second = np.abs(weights[0]).max(0), np.abs(weights[1]).max(1)
    np.testing.assert_allclose(np.abs(made[0]).max(0), np.sqrt(first * second), rtol=1e-4)
    np.testing.assert_allclose(np.abs(made[1]).max(1), np.sqrt(first * second), rtol=1e-4)
    data = saved(tmp_path, x)
    for per_channel in (True, False):
        options = {"data": data, "per_channel": per_channel, "observer": "minmax"}
        plain, better = (m.apply("quantizer.static", **options) for m in (model, even))
        assert snr(right, answers(better, other)) > snr(right, answers(plain, other)) + 10
    left = {row["node"]: row["why"] for row in even.report["left"]}
    assert "is an output" in left["fc1"]


def test_outliers_of_inputs_go_into_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(19)
    w = (0.1 * rng.standard_normal((64, 32))).astype("f")
    x, other = (rng.standard_normal((512, 64)).astype("f") for _ in range(2))
    x[:, 3] *= 50
    other[:, 3] *= 50
    model = mlp(tmp_path, [w])
    data = saved(tmp_path, x)
    even = model.apply("quantizer.smooth", data=data, samples=512)
    row = even.report["layers"][0]
    assert row["how"] == "inserted" and 0.5 <= row["exponent"] <= 0.9
    right = answers(model, other)
    np.testing.assert_allclose(answers(even, other), right, rtol=1e-4, atol=1e-3)
    options = {"data": data, "samples": 512, "observer": "minmax"}
    plain, better = (
        snr(right, answers(m.apply("quantizer.static", **options), other)) for m in (model, even)
    )
    assert plain < 27 and better > plain + 10
    calm = model.apply("quantizer.smooth", data=saved(tmp_path, other / other.std(0)))
    assert calm.report["layers"][0]["how"] == "left" and calm.text() == model.text()


def test_awq_keeps_the_channels_that_carry_most(tmp_path: Path) -> None:
    w = random_mlp(20, [64, 48])[0]
    rng = np.random.default_rng(21)
    sizes = np.where(np.arange(64) % 16 == 3, 30, 1)
    x, other = ((rng.standard_normal((512, 64)) * sizes).astype("f") for _ in range(2))
    model = mlp(tmp_path, [w])
    even = model.apply("quantizer.awq", data=saved(tmp_path, x), samples=512)
    right = answers(model, other)
    np.testing.assert_allclose(answers(even, other), right, rtol=1e-4, atol=1e-3)
    plain, better = (m.apply("quantizer.weights", bits=4, clip=False) for m in (model, even))
    assert snr(right, answers(better, other)) > snr(right, answers(plain, other)) + 3
    row = even.report["layers"][0]
    assert row["how"] == "inserted" and row["scaled_snr_db"] > row["snr_db"] + 3
