# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's transformer optimizer writes, on both backends: NumPy is the judge."""

import numpy as np
import pytest
import tenon as tn
from fused_operators_test import RANDOM, array, expect, results

HEADS, SIZE = 2, 4
WIDTH = HEADS * SIZE
FILTER = -10000.0


def by_heads(x):
    """[b, s, heads*d] as [b, heads, s, d]."""
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, added=0.0, causal=False, scale=None):
    """[b, s, heads*d] of [b, heads, s, d]; added: to the scores."""
    scores = q @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3])) + added
    if causal:
        past = k.shape[2] - q.shape[2]
        scores = np.where(np.tri(q.shape[2], k.shape[2], past, dtype=bool), scores, -np.inf)
    y = softmax(scores) @ v
    return y.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def lengths_of(n):
    return np.array([n, 2], "i4")


# Masks for 2 sequences of n keys, and what they add to scores [b, h, s, n].
def masks(n):
    full = np.ones((2, n), "i4")
    full[0, 1] = full[1, n - 1] = 0
    square = np.ones((2, 3, n), "i4")
    square[0, 0, 2] = square[1, 2, 0] = 0
    at = np.arange(n)
    ends, starts = lengths_of(n), np.array([1, 0], "i4")
    is_right = at >= ends[:, None]
    is_out = is_right | (at < starts[:, None])
    return {
        "keys": (full, FILTER * (full == 0)[:, None, None]),
        "queries and keys": (square, FILTER * (square == 0)[:, None]),
        "lengths": (ends, FILTER * is_right[:, None, None]),
        "ends and starts": (np.concatenate([ends, starts]), FILTER * is_out[:, None, None]),
    }


@pytest.mark.parametrize("mask", [None, *masks(3)])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_behind_its_projection(tmp_path, mask, causal):
    x, w, bias = array(2, 3, 6), array(6, 3 * WIDTH), array(3 * WIDTH)
    given, added = masks(3)[mask] if mask else (None, 0.0)
    q, k, v = (by_heads(part) for part in np.split(x @ w + bias, 3, axis=2))
    inputs = {"x": x, "w": w, "b": bias, "m": given}
    made = results(tmp_path, "Attention", inputs, num_heads=HEADS, unidirectional=causal)
    expect(made, attention(q, k, v, added, causal))


def test_attention_with_a_past(tmp_path):
    x, w, past = array(2, 3, 6), array(6, 3 * WIDTH), array(2, 2, HEADS, 4, SIZE)
    bias, (mask, added) = array(3 * WIDTH), masks(7)["keys"]
    q, k, v = (by_heads(part) for part in np.split(x @ w + bias, 3, axis=2))
    k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    inputs = {"x": x, "w": w, "b": bias, "m": mask, "p": past}
    made = results(tmp_path, "Attention", inputs, 2, num_heads=HEADS, unidirectional=1, scale=0.3)
    expect(made, attention(q, k, v, added, True, 0.3), np.stack([k, v]))


def test_attention_with_a_bias_of_the_scores(tmp_path):
    x, w, bias = array(2, 3, 6), array(6, 3 * WIDTH), array(3 * WIDTH)
    added = array(1, HEADS, 3, 3)
    q, k, v = (by_heads(part) for part in np.split(x @ w + bias, 3, axis=2))
    inputs = {"x": x, "w": w, "b": bias, "m": None, "p": None, "s": added}
    made = results(tmp_path, "Attention", inputs, num_heads=HEADS)
    expect(made, attention(q, k, v, added))


def test_attention_with_values_of_another_width(tmp_path):
    x, w, bias = array(2, 3, 6), array(6, 2 * WIDTH + 6), array(2 * WIDTH + 6)
    q, k, v = np.split(x @ w + bias, [WIDTH, 2 * WIDTH], axis=2)
    sizes = [WIDTH, WIDTH, 6]
    inputs = {"x": x, "w": w, "b": bias}
    made = results(tmp_path, "Attention", inputs, num_heads=HEADS, qkv_hidden_sizes=sizes)
    expect(made, attention(by_heads(q), by_heads(k), by_heads(v)))


def test_a_cache_of_keys_and_values_of_two_widths_is_refused(tmp_path):
    inputs = {"x": array(2, 3, 6), "w": array(6, 2 * WIDTH + 6), "b": array(2 * WIDTH + 6)}
    with pytest.raises(tn.TenonError, match="which present holds together, got 8 and 6"):
        sizes = [WIDTH, WIDTH, 6]
        results(tmp_path, "Attention", inputs, 2, num_heads=HEADS, qkv_hidden_sizes=sizes)


def test_attention_of_quantized_operands(tmp_path):
    x = RANDOM.integers(0, 256, (2, 3, 6)).astype("u1")
    w = RANDOM.integers(-128, 128, (6, 3 * WIDTH)).astype("i1")
    bias, x_scale = array(3 * WIDTH), np.array(0.02, "f")
    w_scale = np.abs(array(3 * WIDTH)) * 0.01 + np.float32(0.002)
    zero, lengths = np.array(120, "u1"), lengths_of(3)
    projected = (x.astype("f4") - 120) @ w.astype("f4") * 0.02 * w_scale + bias
    q, k, v = (by_heads(part) for part in np.split(projected, 3, axis=2))
    inputs = {"x": x, "w": w, "b": bias, "xs": x_scale, "ws": w_scale, "m": lengths, "xz": zero}
    made = results(tmp_path, "QAttention", inputs, num_heads=HEADS)
    expect(made, attention(q, k, v, masks(3)["lengths"][1]))


@pytest.mark.parametrize("mask", [None, "keys", "queries and keys", "lengths"])
def test_attention_of_operands_apart(tmp_path, mask):
    q, k, v, bias = array(2, 3, WIDTH), array(2, 5, WIDTH), array(2, 5, 6), array(2 * WIDTH + 6)
    given, added = masks(5)[mask] if mask else (None, 0.0)
    wanted = attention(by_heads(q + bias[:WIDTH]), by_heads(k + bias[WIDTH : 2 * WIDTH]),
                       by_heads(v + bias[2 * WIDTH :]), added)  # fmt: skip
    inputs = {"q": q, "k": k, "v": v, "b": bias, "m": given}
    expect(results(tmp_path, "MultiHeadAttention", inputs, num_heads=HEADS), wanted)


def test_attention_of_packed_operands(tmp_path):
    q, k, v = (array(2, 3, HEADS, SIZE) for _ in range(3))
    wanted = attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)))
    made = results(tmp_path, "MultiHeadAttention", {"q": np.stack([q, k, v], 3)}, num_heads=HEADS)
    expect(made, wanted)
    inputs = {"q": q.reshape(2, 3, WIDTH), "k": np.stack([k, v], 3)}
    expect(results(tmp_path, "MultiHeadAttention", inputs, num_heads=HEADS), wanted)


def test_attention_to_another_pass(tmp_path):
    """Keys and values that come by heads have their biases already."""
    q, bias = array(2, 3, WIDTH), array(3 * WIDTH)
    k, v = array(2, HEADS, 5, SIZE), array(2, HEADS, 5, SIZE)
    inputs = {"q": q, "k": k, "v": v, "b": bias}
    made = results(tmp_path, "MultiHeadAttention", inputs, 3, num_heads=HEADS)
    expect(made, attention(by_heads(q + bias[:WIDTH]), k, v), k, v)


def test_attention_with_a_cache(tmp_path):
    q, k, v = array(2, 3, WIDTH), array(2, 3, WIDTH), array(2, 3, WIDTH)
    past_k, past_v = array(2, HEADS, 4, SIZE), array(2, HEADS, 4, SIZE)
    all_k = np.concatenate([past_k, by_heads(k)], 2)
    all_v = np.concatenate([past_v, by_heads(v)], 2)
    inputs = {"q": q, "k": k, "v": v, "b": None, "m": None, "s": None, "pk": past_k, "pv": past_v}
    made = results(tmp_path, "MultiHeadAttention", inputs, 3, num_heads=HEADS, unidirectional=1)
    expect(made, attention(by_heads(q), all_k, all_v, causal=True), all_k, all_v)


REFUSED = {
    "do_rotary": ({"do_rotary": 1}, "do_rotary: expected 0, got 1"),
    "heads": ({"num_heads": 3}, "num_heads: expected a divisor of 8, got 3"),
    "sizes": ({"qkv_hidden_sizes": [8, 8, 4]}, "expected as many columns as queries, keys and"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_attention_refuses(tmp_path, name):
    attributes, message = REFUSED[name]
    inputs = {"x": array(2, 3, 6), "w": array(6, 3 * WIDTH), "b": array(3 * WIDTH)}
    with pytest.raises(tn.TenonError, match=message):
        results(tmp_path, "Attention", inputs, **({"num_heads": HEADS} | attributes))


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_positions", [False, True])
def test_embeddings_and_their_normalization(tmp_path, has_segments, has_positions):
    ids, segments = RANDOM.integers(0, 9, (2, 4)).astype("i4"), np.array([[0, 0, 1, 1]] * 2, "i4")
    places = np.array([[3, 1, 0, 2]] * 2, "i4") if has_positions else None
    words, positions, kinds = array(9, 8), array(5, 8), array(2, 8)
    scale, shift, mask = array(8), array(8), np.array([[1, 1, 0, 0], [1, 0, 1, 1]], "i4")
    total = words[ids] + positions[places if has_positions else np.arange(4)]
    if has_segments:
        total = total + kinds[segments]
    mean, variance = total.mean(-1, keepdims=True), total.var(-1, keepdims=True)
    wanted = (total - mean) / np.sqrt(variance + 1e-3) * scale + shift
    inputs = {"i": ids, "s": segments if has_segments else None, "w": words, "p": positions}
    inputs |= {"k": kinds if has_segments else None, "g": scale, "b": shift, "m": mask}
    inputs |= {"at": places} if has_positions else {}
    made = results(tmp_path, "EmbedLayerNormalization", inputs, 3, epsilon=1e-3)
    expect(made, wanted, mask.sum(1), total)


def test_embeddings_of_quantized_tables(tmp_path):
    ids, kinds = RANDOM.integers(0, 9, (2, 4)).astype("i4"), np.array([[0, 0, 1, 1]] * 2, "i4")
    shapes = {"w": (9, 8), "p": (4, 8), "k": (2, 8), "g": (8,), "b": (8,)}
    tables = {key: RANDOM.integers(0, 256, shape).astype("u1") for key, shape in shapes.items()}
    scales = {key: np.array(0.01 + 0.01 * i, "f") for i, key in enumerate(shapes)}
    zeros = {key: np.array(100 + i, "u1") for i, key in enumerate(shapes)}
    real = {key: (table - zeros[key].astype("f")) * scales[key] for key, table in tables.items()}
    total = real["w"][ids] + real["p"] + real["k"][kinds]
    mean, variance = total.mean(-1, keepdims=True), total.var(-1, keepdims=True)
    wanted = (total - mean) / np.sqrt(variance + 1e-3) * real["g"] + real["b"]
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], "i4")
    inputs = {"i": ids, "s": kinds} | tables | {"m": mask}
    inputs |= {key + "_scale": one for key, one in scales.items()}
    inputs |= {key + "_zero": one for key, one in zeros.items()}
    made = results(tmp_path, "QEmbedLayerNormalization", inputs, 2, epsilon=1e-3)
    expect(made, wanted, mask.sum(1))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("has_offset", [False, True])
def test_rotary_embedding(tmp_path, interleaved, has_offset):
    x, angles = array(2, 3, WIDTH), array(9, SIZE // 2)
    places = np.array([2]) if has_offset else np.array([[0, 3, 5], [8, 1, 2]])
    at = angles[np.tile(np.arange(2, 5), (2, 1)) if has_offset else places][:, :, None]
    split = x.reshape(2, 3, HEADS, SIZE)
    a, b = np.split(split, 2, -1) if not interleaved else (split[..., ::2], split[..., 1::2])
    real, imaginary = a * np.cos(at) - b * np.sin(at), b * np.cos(at) + a * np.sin(at)
    if interleaved:
        wanted = np.stack([real, imaginary], -1)
    else:
        wanted = np.concatenate([real, imaginary], -1)
    inputs = {"x": x, "at": places, "c": np.cos(angles), "s": np.sin(angles)}
    made = results(tmp_path, "RotaryEmbedding", inputs, interleaved=interleaved)
    expect(made, wanted.reshape(2, 3, WIDTH))


def block_dequantized(values, scales, zeros, block):
    wide = (np.repeat(x, block, -1)[..., : values.shape[-1]] for x in (scales, zeros))
    scale, zero = (x.astype("f") for x in wide)
    return (values.astype("f") - zero) * scale


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_of_an_embedding_in_blocks(tmp_path, bits, has_zeros):
    values = RANDOM.integers(0, 2**bits, (7, 48)).astype("u1")
    zeros = RANDOM.integers(0, 2**bits, (7, 3)).astype("u1")
    scales, ids = np.abs(array(7, 3)), np.array([[5, 0], [6, 2]])

    def stored(x):
        in_byte = 8 // bits
        x = np.pad(x, ((0, 0), (0, -x.shape[1] % in_byte)))
        return sum(x[:, i::in_byte] << i * bits for i in range(in_byte)).astype("u1")

    inputs = {"d": stored(values), "i": ids, "s": scales}
    if has_zeros:
        inputs["z"] = stored(zeros)
    else:
        zeros = np.full((7, 3), 2 ** (bits - 1), "u1")
    wanted = block_dequantized(values, scales, zeros, 16)[ids]
    constants = tuple(inputs.keys() - {"i"})
    made = results(tmp_path, "GatherBlockQuantized", inputs, constants=constants, bits=bits,
                   block_size=16)  # fmt: skip
    expect(made, wanted)
