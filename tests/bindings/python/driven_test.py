# SPDX-License-Identifier: Apache-2.0
"""Numbers of a step that change: temperature, sparsity, layer drop, weights of losses, length."""

import json
from pathlib import Path

import numpy as np
import pytest
import tenon as tn

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "driven.json").read_text())
A = [round(i * 37 % 101 / 101, 6) for i in range(16)]
B = [round(i * 53 % 103 / 103, 6) for i in range(16)]
X = np.array([A, B], "f").T
LABEL = np.array([int(a > b) for a, b in zip(A, B)])
START = {"w": np.zeros((2, 2), "f")}


def tempered(parameters, x, y):
    logits = x @ parameters["w"] / tn.setting("temperature", 9)
    return -(tn.log_softmax(logits) * tn.one_hot(y, 2)).sum(-1).mean()


def line(start, end, **more):
    return tn.schedule.linear(**{"from": start, "to": end}, **more)


def test_a_step_is_that_of_pytorch():
    wanted = GOLDEN["schedules"]
    decay = tn.schedule.cosine(base=0.1, steps=8)
    step = tn.Step(
        tempered,
        START,
        tn.optim.sgd(lr=2, weight_decay=7),
        settings={"temperature": line(4, 1, steps=8), "weight_decay": lambda update: decay(update)},
    )
    losses = [float(step(X, LABEL)) for _ in range(8)]
    np.testing.assert_allclose(losses, wanted["losses"], atol=1e-6)
    np.testing.assert_allclose(step.parameters["w"].ravel(), wanted["w"], atol=1e-5)


def test_a_loop_of_ones_own_drives_by_what_it_measures():
    wanted = GOLDEN["follow"]
    step = tn.Step(tempered, START, tn.optim.sgd(lr=2), settings={"temperature": 4})
    for temperature, loss in zip(wanted["temperatures"], wanted["losses"]):
        step.settings["temperature"] = temperature
        assert float(step(X, LABEL)) == pytest.approx(loss, abs=1e-6)


class Tempered(tn.nn.Module):
    def __init__(self):
        self.linear = tn.nn.Linear(2, bias=False, init=tn.nn.init.zeros())

    def forward(self, x):
        return self.linear(x) / tn.setting("temperature", 9)


@pytest.mark.parametrize("form", ["objects", "live"])
@pytest.mark.parametrize("name", ["schedules", "follow", "plateau"])
def test_a_network_is_trained_as_pytorch_does(name, form, tmp_path):
    follow = {"value": "loss", "begin": 0.6931, "end": 0.66}
    plateau = {"factor": 0.5, "patience": 1, "threshold": 0.1, "of": "loss"}
    cooling = {"schedule": "linear", "from": 4, "to": 1}
    given = {
        "schedules": {"temperature": cooling, "weight_decay": {"schedule": "cosine", "base": 0.1}},
        "follow": {"temperature": cooling | {"follow": follow}},
        "plateau": {"temperature": {"schedule": "constant", "base": 4, "plateau": plateau}},
    }[name]
    if form == "live":  # the same as functions and components
        live = lambda step, steps: 4 - 3 * step / steps  # noqa: E731
        given = {
            "schedules": {"temperature": live, "weight_decay": tn.schedule.cosine(base=0.1)},
            "follow": {"temperature": {"schedule": live, "follow": follow}},
            "plateau": {
                "temperature": {"schedule": tn.schedule.constant(base=4), "plateau": plateau}
            },
        }[name]
    np.savez(tmp_path / "rows.npz", x=X, label=LABEL)
    model = tn.nn.build(Tempered(), {"x": ("N", 2)})
    decay = {"weight_decay": 7} if name == "schedules" else {}
    trained = tn.train(
        model,
        data=tn.data.npz(tmp_path / "rows.npz"),
        optimizer=tn.optim.sgd(lr=2, **decay),
        batch=16,
        shuffle=False,
        epochs=8,
        schedules=given,
    )
    losses = [record["loss"] for record in trained.report["history"]]
    np.testing.assert_allclose(losses, GOLDEN[name]["losses"], atol=1e-6)


def masked(parameters, x, y):
    """Weights below the quantile of the sparsity are 0; the block is dropped by a gate; the loss
    has two parts; steps beyond the length do not count."""
    w = parameters["w"]
    size = tn.abs(w)
    ranks = tn.sum(size.reshape((-1, 1)) > size.reshape((1, -1)), -1).reshape(w.shape)
    kept = tn.where(ranks < tn.setting("sparsity", 0.0) * w.size, 0.0, w)
    residual = x + tn.setting("gate", 1.0) * (x @ kept)
    counts = tn.astype(tn.arange(x.shape[0]) < tn.setting("length", 4.0), "float32")
    fit = (counts * ((residual - y) ** 2).mean(-1)).sum() / counts.sum()
    return fit + tn.setting("penalty", 0.0) * tn.sum(size)


def test_any_number_is_driven_in_one_plan():
    """Each step is NumPy's with the numbers of that step."""
    random = np.random.default_rng(3)
    w, x, y = (random.standard_normal(s).astype("f") for s in ((3, 3), (4, 3), (4, 3)))
    driven = {
        "sparsity": tn.schedule.cubic(end=0.6, steps=3),
        "gate": lambda step: step % 2,
        "length": line(2, 4, steps=2, multiple=1),
        "penalty": 0.25,
    }
    step = tn.Step(masked, {"w": w}, tn.optim.sgd(lr=0), settings=driven)
    for i in range(4):
        now = {k: v(i) if callable(v) else v for k, v in driven.items()}
        size = np.abs(w)
        ranks = (size.reshape(-1, 1) > size.reshape(1, -1)).sum(-1).reshape(3, 3)
        kept = np.where(ranks < np.float32(now["sparsity"]) * 9, 0, w)
        n = int(now["length"])
        wanted = (((x + now["gate"] * (x @ kept) - y) ** 2).mean(-1))[:n].mean() + 0.25 * size.sum()
        assert float(step(x, y)) == pytest.approx(wanted, rel=1e-5), i


def test_bad_settings_are_named():
    make = lambda **settings: tn.Step(tempered, START, tn.optim.sgd(lr=1), settings=settings)  # noqa: E731
    with pytest.raises(tn.InvalidArgument, match=r"\(temperature\), got 'temp'"):
        make(temp=1)(X, LABEL)
    with pytest.raises(tn.OutOfRange, match="setting temperature: expected a finite number, got n"):
        make(temperature=lambda update: float("nan"))(X, LABEL)
    with pytest.raises(tn.InvalidArgument, match="setting t: expected 1 again, got 2"):
        tn.jit(lambda x: x * tn.setting("t", 1) + tn.setting("t", 2))(X)
    model = tn.nn.build(Tempered(), {"x": ("N", 2)})
    with pytest.raises(tn.InvalidArgument, match="schedules: temperature: expected a schedule"):
        tn.train(model, data=None, schedules={"temperature": "fast"})


def test_settings_that_come_later_and_halves_of_batches_are_refused():
    step = tn.Step(tempered, START, tn.optim.sgd(lr=1), settings={"temperature": 4})
    step(X, LABEL)
    step.settings["weight_decay"] = 0.1
    with pytest.raises(tn.InvalidArgument, match="settings: expected the names it was made"):
        step(X, LABEL)
    with pytest.raises(tn.InvalidArgument, match="at least 1 batch, got 2.5"):
        tn.Step(tempered, START, tn.optim.sgd(lr=1), accumulate=2.5)


def test_a_setting_is_its_value_where_nothing_drives_it():
    assert tn.setting("temperature", 3) == 3
    np.testing.assert_array_equal(tn.jit(lambda x: x * tn.setting("t", 3))(X), X * 3)
