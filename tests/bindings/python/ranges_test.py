# SPDX-License-Identifier: Apache-2.0
"""Ranges of a model that is trained in 8 bits: moved by the step itself, then frozen."""

import json
import struct

import numpy as np
import pytest
import tenon

N, WIDE, CLASSES, BATCH = 160, 6, 3, 20
STEPS = N // BATCH


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Numbers that grow from batch to batch, so that ranges have something to follow."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, WIDE)).astype("f")
    label = x[:, :CLASSES].argmax(1)
    x *= np.repeat(np.linspace(1, 3, STEPS), BATCH)[:, None].astype("f")
    path = tmp_path_factory.mktemp("ranges") / "train.npz"
    np.savez(path, x=x, label=label)
    return tenon.data.npz(path), x


def network() -> tenon.Model:
    rng = np.random.default_rng(1)
    graph = tenon.Graph()
    h = graph.add_input("x", "float32", ["batch", WIDE])
    for i, (a, b) in enumerate([(WIDE, 16), (16, CLASSES)]):
        w = graph.add_constant((rng.standard_normal((a, b)) / np.sqrt(a)).astype("f"), f"w{i}")
        bias = graph.add_constant(np.zeros(b, "f"), f"b{i}")
        h = graph.add_node("Gemm", [h, w, bias], name=f"fc{i}")
        if i == 0:
            h = graph.add_node("Relu", [h], name="relu")
    graph.add_output("logits", h)
    return graph.build()


def to_train_in_8_bits(train, **options):
    return network().apply(
        "quantizer.qat", data=train[0], observer="minmax", samples=3 * BATCH, **options
    )


@pytest.fixture(scope="module")
def rounded(train):
    return to_train_in_8_bits(train)


def fit(model, train, track=None, **options):
    as_trained = {} if track is None else {"train_as": {"quantizer.track": track}}
    given = dict(batch=BATCH, shuffle=False, rate=0.05, seed=1) | as_trained | options
    return tenon.train(model, train[0], **given)


def numbers(model):
    return {name: np.asarray(value) for name, value in model.constants().items()}


def same(a, b):
    a, b = numbers(a), numbers(b)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


def followed(low, high, x, momentum, steps):
    """What the ends of the input's range become, in float64."""
    for batch in x.reshape(STEPS, -1)[:steps].astype("d"):
        low = momentum * low + (1 - momentum) * min(batch.min(), 0)
        high = momentum * high + (1 - momentum) * max(batch.max(), 0)
    return low, high


@pytest.mark.parametrize("frozen_after", [1, 3, STEPS])
def test_a_range_is_a_moving_average_until_it_is_frozen(train, rounded, frozen_after):
    before = numbers(rounded)
    after = numbers(fit(rounded, train, {"momentum": 0.6, "steps": frozen_after}))

    scale, zero = float(before["x_scale"]), float(before["x_zero_point"])
    low, high = followed(-zero * scale, (255 - zero) * scale, train[1], 0.6, frozen_after)
    np.testing.assert_allclose(after["x_scale"], (high - low) / 255, rtol=1e-5)
    assert after["x_zero_point"].dtype == np.uint8
    assert after["x_zero_point"] == np.rint(-low / ((high - low) / 255))
    ranges = {name for name in before if name.endswith("_scale")}
    assert {name for name in ranges if before[name] != after[name]} == ranges


def test_symmetric_ranges_keep_their_zero(train):
    rounded = to_train_in_8_bits(train, activations="s8")
    scale = float(numbers(rounded)["x_scale"])
    after = numbers(fit(rounded, train, {"momentum": 0.6, "steps": 4}))

    low, high = followed(-127 * scale, 127 * scale, train[1], 0.6, 4)
    np.testing.assert_allclose(after["x_scale"], max(-low, high) / 127, rtol=1e-5)
    assert after["x_zero_point"] == 0 and after["x_zero_point"].dtype == np.int8


def test_values_that_are_made_of_each_other_share_a_range(tmp_path):
    """A pool moves numbers, so what goes in and what comes out have one scale."""
    rng = np.random.default_rng(3)
    x, label = rng.standard_normal((40, 1, 6, 6)).astype("f"), rng.integers(0, 2, 40)
    np.savez(tmp_path / "images.npz", x=x, label=label)
    graph = tenon.Graph()
    h = graph.add_input("x", "float32", ["batch", 1, 6, 6])
    for i, shape in enumerate([(4, 1, 3, 3), (2, 4, 2, 2)]):
        w = graph.add_constant(rng.standard_normal(shape).astype("f"), f"w{i}")
        h = graph.add_node("Conv", [h, w], name=f"conv{i}")
        if i == 0:
            h = graph.add_node("Relu", [h], name="relu")
            h = graph.add_node("MaxPool", [h], name="pool", kernel_shape=[2, 2], strides=[2, 2])
    graph.add_output("logits", graph.add_node("Flatten", [h], name="flat"))
    images = tenon.data.npz(tmp_path / "images.npz")
    rounded = graph.build().apply("quantizer.qat", data=images, observer="minmax")
    shared = [name for name in numbers(rounded) if name.endswith("_scale")]
    readers = rounded.text().count(f"%{shared[-1]}")
    options = dict(batch=10, train_as={"quantizer.track": {"momentum": 0.5, "steps": 3}})
    trained = tenon.train(rounded, images, **options)

    assert readers > 4  # two pairs of nodes, and the constant itself
    assert trained.text().count(f"%{shared[-1]}") == readers
    assert all(numbers(rounded)[name] != numbers(trained)[name] for name in shared)


def test_epochs_are_counted_in_steps_of_the_run(train, rounded):
    options = {"momentum": 0.9}
    same(
        fit(rounded, train, options | {"epochs": 1}, epochs=2),
        fit(rounded, train, options | {"steps": STEPS}, epochs=2),
    )
    different = fit(rounded, train, options | {"epochs": 2}, epochs=2)
    frozen = fit(rounded, train, options | {"epochs": 1}, epochs=2)
    assert numbers(different)["x_scale"] != numbers(frozen)["x_scale"]


def test_what_is_frozen_from_the_start_keeps_its_bits(train, rounded):
    before = numbers(rounded)
    after, plain = numbers(fit(rounded, train, {"steps": 0})), numbers(fit(rounded, train))
    for name, expected in plain.items():
        np.testing.assert_allclose(after[name], expected, atol=1e-6, err_msg=name)
        if name.endswith(("_scale", "_zero_point")):
            np.testing.assert_array_equal(after[name], before[name], name)


def test_both_backends_follow_alike(train, rounded):
    options = dict(track={"momentum": 0.5, "steps": 5}, epochs=2)
    fast = fit(rounded, train, backend="onednn", **options)
    plain = fit(rounded, train, backend="reference", **options)

    assert fast.report["fallback_nodes"] == []
    for name, expected in numbers(plain).items():
        tolerance = 1 if expected.dtype == np.uint8 else 1e-4
        np.testing.assert_allclose(numbers(fast)[name], expected, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("stopped_after", [3, 6, 11])  # before, at and after the freezing
def test_a_run_that_goes_on_has_the_same_ranges(train, rounded, tmp_path, stopped_after):
    track = {"momentum": 0.8, "steps": 6}
    options = dict(epochs=2, shuffle=True, optimizer=tenon.optim.adamw(lr=1e-2))
    whole = fit(rounded, train, track, **options)

    def stop(point):
        if point["step"] == stopped_after:
            raise RuntimeError("enough")

    run = tmp_path / "run"
    with pytest.raises(RuntimeError, match="enough"):
        fit(rounded, train, track, run=run, callbacks=[tenon.callback(step=stop)], **options)
    header = states_of(run / "checkpoint.safetensors")
    assert {"x_scale", "x_zero_point", "x_scale/low", "x_scale/high"} <= header

    same(fit(rounded, train, track, run=run, resume=True, **options), whole)
    with pytest.raises(tenon.InvalidArgument, match="option train_as: the run began with"):
        fit(rounded, train, track | {"steps": 7}, run=run, resume=True, **options)


def states_of(path) -> set[str]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return set(json.loads(content[8 : 8 + length])) - {"__metadata__"}


def test_each_epoch_is_validated_as_it_will_run_in_8_bits(train, rounded):
    seen = []

    def check(record, model):
        finished = model.apply("quantizer.convert")
        assert np.asarray(finished.constants()["w0_quantized"]).dtype == np.int8
        metric = tenon.evaluate(finished, train[0], batch=BATCH, metric="accuracy")
        seen.append((record["accuracy"], metric["accuracy"]))

    fit(
        rounded,
        train,
        {"epochs": 1},
        epochs=3,
        validation=train[0],
        validate_as="quantizer.convert",
        metric="accuracy",
        callbacks=[check],
    )
    assert len(seen) == 3
    assert all(summary == true for summary, true in seen)


def test_what_cannot_be_tracked_is_reported(train, rounded):
    with pytest.raises(tenon.InvalidArgument, match="options steps and epochs: expected one"):
        fit(rounded, train, {"steps": 1, "epochs": 1})
    with pytest.raises(tenon.InvalidArgument, match="option epochs: the graph does not say"):
        rounded.apply("quantizer.track", epochs=1)
    with pytest.raises(tenon.TenonError, match="option train_as.*quantizer.track.*behind Quantize"):
        fit(network(), train, {"steps": 1})
    with pytest.raises(tenon.InvalidArgument, match="option train_as.*momentum"):
        fit(rounded, train, {"momentum": 2})
    with pytest.raises(tenon.InvalidArgument, match="option train_as: quantizer.track: expected"):
        fit(rounded, train, train_as={"quantizer.track": 3})
