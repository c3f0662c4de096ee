# SPDX-License-Identifier: Apache-2.0
"""Caches that grow: a plan leaves changing sizes open and compiles only what depends on them."""

import json
from concurrent import futures

import numpy as np
import pytest
import tenon as tn
from onnx import helper
from onnx_models import INT64, constant, info, model_of, ran

RANDOM = np.random.default_rng(5)
WIDTH, HEADS, SIZE, WINDOW = 32, 4, 8, 6


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype("f") / 4


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


class Decoder:
    """Layers of attention over a cache, whose shape is computed from its length as exporters do it.
    With a window only the last few rows are read."""

    def __init__(self, layers=3, window=None):
        self.layers, self.window = layers, window
        parts = {"q": WIDTH, "k": WIDTH, "v": WIDTH, "o": WIDTH, "up": 2 * WIDTH}
        self.weights = {f"{part}{i}": numbers(WIDTH, n) for part, n in parts.items()
                        for i in range(layers)}  # fmt: skip
        self.weights |= {f"down{i}": numbers(2 * WIDTH, WIDTH) for i in range(layers)}

    def layer(self, i: int) -> list:
        nodes = [node("MatMul", f"x{i} {part}{i}", f"{part}m{i}") for part in "qkv"]
        nodes += [node("Reshape", f"{part}m{i} heads", f"{part}r{i}") for part in "qkv"]
        nodes += [node("Transpose", f"{part}r{i}", f"{part}t{i}", perm=[0, 2, 1, 3])
                  for part in "qkv"]  # fmt: skip
        for part in "kv":
            nodes.append(node("Concat", f"past_{part}{i} {part}t{i}", f"{part}new{i}", axis=2))
            seen = f"{part}new{i}"
            if self.window:
                nodes.append(node("Slice", f"{seen} window_begin window_end two", f"{part}w{i}"))
                seen = f"{part}w{i}"
            # The length of the cache stands in a shape that the graph computes.
            nodes += [
                node("Shape", seen, f"{part}shape{i}", start=2, end=3),
                node("Concat", f"one_four {part}shape{i} eight", f"{part}to{i}", axis=0),
                node("Reshape", f"{seen} {part}to{i}", f"{part}all{i}"),
            ]
        return nodes + [
            node("Transpose", f"kall{i}", f"kT{i}", perm=[0, 1, 3, 2]),
            node("MatMul", f"qt{i} kT{i}", f"s{i}"),
            node("Mul", f"s{i} scale", f"sc{i}"),
            *([] if self.window else [node("Add", f"sc{i} bias", f"sb{i}")]),
            node("Softmax", f"sc{i}" if self.window else f"sb{i}", f"p{i}", axis=-1),
            node("MatMul", f"p{i} vall{i}", f"c{i}"),
            node("Transpose", f"c{i}", f"ct{i}", perm=[0, 2, 1, 3]),
            node("Reshape", f"ct{i} joined", f"cj{i}"),
            node("MatMul", f"cj{i} o{i}", f"om{i}"),
            node("Add", f"om{i} x{i}", f"a{i}"),
            node("MatMul", f"a{i} up{i}", f"u{i}"),
            node("Relu", f"u{i}", f"r{i}"),
            node("MatMul", f"r{i} down{i}", f"d{i}"),
            node("Add", f"d{i} a{i}", f"x{i + 1}"),
        ]

    def model(self, tmp_path) -> tn.Model:
        constants = {"heads": np.array([0, 0, HEADS, SIZE]), "joined": np.array([0, 0, WIDTH]),
                     "one_four": np.array([1, HEADS]), "eight": np.array([SIZE]),
                     "scale": np.float32(SIZE**-0.5), "two": np.array([2]), "far": np.float32(-1e4),
                     "window_begin": np.array([-WINDOW]), "window_end": np.array([2**40]),
                     "one": np.float32(1)}  # fmt: skip
        nodes = []
        if not self.window:
            nodes += [
                node("Cast", "mask", "seen", to=1),
                node("Sub", "one seen", "unseen"),
                node("Mul", "unseen far", "bias"),
            ]
        inputs = [
            info("x0", [1, "s", WIDTH]),
            *([] if self.window else [info("mask", ["t"], INT64)]),
        ]
        outputs = [f"x{self.layers}"]
        for i in range(self.layers):
            nodes += self.layer(i)
            for part in "kv":
                inputs.append(info(f"past_{part}{i}", [1, HEADS, "past", SIZE]))
                outputs.append(f"{part}new{i}")
        constants |= self.weights
        made = model_of(nodes, inputs, outputs, [constant(k, v) for k, v in constants.items()])
        return ran(tmp_path, made)

    def feeds(self, past: int, new: int = 1) -> dict:
        out = {"x0": numbers(1, new, WIDTH)}
        if not self.window:
            out["mask"] = RANDOM.integers(0, 2, past + new)
            out["mask"][-1] = 1
        for i in range(self.layers):
            out |= {f"past_{part}{i}": numbers(1, HEADS, past, SIZE) for part in "kv"}
        return out

    def expected(self, feeds: dict) -> np.ndarray:
        x = feeds["x0"]
        for i in range(self.layers):
            w = {part: self.weights[f"{part}{i}"] for part in ("q", "k", "v", "o", "up", "down")}
            q, k, v = ((x @ w[part]).reshape(1, -1, HEADS, SIZE).swapaxes(1, 2) for part in "qkv")
            k, v = (np.concatenate([feeds[f"past_{name}{i}"], new], 2)
                    for name, new in (("k", k), ("v", v)))  # fmt: skip
            if self.window:
                k, v = k[:, :, -WINDOW:], v[:, :, -WINDOW:]
            scores = q @ k.swapaxes(2, 3) * SIZE**-0.5
            if not self.window:
                scores = scores + (1 - feeds["mask"]) * np.float32(-1e4)
            e = np.exp(scores - scores.max(-1, keepdims=True))
            c = (e / e.sum(-1, keepdims=True)) @ v
            a = c.swapaxes(1, 2).reshape(x.shape) @ w["o"] + x
            x = np.maximum(a @ w["up"], 0) @ w["down"] + a
        return x


def is_open(plan) -> bool:
    return any(partition["backend"] == "host" for partition in plan.describe()["partitions"])


def check(plan, decoder, past, new=1) -> None:
    feeds = decoder.feeds(past, new)
    np.testing.assert_allclose(plan.run(feeds)[0], decoder.expected(feeds), rtol=2e-4, atol=2e-5)


def test_sizes_that_change_with_each_run_are_left_open(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past, opens in ((0, False), (7, False), (8, True), (9, True), (40, True)):
        check(plan, decoder, past)
        assert is_open(plan) == opens, past
        assert not plan.describe()["fallback_nodes"]
    check(plan, decoder, 7)
    assert not is_open(plan), "what is compiled for just these sizes comes first"


def test_a_size_that_stays_gets_a_specialization_of_its_own(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in (2, 3, 4):
        check(plan, decoder, past)
    for run in range(12):
        check(plan, decoder, 9)
        assert is_open(plan) == (run < 8), run
    check(plan, decoder, 10)
    assert is_open(plan)


def test_another_fixed_size_is_another_specialization(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in range(2, 8):
        check(plan, decoder, past)
    for past in range(2, 8):
        check(plan, decoder, past, new=3)
        assert is_open(plan) == (past > 3), past  # two that are known differ in the same sizes
    check(plan, decoder, 30)


def test_results_are_those_of_a_plan_that_meets_the_size_first(tmp_path) -> None:
    decoder = Decoder()
    model = decoder.model(tmp_path)
    grown = model.compile(backend="onednn")
    for past in range(5):
        grown.run(decoder.feeds(past))
    for past in (5, 16, 33, 100):
        feeds = decoder.feeds(past)
        first = model.compile(backend="onednn").run(feeds)
        for ours, theirs in zip(grown.run(feeds), first, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert is_open(grown)


def test_layers_that_are_alike_are_compiled_once(tmp_path) -> None:
    decoder = Decoder(layers=6)
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in range(4):
        plan.run(decoder.feeds(past))
    with tn.chrome_trace(tmp_path / "trace.json"):
        plan.run(decoder.feeds(50))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    compiled = [one for one in events if (one["cat"], one["name"]) == ("compile", "onednn")]
    assert 0 < len(compiled) <= 2, compiled  # the mask and the first layer, and all other layers


def test_a_size_that_was_the_same_so_far_may_change(tmp_path) -> None:
    """Behind a window all is as long as the window, until a cache is shorter."""
    decoder = Decoder(window=WINDOW)
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in (20, 21, 22, 23, 2, 3, 24, 1, 25):
        check(plan, decoder, past)


def test_wrong_sizes_are_refused_and_right_ones_go_on(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in range(5):
        check(plan, decoder, past)
    wrong = decoder.feeds(9)
    wrong["mask"] = wrong["mask"][:-1]
    with pytest.raises(tn.TenonError):
        plan.run(wrong)
    check(plan, decoder, 11)
    assert is_open(plan)


def test_bits_of_deterministic_plans_do_not_depend_on_earlier_sizes(tmp_path) -> None:
    decoder = Decoder()
    model = decoder.model(tmp_path)
    plan = model.compile(backend="onednn", deterministic=True)
    for past in range(6):
        feeds = decoder.feeds(past)
        first = model.compile(backend="onednn", deterministic=True).run(feeds)
        for ours, theirs in zip(plan.run(feeds), first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert not is_open(plan)


def test_what_reads_open_sizes_throughout_is_not_opened(tmp_path) -> None:
    weights = [constant(f"w{i}", numbers(WIDTH, WIDTH)) for i in range(3)]
    nodes = [node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(3)]
    plan = ran(tmp_path, model_of(nodes, [info("x0", ["n", WIDTH])], ["x3"], weights)).compile(
        backend="onednn"
    )
    for n in range(1, 8):
        plan(numbers(n, WIDTH))
        assert not is_open(plan)


def test_runs_of_several_threads_grow_side_by_side(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    texts = [[decoder.feeds(past) for past in range(first, first + 12)] for first in (0, 5, 20)]

    def write(text) -> list:
        return [plan.run(feeds)[0] for feeds in text]

    with futures.ThreadPoolExecutor(len(texts)) as pool:
        results = list(pool.map(write, texts))
    for text, given in zip(texts, results, strict=True):
        for feeds, got in zip(text, given, strict=True):
            np.testing.assert_allclose(got, decoder.expected(feeds), rtol=2e-4, atol=2e-5)
    assert is_open(plan)


def test_profiles_reach_into_late_partitions(tmp_path) -> None:
    decoder = Decoder()
    plan = decoder.model(tmp_path).compile(backend="onednn")
    for past in range(4):
        plan.run(decoder.feeds(past))
    ops = [row["op"] for row in plan.profile(**decoder.feeds(9))]
    assert ops.count("Concat") == 2 * decoder.layers, ops
