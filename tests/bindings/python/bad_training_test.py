# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a training is said by name. Elsewhere: NaN, checkpoints of other models and
versions (tests/plugins/trainer), Ctrl-C (tests/bindings/command/training_test.py)."""

import numpy as np
import pytest
import tenon as tn
from training_test import blobs, linear  # noqa: F401

X = np.ones((4, 3), "f")


def test_a_loss_that_is_no_scalar():
    step = tn.Step(lambda p, x: (x * p).sum(0), np.ones(3, "f"), tn.optim.sgd(lr=1))
    with pytest.raises(
        tn.InvalidArgument, match=r"expected a scalar to differentiate, got float32\[3"
    ):
        step(X)


def test_an_integer_has_no_gradient():
    with pytest.raises(tn.InvalidArgument, match="int64"):
        tn.grad(lambda n: (n * 2).sum())(np.arange(3))
    step = tn.Step(lambda p, x: (x * p).sum(), np.arange(3), tn.optim.sgd(lr=1))
    with pytest.raises(tn.InvalidArgument, match="int64"):
        step(X)


def test_labels_out_of_range(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.zeros((8, 2), "f"), label=np.arange(8))
    with pytest.raises(tn.InvalidArgument, match="label 3 of sample 3: expected 0 to 2"):
        tn.train(linear(), data=tn.data.npz(tmp_path / "rows.npz"), batch=8, shuffle=False)


def test_a_data_set_smaller_than_a_batch(blobs):  # noqa: F811
    few = blobs.part(0, 10)
    with pytest.raises(tn.InvalidArgument, match="expected at least a batch of 64 samples, got 10"):
        tn.train(linear(), data=few, batch=64, drop_last=True)
    assert tn.train(linear(), data=few, batch=64).report["steps"] == 1, "one smaller batch"


def squares(p, x):
    for w in p:
        x = tn.tanh(x @ w)
    return (x * x).sum()


def test_a_region_and_a_budget_that_cannot_be():
    weights = [np.eye(3, dtype="f")] * 4
    for given, message in (
        ({"regions": ["nowhere"]}, r"expected scopes of the forward pass \(.*\), got 'nowhere'"),
        ({"budget": 10}, r"option budget: expected at least \d+ bytes, .* got 10"),
        ({"budget": 0.5, "regions": ["a"]}, "expected it without option regions"),
        ({"times": {"a": -1}}, "option times: a: expected milliseconds, got -1"),
    ):
        joint = {"autodiff.recompute": given}
        with pytest.raises(tn.TenonError, match=message):
            tn.Step(squares, weights, tn.optim.sgd(lr=1), joint=joint)(X)


def test_a_schedule_that_gives_no_number(blobs):  # noqa: F811
    with pytest.raises(tn.TenonError, match="step 2: expected a finite number"):
        tn.train(linear(), data=blobs, rate=lambda step, steps: 0.1 if step < 2 else float("nan"))


def test_lists_of_samples_are_data_and_what_is_walked_once_is_not():
    rows = [(np.float32([i, -i]), i % 3) for i in range(12)]
    assert tn.train(linear(), rows, batch=4).report["steps"] == 3
    assert tn.train(linear(), rows, validation=rows[:6], batch=4).report["history"]
    for once in (iter(rows), (row for row in rows)):
        with pytest.raises(tn.InvalidArgument, match="option data: expected a data set, arrays by"):
            tn.train(linear(), once)


def test_nothing_that_is_left_to_train_names_the_option():
    with pytest.raises(tn.InvalidArgument, match=r"option frozen: .* got none: \* fits all"):
        tn.train(linear(), {"x": np.zeros((4, 2), "f"), "label": np.arange(4) % 3}, frozen=["*"])


def test_a_pattern_of_parameters_that_fits_nothing_is_named():
    rows = {"x": np.zeros((4, 2), "f"), "label": np.arange(4) % 3}
    with pytest.raises(tn.InvalidArgument, match="option parameters: no constant .* fits 'wieght'"):
        tn.train(linear(), rows, parameters=["*", "wieght"])


def test_the_error_for_lists_by_name_says_how_they_become_data():
    rows = {"x": [[0.0, 1.0]] * 4, "label": [0, 1, 2, 0]}
    with pytest.raises(
        tn.InvalidArgument, match="option data: .* a table of options: datasets.arr"
    ):
        tn.train(linear(), rows)
    rows["x"] = np.float32(rows["x"])
    assert tn.train(linear(), tn.data.arrays(**rows)).report["steps"] == 1


def words(**options):
    graph = tn.Graph()
    x = graph.add_input("x", "float32", ["n", 2])
    w = graph.add_constant(np.eye(2, dtype="f"), "w")
    graph.add_output("y", graph.add_node("MatMul", [x, w]))
    data = {"x": np.ones((4, 2), "f"), "label": np.zeros(4, "int64")}
    return tn.train(graph.build(), data, **options)


def test_words_of_other_libraries_are_recognized():
    with pytest.raises(tn.InvalidArgument, match=r"'batch_size' \(did you mean 'batch'\?\)"):
        words(batch_size=4)
    with pytest.raises(tn.InvalidArgument, match="got a function; tn.Step trains with one"):
        words(loss=lambda y, t: y.mean())


def test_a_callback_answers_with_a_truth_value_of_numpy():
    loss = lambda point: np.float64(point["loss"])  # noqa: E731
    ended = words(epochs=5, callbacks=[tn.callback(step=lambda point: loss(point) > 0)])
    assert ended.report["steps"] == 1
    ended = words(epochs=5, callbacks=[lambda record, model: np.float64(record["loss"]) < 0])
    assert ended.report["epochs"] == 5


def test_a_loss_says_how_sequences_and_padding_are_trained():
    graph = tn.Graph()
    x = graph.add_input("x", "float32", ["n", 3, 2])
    w = graph.add_constant(np.eye(2, dtype="f"), "w")
    graph.add_output("y", graph.add_node("MatMul", [x, w]))
    model, x = graph.build(), np.ones((4, 3, 2), "f")
    labels = np.full((4, 3), -100)
    with pytest.raises(tn.InvalidArgument, match="option axis = -1"):
        tn.train(model, {"x": x, "label": labels})
    with pytest.raises(tn.InvalidArgument, match="label -100 .*ignore_index"):
        tn.train(model, {"x": x, "label": labels}, loss=tn.loss.cross_entropy(axis=-1))
