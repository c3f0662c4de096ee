# SPDX-License-Identifier: Apache-2.0
import json

import numpy as np
import pytest
import tenon


@pytest.fixture
def blobs(tmp_path):
    """200 points of three classes."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    centres = np.array([[0, 2], [2, 0], [-2, -2]], "f")
    x = centres[label] + rng.standard_normal((200, 2)).astype("f") * 0.3
    np.savez(tmp_path / "blobs.npz", x=x.astype("f"), label=label)
    return tenon.data.npz(tmp_path / "blobs.npz")


def linear() -> tenon.Model:
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["batch", 2])
    w = graph.add_constant(np.zeros((2, 3), "f"), "w")
    b = graph.add_constant(np.zeros(3, "f"), "b")
    graph.add_output("y", graph.add_node("Add", [graph.add_node("MatMul", [x, w]), b]))
    return graph.build()


def test_a_model_is_trained(blobs, tmp_path):
    trained = tenon.train(
        linear(),
        data=blobs,
        validation=0.25,
        metric="accuracy",
        epochs=10,
        batch=16,
        loss=tenon.loss.cross_entropy(label_smoothing=0.1),
        optimizer=tenon.optim.adamw(lr=tenon.schedule.cosine(base=0.1, warmup=5), no_decay="b"),
        run=tmp_path / "run",
    )
    history = trained.report["history"]
    assert len(history) == 10
    assert history[-1]["accuracy"] > 0.95
    lines = (tmp_path / "run" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history
    assert not np.asarray(linear().constants()["w"]).any()
    assert np.asarray(trained.constants()["w"]).any()


def test_rates_are_numbers_schedules_or_functions(blobs):
    def trained(**options):
        return np.asarray(tenon.train(linear(), blobs, batch=50, **options).constants()["w"])

    expected = trained(rate=0.5)
    assert (trained(optimizer=tenon.optim.sgd(lr=0.5)) == expected).all()
    assert (trained(optimizer=tenon.optim.sgd(lr=lambda step: 0.5)) == expected).all()
    assert (trained(rate=lambda step, steps: 2.0 / steps) == expected).all()
    assert (trained(rate=tenon.schedule.constant(base=0.5)) == expected).all()


def test_losses_are_found_by_name():
    assert tenon.loss.mse().id == "trainer.mse"
    with pytest.raises(tenon.NotFound, match="tn.loss: expected one of .*cross_entropy"):
        tenon.loss.cros()


def test_wrong_options_are_named(blobs):
    with pytest.raises(tenon.InvalidArgument, match="did you mean 'epochs'"):
        tenon.train(linear(), blobs, epoch=3)
    with pytest.raises(tenon.InvalidArgument, match="option precision"):
        tenon.train(linear(), blobs, precision="int8")
    for number in (float("nan"), np.float32("inf")):
        with pytest.raises(tenon.InvalidArgument, match="option rate: expected finite numbers"):
            tenon.train(linear(), blobs, rate=number)
    with pytest.raises(tenon.InvalidArgument, match="option no_decay: no parameter fits 'c'"):
        tenon.train(linear(), blobs, optimizer=tenon.optim.adamw(lr=0.1, no_decay=["b", "c"]))


def test_functions_are_notified_of_each_epoch(blobs):
    seen = []

    def summary(record, model):
        seen.append((record, np.asarray(model.constants()["w"]).copy(), model))

    trained = tenon.train(linear(), blobs, batch=50, epochs=3, callbacks=[summary])

    assert [record for record, _, _ in seen] == trained.report["history"]
    assert (seen[2][1] == np.asarray(trained.constants()["w"])).all()
    assert (seen[0][1] != seen[2][1]).any()
    assert seen[0][2].compile()(x=np.zeros((4, 2), "f"))[0].shape == (4, 3)
    assert trained.report["stopped_by"] is None


def test_true_ends_a_run(blobs):
    points = []

    def step(point):
        points.append(point)
        return point["step"] == 6

    last = []
    trained = tenon.train(
        linear(),
        blobs,
        batch=50,
        epochs=9,
        callbacks=[tenon.callback(step=step), lambda record, model: last.append(record["epoch"])],
    )

    assert [point["epoch"] for point in points] == [1, 1, 1, 1, 2, 2]
    assert points[0]["loss"] == pytest.approx(np.log(3))
    assert points[0]["rate"] == 0.01 and not points[0]["skipped"]
    assert trained.report["steps"] == 6
    assert trained.report["stopped_by"] == "python.function"
    assert last == [1, 2]


def test_what_a_callback_raises_ends_the_run_and_comes_out(blobs, tmp_path):
    def fails(record, model):
        raise KeyError("no idea")

    options = dict(batch=50, epochs=3, run=tmp_path / "run")
    with pytest.raises(KeyError, match="no idea") as raised:
        tenon.train(linear(), blobs, callbacks=fails, **options)
    (note,) = raised.value.__notes__
    assert "stopped after step 4 (epoch 1); go on with --resume" in note
    assert "callback python.function" in note and "it raised KeyError" in note

    resumed = tenon.train(linear(), blobs, resume=True, **options)
    whole = tenon.train(linear(), blobs, batch=50, epochs=3)
    assert (np.asarray(resumed.constants()["w"]) == np.asarray(whole.constants()["w"])).all()


def test_wrong_callbacks_are_named(blobs):
    with pytest.raises(tenon.InvalidArgument, match="expected True to end the run, or None, got 3"):
        tenon.train(linear(), blobs, callbacks=[lambda record, model: 3])
    with pytest.raises(TypeError, match="expected a function as step or epoch"):
        tenon.callback()
    with pytest.raises(tenon.NotFound, match="trainer.snapshots"):
        tenon.train(linear(), blobs, callbacks="trainer.snapshots")


def test_snapshots_are_the_models_of_their_epochs(blobs, tmp_path):
    seen = {}

    def summary(record, model):
        seen[record["epoch"]] = np.asarray(model.constants()["w"]).copy()

    path = tmp_path / "at_{epoch}.onnx"
    snapshot = tenon.Component("callback", "trainer.snapshot", path=path, every=2)
    tenon.train(linear(), blobs, batch=50, epochs=5, callbacks=[summary, snapshot])

    assert sorted(p.name for p in tmp_path.glob("at_*")) == ["at_2.onnx", "at_4.onnx"]
    for epoch in (2, 4):
        weights = tenon.load(tmp_path / f"at_{epoch}.onnx").constants()["w"]
        assert (np.asarray(weights) == seen[epoch]).all()
    with pytest.raises(tenon.NotFound, match="option path"):
        tenon.Component("callback", "trainer.snapshot", path="model.gif")
    nowhere = tenon.Component("callback", "trainer.snapshot", path=tmp_path / "no" / "a.onnx")
    with pytest.raises(tenon.TenonError, match="callback trainer.snapshot"):
        tenon.train(linear(), blobs, callbacks=nowhere)
