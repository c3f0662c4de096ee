# SPDX-License-Identifier: Apache-2.0
"""Recipes for the passes that there are: each makes of a small model what its name says, measures
what is left on samples that it was not made with, and refuses what it cannot do in one line."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from models_test import classifier, data, optimize
from onnx import TensorProto, helper, numpy_helper
from running import failed


def labelled(folder: Path, n: int = 256) -> Path:
    """Labels that a matrix decides."""
    seeded = np.random.default_rng(7)
    x = seeded.standard_normal((n, 8)).astype("f")
    return data(folder, n, x=x, label=(x @ seeded.standard_normal((8, 4))).argmax(1))


def report(result) -> dict:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def outputs(path: Path, x: np.ndarray) -> np.ndarray:
    """By onnx's own evaluator."""
    return onnx.reference.ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})[0]


def samples_of(path: Path) -> np.ndarray:
    with np.load(path) as arrays:
        return arrays["x"]


def weights_of(path: Path) -> list[np.ndarray]:
    tensors = onnx.load(path).graph.initializer
    return [numpy_helper.to_array(one) for one in tensors]


def test_simplify_folds_and_keeps_the_numbers(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    model.graph.node.insert(1, helper.make_node("Identity", ["h"], ["h1"], "copy"))
    model.graph.node[2].input[0] = "h1"
    model.graph.node.insert(0, helper.make_node("Add", ["b1", "b1"], ["twice"], "bias"))
    model.graph.node[1].input[2] = "twice"
    onnx.save(model, tmp_path / "classifier.onnx")
    samples = data(tmp_path)
    result = report(optimize(tmp_path, "--data", samples, "--json", recipe="simplify"))
    assert (result["nodes_before"], result["nodes_after"]) == (6, 4)
    assert result["snr_db"] == 200
    x = samples_of(samples)
    before, after = (outputs(tmp_path / f"{name}.onnx", x) for name in ("classifier", "small"))
    np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.parametrize(
    ("recipe", "element", "least"),
    [("bf16", TensorProto.BFLOAT16, 35), ("fp16", TensorProto.FLOAT16, 55)],
)
def test_weights_are_stored_in_16_bits(tmp_path: Path, recipe, element, least) -> None:
    samples = data(tmp_path)
    result = report(optimize(tmp_path, "--data", samples, "--json", recipe=recipe))
    assert result["bytes_after"] == result["bytes_before"] // 2
    assert result["snr_db"] > least
    written = onnx.load(tmp_path / "small.onnx")
    assert {one.data_type for one in written.graph.initializer} == {element}
    assert written.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    onnx.checker.check_model(written, full_check=True)


@pytest.mark.parametrize(
    ("recipe", "operators"),
    [
        ("dynamic", {"DynamicQuantizeLinear", "MatMulInteger"}),
        ("weights", {"DequantizeLinear"}),
    ],
)
def test_without_data_for_calibration_weights_become_int8(
    tmp_path: Path, recipe, operators
) -> None:
    assert report(optimize(tmp_path, "--json", recipe=recipe))["bytes_after"] < 2000
    samples = data(tmp_path)
    result = report(optimize(tmp_path, "--data", samples, "--json", recipe=recipe))
    assert result["snr_db"] > 30
    path = tmp_path / "small.onnx"
    assert operators <= {node.op_type for node in onnx.load(path).graph.node}
    assert np.dtype("int8") in {one.dtype for one in weights_of(path)}
    x = samples_of(samples)
    scores = outputs(tmp_path / "classifier.onnx", x)
    assert np.mean(outputs(path, x).argmax(1) == scores.argmax(1)) > 0.9


def test_products_in_4_bits_are_rounded_by_what_layers_give(tmp_path: Path) -> None:
    seeded = np.random.default_rng(3)
    samples = data(
        tmp_path,
        256,
        x=(seeded.standard_normal((256, 2)) @ seeded.standard_normal((2, 8))).astype("f"),
    )
    four = ("--data", samples, "--set", "bits=4", "--json")
    result = report(optimize(tmp_path, *four, recipe="weights"))
    plain = report(optimize(tmp_path, *four, "--set", "gptq=false", recipe="weights"))
    assert result["bytes_after"] == plain["bytes_after"] < 0.35 * result["bytes_before"]
    assert result["snr_db"] > plain["snr_db"] and result["judged_on"] == 32
    codes = [
        one
        for one in onnx.load(tmp_path / "small.onnx").graph.initializer
        if one.data_type == TensorProto.INT4
    ]
    assert len(codes) == 2
    onnx.checker.check_model(onnx.load(tmp_path / "small.onnx"), full_check=True)


def test_finetune_learns_the_labels(tmp_path: Path) -> None:
    samples = labelled(tmp_path)
    more = ("--data", samples, "--set", "rate=0.01", "--set", "epochs=20", "--json")
    result = report(optimize(tmp_path, *more, recipe="finetune"))
    assert result["after"] > result["before"] + 0.2 and result["judged_on"] == 32
    assert len(result["history"]) == 20
    with np.load(samples) as arrays:
        right = outputs(tmp_path / "small.onnx", arrays["x"]).argmax(1) == arrays["label"]
    assert right.mean() > 0.8


def test_finetune_that_makes_it_worse_is_not_written(tmp_path: Path) -> None:
    more = ("--data", labelled(tmp_path), "--max-drop", -0.9)
    result = optimize(tmp_path, *more, recipe="finetune")
    assert result.returncode == 1 and "accuracy to get worse by -0.9 at most" in result.stderr
    assert not (tmp_path / "small.onnx").exists()


@pytest.mark.parametrize("has_labels", [True, False])
def test_distil_comes_nearer_to_its_teacher(tmp_path: Path, has_labels: bool) -> None:
    teacher = tmp_path / "teacher.onnx"
    classifier(tmp_path).rename(teacher)
    model = onnx.load(teacher)
    for tensor in model.graph.initializer:
        noise = np.random.default_rng(3).standard_normal(tensor.dims) * 0.3
        noisy = numpy_helper.to_array(tensor) + noise.astype("f")
        tensor.CopyFrom(numpy_helper.from_array(noisy, tensor.name))
    onnx.save(model, tmp_path / "classifier.onnx")
    samples = labelled(tmp_path)
    if not has_labels:
        np.savez(samples, x=samples_of(samples))
    more = ("--set", f"teacher={teacher}", "--set", "epochs=30", "--json")
    more += ("--set", "alpha=0.98") if has_labels else ()
    result = report(optimize(tmp_path, "--data", samples, *more, recipe="distil"))
    near = result["snr_db_to_teacher"]
    assert near["after"] > near["before"] + 2


def test_qat_is_better_than_int8_where_bits_are_few(tmp_path: Path) -> None:
    samples = labelled(tmp_path)
    few = ("--data", samples, "--set", "weight_bits=3", "--set", "observer=mse", "--json")
    plain = report(optimize(tmp_path, *few, "--set", "methods=none"))
    train = (
        "--set",
        "alpha=1",
        "--set",
        "temperature=1",
        "--set",
        "epochs=20",
        "--set",
        "rate=3e-3",
    )
    result = report(optimize(tmp_path, *few, *train, recipe="qat"))
    assert result["snr_db"] > plain["snr_db"] + 1
    path = tmp_path / "small.onnx"
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(path).graph.node}
    codes = [one for one in weights_of(path) if one.dtype == np.int8 and one.ndim == 2]
    assert codes and max(np.abs(one).max() for one in codes) <= 3


@pytest.mark.parametrize(
    ("recipe", "given", "parts"),
    [
        ("finetune", [], ["recipe finetune: --data: expected samples with labels"]),
        ("qat", [], ["recipe qat: --data: expected samples"]),
        ("distil", [], ["recipe distil: --data: expected samples"]),
        ("bf16", ["--set", "dtype=int8"], ["dtype", "bfloat16, float16", "'int8'"]),
        ("simplify", ["--min-snr", 10], ["option min_snr: expected samples to measure it on"]),
        ("weights", ["--max-drop", 1], ["option max_drop: expected samples to measure it on"]),
        ("dynamic", ["--set", "skipp=a"], ["recipe dynamic", "did you mean 'skip'"]),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, recipe, given, parts) -> None:
    result = optimize(tmp_path, *given, recipe=recipe)
    failed(result, 1, *parts)
    assert "recipes/" not in result.stderr  # where the script lies is of no use to anyone
    assert not (tmp_path / "small.onnx").exists()


def test_distil_asks_for_a_teacher(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--data", data(tmp_path), recipe="distil")
    failed(result, 1, "option teacher: expected a model to learn from, as --set teacher=big.onnx")


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("decompose", ["--set", "energy=0.3", "--set", "measure=false"]),
        ("prune", ["--set", "ratio=0.9"]),
    ],
)
def test_a_smaller_model_is_measured_and_refused(tmp_path: Path, recipe, settings) -> None:
    more = ("--data", data(tmp_path, 64), *settings, "--set", "max_ratio=1")
    more = more if recipe == "decompose" else more[:-2]
    rank = ("--set", "rank=energy") if recipe == "decompose" else ()
    result = optimize(tmp_path, *more, *rank, "--json", recipe=recipe)
    left = report(result)
    assert left["snr_db"] < 20 and left["outputs"] == [
        {"name": "y", "value": "z", "snr_db": left["snr_db"]}  # what the Softmax reads
    ]
    (tmp_path / "small.onnx").unlink()
    refused = optimize(tmp_path, *more, *rank, "--min-snr", 60, recipe=recipe)
    assert refused.returncode == 1 and f"recipe {recipe}: option min_snr" in refused.stderr
    assert not (tmp_path / "small.onnx").exists()


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
    all_in_8 = ("--data", samples, "--set", "weak=0")
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
    rescued = report(optimize(tmp_path, "--data", samples, "--json"))  # without being asked
    assert set(rescued["weak"]) <= {"fc2", "fc5"} and rescued["snr_db"] > plain["snr_db"] + 3
    shown = optimize(tmp_path, *more)
    assert "2 of 8 layers stay in float" in shown.stdout and "evaluations" in shown.stdout


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
    assert tried[5:] == ["+ smooth", "+ equalize", "+ gptq", "+ correct_bias"]
    none = report(optimize(tmp_path, "--data", samples, "--set", "methods=none", "--json"))
    assert len(none["chosen_by"]) == 5 and none["methods"] in ([], {})
    wrong = optimize(tmp_path, "--data", samples, "--set", "methods=gptk")
    failed(wrong, 1, "option methods: expected some of smooth, equalize, gptq, adaround")


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
    assert warned.count("input x is 1.500000 everywhere in the calibration data") == 1
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
