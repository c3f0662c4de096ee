# SPDX-License-Identifier: Apache-2.0
"""What the `tenon` command says of a model: its work, its layers, a trace of a run."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from running import failed, tenon
from small_models import classifier


def test_a_trace_within_a_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text("""
      local tn = require "tenon"
      local plan = tn.load("classifier.onnx"):compile {}
      plan(tn.zeros { 1, 8 })
      print(pcall(tn.chrome_trace, "inner.json", function() end))""")
    classifier(tmp_path)
    result = tenon("run", "s.lua", "--chrome-trace", "outer.json", cwd=tmp_path)
    assert "expected no trace under way" in result.stdout, result.stderr
    assert len(json.loads((tmp_path / "outer.json").read_text())["traceEvents"]) > 0


def test_a_chrome_trace_is_written_beside_what_a_command_does(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    result = tenon(
        "bench", classifier(tmp_path), "--shape", "x=2x8", "--rounds", 2, "--chrome-trace", trace
    )
    assert result.returncode == 0, result.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    kinds = {event["cat"] for event in events if event["ph"] == "X"}
    assert {"load of plugin", "compile", "run", "partition", "node"} <= kinds

    failed(tenon("inspect", "absent.onnx", "--chrome-trace", tmp_path / "failed.json"), 1, "absent")
    assert json.loads((tmp_path / "failed.json").read_text())["traceEvents"] is not None


def test_inspect_counts_the_work_of_the_shapes_that_it_is_given(tmp_path: Path) -> None:
    def inspected(*shape: str) -> dict:
        return json.loads(tenon("inspect", path, *shape, "--json").stdout)

    path = classifier(tmp_path)
    products = 2 * (8 * 64 + 64 * 4)
    one, many = inspected(), inspected("--shape", "x=10x8")
    assert one["shapes"] == {"x": [1, 8]} and one["inputs"][0]["shape"] == ["batch", 8]
    assert products <= one["flops"] < 2 * products and one["nodes_of_unknown_cost"] == 0
    assert many["flops"] == 10 * one["flops"]
    assert "x[1,8]" in tenon("inspect", path).stdout
    failed(tenon("inspect", path, "--shape", "z=10x8"), 1, "expected one of x, got 'z'")


def test_layers_say_their_implementation_and_who_refused_why(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    planned = tenon("inspect", path, "--backend", "onednn", "--json")
    timed = tenon("bench", path, "--backend", "onednn", "--rounds", "1", "--layers", "--json")
    assert planned.returncode == 0 and timed.returncode == 0, planned.stderr + timed.stderr
    for report in (json.loads(planned.stdout), json.loads(timed.stdout)):
        (first,) = (layer for layer in report["layers"] if layer["name"] == "first")
        assert first["op"] == "Gemm" and first["backend"] == "onednn"
        # Bias and Relu are taken along; the last one where the CPU has no fused multiply-add.
        chosen = first["implementation"]
        assert chosen in ("f32 gemm", "onednn + epilogue")
        whys = {refusal["implementation"]: refusal["why"] for refusal in first["refused"]}
        in_order = [
            "binary",
            "symmetric halves",
            "sparse",
            "amx",
            "int8 gemm",
            "bf16x6",
            "f32 gemm",
        ]
        assert list(whys) == in_order[: 6 if chosen == "f32 gemm" else 7]  # as in the list
        assert whys["int8 gemm"] == "not two operands in 8 bits with known weights"
        assert all("implementation" in layer for layer in report["layers"])
    for command in (["inspect"], ["bench", "--layers"]):
        text = tenon(*command, path, "--backend", "onednn").stdout
        assert chosen in text and "implementations that refused layers" in text
        assert "not two operands in 8 bits with known weights" in text
    assert "layers" not in json.loads(tenon("inspect", path, "--json").stdout)
    failed(tenon("inspect", path, "--precision", "bf16"), 2, "--backend")


def precisions_of(backend: str) -> list[str]:
    """In which the device computes, as the doctor says in JSON and in text."""
    report = json.loads(tenon("plugin", "doctor", "--json").stdout)
    (entry,) = (one for one in report["backends"] if one["id"] == backend)
    (device,) = entry["devices"]
    assert f", computes in {', '.join(device['precisions'])}" in tenon("plugin", "doctor").stdout
    return device["precisions"]


def test_layers_are_shares_of_the_measured_peaks(tmp_path: Path) -> None:
    command = ("bench", classifier(tmp_path), "--rounds", "1", "--layers", "--json")
    timed = json.loads(tenon(*command, "--backend", "onednn").stdout)
    products, streams = timed["peaks"]["flops_per_s"], timed["peaks"]["bytes_per_s"]
    assert set(products) == {"int8", *precisions_of("onednn")}  # all that this CPU has
    assert all(rate > 0 for rate in products.values())
    rates = [stream["rate"] for stream in streams]
    assert len(rates) == 4 and rates == sorted(rates, reverse=True)  # caches first
    for layer in timed["layers"]:
        (rate, *_) = (s["rate"] for s in streams if s["working_set"] >= layer["bytes"])
        least = max(layer["flops"] / products["fp32"], layer["bytes"] / rate)
        assert layer["roofline"] == pytest.approx(least * 1e9 / layer["ns"], rel=1e-6)
    # A backend that does not say what it moves has no such peak.
    reference = json.loads(tenon(*command, "--backend", "reference").stdout)
    assert reference["peaks"]["bytes_per_s"] == []


def test_inspect_makes_nothing_of_the_shape_that_it_is_asked_about(tmp_path: Path) -> None:
    """4 TB of input, a constant of a computed shape, and a Range of 10^12 numbers."""
    model = tmp_path / "huge.onnx"
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Add", ["x", "zeros"], ["sum"], "sum"),
        helper.make_node("Range", ["from", "to", "by"], ["range"]),
        helper.make_node("Cast", ["range"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers"], ["total"], keepdims=0),
        helper.make_node("Add", ["sum", "total"], ["y"], "last"),
    ]
    limits = zip(("from", "to", "by"), (0, 10**12, 1))
    graph = helper.make_graph(
        nodes,
        "huge",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "m"])],
        [helper.make_tensor(name, TensorProto.INT64, [], [n]) for name, n in limits],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), model)
    result = tenon("inspect", model, "--shape", "x=1000000x1000000", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["shapes"] == {"x": [10**6, 10**6]}
    assert 2 * 10**12 <= report["flops"] <= 4 * 10**12


def test_inspect_says_how_alike_layers_are(tmp_path: Path) -> None:
    model, samples = classifier(tmp_path), tmp_path / "data.npz"
    np.savez(samples, x=np.random.default_rng(0).standard_normal((32, 8)).astype("f"))
    result = tenon("inspect", model, "--similarity", "--data", samples)
    assert result.returncode == 0, result.stderr
    assert "most alike" in result.stdout
    summary = json.loads(
        tenon("inspect", model, "--similarity", "--data", samples, "--json").stdout
    )
    assert len(summary["cka"]) == len(summary["values"]) == 2
    refused = tenon("inspect", model, "--similarity")
    assert refused.returncode != 0 and "--data" in refused.stderr


def test_bench_says_how_many_threads_ran(tmp_path: Path) -> None:
    command = ("bench", classifier(tmp_path), "--backend", "onednn", "--rounds", "1")
    chosen = json.loads(tenon(*command, "--json").stdout)["threads"]
    assert 1 <= chosen <= len(os.sched_getaffinity(0))
    assert json.loads(tenon(*command, "--threads", "1", "--json").stdout)["threads"] == 1
    assert "onednn  fp32  1 thread\n" in tenon(*command, "--threads", "1").stdout
    on_reference = ("bench", classifier(tmp_path), "--backend", "reference", "--rounds", "1")
    assert json.loads(tenon(*on_reference, "--json").stdout)["threads"] is None


def test_bench_runs_a_graph_with_states_as_any_other(tmp_path: Path) -> None:
    shapes = {"count": [3, 4], "x": ["n", 4], "next": [3, 4]}
    info = {k: helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()}
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Add", ["count", "total"], ["next"]),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph(nodes, "g", [info["count"], info["x"]], [info["next"], y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    helper.set_model_props(made, {"tenon.state.count": "next"})
    onnx.save(made, tmp_path / "counter.onnx")
    command = ("bench", tmp_path / "counter.onnx", "--shape", "x=5x4", "--rounds", 2, "--json")
    result = tenon(*command)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["rounds"] == 2
