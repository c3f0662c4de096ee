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
    with pytest.raises(tenon.NotFound, match="tenon.loss: expected one of .*cross_entropy"):
        tenon.loss.cros()


def test_wrong_options_are_named(blobs):
    with pytest.raises(tenon.InvalidArgument, match="did you mean 'epochs'"):
        tenon.train(linear(), blobs, epoch=3)
    with pytest.raises(tenon.InvalidArgument, match="option precision"):
        tenon.train(linear(), blobs, precision="int8")
