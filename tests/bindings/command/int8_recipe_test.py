# SPDX-License-Identifier: Apache-2.0
"""Recipe int8: what it tries, on which samples it chooses and judges, what stays in float, and what
it says of data and models that serve badly."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from models_test import classifier, data, optimize
from onnx import TensorProto, helper, numpy_helper
from recipes_test import report
from running import failed


def test_int8_is_chosen_and_judged_on_different_samples(tmp_path: Path) -> None:
    result = report(optimize(tmp_path, "--data", data(tmp_path, 80), "--json"))
    observers = result["chosen_by"][:-1]
    best = max(observers, key=lambda row: row["SNR dB"])
    assert len(observers) == 5 and result["observer"] == best["choice"]
    assert {"percentile 99.99", "entropy"} <= {row["choice"] for row in observers}
    assert result["judged_on"] == 10 and result["snr_db"] != best["SNR dB"]
    last = result["chosen_by"][-1]
    assert last["choice"] == "+ correct_bias"
    assert list(result["methods"]) == (["correct_bias"] if last["SNR dB"] > best["SNR dB"] else [])


def test_a_target_that_is_met_leaves_lists_of_nothing(tmp_path: Path) -> None:
    result = report(
        optimize(
            tmp_path, "--data", data(tmp_path, 80), "--min-snr", "1", "--set", "weak=0", "--json"
        )
    )
    assert result["mixed"]["skip"] == result["mixed"]["layers"] == result["weak"] == []


def spoilt(folder: Path, layers: int = 8, bad: tuple[int, ...] = (2, 5)) -> tuple[Path, Path]:
    """A chain of products, of which some have a few inputs that need far more than 8 bits."""
    seeded = np.random.default_rng(5)
    nodes, constants, value = [], [], "x"
    for i in range(layers):
        w = (seeded.standard_normal((16, 16)) / 4).astype("f")
        if i in bad:  # what is read in 8 bits at the scale of column 0 is lost in the others
            constants[-1] = numpy_helper.from_array(
                numpy_helper.to_array(constants[-1])
                * np.where(np.arange(16) == 0, 500, 1).astype("f"),
                constants[-1].name,
            )
            w[0] /= 5000
        constants.append(numpy_helper.from_array(w, f"w{i}"))
        made = "y" if i == layers - 1 else f"h{i}"
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [made], f"fc{i}"))
        value = made
        if made != "y":
            nodes.append(
                helper.make_node("Tanh" if i + 1 not in bad else "Relu", [made], [f"r{i}"])
            )
            value = f"r{i}"
    shape = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 16]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", shape[:1], shape[1:], constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "classifier.onnx"
    )
    x = seeded.standard_normal((160, 16)).astype("f")
    return folder / "classifier.onnx", data(folder, 160, x=x)


def test_as_few_layers_as_a_target_allows_stay_in_float(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    repairs = ("--set", "methods=correct_bias")  # smooth would take the outliers away
    all_in_8 = ("--data", samples, *repairs, "--set", "weak=0")
    plain = report(optimize(tmp_path, *all_in_8, "--json"))
    assert plain["snr_db"] < 22 and not plain.get("mixed")
    more = (*all_in_8, "--min-snr", 25)
    result = report(optimize(tmp_path, *more, "--json"))
    left = [row["node"] for row in result["mixed"]["layers"]]
    assert set(left) == {"fc2", "fc5"} and result["snr_db"] >= 25
    assert result["mixed"]["evaluations"] <= 5 and result["mixed"]["of"] == 8
    for row in result["mixed"]["layers"]:
        assert row["why"] == "what it reads" and row["activations_snr_db"] < row["weights_snr_db"]
    written = onnx.load(tmp_path / "small.onnx")
    makers = {one.output[0]: one.op_type for one in written.graph.node}
    reads = {one.name: makers.get(one.input[0]) for one in written.graph.node}
    assert reads["fc2"] == "Relu" and reads["fc3"] == "DequantizeLinear"
    rescued = report(optimize(tmp_path, "--data", samples, *repairs, "--json"))  # not asked to
    assert set(rescued["weak"]) <= {"fc2", "fc5"} and rescued["snr_db"] > plain["snr_db"] + 3
    shown = optimize(tmp_path, *more)
    assert "2 of 8 layers stay in float" in shown.stdout and "evaluations" in shown.stdout


def test_both_targets_are_reached_where_both_are_given(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    plain = ("--data", samples, "--set", "methods=correct_bias", "--set", "weak=0")
    result = report(optimize(tmp_path, *plain, "--min-snr", 25, "--max-drop", 0.9, "--json"))
    assert {row["node"] for row in result["mixed"]["layers"]} == {"fc2", "fc5"}
    assert result["snr_db"] >= 25 and result["drop"] <= 0.9


def test_a_layer_that_is_called_like_its_operator_stays_in_float_alone(tmp_path: Path) -> None:
    path, samples = spoilt(tmp_path)
    model = onnx.load(path)
    next(node for node in model.graph.node if node.name == "fc2").name = "MatMul"
    onnx.save(model, path)
    plain = ("--data", samples, "--set", "methods=correct_bias", "--set", "weak=0")
    result = report(optimize(tmp_path, *plain, "--min-snr", 25, "--json"))
    assert {row["node"] for row in result["mixed"]["layers"]} == {"MatMul", "fc5"}
    assert {row["node"] for row in result["left"] if "skip list" in row["why"]} == {"MatMul", "fc5"}


def test_a_metric_of_two_models_is_measured_beside_the_float_one(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    given = ("--data", samples, "--set", "metric=cosine", "--set", "methods=none", "--json")
    result = report(optimize(tmp_path, *given, "--max-drop", 0.05))
    assert result["drop"] <= 0.05 and result["mixed"]["skip"][0] in ("fc2", "fc5")
    any_drop = report(optimize(tmp_path, *given, "--max-drop", 2))
    assert any_drop["mixed"]["skip"] == any_drop["mixed"]["layers"] == any_drop["methods"] == []


def test_a_target_that_nothing_meets_names_the_layer_that_limits_it(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    refused = optimize(tmp_path, "--data", samples, "--min-snr", 150)
    assert refused.returncode == 1
    why = refused.stderr.splitlines()[-1]
    assert "option min_snr: expected 150 dB, the best that was found is" in why
    assert "with 7 of 8 layers in float, limited by fc" in why and "nothing was written" in why
    assert not (tmp_path / "small.onnx").exists()


def test_methods_are_tried_and_named(tmp_path: Path) -> None:
    samples = data(tmp_path, 80)
    every = 'methods=["smooth", "equalize", "gptq", "correct_bias"]'
    result = report(optimize(tmp_path, "--data", samples, "--set", every, "--json"))
    tried = [row["choice"] for row in result["chosen_by"]]
    anew = [f"+ equalize, {name}" for name in tried[:5]]  # no channel stands out: no smooth
    assert tried[5:] == [*anew, "+ gptq", "+ correct_bias"]
    none = report(optimize(tmp_path, "--data", samples, "--set", "methods=none", "--json"))
    assert len(none["chosen_by"]) == 5 and none["methods"] == []
    wrong = optimize(tmp_path, "--data", samples, "--set", "methods=gptk")
    failed(wrong, 1, "option methods: expected some of smooth, equalize, stored, gptq, adaround")


def test_outliers_go_into_weights_and_observers_are_tried_anew(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    result = report(optimize(tmp_path, "--data", samples, "--json"))
    tried = [row["choice"] for row in result["chosen_by"]]
    assert tried[5:10] == [f"+ smooth, {name}" for name in tried[:5]]
    assert result["methods"][0] == "smooth"
    rows = {row["choice"]: row["SNR dB"] for row in result["chosen_by"]}
    assert result["observer"] == max(tried[:5], key=lambda name: rows[f"+ smooth, {name}"])
    off = ("--set", "methods=none", "--set", "weak=0")
    plain = report(optimize(tmp_path, "--data", samples, *off, "--json"))
    assert result["snr_db"] > plain["snr_db"] + 10


def test_what_is_skipped_is_not_smoothed_either(tmp_path: Path) -> None:
    _, samples = spoilt(tmp_path)
    before = {w.name: w for w in onnx.load(tmp_path / "classifier.onnx").graph.initializer}
    off = ("--set", 'skip=["fc2", "fc5"]')
    optimize(tmp_path, "--data", samples, *off)
    after = {w.name: w for w in onnx.load(tmp_path / "small.onnx").graph.initializer}
    for name in ("w2", "w5"):
        assert (
            numpy_helper.to_array(after[name]).tobytes()
            == numpy_helper.to_array(before[name]).tobytes()
        )


def test_a_form_behind_the_softmax_hides_nothing(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    model.graph.node[-1].output[0] = "p"
    model.graph.node.append(helper.make_node("Identity", ["p"], ["q"], "copy"))
    model.graph.node.append(helper.make_node("Cast", ["q"], ["y"], "cast", to=TensorProto.FLOAT))
    onnx.save(model, tmp_path / "classifier.onnx")
    result = report(optimize(tmp_path, "--data", data(tmp_path), "--json"))
    assert result["outputs"][0]["value"] == "z"


def test_a_quantized_model_is_quantized_anew_on_request(tmp_path: Path) -> None:
    samples = data(tmp_path, 256)
    optimize(tmp_path, "--data", samples)
    (tmp_path / "small.onnx").rename(tmp_path / "classifier.onnx")
    advice = "or make it one by quantizer.dequantize (tenon optimize --requantize)"
    failed(optimize(tmp_path, "--data", samples), 1, advice)
    result = report(optimize(tmp_path, "--data", samples, "--requantize", "--json"))
    assert result["quantized"] == 3
    assert result["snr_db"] > 30


def test_requantize_names_what_stays_quantized(tmp_path: Path) -> None:
    """An input of 8 bits, whose scale is part of what the model takes."""
    optimize(tmp_path, "--data", data(tmp_path))
    model = onnx.load(tmp_path / "small.onnx")
    first = next(node for node in model.graph.node if node.op_type == "QuantizeLinear")
    assert first.input[0] == "x"
    del model.graph.input[:]
    stored = helper.make_tensor_value_info(first.output[0], TensorProto.UINT8, ["batch", 8])
    zero = next(one for one in model.graph.initializer if one.name == first.input[2])
    stored.type.tensor_type.elem_type = zero.data_type
    model.graph.input.append(stored)
    reader = next(node for node in model.graph.node if first.output[0] in node.input)
    reader.name = "reader"
    model.graph.node.remove(first)
    onnx.save(model, tmp_path / "classifier.onnx")
    result = optimize(tmp_path, "--data", data(tmp_path), "--requantize")
    failed(result, 1, "got nodes that stay quantized: reader;", "start from the float model")


def test_requantize_is_refused_where_it_means_nothing(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--data", data(tmp_path), "--requantize")
    says = "expected a quantized model, this one has nothing in 8 bits; leave out --requantize"
    failed(result, 1, says)
    failed(optimize(tmp_path, "--requantize", recipe="bf16"), 1, "got 'requantize'")


def test_data_that_say_nothing_are_warned_of(tmp_path: Path) -> None:
    same = data(tmp_path, x=np.full((32, 8), 1.5, "f"))
    warned = optimize(tmp_path, "--data", same).stderr
    assert "input x is 1.5 everywhere in the calibration data" in warned
    alone = optimize(tmp_path, "--data", data(tmp_path, x=np.ones((1, 8), "f"), label=np.zeros(1)))
    assert "--data has 1 sample: the model is judged on what it was made with" in alone.stderr
    assert ", which it was made with:" in alone.stdout


def test_weights_that_are_not_finite_are_warned_of(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor).copy()
        if array.ndim == 2:
            array[0, 0] = np.nan
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
            break
    onnx.save(model, tmp_path / "classifier.onnx")
    assert (
        "its weight has numbers that are not finite" in optimize(tmp_path, recipe="weights").stderr
    )


def test_float16_models_are_no_source_of_warnings(tmp_path: Path) -> None:
    assert optimize(tmp_path, recipe="fp16").returncode == 0
    (tmp_path / "small.onnx").rename(tmp_path / "classifier.onnx")
    result = optimize(tmp_path, "--data", data(tmp_path))
    assert result.returncode == 0 and "declared" not in result.stderr, result.stderr
    assert optimize(tmp_path, recipe="decompose").returncode == 0


def recurrent(folder: Path, n: int, steps: int, wide: int) -> Path:
    """A cell over steps of `wide` inputs, and a product; the samples."""
    seeded = np.random.default_rng(9)
    w, r = (seeded.standard_normal((1, 64, k)).astype("f") / 4 for k in (wide, 16))
    head = seeded.standard_normal((16, 4)).astype("f")
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["", "h"], "cell", hidden_size=16, layout=1),
        helper.make_node("Flatten", ["h"], ["flat"]),
        helper.make_node("MatMul", ["flat", "head"], ["y"], "head"),
    ]
    constants = [numpy_helper.from_array(a, n) for a, n in ((w, "w"), (r, "r"), (head, "head"))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", steps, wide])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "classifier.onnx"
    )
    few = seeded.standard_normal((n * steps, 4)) @ seeded.standard_normal((4, wide))
    return data(folder, n, x=few.reshape(n, steps, wide).astype("f"))


def test_recurrent_weights_are_rounded_by_what_their_cells_see(tmp_path: Path) -> None:
    """By default, where a model has any: the recipe tries it and keeps it where it leaves more."""
    samples = recurrent(tmp_path, 160, 5, 16)

    result = report(optimize(tmp_path, "--data", samples, "--json"))
    plain = report(optimize(tmp_path, "--data", samples, "--json", "--set", "methods=none"))

    assert "stored" in result["methods"]
    assert "+ stored" in {row["choice"] for row in result["chosen_by"]}
    assert result["snr_db"] > plain["snr_db"] and result["bytes_after"] == plain["bytes_after"]


def test_repairs_see_as_many_samples_as_are_asked_for(tmp_path: Path) -> None:
    samples = recurrent(tmp_path, 400, 1, 100)  # of one step: 64 are fewer than a sum has terms
    asked = ("--data", samples, "--json", "--set", "methods=stored")

    by_default = optimize(tmp_path, *asked)
    more = report(optimize(tmp_path, *asked, "--set", "samples=200"))

    assert list(report(by_default)["methods"]) == []
    assert "method stored leaves cell: its inputs were 64, fewer than" in by_default.stderr
    assert list(more["methods"]) == ["stored"]


@pytest.mark.parametrize(
    ("given", "better"),
    [('{"x": [-4, 4]}', "percentile 99.99"), ('{"r": [0, 5]}', "entropy")],
)
def test_each_observer_that_is_tried_has_options_of_its_own(
    tmp_path: Path, given: str, better: str
) -> None:
    """Also where ranges are given, so that observers run anew for every choice."""
    x = np.random.default_rng(11).standard_normal((2400, 8)).astype("f")
    x[17, 3] = 1000  # percentiles leave it out, and what is tried behind them has no such option
    samples = data(tmp_path, 2400, x=x)

    asked = ("--set", "samples=2000", "--set", "methods=none", "--set", f"ranges={given}")
    result = report(optimize(tmp_path, "--data", samples, "--json", *asked))

    tried = {row["choice"]: row["SNR dB"] for row in result["chosen_by"]}
    assert len(tried) == 5 and tried[better] > tried["minmax"] + 5


def attention(folder: Path, is_one_node: bool = False, between: str = "Softmax") -> Path:
    """One head over 6 steps, as its products with a node in between, or as ONNX's Attention."""
    seeded = np.random.default_rng(3)
    steps, wide = 6, 16
    weights = {name: seeded.standard_normal((wide, wide)) / 4 for name in ("wq", "wk", "wv", "wo")}
    nodes = [
        helper.make_node("MatMul", ["x", "wq"], ["q"], "query"),
        helper.make_node("MatMul", ["x", "wk"], ["k"], "key"),
        helper.make_node("MatMul", ["x", "wv"], ["v"], "value"),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"], "scores"),
        helper.make_node(between, ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["c"], "context"),
        helper.make_node("MatMul", ["c", "wo"], ["y"], "out"),
    ]
    if is_one_node:
        heads = {"q_num_heads": 1, "kv_num_heads": 1, "scale": 1.0}
        nodes[3:7] = [helper.make_node("Attention", ["q", "k", "v"], ["c"], "heads", **heads)]
    shape = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", steps, wide]) for n in "xy"]
    constants = [numpy_helper.from_array(w.astype("f"), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", shape[:1], shape[1:], constants)
    opset = [helper.make_opsetid("", 23 if is_one_node else 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "classifier.onnx"
    )
    return data(folder, 160, x=seeded.standard_normal((160, steps, wide)).astype("f"))


@pytest.mark.parametrize(("bits", "is_one_node"), [(3, False), (8, False), (3, True)])
def test_products_of_activations_are_stored_where_that_leaves_as_much(
    tmp_path: Path, bits: int, is_one_node: bool
) -> None:
    """It does behind weights of 3 bits, whose noise is much larger; not behind those of 8."""
    samples = attention(tmp_path, is_one_node)
    asked = ("--data", samples, "--json", "--set", "methods=none", "--set", "weak=0")
    asked += ("--set", f"weight_bits={bits}")

    result = report(optimize(tmp_path, *asked))
    stored = [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node]
    off = report(optimize(tmp_path, *asked, "--set", "products=none"))

    rows = {row["choice"]: row["SNR dB"] for row in result["chosen_by"]}
    before = max(snr for name, snr in rows.items() if "products" not in name)
    is_level = rows["products: all"] > before - 0.25
    assert is_level == (bits == 3)
    assert result.get("products") == ("all" if is_level else None)
    assert ("products: scores" in rows) == (not is_level)
    assert not any("products" in row["choice"] for row in off["chosen_by"])
    # That of x and c, and of what the products read.
    assert (stored.count("QuantizeLinear") > 2) == is_level


def test_scores_are_not_tried_where_no_softmax_reads_a_product(tmp_path: Path) -> None:
    samples = attention(tmp_path, between="Relu")
    asked = ("--data", samples, "--json", "--set", "methods=none", "--set", "weak=0")

    done = optimize(tmp_path, *asked)

    result = report(done)
    assert "products has no effect" not in done.stderr
    tried = [row["choice"] for row in result["chosen_by"] if "products" in row["choice"]]
    assert tried == ["products: all"] and result.get("products") != "scores"
