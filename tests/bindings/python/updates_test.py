# SPDX-License-Identifier: Apache-2.0
"""Every optimizer, loss and option of an update, by name."""

import json
import weakref

import numpy as np
import pytest
import tenon as tn
from tenon import nn
from training_test import blobs, linear  # noqa: F401

OPTIMIZERS = [one["id"] for one in tn.components("optimizer") if one["id"].startswith("trainer.")]
RATES = {"lars": 1.0, "sgd": 0.1, "adafactor": 0.1}  # others: 0.02


def squares(parameters, x, y):
    return tn.mean((x @ parameters["w"] - y) ** 2)


@pytest.mark.parametrize("word", [id.removeprefix("trainer.") for id in OPTIMIZERS])
def test_each_optimizer_goes_down_and_its_state_moves(word):
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 3)).astype("f")
    y = x @ np.array([[1], [-2], [0.5]], "f")
    start = {"w": np.full((3, 1), 0.25, "f")}
    make = getattr(tn.optim, word)
    options = {"trust": 0.05} if word == "lars" else {}
    step = tn.Step(squares, start, make(lr=RATES.get(word, 0.02), **options))
    losses = [float(step(x, y)) for _ in range(80)]
    assert losses[-1] < losses[0] / 2, losses[::20]
    kept = step.state()
    step(x[:5], y[:5])  # another plan, from the same state
    step.set_state(kept)
    first = step(x, y), step.state()
    step.set_state(kept)
    assert step(x, y) == first[0]
    assert all(np.array_equal(step.state()[name], value) for name, value in first[1].items())


def test_a_step_goes_on_elsewhere_with_its_schedule_and_its_window():
    x, y, start = rows()

    def made():
        rate = lambda update: 0.1 / (1 + update)  # noqa: E731
        return tn.Step(squares, start, tn.optim.sgd(lr=rate, momentum=0.9), accumulate=2)

    one, other = made(), made()
    for i in range(5):
        one(x[i:], y[i:])
    other(x, y)
    other.set_state(one.state())
    assert other.count == 5
    for step in (one, other):
        step(x, y)
    assert np.array_equal(one.parameters["w"], other.parameters["w"])
    with pytest.raises(tn.InvalidArgument, match="state: expected .*step/count"):
        other.set_state({"params.w": start["w"]})


class Scaled(nn.Module):
    """x w s, with a PReLU whose slope is one number: s and the slope are shaped as given."""

    def __init__(self, shape):
        self.linear = nn.Linear(4, bias=False)
        self.scale = nn.Parameter(shape, init=nn.init.constant(value=1.5))
        self.slope = nn.Parameter(shape, init=nn.init.constant(value=0.25))

    def forward(self, x):
        y = self.linear(x) * self.scale()
        return tn.where(y < 0, y * self.slope(), y)


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_parameters_of_one_number_are_trained_by_their_newest_number(shape, backend):
    random = np.random.default_rng(2)
    x, y = random.standard_normal((24, 3)).astype("f"), random.standard_normal((24, 4)).astype("f")
    model = nn.build(Scaled(shape), {"x": ("N", 3)})
    start = {name: np.array(one) for name, one in model.parameters().items()}
    assert len(start) == 3

    def loss(parameters, x, y):
        return tn.mean((model(x, parameters=parameters) - y) ** 2)

    step = tn.Step(loss, start, tn.optim.sgd(lr=0.5), backend=backend)
    for i in range(0, 24, 8):
        step(x[i : i + 8], y[i : i + 8])
    trained = tn.train(
        model, {"x": x, "label": y}, loss="mse", optimizer=tn.optim.sgd(lr=0.5),
        batch=8, shuffle=False, backend=backend,
    ).constants()  # fmt: skip
    for name, wanted in step.parameters.items():
        assert abs(start[name] - wanted).max() > 1e-3
        np.testing.assert_allclose(np.array(trained[name]), wanted, atol=1e-6, err_msg=name)


def test_a_single_number_that_a_schedule_drives_is_not_trained():
    x, y = np.ones((8, 3), "f"), np.zeros((8, 4), "f")
    model = nn.build(Scaled([]), {"x": ("N", 3)})
    trained = tn.train(model, {"x": x, "label": y}, loss="mse", batch=4, schedules={"scale": 0.5})
    assert trained.report["parameters"] == 2
    assert np.array(trained.constants()["scale"]) == 1.5


def test_a_step_lets_go_of_the_arrays_it_was_given():
    x, y, start = rows()
    given = weakref.ref(start["w"])
    step = tn.Step(squares, start, "adamw")
    first = step(x, y)
    del start
    assert given() is None
    assert step.parameters["w"].shape == (3, 1)
    assert step(x[:5], y[:5]) != first  # of another shape, traced without them


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_batches_of_all_shapes_have_one_state(backend):
    """What one plan has trained is what the other ones have, and nothing was copied to them."""
    x, y, start = rows()
    step = tn.Step(squares, start, "adamw", average=0.9, backend=backend)
    for n in (5, 24, 5):
        step(x[:n], y[:n])
    plans = [plan for plan, *_ in step._plans.values()]
    assert len(plans) == 2
    states = [
        {name: plan.get_state(name) for name in step.state().keys() - {"step/count"}}
        for plan in plans
    ]
    for name, state in states[0].items():
        np.testing.assert_array_equal(state, states[1][name])
    alone = tn.Step(squares, rows()[2], "adamw", average=0.9, backend=backend)
    for n in (5, 24):
        alone(x[:n], y[:n])
    np.testing.assert_array_equal(step(x, y), (alone(x[:5], y[:5]), alone(x, y))[1])


def rows(n=24):
    random = np.random.default_rng(1)
    x = random.standard_normal((n, 3)).astype("f")
    return x, x @ np.array([[1], [-2], [0.5]], "f"), {"w": np.full((3, 1), 0.25, "f")}


@pytest.mark.parametrize("sizes", [(8, 8, 8), (12, 7, 5)])
def test_accumulated_batches_are_one_large_batch(sizes):
    """AdamW remembers and decays: a batch that moved anything but sums would show."""
    x, y, start = rows()
    adamw = tn.optim.adamw(lr=tn.schedule.step(base=0.1, every=2, gamma=0.5), weight_decay=0.1)
    one = tn.Step(squares, start, adamw)
    many = tn.Step(squares, start, adamw, accumulate=3)
    for _ in range(4):
        one(x, y)
        begin = 0
        for size in sizes:
            before = many.parameters["w"]
            many(x[begin : begin + size], y[begin : begin + size])
            begin += size
            assert (many.parameters["w"] == before).all() == (begin < 24)
    assert many.count == 12
    np.testing.assert_allclose(many.parameters["w"], one.parameters["w"], rtol=2e-5)
    with pytest.raises(tn.InvalidArgument, match="at least 1 batch, got 0"):
        tn.Step(squares, start, adamw, accumulate=0)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_averages_follow_their_recurrence(accumulate):
    x, y, start = rows()
    step = tn.Step(squares, start, tn.optim.sgd(lr=0.1), accumulate=accumulate, average=0.75)
    wanted = start["w"].astype("d")
    for _ in range(5):
        for _ in range(accumulate):
            step(x, y)
        wanted = 0.75 * wanted + 0.25 * step.parameters["w"]
        np.testing.assert_allclose(step.averages["w"], wanted, rtol=1e-5)
    step(x[:8], y[:8])  # another plan: the averages move along
    if accumulate == 1:
        wanted = 0.75 * wanted + 0.25 * step.parameters["w"]
    np.testing.assert_allclose(step.averages["w"], wanted, rtol=1e-5)
    with pytest.raises(tn.InvalidArgument, match="expected option average"):
        _ = tn.Step(squares, start, tn.optim.sgd(lr=0.1)).averages


def test_ctc_learns_to_spell(tmp_path):
    """Frames that show a class each, with blanks between equal ones."""
    texts = np.array([[1, 2, -1], [2, 2, 1], [1, -1, -1], [2, 1, 2]])
    frames = np.array([[0, 1, 1, 2, 0], [2, 0, 2, 1, 1], [0, 0, 1, 0, 0], [2, 1, 0, 2, 2]])
    graph = tn.Graph()
    x = graph.add_input("x", "float32", ["batch", 5, 3])
    w = graph.add_constant(np.random.default_rng(0).standard_normal((3, 3)).astype("f"), "w")
    graph.add_output("y", graph.add_node("MatMul", [x, w]))
    np.savez(tmp_path / "texts.npz", x=np.eye(3, dtype="f")[frames], label=texts)
    data = tn.data.npz(tmp_path / "texts.npz")
    trained = tn.train(
        graph.build(), data, epochs=60, batch=4, loss="ctc", optimizer=tn.optim.adam(lr=0.2)
    )
    history = trained.report["history"]
    assert history[-1]["loss"] < 0.1 * history[0]["loss"]
    assert tn.evaluate(trained, data, metric="metrics.cer")["cer"] == 0


def test_options_of_an_update_can_be_had(blobs, tmp_path):  # noqa: F811
    options = dict(data=blobs, epochs=4, batch=8, optimizer="adam", rate=0.1, validation=0.25)
    trained = tn.train(
        linear(),
        **options,
        accumulate=2,
        average=0.9,
        clip_value=1,
        rate_batch=16,
        plateau={"patience": 1, "factor": 0.5},
        loss=tn.loss.cross_entropy(label_smoothing=0.1),
        schedules={"label_smoothing": {"schedule": "linear", "from": 0.1, "to": 0}},
        metric="metrics.f1",
        callbacks=[
            tn.Component("callback", "trainer.lines", path=tmp_path / "run.jsonl"),
            tn.Component("callback", "trainer.tensorboard", path=tmp_path / "board"),
        ],
    )
    assert trained.report["history"][-1]["f1"] > 0.9
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert sum(line["event"] == "step" for line in lines) == trained.report["steps"]
    (events,) = (tmp_path / "board").iterdir()
    assert events.read_bytes().count(b"step/loss") == trained.report["steps"]


@pytest.mark.parametrize("name", ["adamw", "trainer.adamw", "sgd"])
def test_a_step_takes_an_optimizer_by_its_name(name):
    step = tn.Step(lambda w, x: (w * x).sum(), np.ones(3, "f"), name)
    step(np.ones(3, "f"))
    assert (step.parameters < 1).all()
    with pytest.raises(tn.NotFound, match="expected one of .*adamw.* got 'adam_w'"):
        tn.Step(lambda w, x: (w * x).sum(), np.ones(3, "f"), "adam_w")
    with pytest.raises(tn.InvalidArgument, match=r"as tn.optim.adamw\(lr=1e-3\), got adamw"):
        tn.Step(lambda w, x: (w * x).sum(), np.ones(3, "f"), tn.optim.adamw)


def test_the_decay_of_an_average_may_follow_a_schedule():
    """n / (n + 1) is the plain mean: stochastic weight averaging of each step."""
    step = tn.Step(
        lambda p, x: ((p - x) ** 2).sum(),
        np.zeros(3, "f"),
        tn.optim.sgd(lr=0.1),
        average=0.5,
        settings={"average": lambda update: update / (update + 1)},
    )
    seen = []
    for i in range(4):
        step(np.full(3, i, "f"))
        seen.append(step.parameters)
    np.testing.assert_allclose(step.averages, np.mean(seen, axis=0), rtol=1e-6)


def test_a_window_is_clipped_as_a_whole():
    """Gradients of opposite batches cancel: clipped one by one they would not."""
    x, start = np.array([[3.0], [-2.0]], "f"), {"w": np.zeros((1, 1), "f")}

    def slope(parameters, x):
        return (x @ parameters["w"]).mean()

    for bounds, moved in (({"clip_norm": 0.25}, 0.25), ({"clip_value": 0.125}, 0.125), ({}, 0.5)):
        step = tn.Step(slope, start, tn.optim.sgd(lr=1.0), accumulate=2, **bounds)
        step(x[:1]), step(x[1:])
        np.testing.assert_allclose(step.parameters["w"], [[-moved]], rtol=1e-4)
    with pytest.raises(tn.InvalidArgument, match="joint: trainer.clip .* expected clip_norm"):
        tn.Step(slope, start, "sgd", accumulate=2, joint={"trainer.clip": {"norm": 1}})


def test_a_step_has_groups():
    start = {"fast": np.ones(1, "f"), "slow": np.ones(1, "f")}
    step = tn.Step(
        lambda p: (p["fast"] + p["slow"]).sum(), start, tn.optim.sgd(lr=0.5),
        groups={"slow": {"parameters": "*slow", "rate": 0.1}},
    )  # fmt: skip
    step()
    np.testing.assert_allclose(step.parameters["fast"], [0.5])
    np.testing.assert_allclose(step.parameters["slow"], [0.95])


def test_a_group_of_no_parameter_says_what_they_are_called():
    start = {"encoder": {"w": np.ones(1, "f")}, "head": np.ones(1, "f")}

    def loss(p):
        return (p["encoder"]["w"] + p["head"]).sum()

    def step(pattern):
        return tn.Step(loss, start, "sgd", groups={"slow": {"parameters": pattern, "rate": 0.1}})

    names = r"no parameter fits 'encoder.\*' \(they are p.encoder.w, p.head\)"
    with pytest.raises(tn.InvalidArgument, match=names):
        step("encoder.*")()
    step("*.encoder.*")()


@pytest.mark.parametrize("is_number_first", [False, True])
def test_a_number_and_an_array_of_its_type_have_steps_of_their_own(is_number_first):
    step = tn.Step(lambda p, x, k: (p * x * k).sum(), np.ones(2, "float16"), tn.optim.sgd(lr=0))
    x = np.ones(2, "float16")
    for k in (2.0, np.float32(2)) if is_number_first else (np.float32(2), 2.0):
        assert step(x, k).dtype == ("float16" if type(k) is float else "float32")
