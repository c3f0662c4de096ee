# SPDX-License-Identifier: Apache-2.0
"""What is asked of passes that make models smaller and cannot be done: each says why, and what
would do."""

import numpy as np
import pytest
import tenon

WIDE, HIDDEN, CLASSES = 12, 10, 4


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def mlp(hidden: int = HIDDEN, classes: int = CLASSES, names: str = "w") -> tenon.Model:
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["N", WIDE])
    w0 = graph.add_constant(numbers(0, WIDE, hidden), f"{names}0")
    w1 = graph.add_constant(numbers(1, hidden, classes), f"{names}1")
    h = graph.add_node("Relu", [graph.add_node("MatMul", [x, w0], name="fc0")], name="relu")
    graph.add_output("y", graph.add_node("MatMul", [h, w1], name="fc1"))
    return graph.build()


def convolution(n_out: int = 8, n_in: int = 6) -> tenon.Model:
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", [1, n_in, 7, 7])
    w = graph.add_constant(numbers(2, n_out, n_in, 3, 3), "w")
    graph.add_output("y", graph.add_node("Conv", [x, w], name="conv"))
    return graph.build()


def saved(folder, **fields) -> str:
    np.savez(folder / "data.npz", **fields)
    return str(folder / "data.npz")


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("pruner.structured", {"ratio": 1.0}, "option ratio: expected"),
        ("pruner.structured", {"layers": {"fc0": 1.0}}, "ratio 1 would empty the layer"),
        (
            "pruner.structured",
            {"ratio": 0.99, "scope": "global", "min_channels": 5},
            "ratio 0.99 would empty layers: of 10 channels 5 can go",
        ),
        ("pruner.unstructured", {"sparsity": 0.999}, None),
    ],
)
def test_a_ratio_that_empties_a_layer(name, options, why):
    if why is None:  # the last weight of each layer stays
        held = mlp().apply(name, **options).constants()
        assert all(np.count_nonzero(held[one]) == 1 for one in ("w0", "w1"))
        return
    with pytest.raises(tenon.TenonError, match=why):
        mlp().apply(name, **options)


def test_a_global_share_that_empties_a_layer():
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["N", WIDE])
    small = graph.add_constant((0.001 * numbers(0, WIDE, HIDDEN)), "small")
    h = graph.add_node("MatMul", [x, small], name="fc0")
    large = graph.add_constant(numbers(1, HIDDEN, WIDE), "large")
    graph.add_output("y", graph.add_node("MatMul", [h, large], name="fc1"))
    why = (
        "option sparsity: 0.8.* would empty fc0: all 120 numbers .* small .* lower it, or use scope"
    )
    with pytest.raises(tenon.InvalidArgument, match=why):
        graph.build().apply("pruner.unstructured", sparsity=0.8, scope="global")


def test_a_layer_that_must_stay_says_why_and_through_which_node():
    with pytest.raises(tenon.TenonError, match="fc1 cannot be pruned: .* the model's output y"):
        mlp().apply("pruner.structured", layers={"fc1": 0.5})


@pytest.mark.parametrize("name", ["pruner.structured", "pruner.unstructured"])
def test_a_score_that_is_no_number(name):
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["N", WIDE])
    w = numbers(0, WIDE, HIDDEN)
    w[3, 4] = np.nan
    h = graph.add_node("MatMul", [x, graph.add_constant(w, "w0")], name="fc0")
    w1 = graph.add_constant(numbers(1, HIDDEN, CLASSES), "w1")
    graph.add_output("y", graph.add_node("MatMul", [h, w1], name="fc1"))
    with pytest.raises(tenon.TenonError, match="expected a finite score .* (fc0|w0), got -?nan"):
        graph.build().apply(name)


@pytest.mark.parametrize(
    ("name", "ranks", "why"),
    [
        ("svd", {"rank": 11, "only": "fc0"}, "rank: expected at most 10, got 11"),
        ("tucker2", {"rank_in": 9, "rank_out": 4}, "rank_in: expected at most 6, got 9$"),
        ("tucker2", {"rank_in": 8, "rank_out": 5}, "at most 6, got 8 .are rank_in and rank_out sw"),
        ("spatial", {"rank": 19}, "rank: expected at most 18, got 19"),
        ("cp", {"rank": 55}, "rank: expected at most 54, got 55"),
    ],
)
def test_ranks_over_the_dimensions_or_swapped(name, ranks, why):
    model = mlp() if name == "svd" else convolution()
    options = {"only": "conv", "measure": False} | ranks
    with pytest.raises(tenon.InvalidArgument, match=why):
        model.apply(f"decomposer.{name}", **options)


def test_a_teacher_whose_answers_are_others(tmp_path):
    data = tenon.data.npz(saved(tmp_path, x=numbers(3, 8, WIDE)))
    loss = tenon.loss.distill(teacher=mlp(classes=5, names="v"), alpha=1)
    with pytest.raises(tenon.TenonError, match=r"4\].* teacher's answer is .*5\].*the same shape"):
        tenon.train(mlp(), data, loss=loss, epochs=1)


def test_the_state_of_another_model():
    masked = mlp().apply("pruner.unstructured", apply="nodes")
    with pytest.raises(tenon.TenonError, match="option to: .*w0: expected float32 12 10, got"):
        masked.apply("pruner.rewind", to=mlp(hidden=9))
    with pytest.raises(
        tenon.TenonError, match="option to: expected an earlier state of this model"
    ):
        masked.apply("pruner.rewind", to=mlp(names="v"))


def test_data_without_labels_where_a_loss_needs_them(tmp_path):
    data = saved(tmp_path, x=numbers(3, 8, WIDE))
    for importance in ("taylor", "snip", "hessian"):
        with pytest.raises(tenon.TenonError, match="expected a field label, the data set has x"):
            mlp().apply("pruner.structured", importance=importance, data=data)
    with pytest.raises(tenon.TenonError, match="target: expected one field.* got none"):
        tenon.train(mlp(), tenon.data.npz(data), epochs=1)
    with pytest.raises(tenon.TenonError, match="expected labels for the hard part"):
        teacher = mlp(names="v")
        loss = tenon.loss.distill(teacher=teacher, alpha=0.5)
        tenon.train(mlp(), tenon.data.npz(data), loss=loss, epochs=1)


def test_a_budget_that_no_ranks_meet_says_the_nearest():
    with pytest.raises(tenon.TenonError, match="option budget: .* got 0.01.*, the nearest is 0."):
        mlp().apply("decomposer.svd", budget=0.01, max_ratio=9, measure=False)
    with pytest.raises(
        tenon.TenonError, match="option target: .* can be met, got .*the nearest is"
    ):
        mlp().apply("pruner.structured", target={"macs": 0.01})


def test_labels_that_are_no_classes_and_inputs_that_are_no_numbers(tmp_path):
    x = numbers(4, 8, WIDE)
    data = saved(tmp_path, x=x, label=np.array([0, 1, 2, 3, 0, 1, 26, 3]))
    for importance in ("taylor", "taylor2", "hessian", "shapley"):
        options = {"importance": importance, "data": data, "batch": 4}
        with pytest.raises(tenon.TenonError, match=r"batch 1 .*label 26: expected 0 to 3"):
            mlp().apply("pruner.structured", **options)
    x[5, 2] = np.nan
    data = saved(tmp_path, x=x, label=np.zeros(8, "int64"))
    for importance in ("wanda", "apoz", "taylor", "shapley"):
        options = {"importance": importance, "data": data, "batch": 8}
        with pytest.raises(tenon.TenonError, match="input x: 1 of 96 numbers are not finite"):
            mlp().apply("pruner.structured", **options)


@pytest.mark.parametrize("name", ["pruner.structured", "pruner.unstructured"])
def test_the_error_for_a_quantized_model_asks_for_a_float_one(name, tmp_path):
    small = mlp().apply("quantizer.static", data=saved(tmp_path, x=numbers(3, 8, WIDE)))
    with pytest.raises(tenon.TenonError, match="weights are quantized.*quantizer.dequantize"):
        small.apply(name)
