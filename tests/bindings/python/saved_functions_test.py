# SPDX-License-Identifier: Apache-2.0
"""Traced functions as ONNX files: onnx's checker takes them; its reference implementation, ONNX
Runtime where it is installed, and Tenon give the same numbers by the file."""

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import constant, info, model_of

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

X = np.array([0.5, 1.25, 2.0, 0.75], "float32")
ROWS = np.arange(12, dtype="float32").reshape(3, 4) % 5


def scanned(x):
    return tn.scan(lambda c, u: (c + u * u, c * u), np.float32(0), x)


def chosen(x):
    return tn.cond(x.sum() > 0, lambda x: tn.exp(x), lambda x: tn.sin(x), x)


def nested(x):
    def step(c, u):
        return tn.cond(u > 1, lambda: c + u * x[0], lambda: c), tn.fori_loop(
            0, 2, lambda i, s: s * u, c
        )

    return tn.scan(step, np.float32(1), x)


CONTROL = {
    "scan": scanned,
    "a scan without stacks": lambda x: tn.scan(lambda c, u: (c + u, None), np.float32(0), x)[0],
    "a scan beside other results": lambda x: (*scanned(x), x * 2),
    "a state that is given back": lambda x: tn.scan(lambda c, u: (c, c), np.float32(2), x),
    "one value twice": lambda x: tn.scan(lambda c, u: (c + u, (u, u)), np.float32(0), x),
    "fori_loop": lambda x: tn.fori_loop(0, 3, lambda i, s: s * 2, x),
    "while_loop": lambda x: tn.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, x),
    "cond": chosen,
    "a branch of what is outside": lambda x: tn.cond(x[0] > 0, lambda: x, lambda: x * 2),
    "loops inside each other": nested,
    "the gradient of a scan": tn.grad(lambda x: scanned(x)[1].sum()),
    "the gradient of a branch": tn.grad(lambda x: chosen(x).sum()),
    "the gradient of a loop": tn.grad(
        lambda x: tn.fori_loop(0, 3, lambda i, s: s * s, x / 2).sum()
    ),
    "scans of many": tn.vmap(lambda x: scanned(x * X)[1]),
}
ORDERED = {
    "sort": lambda x: tn.sort(x, axis=1),
    "argsort": lambda x: tn.argsort(x, axis=1),
    "median": lambda x: tn.median(x, axis=1),
    "quantile": lambda x: tn.quantile(x, 0.3, axis=1),
    "values alone": lambda x: tn.top_k(x, 2)[0],
    "indices alone": lambda x: tn.top_k(x, 2)[1],
}
OTHERS = {
    "the gradient of a power": tn.grad(lambda x: (x**x).sum()),
    "a stopped gradient": lambda x: tn.stop_gradient(x) * x,
    "logsumexp": tn.grad(lambda x: tn.logsumexp(x)),
    "a checkpoint": tn.grad(lambda x: tn.checkpoint(lambda y: tn.tanh(y) ** 2)(x).sum()),
    "shifts": lambda x: tn.astype(x * 4, "int32") >> 1,
}
CASES = {
    **{name: (f, X) for name, f in CONTROL.items() if name != "scans of many"},
    "scans of many": (CONTROL["scans of many"], np.stack([X, X + 1])),
    **{name: (f, ROWS) for name, f in ORDERED.items()},
    **{name: (f, X) for name, f in OTHERS.items()},
}


def flat(x):
    return [y for one in x for y in flat(one)] if isinstance(x, (tuple, list)) else [x]


def saved(f, x, folder):
    """The file, and what the function gives."""
    path = str(folder / "f.onnx")
    tn.jit(f).trace(x).save(path)
    onnx.checker.check_model(path, full_check=True)
    return path, [np.asarray(y) for y in flat(tn.jit(f)(x)) if y is not None]


def same(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_saved_function_gives_the_same_numbers(case, tmp_path):
    f, x = case
    path, wanted = saved(f, x, tmp_path)
    same(tn.load(path).compile()(x), wanted)
    name = onnx.load(path).graph.input[0].name
    if f not in CONTROL.values():  # onnx's own Loop needs a condition, its Scan goes forwards only
        same(ReferenceEvaluator(path).run(None, {name: x}), wanted)
    if onnxruntime:
        same(onnxruntime.InferenceSession(path).run(None, {name: x}), wanted)


DRAWS = {
    "uniform": lambda x: x + tn.random_uniform((4,), key=[0, 1]),
    "normal": lambda x: x + tn.astype(tn.random_normal((4,), key=[0, 1], dtype="float64"), x.dtype),
    "dropout": lambda x: tn.dropout(x, 0.5, key=[1, 2]),
}


@pytest.mark.parametrize("f", DRAWS.values(), ids=DRAWS.keys())
def test_what_draws_is_loaded_again(f, tmp_path, caplog):
    path, wanted = saved(f, X, tmp_path)
    same(tn.load(path).compile()(X), wanted)
    assert "Tenon alone runs" in caplog.text and "(tenon:Random)" in caplog.text


def test_no_operator_of_tenon_is_left_for_gradients_alone(tmp_path, caplog):
    for f in OTHERS.values():
        model = onnx.load(saved(f, X, tmp_path)[0])
        assert {one.domain for one in model.opset_import} <= {"", "function"}
    assert not caplog.text


@pytest.mark.parametrize("names", [["v"], ["v", ""], ["", "i"]])
def test_files_may_leave_out_what_nobody_reads(names, tmp_path):
    node = helper.make_node("TopK", ["x", "k"], names)
    made = info("v", [2]) if names[0] else info("i", [2], TensorProto.INT64)
    k = constant("k", np.int64([2]))
    path = tmp_path / "top_k.onnx"
    onnx.save(model_of([node], [info("x", [4])], [made], [k]), path)
    wanted = [2.0, 1.25] if names[0] else [2, 1]
    assert list(tn.load(path).compile()(X)[0]) == wanted


def test_what_stops_a_gradient_stops_it_in_a_model_that_is_read_again(tmp_path):
    weights = np.array([2.0, 3.0], "f")
    graph = tn.Graph()
    x, w = graph.add_input("x", "float32", [2]), graph.add_constant(weights, "w")
    scaled = graph.add_node("Mul", [x, w])
    stopped = graph.add_node("StopGradient", [scaled], domain="tenon")
    graph.add_output("y", graph.add_node("Mul", [scaled, stopped]))
    graph.build().save(tmp_path / "m.onnx")
    assert {node.domain for node in onnx.load(tmp_path / "m.onnx").graph.node} == {""}
    model = tn.load(str(tmp_path / "m.onnx"))
    x = np.array([1.0, -2.0], "f")
    slope = tn.grad(lambda p: model(x, parameters=p).sum())({"w": weights})["w"]
    np.testing.assert_allclose(slope, weights * x * x)  # twice as much without
