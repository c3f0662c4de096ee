# SPDX-License-Identifier: Apache-2.0
"""Layers that are dropped, samples and sequences that grow, and the largest batch that fits."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn

CHANGES = (1.0, 10.0, 100.0)  # what each layer adds to a zero


class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.blocks = nn.Sequential(*layers)

    def forward(self, x):
        return self.blocks(x)


def adders():
    """Three residual layers; layer i adds CHANGES[i]."""
    zeros = nn.init.zeros()
    layers = [
        nn.Residual(nn.Linear(2, init=zeros, bias_init=nn.init.constant(value=change)))
        for change in CHANGES
    ]
    return nn.build(Net(layers), {"x": ("N", 2)})


def chances(rule, keep, n):
    above = 1 if rule == "paper" else 0
    return [1 - (i + above) / n * (1 - keep) for i in range(n)]


def dropped_sets(model, **options):
    """The model without each of the sets of layers, with the chance of each, and the shares."""
    first = model.apply("trainer.drop_layers", layers="blocks.*", **options).report
    made = [
        (model.apply("trainer.drop_layers", layers="blocks.*", set=k, **options), one)
        for k, one in enumerate(first["sets"])
    ]
    return made, np.array([layer["left_out"] for layer in first["layers"]])


@pytest.mark.parametrize("rule", ["paper", "reference"])
def test_the_mean_over_the_sets_of_dropped_layers_is_the_whole_model(rule):
    made, shares = dropped_sets(adders(), keep=0.4, rule=rule)
    wanted = 1 - np.array(chances(rule, 0.4, 3))
    assert np.abs(shares - wanted).max() <= 1 / 12, "of 12 draws, whole ones leave a layer out"
    x, mean = np.zeros((1, 2), "f"), 0.0
    for model, of in made:
        runs = [i not in of["without"] for i in range(3)]
        expected = sum(g * c / (1 - s) for g, c, s in zip(runs, CHANGES, shares))
        seen = np.asarray(model.compile()(x)[0])[0, 0]
        assert seen == pytest.approx(expected, rel=1e-5)
        mean += of["chance"] * seen
    assert mean == pytest.approx(sum(CHANGES), rel=1e-5)
    assert not made[0][1]["without"] and sum(of["chance"] for _, of in made) == pytest.approx(1)


def test_the_mean_keep_of_twelve_layers_is_that_of_the_paper_and_of_its_code():
    assert np.mean(chances("paper", 0.5, 12)) == pytest.approx(0.7292, abs=1e-4)
    assert np.mean(chances("reference", 0.5, 12)) == pytest.approx(0.7708, abs=1e-4)


def test_a_layer_that_is_left_out_is_not_there():
    rng = np.random.default_rng(0)
    layers = [nn.Residual(nn.Sequential(nn.LayerNorm(), nn.Linear(4), tn.tanh)) for _ in range(3)]
    model = nn.build(Net(layers), {"x": (5, 4)}, seed=1)
    x = rng.standard_normal((5, 4)).astype("f")
    made, shares = dropped_sets(model, keep=0.3)
    for dropped, of in made:
        y = x
        for i, share in enumerate(shares):
            if i not in of["without"]:
                y = y + changed_by(model.constants(), i, y) / (1 - share)
        np.testing.assert_allclose(np.asarray(dropped.compile()(x)[0]), y, atol=2e-6)
        weights = {int(name.split(".")[1]) for name in dropped.constants() if "blocks" in name}
        assert weights == set(range(3)) - set(of["without"])
    assert len(made) > 3


def changed_by(weights, i, x):
    w, b = (np.asarray(weights[f"blocks.{i}.body.1.{n}"]) for n in ("weight", "bias"))
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return np.tanh((x - mean) / np.sqrt(var + 1e-5) @ w.T + b)


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((96, 4)).astype("f")
    np.savez(tmp_path / "rows.npz", x=x, label=(x[:, 0] > 0).astype("i8"))
    return tn.data.npz(tmp_path / "rows.npz")


def classifier():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(
                *(nn.Residual(nn.Sequential(nn.LayerNorm(), nn.Linear(4), tn.tanh, nn.Dropout(0.1)))
                  for _ in range(3))
            )  # fmt: skip
            self.head = nn.Linear(2)

        def forward(self, x):
            return self.head(self.blocks(x))

    return nn.build(Classifier(), {"x": ("N", 4)}, seed=1)


def options(data, **more):
    return {"data": data, "epochs": 4, "batch": 16, "seed": 3, "backend": "reference",
            "optimizer": tn.optim.adamw(lr=0.02)} | more  # fmt: skip


def losses(trained):
    return [record["loss"] for record in trained.report["history"]]


def test_layers_that_always_run_train_as_without(rows):
    plain = tn.train(classifier(), **options(rows))
    kept = tn.train(classifier(), **options(rows, drop_layers={"layers": "blocks.*", "keep": 1.0}))
    np.testing.assert_allclose(losses(kept), losses(plain), rtol=1e-5)
    dropped = tn.train(
        classifier(),
        **options(
            rows,
            epochs=10,
            drop_layers={"layers": "blocks.*"},
            schedules={"layer_keep": tn.schedule.exponential(base=1.0, end=0.5, gamma=0.9)},
        ),
    )
    assert losses(dropped)[-1] < 0.7 * losses(dropped)[0]
    assert {p.name for p in dropped.inputs} == {"x"}, "the model that went in, with other numbers"


def moved(trained, model):
    """The layers whose weights are others now."""
    return tuple(
        i
        for i in range(3)
        if (
            np.asarray(trained.constants()[f"blocks.{i}.body.1.weight"])
            != np.asarray(model.constants()[f"blocks.{i}.body.1.weight"])
        ).any()
    )


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_layer_that_is_left_out_of_an_update_rests(rows, accumulate):
    model, seen = classifier(), []
    for seed in range(24):
        more = {"epochs": 1, "batch": 96 // accumulate, "accumulate": accumulate, "seed": seed}
        drop = {"layers": "blocks.*", "keep": 0.4}
        seen.append(moved(tn.train(model, **options(rows, **more, drop_layers=drop)), model))
    made, shares = dropped_sets(model, keep=0.4)
    known = {tuple(i for i in range(3) if i not in of["without"]) for _, of in made[1:]}
    assert set(seen) <= known and len(set(seen)) > 1
    ran = np.mean([[i in one for i in range(3)] for one in seen], axis=0)
    assert np.abs(ran - (1 - shares)).max() < 4 * 0.5 / len(seen) ** 0.5


def rounded(data):
    """Its weights are read by nodes outside of the layers: what makes their scales."""
    return classifier().apply("quantizer.qat", data=data, observer="minmax")


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("name, made_of", [("bias", lambda _: classifier()), ("weight", rounded)])
def test_the_first_update_of_a_layer_that_rested_is_a_first_update(rows, optimizer, name, made_of):
    """Bias correction counts a layer's own updates, as PyTorch does where there is no gradient:
    whenever the first one comes, Adam moves each weight by the rate."""
    rate, first = 0.01, []
    for seed in range(6):
        model, epochs = made_of(rows), []
        drop = {"layers": "blocks.*", "keep": 0.4}
        made = getattr(tn.optim, optimizer)(lr=rate, weight_decay=0.0)
        watch = lambda record, model: epochs.append(model.constants())  # noqa: B023, E731
        more = {"epochs": 5, "batch": 96, "seed": seed, "optimizer": made, "callbacks": [watch]}
        tn.train(model, **options(rows, **more, drop_layers=drop))
        states = [
            {k: np.asarray(v) for k, v in one.items()} for one in (model.constants(), *epochs)
        ]
        for i in range(3):
            whole = f"blocks.{i}.body.1.{name}"
            steps = [np.abs(b[whole] - a[whole]).max() for a, b in zip(states, states[1:])]
            moves = [k for k, step in enumerate(steps) if step > 0]
            if moves:
                first.append((moves[0], steps[moves[0]]))
    assert max(update for update, _ in first) > 1, "no layer rested in the first updates"
    np.testing.assert_allclose([step for _, step in first], rate, rtol=1e-2)


def test_dropped_layers_train_alike_on_every_backend_and_after_a_stop(rows, tmp_path):
    drop = {"epochs": 6, "drop_layers": {"layers": "blocks.*", "keep": 0.4, "sets": 6}}
    whole = tn.train(classifier(), **options(rows, **drop))
    other = tn.train(classifier(), **options(rows, **drop, backend=[]))
    np.testing.assert_allclose(losses(other), losses(whole), rtol=1e-4)
    plans = whole.report["compiled"]
    assert 2 <= plans["steps"] <= 7 and plans["seconds"] > 0

    kept = {"run": str(tmp_path / "run"), "resume": True}

    def stop(point):
        if point["step"] == 20:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        more = options(rows, **drop, run=kept["run"], callbacks=[tn.callback(step=stop)])
        tn.train(classifier(), **more)
    resumed = tn.train(classifier(), **options(rows, **drop, **kept))
    for name, value in whole.constants().items():
        np.testing.assert_array_equal(np.asarray(resumed.constants()[name]), np.asarray(value))


def test_what_cannot_be_dropped(rows):
    for layers, message in (
        ("nowhere.*", "option layers: expected names or scopes of nodes.*'nowhere"),
        ("head", "layer head cannot be left out: expected a residual sum"),
    ):
        with pytest.raises(tn.TenonError, match=message):
            tn.train(classifier(), **options(rows, drop_layers={"layers": layers}))
    with pytest.raises(tn.TenonError, match="keep"):
        tn.train(classifier(), **options(rows, drop_layers={"layers": "blocks.*", "keep": 0.0}))
    below = {"layer_keep": tn.schedule.constant(base=0.3)}
    with pytest.raises(tn.TenonError, match="layer_keep: expected 0.5 .* to 1, got 0.3"):
        tn.train(classifier(), **options(rows, drop_layers={"layers": "blocks.*"}, schedules=below))
    alone = {"deep": {"parameters": ["blocks.2.*"], "rate": 0.5}}
    with pytest.raises(
        tn.TenonError, match=r"the step without .*blocks.2.*deep: no parameter fits"
    ):
        tn.train(classifier(), **options(rows, drop_layers={"layers": "blocks.*"}, groups=alone))
    with pytest.raises(tn.TenonError, match="option set: expected one of 4 sets, got 13"):
        classifier().apply("trainer.drop_layers", layers="blocks.*", set=13)
    with pytest.raises(tn.TenonError, match="layer_keep"):
        tn.train(classifier(), **options(rows, schedules={"layer_keep": tn.schedule.linear()}))
    norm = nn.Residual(nn.Sequential(nn.Linear(4), nn.BatchNorm()))
    model = nn.build(Net([norm]), {"x": ("N", 4)})
    with pytest.raises(tn.TenonError, match="BatchNormalization leaves statistics"):
        tn.train(model, **options(rows, loss="mse", target="x", drop_layers={"layers": "blocks.*"}))


@pytest.fixture
def texts(tmp_path):
    rng = np.random.default_rng(2)
    token = rng.integers(0, 9, (64, 16))
    np.savez(tmp_path / "long.npz", token=token, label=(token + 1) % 9)
    np.savez(tmp_path / "short.npz", token=token[:, :6], label=((token + 1) % 9)[:, :6])
    return tmp_path


def reader():
    net = nn.Sequential(nn.Embedding(9, 8), nn.Linear(9))
    return nn.build(net, {"token": nn.Input(("N", "S"), "int64")}, seed=1)


def per_token(data, **more):
    return options(data, loss=tn.loss.cross_entropy(axis=-1)) | more


def test_short_sequences_are_those_of_a_shorter_data_set(texts):
    long, short = (tn.data.npz(texts / f"{name}.npz") for name in ("long", "short"))
    length = {"sequence_length": tn.schedule.constant(base=6)}
    cut = tn.train(reader(), **per_token(long, schedules=length, curriculum={"buckets": 0}))
    assert losses(cut) == losses(tn.train(reader(), **per_token(short)))
    assert cut.report["history"][0]["sequence_steps"] == 64 * 6


def test_sequences_grow_by_buckets(texts):
    summary = []
    grown = tn.train(
        reader(),
        **per_token(
            tn.data.npz(texts / "long.npz"),
            schedules={"sequence_length": {"schedule": "linear", "from": 3, "to": 16}},
            curriculum={"buckets": 4},
            callbacks=[lambda record, model: summary.append(record["sequence_length"])],
        ),
    )
    assert summary == sorted(summary) and set(summary) <= {4, 8, 12, 16} and summary[-1] >= 12
    steps = [record["sequence_steps"] for record in grown.report["history"]]
    assert sum(steps) < 4 * 64 * 16 and steps == sorted(steps)


def drawn(tmp_path, share, **curriculum):
    """Training with a rate of 0 on batches of 1: each loss says which sample it was."""
    x = np.arange(20, dtype="f")[::-1].reshape(20, 1) + 1
    wide = x[:, 0].astype("f8") - 15  # most are negative
    np.savez(tmp_path / "ranked.npz", x=x, label=0 * x, hard=x[:, 0] ** 2, wide=wide)
    seen = []
    tn.train(
        nn.build(nn.Linear(1, bias=False, init=nn.init.ones()), {"x": ("N", 1)}),
        data=tn.data.npz(tmp_path / "ranked.npz"), loss="l1", rate=0.0, batch=1, epochs=4, seed=1,
        schedules={"sample_share": share}, curriculum=curriculum, target="label",
        callbacks=[tn.callback(step=lambda point: seen.append(round(point["loss"])))],
    )  # fmt: skip
    return np.array(seen)


def test_the_easiest_samples_come_first(tmp_path):
    for score in ("hard", "wide", [float(20 - i) for i in range(20)]):
        half = drawn(tmp_path, 0.5, score=score)
        assert set(half) == set(range(1, 11))
        assert abs(half.mean() - 5.5) < 4.5 * np.sqrt(99 / 12 / 80)
    growing = drawn(
        tmp_path, tn.schedule.root(**{"from": 0.1, "to": 1.0, "degree": 2}), score="hard"
    )
    steps = np.arange(80) / 80
    reach = np.ceil(20 * (0.1 + 0.9 * np.sqrt(steps)) + 1e-4)
    assert (growing <= reach).all() and growing[:8].max() < 20 and growing[40:].max() > 15
    assert sorted(drawn(tmp_path, 1.0, score="hard")[:20]) == list(range(1, 21)), "all, each once"


def test_a_curriculum_that_cannot_be(rows, texts):
    share = {"sample_share": 0.5}
    for more, message in (
        (dict(schedules=share, curriculum={"score": [1, 2, 3]}),
         "score: expected 96 numbers, one for each sample, got 3"),
        (dict(schedules=share, curriculum={"score": "ease"}), "ease"),
        (dict(schedules=share, curriculum={"scores": "x"}), "score, fit, buckets, got 'scores'"),
        (dict(schedules=share), "sample_share: expected option curriculum with a score"),
        (dict(curriculum={"score": "x"}), "score: expected a schedule of sample_share"),
        (dict(schedules={"sample_share": 0.0}, curriculum={"score": "x"}), "a share above 0"),
        (dict(schedules={"sequence_length": 0.0}), "sequence_length: step 1: expected at least 1"),
        (dict(schedules={"sequence_length": {"schedule": "constant", "base": 4,
              "follow": {"value": "loss", "begin": 2, "end": 1}}}), "a schedule alone"),
    ):  # fmt: skip
        with pytest.raises(tn.TenonError, match=message):
            tn.train(classifier(), **options(rows, **more))


def test_a_run_that_goes_on_draws_the_same(texts):
    more = dict(
        schedules={"sequence_length": {"schedule": "linear", "from": 4, "to": 16},
                   "sample_share": {"schedule": "linear", "from": 0.3, "to": 1}},
        curriculum={"score": "token", "buckets": 4}, checkpoint_steps=1,
    )  # fmt: skip
    data = tn.data.npz(texts / "long.npz")
    whole = tn.train(reader(), **per_token(data, **more, run=texts / "whole"))

    def fails(point):
        if point["step"] == 7:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        tn.train(reader(), **per_token(data, **more, run=texts / "halves",
                                       callbacks=[tn.callback(step=fails)]))  # fmt: skip
    again = tn.train(reader(), **per_token(data, **more, run=texts / "halves", resume=True))
    assert losses(again) == losses(whole)
    for name, weight in whole.constants().items():
        assert np.array_equal(np.asarray(weight), np.asarray(again.constants()[name]))


def test_the_largest_batch_that_fits(rows):
    def found(memory):
        more = options(rows, epochs=1, memory=memory)
        del more["batch"]
        return tn.train(classifier(), **more).report

    with pytest.raises(tn.InvalidArgument, match=r"expected at least \d+ bytes") as least:
        found(10)
    bytes_of_one = int(str(least.value).split("at least ")[1].split()[0])
    assert found(bytes_of_one)["batch"] == 1
    some = found(8 * bytes_of_one)
    assert 1 < some["batch"] < 96 and some["planned_bytes"] <= 8 * bytes_of_one
    assert found(some["planned_bytes"])["batch"] == some["batch"]
    assert found(some["planned_bytes"] - 1)["batch"] < some["batch"]
    assert found(1 << 40)["batch"] == 96, "never more than there are samples"
    with pytest.raises(tn.InvalidArgument, match="option memory: expected it without option batch"):
        tn.train(classifier(), **options(rows, memory=1 << 30))


def with_sum_inside() -> tn.Model:
    """x -> x + (p + x) W, where p enters a sum inside of the layer that is not its residual one."""
    graph = tn.Graph()
    x, p = (graph.add_input(name, "float32", ["N", 2]) for name in ("x", "p"))
    inner = graph.add_node("Add", [p, x], name="blocks.0.position")
    weight = graph.add_constant(2 * np.eye(2, dtype="f"), "w")
    y = graph.add_node("MatMul", [inner, weight], name="blocks.0.product")
    graph.add_output("y", graph.add_node("Add", [x, y], name="blocks.0.join"))
    return graph.build()


def test_what_a_dropped_layer_leaves_is_its_residual_input():
    made, _ = dropped_sets(with_sum_inside(), keep=0.5)
    x, p = np.ones((1, 2), "f"), np.full((1, 2), 7, "f")
    seen = [round(float(np.asarray(one.compile()(x=x, p=p)[0])[0, 0]), 3) for one, _ in made]
    assert seen == [33.0, 1.0]  # x + 2 * (p + x) / 0.5, or x alone


@pytest.mark.parametrize(
    ("layers", "message"),
    [([], "expected names or scopes"), (["blocks.*", "blocks"], "name each layer once")],
)
def test_layers_that_are_none_or_named_twice_are_refused(layers, message):
    with pytest.raises(tn.InvalidArgument, match=message):
        adders().apply("trainer.drop_layers", layers=layers, keep=0.5)
