# SPDX-License-Identifier: Apache-2.0
"""One model and one data set through everything that runs models on data: the same bits."""

import json
import subprocess

import numpy as np
import pytest
import tenon
from tenon import _run

N, BATCH = 10, 4  # so that the last batch is smaller, or padded where the model fixes its batch
RANDOM = np.random.default_rng(7)
PIXELS = RANDOM.standard_normal((N, 6))
LABEL = RANDOM.integers(0, 3, N)
BACKENDS = ["reference", "onednn"]


def model(batch="batch") -> tenon.Model:
    random = np.random.default_rng(1)
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", [batch, 6])
    first = graph.add_constant(random.standard_normal((6, 16)).astype("f"), "first")
    second = graph.add_constant(random.standard_normal((16, 3)).astype("f"), "second")
    hidden = graph.add_node("Relu", [graph.add_node("MatMul", [x, first])], name="hidden")
    graph.add_output("y", graph.add_node("MatMul", [hidden, second]))
    return graph.build()


@pytest.fixture
def data(tmp_path):
    """The field has another name and another type than the input; others hold no samples."""
    np.savez(
        tmp_path / "data.npz",
        names=np.array(["a", "b", "c"]),
        mean=np.zeros(6, "f"),
        pixels=PIXELS,
        label=LABEL.astype("uint8"),
    )
    return tmp_path / "data.npz"


def said(backend, path, tmp_path):
    """By Python, Lua and the command."""
    model_path = tmp_path / "model.onnx"
    loaded = tenon.load(model_path)
    more = {"metric": "perplexity", "backend": backend, "batch": BATCH}
    by_python = tenon.evaluate(loaded, tenon.data.open(path), **more)
    script = tmp_path / "evaluate.lua"
    script.write_text(
        "local tn = require 'tenon'\n"
        f"local r = tn.evaluate(tn.load('{model_path}'), tn.data.open('{path}'), {{ metric = "
        f"'perplexity', backend = '{backend}', batch = {BATCH} }})\n"
        "return { value = string.format('%a', r.perplexity) }\n"
    )
    by_lua = command("run", script, "--trust", "--json")
    flags = ["--metric", "perplexity", "--backend", backend, "--batch", BATCH, "--json"]
    by_command = command("evaluate", model_path, "--data", path, *flags)
    assert by_python["backend"] == by_command["backend"] == backend
    return [by_python["perplexity"], float.fromhex(by_lua["value"]), by_command["value"]]


def command(*args):
    done = subprocess.run(
        [_run.command(), *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def perplexity(logits) -> float:
    shifted = logits - logits.max(1, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return float(np.exp(-log[np.arange(N), LABEL].mean()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_python_lua_and_the_command_evaluate_to_the_same_bits(backend, data, tmp_path):
    for batch in ["batch", BATCH]:  # open; fixed, where the last batch is padded
        model(batch).save(tmp_path / "model.onnx")
        values = said(backend, data, tmp_path)
        assert values[0] == values[1] == values[2]
        weights = model().constants()
        first, second = (np.asarray(weights[name], "d") for name in ("first", "second"))
        wanted = perplexity(np.maximum(PIXELS @ first, 0) @ second)
        assert values[0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_trainer_validates_to_the_same_bits(backend, data):
    samples = tenon.data.open(data)
    trained = tenon.train(
        model(),
        samples,
        validation=samples,
        metric="perplexity",
        epochs=1,
        rate=0.0,
        batch=BATCH,
        backend=backend,
    )
    value = tenon.evaluate(model(), samples, "perplexity", batch=BATCH, backend=backend)
    assert trained.report["history"][-1]["perplexity"] == value["perplexity"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_quantizer_and_distiller_see_the_same_bits(backend, data):
    samples = tenon.data.open(data)
    plan = model().compile(backend=backend)
    x = PIXELS.astype("f")
    wanted = np.concatenate([plan(x[i : i + BATCH])[0] for i in range(0, N, BATCH)])

    kept = tenon.data.Dataset(
        "distiller.cached", data=samples, teacher=model(), batch=BATCH, backend=backend
    )
    assert (kept.batch(range(N))["teacher/y"] == wanted).all()

    small = model().apply(
        "quantizer.static", data=samples, observer="minmax", batch=BATCH, backend=backend
    )
    seen = {one["name"]: one for one in small.report["values"]}
    assert len(seen) >= 2  # x, and what the second product reads
    tapped = model().compile(backend=backend, taps=list(seen))
    runs = [tapped(x[i : i + BATCH]) for i in range(0, N, BATCH)]
    for name, one in seen.items():
        assert one["high"] == max(0, *(run[name].max() for run in runs))
        assert one["low"] == min(0, *(run[name].min() for run in runs))
    assert small.report["calibration"]["backend"] == backend


def test_the_pruner_scores_the_same_bits(data):
    """Wanda's score of each batch by hand, from values that a plan of the default backend gives."""
    samples = tenon.data.open(data)
    options = {"importance": "wanda", "data": samples, "batch": BATCH, "scores": True}
    pruned = model().apply("pruner.structured", ratio=0.5, **options)
    scores = pruned.report["groups"][0]["scores"]

    tapped = model().compile(taps=["hidden"])
    weight = np.asarray(model().constants()["second"], "d")
    wanted = [0.0] * 16
    for i in range(0, N, BATCH):
        hidden = tapped(PIXELS[i : i + BATCH].astype("f"))["hidden"].astype("d")
        for channel in range(16):
            size = squares = 0.0  # in order: numpy's sums are pairwise
            for number in weight[channel]:
                size += abs(number)
            for number in hidden[:, channel]:
                squares += number * number
            wanted[channel] += size * np.sqrt(squares)
    assert scores == [one / len(range(0, N, BATCH)) for one in wanted]


def test_importances_are_the_same_from_any_type_of_field(tmp_path):
    """Gradients of float64 fields are those of the same numbers in float32."""
    x = np.round(PIXELS * 8) / 8  # exact in both
    scored = []
    for name, kind in (("d", "float64"), ("f", "float32")):
        np.savez(tmp_path / f"{name}.npz", x=x.astype(kind), label=LABEL)
        options = {"importance": "taylor", "data": str(tmp_path / f"{name}.npz"), "ratio": 0.5}
        pruned = model().apply("pruner.structured", **options)
        scored.append(pruned.text(data=True))
    assert scored[0] == scored[1]


def test_a_model_with_a_fixed_batch_is_a_teacher_of_any_number(data):
    samples = tenon.data.open(data)
    kept = tenon.data.Dataset("distiller.cached", data=samples, teacher=model(BATCH))
    wanted = model().compile()(PIXELS.astype("f"))[0]
    np.testing.assert_allclose(kept.batch(range(N))["teacher/y"], wanted, rtol=1e-5, atol=1e-5)


def test_what_is_taken_and_converted_is_said(data):
    notes = tenon.evaluate(model(), tenon.data.open(data))["notes"]
    assert notes == [
        "field pixels is taken for input x: no other fits its type and shape",
        "field pixels: float64 is converted to float32",
    ]


def test_bytes_are_converted_as_they_are(tmp_path):
    np.savez(tmp_path / "b.npz", x=np.arange(60).reshape(N, 6).astype("uint8"), label=LABEL)
    as_bytes = tenon.evaluate(model(), tenon.data.npz(tmp_path / "b.npz"), "perplexity")
    assert "values of 0 to 255 as they are" in as_bytes["notes"][0]
    np.savez(tmp_path / "f.npz", x=np.arange(60).reshape(N, 6).astype("f"), label=LABEL)
    as_floats = tenon.evaluate(model(), tenon.data.npz(tmp_path / "f.npz"), "perplexity")
    assert as_bytes["value"] == as_floats["value"]


def test_two_fields_that_fit_are_a_question(tmp_path):
    np.savez(tmp_path / "d.npz", a=PIXELS, b=PIXELS, label=LABEL)
    with pytest.raises(
        tenon.InvalidArgument, match=r"no field for x \(the data set has a float64\[6\], b"
    ):
        tenon.evaluate(model(), tenon.data.npz(tmp_path / "d.npz"))


def test_numbers_that_do_not_fit_are_refused(tmp_path):
    graph = tenon.Graph()
    ids = graph.add_input("ids", "int32", ["n", 2])
    graph.add_output("y", graph.add_node("Identity", [ids]))
    whole = graph.build()
    np.savez(tmp_path / "d.npz", ids=np.array([[1, 2**31]]), label=np.array([0]))
    with pytest.raises(tenon.OutOfRange, match="field ids: expected numbers that int32 can hold"):
        tenon.evaluate(whole, tenon.data.npz(tmp_path / "d.npz"))
    with pytest.raises(tenon.InvalidArgument, match="the model wants int32, got float32"):
        np.savez(tmp_path / "f.npz", ids=np.ones((1, 2), "f"), label=np.array([0]))
        tenon.evaluate(whole, tenon.data.npz(tmp_path / "f.npz"))


def test_nothing_is_named_and_the_backend_is_this_machines():
    named = model().compile().describe()["backends"]
    ids = {one["id"] for one in tenon.components("backend")}
    assert named == (["onednn", "reference"] if "onednn" in ids else ["reference"])
    assert model().compile(backend="reference", threads=2).describe()["backends"] == ["reference"]


def test_parts_of_a_data_set(data):
    samples = tenon.data.open(data)
    first, rest = samples.split(0.3)
    assert (len(first), len(rest)) == (3, 7)
    assert (rest.batch([0])["pixels"] == PIXELS[3:4]).all()
    assert (samples.part(2, 5).batch([4])["pixels"] == PIXELS[6:7]).all()


def test_a_plan_is_evaluated_as_it_was_compiled(data):
    samples = tenon.data.open(data)
    plan = model().compile(backend="reference")
    assert tenon.evaluate(plan, samples)["backend"] == "reference"


def test_a_label_that_is_not_there_names_those_that_are(data):
    with pytest.raises(tenon.InvalidArgument, match="expected one of pixels, label, got 'z'"):
        tenon.evaluate(model(), tenon.data.open(data), metric_options={"label": "z"})


def test_an_infinite_value_is_the_largest_number():
    """A probability of 0 has no logarithm: perplexity is infinite, and no NaN."""
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["batch", 3])
    graph.add_output("y", graph.add_node("Identity", [x]))
    samples = {"x": np.eye(3, dtype="f"), "label": np.array([1, 2, 0])}
    made = tenon.evaluate(
        graph.build(), samples, "perplexity", metric_options={"scores": "probabilities"}
    )
    assert made["value"] == np.finfo("d").max
    assert made["details"]["negative_log_likelihood"] == np.finfo("d").max
