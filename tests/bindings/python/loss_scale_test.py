# SPDX-License-Identifier: Apache-2.0
"""A step with a loss scale goes on from the state_dict of PyTorch's GradScaler, bit for bit."""

import json
from pathlib import Path

import numpy as np
import pytest
import tenon

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/grad_scaler.json").read_text())
INPUTS = {1: 1.0, 0: np.inf, -1: np.nan}


def step_of(state: dict) -> tenon.Plan:
    """One step on loss = w * x, with the factors and the interval of the state_dict."""
    graph = tenon.Graph()
    w = graph.add_constant(np.ones(1, "f"), "w")
    product = graph.add_node("Mul", [w, graph.add_input("x", "float32", [1])])
    graph.add_output("loss", graph.add_node("ReduceSum", [product], keepdims=0))
    gradients = dict(wrt=["w"], output="scaled_loss", has_aux=True)
    options = ("growth_factor", "backoff_factor", "growth_interval")
    model = (
        graph.build()
        .apply("precision.loss_scale")
        .apply("autodiff.value_and_grad", **gradients)
        .apply("precision.unscale")
        .apply("trainer.step", optimizer="trainer.sgd")
        .apply("precision.loss_scale_step", **{name: state[name] for name in options})
    )
    return model.compile(backend="reference")


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_the_state_of_pytorchs_scaler_is_loaded(case):
    state = case["state_dict"]
    plan = step_of(state)
    plan.set_state("loss_scale/scale", np.float32(state["scale"]))
    plan.set_state("loss_scale/growth_tracker", np.int32(state["_growth_tracker"]))
    plan.set_state("w", np.float32([case["parameter"]]))

    for kind, (scale, tracker, parameter) in zip(case["inputs"], case["after"], strict=True):
        plan.run({"x": np.float32([INPUTS[kind]]), "learning_rate": np.float32(GOLDEN["rate"])})
        assert float(plan.get_state("loss_scale/scale")) == scale
        assert int(plan.get_state("loss_scale/growth_tracker")) == tracker
        assert plan.get_state("w")[0] == pytest.approx(parameter, abs=1e-6)
    assert 0 in case["inputs"] and 1 in case["inputs"]
