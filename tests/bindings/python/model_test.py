# SPDX-License-Identifier: Apache-2.0
import copy
import gc
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tenon


def test_a_model_lists_its_inputs_and_outputs(dense):
    assert dense.inputs == [tenon.Port("x", "float32", ("batch", 4))]
    assert dense.outputs == [tenon.Port("y", "float32", ("batch", 2))]


def test_a_plan_computes_what_numpy_computes(dense):
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    w = np.asarray(dense.constants()["w"])

    (y,) = dense.compile(backend="reference")(x)

    np.testing.assert_allclose(y, np.maximum(x @ w, 0), rtol=1e-6)


def test_inputs_by_name_and_outputs_by_name(dense):
    plan = dense.compile(backend="reference")
    x = np.ones((1, 4), "float32")

    assert plan(x=x)["y"].tolist() == plan.run({"x": x})[0].tolist() == plan(x)[0].tolist()
    with pytest.raises(KeyError, match="expected one of y, got 'z'"):
        plan(x)["z"]


def test_taps_are_handed_out_after_the_outputs(dense):
    plan = dense.compile(backend="reference", taps=["product"])
    x = -np.ones((1, 4), "float32")

    y = plan(x)

    assert plan.names == ("y", "product")
    np.testing.assert_allclose(y["product"], x @ np.asarray(dense.constants()["w"]))


def test_an_unknown_tap_is_named(dense):
    with pytest.raises(tenon.NotFound, match="no value is called 'prodct'"):
        dense.compile(backend="reference", taps=["prodct"])


def test_text_round_trips(dense):
    text = dense.text(data=True)

    again = tenon.parse(text)

    assert again.text(data=True) == text
    assert dense.diff(again) == ""


def test_models_can_be_copied_and_pickled(dense):
    smaller = dense.apply("fusion.default")

    assert copy.deepcopy({"model": dense})["model"] is copy.copy(dense) is dense
    again = pickle.loads(pickle.dumps(smaller))
    assert again.text(data=True) == smaller.text(data=True)
    assert again.report == smaller.report


def test_a_broken_text_is_an_error_with_its_place():
    with pytest.raises(tenon.InvalidArgument, match="line 1"):
        tenon.parse("graph { input %x: f33[2] }")


def test_inspection_counts(dense):
    seen = dense.inspect()

    assert seen["operators"] == {"MatMul": 1, "Relu": 1}
    assert seen["parameters"] == 8


def test_describe_and_profile_list_each_node(dense):
    plan = dense.compile(backend="reference")
    x = np.ones((2, 4), "float32")
    plan.prepare(x)

    assert plan.describe()["partitions"]
    json.dumps(plan.profile(x))


def test_models_and_plans_show_what_goes_in_and_comes_out(dense):
    assert "x: float32[" in repr(dense)
    assert repr(dense.compile(backend="reference")) == repr(dense).replace("Model", "Plan")


def test_a_builder_cannot_be_used_twice():
    graph = tenon.Graph()
    graph.add_output("y", graph.add_input("x", "float32", [1]))
    graph.build()

    with pytest.raises(tenon.FailedPrecondition, match="built already"):
        graph.build()


def test_threads_are_left_to_backends_that_have_them(dense):
    plan = dense.compile(backend="reference", threads=2)

    assert plan(np.ones((1, 4), "float32"))[0].shape == (1, 2)


def test_an_unknown_option_of_a_plan_is_named(dense):
    with pytest.raises(tenon.InvalidArgument, match="thraeds"):
        dense.compile(backend="reference", thraeds=2)


def test_plugins_and_components_are_listed():
    assert "reference" in [plugin["id"] for plugin in tenon.plugins()]
    assert "reference" in [one["id"] for one in tenon.components("backend")]


def test_nothing_is_held_when_all_is_dropped():
    program = """if True:
        import gc, json, tenon, numpy as np
        graph = tenon.Graph()
        w = graph.add_constant(np.ones((4, 2), "float32"))
        x = graph.add_input("x", "float32", [1, 4])
        graph.add_output("y", graph.add_node("MatMul", [x, w]))
        model = graph.build()
        y = model.compile(backend="reference")(np.ones((1, 4), "float32"))
        del graph, w, x, model, y
        gc.collect()
        held = json.loads(tenon.session().balance())
        assert not any(count for counts in held.values() for count in counts.values()), held
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_a_chrome_trace_shows_what_a_run_was_made_of(tmp_path):
    double = tenon.jit(lambda v: v + v)
    with tenon.chrome_trace(tmp_path / "trace.json"):
        double(np.ones(7, "float32"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kinds = {event["cat"] for event in events if event["ph"] == "X"}

    assert {"compile", "run", "partition", "node"} <= kinds
    assert all(event["dur"] >= 0 for event in events)


def test_packed_weights_are_counted_while_a_plan_holds_them():
    def packed():
        return json.loads(tenon.session().balance()).get("onednn", {}).get("bytes", 0)

    if "onednn" not in [plugin["id"] for plugin in tenon.plugins()]:
        pytest.skip("the plugin onednn is not built")
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", [8, 512])
    w = graph.add_constant(np.ones((512, 512), "float32"))
    graph.add_output("y", graph.add_node("MatMul", [x, w]))
    before = packed()
    plan = graph.build().compile(backend="onednn")
    plan(np.ones((8, 512), "float32"))
    held = packed()
    del plan, graph, x, w
    gc.collect()

    assert held - before >= 512 * 512 * 4
    assert packed() == before


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "tenon", "--help"], capture_output=True, text=True)

    if "expected the command" in done.stderr:
        pytest.skip("the command tenon is not built")
    assert done.returncode == 0
    assert "inspect" in done.stdout


def test_models_that_look_alike_are_not_taken_for_each_other():
    x = np.ones((2, 3), "f")
    models = [tenon.nn.build(tenon.nn.Linear(2), {"x": ("N", 3)}, seed=i) for i in range(3)]
    for model in models:
        np.testing.assert_array_equal(model(x), model.compile()(x)[0])
