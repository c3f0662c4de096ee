# SPDX-License-Identifier: Apache-2.0
"""Weights are in memory once: packed, without the pages of the file or their folded copies."""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper, numpy_helper

# Prints what the second model adds to this process: MB of its own, of files, at most, and a
# checksum.
MEASURE = """
import pathlib, sys
import numpy as np
import tenon

def resident():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return [int(fields[key].split()[0]) / 1024 for key in ("RssAnon", "RssFile", "VmHWM", "VmRSS")]

def run(path, shape):
    plan = tenon.load(path).compile(backend="onednn", threads=2, winograd="off")
    return plan, plan(x=np.ones([int(extent) for extent in shape.split("x")], "float32"))[0]

run(*sys.argv[1:3])
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts again
anonymous, of_files, _, all_of_it = resident()
plan, y = run(*sys.argv[3:5])
after = resident()
print(after[0] - anonymous, after[1] - of_files, after[2] - all_of_it, float(np.sum(y)))
"""


# Prints what ten more batch sizes add to this process after the third, in MB, and the largest
# distance from what a plan of that batch size alone computes.
MEASURE_FORMS = """
import pathlib, sys
import numpy as np
import tenon

def resident():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["RssAnon"].split()[0]) / 1024

def make():
    return tenon.load(sys.argv[1]).compile(backend="onednn", threads=2, winograd="off")

def given(batch):
    values = np.random.default_rng(batch).standard_normal((batch, 256, 4, 4))
    return {"x": values.astype("float32")}

plan = make()
for batch in range(1, 4):
    plan(**given(batch))
before = resident()
results = [plan(**given(batch))[0] for batch in range(4, 14)]
grown = resident() - before
alone = [make()(**given(batch))[0] for batch in range(4, 14)]
print(grown, max(float(np.abs(a - b).max()) for a, b in zip(results, alone)))
"""


def save(path: pathlib.Path, nodes, weights: dict[str, np.ndarray], shape) -> str:
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, shape)]
    outputs = [value("y", TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "large", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return str(path)


def products(path: pathlib.Path, k: int) -> str:
    rng = np.random.default_rng(0)
    weights = {f"w{i}": rng.standard_normal((k, k)).astype("float32") / k for i in range(2)}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["y"]),
    ]
    return save(path, nodes, weights, (8, k))


def convolutions(path: pathlib.Path, channels: int, batch: int | str = 1) -> str:
    """Each with a BatchNormalization that is folded into it."""
    rng = np.random.default_rng(0)
    weights, nodes, at = {}, [], "x"
    for i in range(3):
        shape = (channels, channels, 3, 3)
        weights[f"w{i}"] = rng.standard_normal(shape).astype("float32") / channels
        for name in ("scale", "bias", "mean", "variance"):
            weights[f"{name}{i}"] = rng.uniform(0.5, 1.5, channels).astype("float32")
        nodes.append(helper.make_node("Conv", [at, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        norm = [f"c{i}", f"scale{i}", f"bias{i}", f"mean{i}", f"variance{i}"]
        nodes.append(helper.make_node("BatchNormalization", norm, [f"n{i}"]))
        at = f"n{i}"
    nodes.append(helper.make_node("Relu", [at], ["y"]))
    return save(path, nodes, weights, (batch, channels, 4, 4))


@pytest.mark.parametrize(
    ("make", "small", "large", "shape", "weights_mb"),
    [
        (products, 64, 2048, "8x{}", 32),
        (convolutions, 16, 512, "1x{}x4x4", 27),
    ],
)
def test_weights_are_in_memory_once(tmp_path, make, small, large, shape, weights_mb):
    arguments = []
    for size in (small, large):  # the first loads the code that both need
        path = make(tmp_path / f"{size}.onnx", size)
        arguments += [path, shape.format(size)]
    command = [sys.executable, "-c", MEASURE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    of_its_own, of_files, most, total = map(float, done.stdout.split())
    assert np.isfinite(total)
    assert of_its_own < 1.2 * weights_mb + 4
    assert of_files < 4
    # The largest weight may be there twice while it is packed, or not given back by malloc yet.
    assert most < (1 + 1 / 3) * weights_mb + (weights_mb / 2 if make is products else 0) + 6


def test_forms_for_other_shapes_share_folded_weights(tmp_path):
    path = convolutions(tmp_path / "open.onnx", 256, "batch")
    command = [sys.executable, "-c", MEASURE_FORMS, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, distance = map(float, done.stdout.split())
    # Of one form, beside code, or two on a CPU with AMX, whose tiles take over from some rows on;
    # weights of ten would be 67.
    assert grown < 6.75 * 2
    assert distance <= 1e-6


WIDTH, LAYERS = 1024, 6


def deep_step(**options):
    """A table of words and layers of a megabyte each; their gradients take little."""
    rng = np.random.default_rng(3)
    weights = {f"w{i}": rng.standard_normal((WIDTH, WIDTH)) / 22 for i in range(LAYERS)}
    weights["words"] = rng.standard_normal((300, WIDTH))

    def loss(w, words):
        x = tn.take(w["words"], words, axis=0)
        for i in range(LAYERS):
            x = tn.tanh(x @ w[f"w{i}"])
        return (x * x).mean()

    weights = {name: array.astype("float32") for name, array in weights.items()}
    return tn.Step(loss, weights, tn.optim.adamw(lr=1e-2), threads=2, **options)


def test_gradients_of_large_parameters_are_not_in_memory_together():
    words = np.arange(8)
    step, reference = deep_step(backend="onednn"), deep_step(backend="reference")
    for _ in range(3):
        np.testing.assert_allclose(step(words), reference(words), rtol=1e-4)
    for name, array in step.parameters.items():
        np.testing.assert_allclose(array, reference.parameters[name], atol=2e-3)  # an update: 1e-2
    (part,) = step.describe()["partitions"]
    all_gradients = 4 * (LAYERS * WIDTH + 300) * WIDTH
    assert part["arena_bytes"] < all_gradients / 2


def test_a_step_that_fails_has_updated_nothing():
    step = deep_step(backend="onednn")
    step(np.arange(8))
    before = step.state()
    with pytest.raises(tn.TenonError, match="indices: expected"):
        step(np.arange(293, 301))
    for name, array in step.state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@pytest.mark.parametrize(("dtype", "rows"), [("float32", 1), ("float32", 2), ("float64", 3)])
def test_a_step_writes_new_states_over_the_old_ones(dtype, rows):
    """Where a step may fail on data behind the first update, all new states wait in the arena. Sums
    over one row, and reductions and products of float64, do not fail."""
    rng = np.random.default_rng(0)
    weights = {k: rng.standard_normal((WIDTH, WIDTH)).astype(dtype) / 32 for k in "abc"}
    weights |= {k: rng.standard_normal(WIDTH).astype(dtype) for k in "ABC"}

    def loss(p, x):
        for k in "abc":
            x = tn.tanh(x @ p[k] + p[k.upper()])
        return (x * x).mean()

    step = tn.Step(loss, weights, tn.optim.adamw(lr=1e-3), backend="onednn", threads=1)
    step(rng.standard_normal((rows, WIDTH)).astype(dtype))
    (part,) = step.describe()["partitions"]
    of_parameters = sum(x.nbytes for x in weights.values())
    # Gradients and transposed weights, and not three states of each.
    assert part["arena_bytes"] < 1.75 * of_parameters


def cross_entropy(x, labels):
    classes = x.shape[1]
    return -(tn.log_softmax(x, axis=-1) * tn.one_hot(labels, classes)).sum(-1).mean()


@pytest.mark.parametrize("classes", [1000, 5024])  # whole rows in a cache, and rows in parts
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_loss_and_its_gradient_keep_one_matrix_of_scores(classes, precision):
    """Labels stay booleans, and what is made of them is made where it is read."""
    random = np.random.default_rng(3)
    x = random.normal(size=(512, classes)).astype("f")
    labels = random.integers(0, classes, 512)
    step = tn.jit(tn.value_and_grad(cross_entropy), backend="onednn", threads=2)
    model = step.trace(x, labels)
    plan = model.compile(backend="onednn", threads=2, precision=precision)
    loss, slope = plan(**dict(zip((i.name for i in model.inputs), (x, labels))))

    scores = x.astype("d") - x.max(1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    want = chances.copy()
    want[np.arange(512), labels] -= 1
    bound = {"fp32": 1e-5, "bf16": 0.01}[precision]
    np.testing.assert_allclose(
        loss, -np.log(chances[np.arange(512), labels]).mean(), rtol=bound, atol=bound
    )
    np.testing.assert_allclose(slope * 512, want, rtol=0, atol=bound)
    arena = sum(part["arena_bytes"] for part in plan.describe()["partitions"])
    assert arena < 1.4 * x.nbytes
