# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention of ONNX Runtime, on both backends: NumPy is the judge."""

import ml_dtypes
import numpy as np
import pytest
import tenon as tn
from fused_attention_test import attention, by_heads
from fused_operators_test import array, expect, results


def rotated(x, angles, at):
    """x: [b, heads, s, d]; at: the position of each s."""
    a, b = np.split(x, 2, -1)
    c, s = np.cos(angles)[at], np.sin(angles)[at]
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def grouped(q, k, v, past, window=-1):
    """Two query heads for each key head; q, k, v: [b, heads, s, d]."""
    k, v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    behind = past + np.arange(q.shape[2])[:, None] - np.arange(k.shape[2])
    hidden = (behind < 0) | ((window > 0) & (behind >= window))
    return attention(q, k, v, np.where(hidden, -np.inf, 0))


@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("form", ["plain", "rotary", "packed", "window", "column"])
def test_attention_of_a_language_model(tmp_path, past, length, form):
    random = np.random.default_rng(past + length)
    q, k, v = (random.standard_normal((1, length, n * 16)).astype("f") for n in (2, 1, 1))
    before = [random.standard_normal((1, 1, past, 16)).astype("f") for _ in range(2)]
    angles, total = random.standard_normal((16, 8)).astype("f"), past + length
    attributes = {"num_heads": 2, "kv_num_heads": 1}
    inputs = {"q": q, "k": k, "v": v, "pk": before[0], "pv": before[1]}
    if form == "packed":
        inputs |= {"q": np.concatenate([q, k, v], 2), "k": None, "v": None}
    last = [[total - 1]] if form == "column" else [total - 1]  # ONNX Runtime takes both
    inputs |= {"n": np.array(last, "i4"), "t": np.array(total, "i4")}
    query, key = by_heads(q), k[:, None]
    if form == "rotary":
        inputs |= {"c": np.cos(angles), "s": np.sin(angles)}
        attributes["do_rotary"] = 1
        at = np.arange(past, total)
        query, key = rotated(query, angles, at), rotated(key, angles, at)
    if form == "window":
        attributes["local_window_size"] = 2
    all_k = np.concatenate([before[0], key], 2)
    all_v = np.concatenate([before[1], v[:, None]], 2)
    window = attributes.get("local_window_size", -1)
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=("n", "t"), **attributes)
    expect(made, grouped(query, all_k, all_v, past, window), all_k, all_v)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
@pytest.mark.parametrize("window", [-1, 2])
def test_sequences_with_pasts_of_their_own(tmp_path, window, shape):
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((3, 1, n * 16)).astype("f") for n in (2, 1, 1))
    past = [random.standard_normal((3, 1, 4, 16)).astype("f") for _ in range(2)]
    lengths, angles = np.array([4, 1, 3], "i4"), random.standard_normal((16, 8)).astype("f")
    inputs = {"q": q, "k": k, "v": v, "pk": past[0], "pv": past[1]}
    inputs |= {"n": lengths.reshape(shape)}
    inputs |= {"t": np.array(5, "i4"), "c": np.cos(angles), "s": np.sin(angles)}
    attributes = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1, "local_window_size": window}
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=("t",), **attributes)
    for b, n in enumerate(lengths):
        query, key = (rotated(x, angles, [n]) for x in (by_heads(q[b : b + 1]), k[b, None, None]))
        all_k = np.concatenate([past[0][b, None, :, :n], key], 2)
        all_v = np.concatenate([past[1][b, None, :, :n], v[b, None, None]], 2)
        for y, present_k, present_v in made:
            expect([[y[b, None]]], grouped(query, all_k, all_v, n, window))
            expect([[present_k[b, None, :, : n + 1]]], all_k)
            expect([[present_v[b, None, :, : n + 1]]], all_v)


@pytest.mark.parametrize("total", ["input", "constant", "room"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("window", [-1, 2])
def test_a_cache_with_room_is_filled_where_its_lengths_say(tmp_path, total, length, batch, window):
    random = np.random.default_rng(length)
    q, k, v = (random.standard_normal((batch, length, n * 16)).astype("f") for n in (2, 1, 1))
    room, pasts = 9, np.array([4, 1])[:batch]
    cache = [random.standard_normal((batch, 1, room, 16)).astype("f") for _ in range(2)]
    angles = random.standard_normal((16, 8)).astype("f")
    inputs = {"q": q, "k": k, "v": v, "pk": cache[0], "pv": cache[1]}
    inputs |= {"n": (pasts + length - 1).astype("i4")}
    inputs |= {"t": np.array(room if total == "room" else 4 + length, "i4")}
    inputs |= {"c": np.cos(angles), "s": np.sin(angles)}
    attributes = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1, "local_window_size": window}
    constants = () if total == "input" else ("t",)
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=constants, **attributes)
    for y, present_k, present_v in made:
        for b, past in enumerate(pasts):
            at = np.arange(past, past + length)
            query, key = (rotated(x[b : b + 1], angles, at) for x in (by_heads(q), k[:, None]))
            all_k, all_v = (x[b : b + 1].copy() for x in cache)
            all_k[:, :, at], all_v[:, :, at] = key, v[b, None, None]
            seen = [x[:, :, : past + length] for x in (all_k, all_v)]
            expect([[y[b, None]]], grouped(query, *seen, past, window))
            expect([[present_k[b, None], present_v[b, None]]], all_k, all_v)


@pytest.mark.parametrize("last", [9, -1])
def test_a_cache_without_room_is_refused(tmp_path, last):
    rows, cache = np.zeros((1, 1, 16), "f"), np.zeros((1, 1, 9, 16), "f")
    inputs = {"q": rows, "k": rows, "v": rows, "pk": cache, "pv": cache}
    inputs |= {"n": np.array([last], "i4"), "t": np.array(9, "i4")}
    with pytest.raises(tn.OutOfRange):
        results(tmp_path, "GroupQueryAttention", inputs, 3, num_heads=1, kv_num_heads=1)


@pytest.mark.parametrize("has_bias", [False, True])
def test_a_text_begins_in_a_cache_with_room(tmp_path, has_bias):
    """Sequences of 3, 1 and 2 words: the total says that the rows are the first ones."""
    random, room = np.random.default_rng(5), 8
    q, k, v = (random.standard_normal((3, 3, n * 16)).astype("f") for n in (2, 1, 1))
    cache = [random.standard_normal((3, 1, room, 16)).astype("f") for _ in range(2)]
    angles, bias = random.standard_normal((16, 8)).astype("f"), array(1, 2, 3, 3)
    inputs = {"q": q, "k": k, "v": v, "pk": cache[0], "pv": cache[1]}
    inputs |= {"n": np.array([2, 0, 1], "i4"), "t": np.array(3, "i4")}
    inputs |= {"c": np.cos(angles), "s": np.sin(angles)}
    inputs |= {"at": None, "b": bias} if has_bias else {}
    attributes = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, **attributes)
    query, key = (rotated(x, angles, np.arange(3)) for x in (by_heads(q), k[:, None]))
    kept = [np.concatenate([x, y[:, :, 3:]], 2) for x, y in zip((key, v[:, None]), cache)]
    hidden = np.where(np.tri(3, dtype=bool), 0, -np.inf) + (bias if has_bias else 0)
    y = attention(query, np.repeat(key, 2, 1), np.repeat(v[:, None], 2, 1), hidden)
    expect(made, y, *kept)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_positions_that_turn_a_part_of_a_head(tmp_path, interleaved):
    random = np.random.default_rng(6)
    q, k, v = (random.standard_normal((1, 3, n * 32)).astype("f") for n in (2, 1, 1))
    angles, empty = random.standard_normal((16, 8)).astype("f"), np.zeros((1, 1, 0, 32), "f")
    inputs = {"q": q, "k": k, "v": v, "pk": empty, "pv": empty}
    inputs |= {"n": np.array([2], "i4"), "t": np.array(3, "i4")}
    inputs |= {"c": np.cos(angles), "s": np.sin(angles)}
    attributes = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    attributes["rotary_interleaved"] = interleaved
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=("t",), **attributes)
    order = np.arange(16).reshape(8, 2).T.reshape(-1) if interleaved else np.arange(16)

    def by_angles(x):
        y = x.copy()
        y[..., order] = rotated(x[..., order], angles, np.arange(3))
        return y

    query, key = by_angles(q.reshape(1, 3, 2, 32).swapaxes(1, 2)), by_angles(k[:, None])
    expect(made, grouped(query, key, v[:, None], 0), key, v[:, None])


@pytest.mark.parametrize("sink", ["given", "smooth"])
@pytest.mark.parametrize("length", [1, 3, 12])
@pytest.mark.parametrize("form", ["plain", "window", "bias", "softcap", "room"])
def test_a_sink_takes_its_share_of_the_softmax(tmp_path, sink, length, form):
    """Beside ONNX Runtime where it is there, and NumPy."""
    random, past, heads, shared = np.random.default_rng(length), 5, 4, 2
    q, k, v = (random.standard_normal((1, length, n * 16)).astype("f") for n in (4, 2, 2))
    room = past + 20 if form == "room" else past
    cache = [random.standard_normal((1, shared, room, 16)).astype("f") for _ in range(2)]
    total = past + length
    inputs = {"q": q, "k": k, "v": v, "pk": cache[0], "pv": cache[1]}
    inputs |= {"n": np.array([total - 1], "i4"), "t": np.array(total, "i4")}
    inputs |= {"c": None, "s": None, "at": None}
    bias = array(1, heads, length, total) if form == "bias" else None
    sinks = 2 * random.standard_normal(heads).astype("f")
    inputs |= {"b": bias} | ({"sink": sinks} if sink == "given" else {})
    attributes = {"num_heads": heads, "kv_num_heads": shared, "scale": 0.3}
    attributes |= {"smooth_softmax": 1} if sink == "smooth" else {}
    attributes |= {"local_window_size": 4} if form == "window" else {}
    attributes |= {"softcap": 1.5} if form == "softcap" else {}
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=("t",), **attributes)

    query, key, value = (x.reshape(1, length, -1, 16).swapaxes(1, 2) for x in (q, k, v))
    all_k, all_v = (
        np.repeat(np.concatenate([x[:, :, :past], y], 2), 2, 1)
        for x, y in zip(cache, (key, value), strict=True)
    )
    scores = 0.3 * query.astype("f8") @ all_k.swapaxes(2, 3)
    if form == "softcap":
        scores = 1.5 * np.tanh(scores / 1.5)
    behind = past + np.arange(length)[:, None] - np.arange(total)
    seen = (behind >= 0) & (behind < (4 if form == "window" else total))
    weights = np.where(seen, np.exp(scores + (0 if bias is None else bias)), 0)
    own = np.exp(sinks if sink == "given" else np.zeros(heads)).reshape(1, heads, 1, 1)
    y = weights @ all_v / (weights.sum(-1, keepdims=True) + own)
    for got, *_ in made:
        np.testing.assert_allclose(got, y.swapaxes(1, 2).reshape(1, length, -1), atol=2e-5)


@pytest.mark.parametrize("length", [1, 4, 9])
@pytest.mark.parametrize("room", [0, 7])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_caches_of_halves(tmp_path, length, room, dtype):
    random, past = np.random.default_rng(length), 21
    q, k, v = (random.standard_normal((2, length, n * 16)).astype(dtype) for n in (6, 2, 2))
    held = past + room + (length if room else 0)
    cache = [random.standard_normal((2, 2, held, 16)).astype(dtype) for _ in range(2)]
    total = past + length
    angles = random.standard_normal((64, 8)).astype("f")
    inputs = {"q": q, "k": k, "v": v, "pk": cache[0], "pv": cache[1]}
    inputs |= {"n": np.full(2, total - 1, "i4"), "t": np.array(total, "i4")}
    inputs |= {"c": np.cos(angles).astype(dtype), "s": np.sin(angles).astype(dtype)}
    attributes = {"num_heads": 6, "kv_num_heads": 2, "do_rotary": 1}
    given = {name: x.astype("f") if x.dtype == dtype else x for name, x in inputs.items()}
    wide = results(tmp_path, "GroupQueryAttention", given, 3, constants=("t",), **attributes)
    made = results(tmp_path, "GroupQueryAttention", inputs, 3, constants=("t",), **attributes)
    step = 2.0**-10 if dtype == np.float16 else 2.0**-7
    for half in made:
        for got, want in zip(half, wide[0], strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(got.astype("f"), want, rtol=4 * step, atol=4 * step)
