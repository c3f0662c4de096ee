# SPDX-License-Identifier: Apache-2.0
"""Every rounding and every saturation that a file states is kept, whatever runs as one step.

Graphs as quantizers write them, with a QuantizeLinear between a product and what follows it; NumPy
says what they compute (qdq_oracle.py). A result may lie anywhere between the two quantized values
of a tie, and nowhere else.
"""

import itertools

import numpy as np
import onnx
import pytest
import tenon
from qdq_oracle import Program, Value

BACKENDS = ("onednn", "reference")
TIES = 0.05  # the largest share of results that may be rounded either way, so that the test tests


def expect_what_is_stated(program, results, folder, steps=1e-5):
    path = folder / "model.onnx"
    onnx.save(program.model(results), path)
    loaded = tenon.load(str(path))
    for backend in BACKENDS:
        for value, ours in zip(results, loaded.compile(backend=backend).run(program.feeds)):
            ours = np.asarray(ours).astype(np.float64)
            low, high = value.low.astype(np.float64), value.high.astype(np.float64)
            assert (low != high).mean() <= TIES
            slack = 0 if value.quant else steps * np.abs(high).max()
            far = np.maximum(low - ours, ours - high)
            wrong = far > slack
            assert not wrong.any(), (
                f"{backend}: {value.name}: {wrong.mean():.4f} of the numbers are wrong, "
                f"by up to {far.max()}"
            )


def conv3(p, x, per_channel):
    return p.conv(x, 24, 3, per_channel)


def conv1(p, x, per_channel):
    return p.conv(x, 24, 1, per_channel)


def grouped(p, x, per_channel):
    return p.conv(x, 24, 3, per_channel, group=2)


def depthwise(p, x, per_channel):
    return p.conv(x, 24, 3, per_channel, group=24)


def matmul(p, x, per_channel):
    return p.matmul(x, 24, per_channel)


def gemm(p, x, per_channel):
    return p.gemm(x, 24, per_channel)


IMAGE, MATRIX, ROWS = (2, 24, 9, 7), (3, 10, 24), (17, 24)
PRODUCTS = {
    conv3: IMAGE,
    conv1: IMAGE,
    grouped: IMAGE,
    depthwise: IMAGE,
    matmul: MATRIX,
    gemm: ROWS,
}
products = pytest.mark.parametrize("product", PRODUCTS, ids=lambda f: f.__name__)
types = pytest.mark.parametrize("dtype", ["uint8", "int8"])
scales = pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])


def begin(product, dtype, per_channel, between=None, saturating=True, **weights):
    """A product whose result is stored in 8 bits: the program, its input, what is stored."""
    p = Program(7, **weights)
    x = p.quantized(PRODUCTS[product], dtype)
    made = product(p, x, per_channel)
    if between:
        made = getattr(p, between)(made)
    stored = p.stored(made, dtype, saturating)
    share = max(p.saturated.values())
    assert not saturating or share > 0.15
    return p, x, stored


@products
@types
@scales
@pytest.mark.parametrize("first", [False, True], ids=["left", "right"])
@pytest.mark.parametrize("residual", ["quantized", "real", "own"])
def test_a_residual(tmp_path, product, dtype, per_channel, first, residual):
    for between, behind in itertools.product([None, "relu"], repeat=2):
        p, x, stored = begin(product, dtype, per_channel, between)
        other = x
        if residual != "own":
            shape = stored.low.shape
            other = p.real(shape) if residual == "real" else p.quantized(shape, dtype)
        total = p.add(other, stored) if first else p.add(stored, other)
        if behind:
            total = p.relu(total)
        last = p.stored(total, dtype)
        expect_what_is_stated(p, [last], tmp_path)


@products
@types
def test_a_residual_whose_result_stays_real(tmp_path, product, dtype):
    p, _, stored = begin(product, dtype, True)
    total = p.add(stored, p.quantized(stored.low.shape, dtype))
    expect_what_is_stated(p, [total], tmp_path)


@products
@types
@scales
@pytest.mark.parametrize("weights", [("int8", 3), ("uint8", 0), ("uint8", -9)], ids=str)
def test_a_residual_behind_weights_with_zero_points(tmp_path, product, dtype, per_channel, weights):
    made = dict(zip(("weight_type", "weight_zero"), weights, strict=True))
    p, _, stored = begin(product, dtype, per_channel, **made)
    total = p.add(stored, p.quantized(stored.low.shape, dtype))
    expect_what_is_stated(p, [p.stored(total, dtype)], tmp_path)


@products
@types
def test_a_residual_that_is_almost_zero(tmp_path, product, dtype):
    p = Program(7)
    made = product(p, p.quantized(PRODUCTS[product], dtype), True)
    total = p.add(made, p.quantized(made.low.shape, dtype, scale=1e-40))
    expect_what_is_stated(p, [total], tmp_path)


@products
@types
def test_a_result_in_subnormal_steps(tmp_path, product, dtype):
    p = Program(7)
    made = p.relu(product(p, p.quantized(PRODUCTS[product], dtype), True))
    last = p.quantize(made, (np.float32(1e-40), 3, dtype))
    expect_what_is_stated(p, [last], tmp_path)


@types
@pytest.mark.parametrize("kernel", [(8,), (2, 4)], ids=str)
def test_one_channel_a_group_and_eight_taps(tmp_path, dtype, kernel):
    p = Program(7)
    x = p.quantized((2, 16, *[9] * len(kernel)), dtype)
    w_name, w = p.weights((16, 1, *kernel), 0, True)
    windows = np.lib.stride_tricks.sliding_window_view(x.exact, kernel, range(2, x.exact.ndim))
    sums = (windows * w.reshape(16, *[1] * len(kernel), *kernel)).sum(tuple(range(-len(kernel), 0)))
    made = Value(p.node("Conv", [x.name, w_name], group=16), sums)
    expect_what_is_stated(p, [made], tmp_path)


@types
@pytest.mark.parametrize("product", [matmul, gemm], ids=lambda f: f.__name__)
@pytest.mark.parametrize("row", ["float32", "int8", "uint8"])
def test_a_bias_behind_the_first_rounding(tmp_path, product, dtype, row):
    p, _, stored = begin(product, dtype, True)
    biased = p.stored(p.add(p.row(24, row), stored), dtype)
    total = p.stored(p.add(biased, p.quantized(stored.low.shape, dtype)), dtype)
    expect_what_is_stated(p, [total], tmp_path)


@products
@types
def test_the_sum_of_two_products(tmp_path, product, dtype):
    p, x, stored = begin(product, dtype, True)
    second = p.stored(product(p, x, False), dtype, saturating=True)
    total = p.stored(p.relu(p.add(stored, second)), dtype)
    expect_what_is_stated(p, [total], tmp_path)


@products
@types
@pytest.mark.parametrize("saturating", [False, True], ids=["whole", "saturating"])
def test_a_product_by_quantized_values_and_by_one_number(tmp_path, product, dtype, saturating):
    p, _, stored = begin(product, dtype, True, saturating=saturating)
    gated = p.stored(p.mul(stored, p.quantized(stored.low.shape, dtype, scale=0.004)), dtype)
    p2, _, stored2 = begin(product, dtype, True, saturating=saturating)
    half = p2.quantized((1,), dtype, scale=0.5)
    halved = p2.stored(p2.mul(stored2, half), dtype)
    expect_what_is_stated(p, [gated], tmp_path)
    expect_what_is_stated(p2, [halved], tmp_path)


@products
@types
@scales
@pytest.mark.parametrize("op", ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid"])
def test_an_activation(tmp_path, product, dtype, per_channel, op):
    functions = {
        "Relu": lambda v: np.maximum(v, 0),
        "LeakyRelu": lambda v: np.where(v < 0, v * float(np.float32(0.01)), v),
        "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "Tanh": np.tanh,
        "HardSigmoid": lambda v: np.clip(v * float(np.float32(0.2)) + 0.5, 0, 1),
    }
    p, _, stored = begin(product, dtype, per_channel)
    last = p.stored(p.rising(op, stored, functions[op]), dtype)
    expect_what_is_stated(p, [last], tmp_path, steps=1e-4)


@products
@types
def test_bounds_in_the_same_and_in_other_steps(tmp_path, product, dtype):
    for factor in (1, 1.7):
        p = Program(8)
        made = product(p, p.quantized(PRODUCTS[product], dtype), True)
        reach = float(np.abs(made.low).max())
        quant = (np.float32(reach / 250), 3, dtype)
        stored = p.dequantize(p.quantize(made, quant))
        bounded = p.relu(stored)
        same = (np.float32(quant[0] * factor), 3, dtype)
        last = p.dequantize(p.quantize(bounded, same))
        expect_what_is_stated(p, [last], tmp_path)


@types
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("product", [conv3, depthwise], ids=lambda f: f.__name__)
def test_pools(tmp_path, product, dtype, op):
    p, _, stored = begin(product, dtype, True)
    last = p.stored(p.pool(stored, op, 3, 2), dtype)
    expect_what_is_stated(p, [last], tmp_path)


@types
@pytest.mark.parametrize("scale", [2**-15, 1e-40])
def test_a_mean_in_much_smaller_steps(tmp_path, dtype, scale):
    p = Program(7)
    made = conv3(p, p.quantized(IMAGE, dtype), True)
    stored = p.dequantize(p.quantize(made, (np.float32(2**-4), 100, dtype)))
    mean = p.pool(stored, "AveragePool", 2, 2)
    expect_what_is_stated(p, [p.quantize(mean, (np.float32(scale), 100, dtype))], tmp_path)


@types
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(tmp_path, dtype, op):
    p, _, stored = begin(conv3, dtype, True)
    reduce = np.mean if op == "GlobalAveragePool" else np.max
    pooled = p.rising(op, stored, lambda v: reduce(v, (2, 3), keepdims=True))
    expect_what_is_stated(p, [p.stored(pooled, dtype)], tmp_path)


@products
@types
def test_joined_with_what_has_other_scales(tmp_path, product, dtype):
    p, x, stored = begin(product, dtype, True)
    axis = 1 if len(PRODUCTS[product]) == 4 else len(PRODUCTS[product]) - 1
    other = p.quantized(stored.low.shape, dtype, scale=0.05)
    last = p.stored(p.concat([stored, other, stored], axis), dtype)
    expect_what_is_stated(p, [last], tmp_path)


@products
@types
def test_what_moves_numbers_keeps_quantized_values(tmp_path, product, dtype):
    p, _, stored = begin(product, dtype, True)
    rank = stored.low.ndim
    perm = [*range(1, rank), 0]
    moved = p.rising("Transpose", stored, lambda v: v.transpose(perm), perm=perm)
    other = p.quantized(moved.low.shape, dtype)
    expect_what_is_stated(p, [p.stored(p.add(moved, other), dtype)], tmp_path)


@types
def test_scores_of_attention(tmp_path, dtype):
    p = Program(9)
    q, k = p.quantized((2, 3, 8, 16), dtype), p.quantized((2, 3, 16, 8), dtype)
    scores = p.stored(p.product(q, k), dtype, saturating=True)
    mask = p.real((2, 1, 1, 8))
    total = p.stored(p.add(scores, mask), dtype)
    peak = total.high.max(-1, keepdims=True)
    assert np.array_equal(total.low, total.high)
    weights = np.exp(total.low - peak) / np.exp(total.low - peak).sum(-1, keepdims=True)
    name = p.node("Softmax", [total.name], axis=-1)
    last = p.stored(type(total)(name, weights), dtype)
    expect_what_is_stated(p, [last], tmp_path)


@products
@types
def test_a_chain_of_roundings(tmp_path, product, dtype):
    """Rounded three times between a product and the end, each time to other steps."""
    p, x, stored = begin(product, dtype, True)
    once = p.stored(p.add(stored, p.quantized(stored.low.shape, dtype)), dtype, saturating=True)
    twice = p.stored(p.add(p.quantized(stored.low.shape, dtype), once), dtype)
    expect_what_is_stated(p, [twice], tmp_path)


@products
@types
def test_a_rounded_result_that_is_read_twice(tmp_path, product, dtype):
    p, _, stored = begin(product, dtype, True)
    total = p.stored(p.add(stored, p.quantized(stored.low.shape, dtype)), dtype)
    other = p.stored(p.relu(stored), dtype)
    expect_what_is_stated(p, [total, other, stored], tmp_path)


@types
@scales
@pytest.mark.parametrize("group", [1, 2, 24])
@pytest.mark.parametrize("kernel, stride", [(1, 1), (1, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_a_norm_behind_weights_of_8_bits(
    tmp_path, dtype, per_channel, group, kernel, stride, has_bias
):
    p = Program(11)
    x = p.quantized((2, 24, 9, 7), dtype)
    made = p.norm(p.conv(x, 24, kernel, per_channel, group, stride, has_bias))
    expect_what_is_stated(p, [p.stored(p.relu(made), dtype), made], tmp_path)


@types
def test_maxima_of_quantized_values_stay_quantized_for_all_readers(tmp_path, dtype):
    p, _, stored = begin(conv3, dtype, True, saturating=False)
    largest = p.pool(
        p.dequantize(p.quantize(stored, (np.float32(0.02), 3, dtype))), "MaxPool", 3, 2
    )
    expect_what_is_stated(p, [largest, p.stored(largest, dtype), p.relu(largest)], tmp_path)


@types
def test_a_product_reads_maxima_of_quantized_values(tmp_path, dtype):
    p = Program(5)
    largest = p.pool(p.quantized((2, 24, 9, 7), dtype), "MaxPool", 3, 2)
    results = [p.conv(largest, 24, 1, True), p.conv(largest, 24, 3, False)]
    expect_what_is_stated(p, results, tmp_path)


@types
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("kernel, stride", [(3, 1), (5, 2), (7, 2)])
def test_a_first_convolution(tmp_path, dtype, channels, kernel, stride):
    p = Program(3)
    x = p.quantized((2, channels, 21, 18), dtype)
    made = p.conv(x, 40, kernel, True, 1, stride)
    expect_what_is_stated(p, [p.stored(p.relu(made), dtype)], tmp_path)
