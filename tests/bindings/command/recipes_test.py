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


def test_decompose_takes_layers_of_all_methods_by_name(tmp_path: Path) -> None:
    seeded = np.random.default_rng(4)
    thin = np.einsum(
        "or,rihw->oihw", *(seeded.standard_normal(s) for s in ((32, 2), (2, 32, 3, 3)))
    )
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], "window", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c", "p"], ["y"], "point"),
    ]
    weights = [
        numpy_helper.from_array(thin.astype("f"), "k"),
        numpy_helper.from_array(thin[:, :, :1, :1].astype("f"), "p"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 32, 24, 24]) for name in "xy"
    ]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "classifier.onnx")
    given = ["--set", 'only=["window","point"]', "--set", "measure=false", "--json"]
    result = report(optimize(tmp_path, *given, recipe="decompose"))
    assert {one["layer"] for one in result["decomposed"]} == {"window", "point"}
    failed(
        optimize(tmp_path, "--set", 'only=["no"]', recipe="decompose"), 1, "'no' matches no node"
    )


def fused(folder: Path) -> Path:
    """Attention and a normalization as ONNX Runtime's transformer optimizer writes them."""
    seeded = np.random.default_rng(3)

    def tensor(name: str, *shape: int):
        return numpy_helper.from_array(0.1 * seeded.standard_normal(shape).astype("f"), name)

    nodes = [
        helper.make_node("Attention", ["x", "w", "b"], ["a"], domain="com.microsoft", num_heads=2),
        helper.make_node("SkipLayerNormalization", ["x", "a", "g"], ["y"], domain="com.microsoft"),
    ]
    shape = ["n", 6, 64]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape if name == "x" else None)
        for name in ("x", "y")
    ]
    weights = [tensor("w", 64, 192), tensor("b", 192), tensor("g", 64)]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    path = folder / "classifier.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("recipe", ["int8", "weights", "dynamic"])
def test_weights_of_what_others_fused_are_quantized(tmp_path: Path, recipe: str) -> None:
    fused(tmp_path)
    x = np.random.default_rng(4).standard_normal((32, 6, 64)).astype("f")
    result = report(optimize(tmp_path, "--data", data(tmp_path, 32, x=x), "--json", recipe=recipe))
    assert result["bytes_after"] < 0.35 * result["bytes_before"]
    assert result["snr_db"] > 20
    written = onnx.load(tmp_path / "small.onnx")
    assert {node.domain for node in written.graph.node} == {""}
    onnx.checker.check_model(written, full_check=True)


@pytest.mark.parametrize("kept", [False, True])
def test_what_an_exporter_noted_at_nodes_stays_on_request(tmp_path: Path, kept: bool) -> None:
    model = onnx.load(classifier(tmp_path))
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value="file.py")
    onnx.save(model, tmp_path / "classifier.onnx")
    asked = ("--set", "metadata=true") if kept else ()

    report(optimize(tmp_path, "--json", *asked, recipe="weights"))

    nodes = onnx.load(tmp_path / "small.onnx").graph.node
    assert any(node.metadata_props for node in nodes) == kept


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
    rounded = report(optimize(tmp_path, *four, "--set", "correct_bias=false", recipe="weights"))
    assert rounded["corrected_bias"] is False and isinstance(result["corrected_bias"], bool)
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


@pytest.mark.parametrize(
    ("recipe", "given", "words"),
    [
        ("int8", ["weak=abc"], "option weak: expected a number, got 'abc'"),
        ("int8", ["min_snr=abc"], "option min_snr: expected a number, got 'abc'"),
        ("int8", ["observer_options={bins=3}"], "option observer_options: expected an object"),
        ("int8", ["requantize=maybe"], "option requantize: expected true or false, got 'maybe'"),
        ("int8", ["gain=2", "methods=none"], "option gain: expected a run of quantizer.smooth"),
        ("int8", ["gain=2", 'methods=["none"]'], "option gain: expected a run of quantizer.smooth"),
        ("int8", ["metric=mse"], "option metric: it is what --max-drop measures"),
        ("prune", ["bench=maybe"], "option bench: expected true or false, got 'maybe'"),
        ("decompose", ["methods=cp"], "option methods: expected some of svd, tucker2, or none"),
        ("decompose", ["methods=svd", "rank_in=2"], "expected a run of decomposer.tucker2"),
        ("decompose", ["rank=4"], "option rank: expected --set methods=svd beside a number"),
        ("decompose", ["budget=0.5"], "option budget: expected one method beside it"),
        ("decompose", ["methods=svd", "rank=2", "multiple=8"], "option multiple: expected rank ="),
        (
            "decompose",
            ["methods=svd", "rank=2", "min_error=0.1"],
            "option min_error: expected rank",
        ),
        ("decompose", ["methods=svd", "rank=2", "budget=0.5"], "option rank: expected no budget"),
        ("weights", ["gptq=true"], "option gptq: expected bits=4"),
        ("weights", ["correct_bias=true"], "option correct_bias: expected weights rounded by"),
        ("weights", ["mask=m"], "option mask: expected an input of the model (x), got 'm'"),
        ("int8", ["mask=m"], "option mask: expected an input of the model (x), got 'm'"),
        ("finetune", ["mask=x"], "option mask: expected --min-snr, for which outputs are"),
        ("finetune", ["limit=4"], "option limit: expected --min-snr, for which outputs are"),
        ("distil", ["teacher=5"], "option teacher: expected a text, got 5"),
        ("distil", ["teacher=classifier.onnx", "loss=mse"], "option loss: the loss is distiller."),
    ],
)
def test_what_a_recipe_would_not_heed_is_refused(tmp_path: Path, recipe, given, words) -> None:
    flags = [flag for one in given for flag in ("--set", one)]
    result = optimize(tmp_path, "--data", labelled(tmp_path), *flags, recipe=recipe)
    assert result.returncode == 1 and words in result.stderr.splitlines()[-1], result
    assert not (tmp_path / "small.onnx").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--set", "data=other.npz"], "--set data: expected an option of the recipe"),
        (["--set", "json=true"], "--set json: expected an option of the recipe"),
        (["--min-snr", "3", "--set", "min_snr=30"], "--set min_snr: expected one of it and --min"),
        (
            ["--max-drop", "1", "--set", "max_drop=0"],
            "--set max_drop: expected one of it and --max",
        ),
    ],
)
def test_what_the_command_says_itself_is_not_said_by_set(tmp_path: Path, flags, words) -> None:
    result = optimize(tmp_path, "--data", labelled(tmp_path), *flags, recipe="int8")
    failed(result, 2, words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--max-drop", "0.1"], "recipe distil: option max_drop: expected labels in --data"),
        (["--set", "metric=mse"], "option metric: metrics.mse compares outputs with labels"),
    ],
)
def test_distil_without_labels_measures_no_metric_of_labels(tmp_path: Path, flags, words) -> None:
    samples = data(tmp_path)
    np.savez(samples, x=samples_of(samples))
    given = ("--data", samples, "--set", f"teacher={classifier(tmp_path)}", *flags)
    failed(optimize(tmp_path, *given, recipe="distil"), 1, words)
    assert not (tmp_path / "small.onnx").exists()


def test_finetune_takes_labels_that_are_no_classes(tmp_path: Path) -> None:
    numbers = np.random.default_rng(2).random((64, 4)).astype("f")
    samples = data(tmp_path, 64, label=numbers)
    more = ("--data", samples, "--set", "epochs=1", "--json")
    plain = report(optimize(tmp_path, *more, "--set", "loss=bce", recipe="finetune"))
    assert "metric" not in plain and len(plain["history"]) == 1
    squared = report(optimize(tmp_path, *more, "--set", "loss=trainer.mse", recipe="finetune"))
    assert squared["metric"] == "mse" and squared["after"] > 0
    refused = optimize(tmp_path, *more, "--set", "loss=bce", "--max-drop", 1, recipe="finetune")
    failed(refused, 1, "recipe finetune: option max_drop: expected a metric beside labels")
