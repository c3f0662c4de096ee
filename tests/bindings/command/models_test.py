# SPDX-License-Identifier: Apache-2.0
"""The `tenon` command on small ONNX models: what it does, and how it refuses."""

import json
import resource
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon
from small_models import classifier


def data(folder: Path, n: int = 32, **replaced: np.ndarray) -> Path:
    seeded = np.random.default_rng(0)
    arrays = {"x": seeded.standard_normal((n, 8)).astype("f"), "label": np.arange(n) % 4}
    path = folder / "data.npz"
    np.savez(path, **(arrays | replaced))
    return path


def optimize(folder: Path, *more: object, recipe: str = "int8", **limits: object):
    model = folder / "classifier.onnx"
    if not model.exists():
        classifier(folder)
    return tenon(
        "optimize", model, "-o", folder / "small.onnx", "--recipe", recipe, *more, **limits
    )


def test_int8_in_one_line_then_evaluate_and_bench(tmp_path: Path) -> None:
    samples = data(tmp_path)
    result = optimize(tmp_path, "--data", samples, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["quantized"] == 3  # the Relu too: it keeps its input's scale
    assert report["cosine"] > 0.99
    written = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert "QuantizeLinear" in {node.op_type for node in written.graph.node}
    figures = {}
    for name in ("classifier", "small"):
        model = tmp_path / f"{name}.onnx"
        result = tenon("evaluate", model, "--data", samples, "--metric", "accuracy", "--json")
        assert result.returncode == 0, result.stderr
        figures[name] = json.loads(result.stdout)
    result = tenon("bench", tmp_path / "small.onnx", "--shape", "x=4x8", "--json")
    assert result.returncode == 0, result.stderr
    bench = json.loads(result.stdout)
    assert {"latency_ms", "compile_ms", "peak_rss_mb", "flops", "fallback_nodes"} <= set(bench)


def test_bench_times_int8_as_the_recipe_makes_it(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((16, 3, 3, 3))}
    weights |= {name: random.random(16) for name in ("scale", "shift", "mean", "variance")}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node(
                "BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["y"]
            ),
        ],
        "normalized",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 16, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 16, 14, 14))],
        [numpy_helper.from_array(array.astype("f"), name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "m.onnx")
    result = tenon("bench", tmp_path / "m.onnx", "--precision", "int8", "--layers", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert "random data" in report["note"]
    assert "BatchNormalization" not in {layer["op"] for layer in report["layers"]}


def test_int8_takes_a_model_in_float16(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    for tensor in model.graph.initializer:
        narrow = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(narrow, tensor.name))
    for port in [*model.graph.input, *model.graph.output]:
        port.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, tmp_path / "classifier.onnx")
    x = np.random.default_rng(0).standard_normal((32, 8))
    for dtype, settings in ((np.float16, []), (np.float32, ["--set", "interface=float32"])):
        samples = data(tmp_path, x=x.astype(dtype))
        result = optimize(tmp_path, "--data", samples, *settings, "--set", "observer=mse", "--json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["cosine"] > 0.99
        port = onnx.load(tmp_path / "small.onnx").graph.input[0]
        assert port.type.tensor_type.elem_type == helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def test_infer_writes_what_onnx_computes(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    x = np.random.default_rng(1).standard_normal((3, 8)).astype("f")
    np.save(tmp_path / "x.npy", x)
    result = tenon("infer", model, "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path)
    assert result.returncode == 0, result.stderr
    (expected,) = onnx.reference.ReferenceEvaluator(onnx.load(model)).run(None, {"x": x})
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "array", "parts"),
    [
        ("z", np.zeros((1, 8), "f"), ["'z'", "x"]),
        ("x", np.zeros((1, 9), "f"), ["x", "8", "9"]),
        ("x", np.zeros((8,), "f"), ["x", "[8]"]),
        ("x", np.zeros((1, 8), "c8"), ["in.npy", "<c8"]),
    ],
)
def test_infer_names_the_wrong_input(tmp_path: Path, name: str, array, parts) -> None:
    np.save(tmp_path / "in.npy", array)
    outputs = tmp_path / "out"
    model = classifier(tmp_path)
    result = tenon("infer", model, "--input", f"{name}={tmp_path}/in.npy", "--output-dir", outputs)
    failed(result, 1, *parts)
    assert not list(outputs.glob("*")) if outputs.exists() else True


def test_infer_gives_each_output_a_file_of_its_own(tmp_path: Path) -> None:
    port = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])  # noqa: E731
    names = ["a/b", "a_b", "a_b_2"]
    nodes = [helper.make_node(op, ["x"], [y]) for op, y in zip(["Neg", "Abs", "Sqrt"], names)]
    graph = helper.make_graph(nodes, "g", [port("x")], [port(name) for name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x := np.float32([4, 9]))
    out = tmp_path / "out"
    given = ["--input", f"x={tmp_path}/x.npy", "--output-dir", out, "--json"]
    result = tenon("infer", tmp_path / "m.onnx", *given)
    assert result.returncode == 0, result.stderr
    files = {row["output"]: row["file"] for row in json.loads(result.stdout)["outputs"]}
    for name, want in zip(names, (-x, x, np.sqrt(x))):
        np.testing.assert_array_equal(np.load(files[name]), want, err_msg=name)


def test_an_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 8), "f"))
    model = classifier(tmp_path, last="Sofmax")
    result = tenon("infer", model, "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path)
    failed(result, 1, "Sofmax", "last")


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (["--set", "observer=entropi"], ["entropi", "did you mean", "entropy"]),
        (["--set", "samples=many"], ["samples"]),
        (["--set", "samples=-4"], ["samples", "-4"]),
    ],
)
def test_options_of_a_recipe_are_checked(tmp_path: Path, more, parts) -> None:
    failed(optimize(tmp_path, "--data", data(tmp_path), *more), 1, *parts)


def test_an_unknown_recipe_names_those_there_are(tmp_path: Path) -> None:
    failed(optimize(tmp_path, "--data", data(tmp_path), recipe="int9"), 1, "int9", "int8")


def test_a_missing_dictionary_is_named(tmp_path: Path) -> None:
    samples = data(tmp_path)
    asked = ["--data", samples, "--metric", "cer", "--option", "dictionary=absent.txt"]
    failed(tenon("evaluate", classifier(tmp_path), *asked), 1, "dictionary", "absent.txt")


def full_after(n_bytes: int):
    """A process whose files cannot grow beyond this, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "small.onnx").write_bytes(b"old")
    samples = data(tmp_path)
    classifier(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    # Python ignores SIGXFSZ, and a child that keeps its signals gets an error from write instead.
    limits = {"preexec_fn": full_after(512), "restore_signals": False}
    result = optimize(tmp_path, "--data", samples, **limits)
    assert result.returncode == 1
    assert "small.onnx: file too large" in result.stderr
    assert (tmp_path / "small.onnx").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_target_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.onnx").mkdir()
    result = optimize(tmp_path, "--data", data(tmp_path))
    assert result.returncode == 1
    assert "small.onnx: expected a file, got a folder" in result.stderr


def external(folder: Path, location: str) -> Path:
    path = classifier(folder)
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["absent.bin", "../outside.bin", "/etc/passwd"])
def test_external_data_stays_in_the_folder_of_the_model(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(8 * 64 * 4))
    failed(tenon("inspect", external(folder, location)), 1, location, "w1")


@pytest.mark.parametrize(
    ("recipe", "given", "parts"),
    [
        ("int8", "observr=mse", ["recipe int8", "'observr'", "did you mean 'observer'"]),
        ("int8", "energy=0.5", ["recipe int8", "'energy'"]),
        ("int8", 'skip=["no_such*"]', ["skip", "no_such*", "matches no node"]),
        ("decompose", "enrgy=0.5", ["recipe decompose", "did you mean 'energy'"]),
        ("prune", "ration=0.5", ["recipe prune", "did you mean 'ratio'"]),
    ],
)
def test_an_option_that_nothing_takes_is_refused(tmp_path: Path, recipe, given, parts) -> None:
    samples = data(tmp_path)
    failed(optimize(tmp_path, "--data", samples, "--set", given, recipe=recipe), 1, *parts)
    assert not (tmp_path / "small.onnx").exists()


@pytest.mark.parametrize(
    ("recipe", "given"), [("prune", "round_to=1"), ("weights", "bits=8"), ("int8", "observer=mse")]
)
def test_a_dry_run_says_what_it_would_save_and_writes_nothing(tmp_path, recipe, given) -> None:
    model, samples = classifier(tmp_path), data(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    asked = ["optimize", model, "--recipe", recipe, "--data", samples, "--set", given]
    result = tenon(*asked, "--dry-run")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert rows["MB"].endswith("%") and "parameters" in rows
    summary = json.loads(tenon(*asked, "--dry-run", "--json").stdout)
    assert summary["dry_run"] and summary["bytes_after"] < summary["bytes_before"]
    assert {path.name for path in tmp_path.iterdir()} == before
    failed(tenon(*asked), 1, "-o", "--dry-run")


def test_int8_takes_all_options_of_its_pass(tmp_path: Path) -> None:
    report = optimize(
        *(tmp_path, "--data", data(tmp_path), "--set", "observer=minmax"),
        *("--set", "activations=s8", "--set", "bias=float32", "--set", "per_channel=false"),
        *("--set", "weight_bits=4", "--set", "batch=4"),
    )
    assert report.returncode == 0, report.stderr
    constants = onnx.load(tmp_path / "small.onnx").graph.initializer
    arrays = [onnx.numpy_helper.to_array(one) for one in constants]
    types = {str(one.dtype) for one in arrays}
    assert "uint8" not in types and "int32" not in types
    assert max(np.abs(one).max() for one in arrays if one.dtype == np.int8 and one.ndim == 2) == 7
    assert all(one.ndim == 0 for one in arrays if one.dtype == np.float32 and one.size == 1)


def test_help_lists_recipes_and_all_that_they_take(tmp_path: Path) -> None:
    text = tenon("optimize", "--help").stdout
    passes = {
        "int8": ["quantizer.static", "precision.widen"],
        "decompose": ["decomposer.svd", "decomposer.tucker2"],
        "prune": ["pruner.structured"],
        "simplify": ["fusion.default"],
        "bf16": ["precision.autocast"],
        "fp16": ["precision.autocast"],
        "dynamic": ["quantizer.dynamic", "precision.widen"],
        "weights": ["quantizer.weights", "precision.widen"],
        "qat": ["quantizer.qat", "trainer.train", "distiller.response"],
        "distil": ["trainer.train", "distiller.response"],
        "finetune": ["trainer.train"],
    }
    for recipe, ids in passes.items():
        assert f"\n  {recipe}\n" in text
        for name in ids:
            schema = json.loads(tenon("plugin", "info", name, "--json").stdout)[0]["schema"]
            for option in set(schema["properties"]) - {"data"}:
                assert f"\n    {option} " in text, option


def test_a_model_of_which_little_is_left_is_warned_of_or_refused(tmp_path: Path) -> None:
    samples = data(tmp_path)
    few = ("--data", samples, "--set", "weight_bits=2", "--set", "observer=minmax")
    result = optimize(tmp_path, *few, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["snr_db"] < 10 and report["weakest"][0]["node"] in result.stderr
    assert "warning" in result.stderr and "skip" in result.stderr
    (tmp_path / "small.onnx").unlink()
    for flag, least in (("--min-snr", 30), ("--max-drop", -1)):
        refused = optimize(tmp_path, *few, flag, least)
        assert refused.returncode == 1 and "nothing was written" in refused.stderr
        assert not (tmp_path / "small.onnx").exists()
    whole = optimize(tmp_path, "--data", samples, "--min-snr", 15, "--json")
    assert whole.returncode == 0, whole.stderr
    assert json.loads(whole.stdout)["snr_db"] > 15 and "only" not in whole.stderr


def test_a_missing_file_is_named_without_the_roles_around_it(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    plain = tenon("evaluate", model.name, "--data", "none.npz", "--metric", "mse", cwd=tmp_path)
    failed(plain, 1, "cannot open none.npz")
    assert "tenon.dataset" not in plain.stderr
    assert "created" not in plain.stderr


def test_a_line_of_the_log_is_not_repeated_but_what_a_script_says_is(tmp_path: Path) -> None:
    model = onnx.load(classifier(tmp_path))
    model.training_info.add()
    onnx.save(model, tmp_path / "m.onnx")
    said = "warning: onnx: the file's training part is left out"
    load, log = "tn.load('m.onnx')\n", "tn.log.info('x')\n"
    script = tmp_path / "script.lua"
    script.write_text(f"local tn = require('tenon')\n{3 * load}{2 * log}{load}")
    run = ("run", script, "--allow", tmp_path)
    lines = tenon(*run, cwd=tmp_path).stderr.splitlines()
    assert lines == [said, "info: x", "info: x", said]
    lines = tenon(*run, "-v", cwd=tmp_path).stderr.splitlines()
    assert sum("the file's training part is left out" in line for line in lines) == 4
