# SPDX-License-Identifier: Apache-2.0
"""Plans, compiled functions, components and layers are copied and pickled, or say what to do."""

import copy
import pickle

import numpy as np
import pytest
import tenon as tn

X = np.float32([[1.0, -2.0]])


@tn.jit
def doubled(x):
    return x * 2


def pickled(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_a_plan_comes_back_with_its_states(again):
    text = """graph {
  input %x: f32[2]
  input %sum: f32[2]
  %next: f32[2] = Add(%sum, %x) @next
  %half: f32[2] = Identity(%next) @half
  %twice: f32[2] = Add(%half, %half) @twice
  output next = %next
  output twice = %twice
  state %sum -> %next
}
"""
    plan = tn.parse(text).compile(backend="reference", taps=["half"])
    plan(X[0])
    other = again(plan)
    assert np.array_equal(other(X[0])["half"], 2 * X[0])
    assert np.array_equal(plan.get_state("sum"), X[0])


def test_a_compiled_function_is_copied_and_pickled_as_functions_are():
    assert copy.copy(doubled) is copy.deepcopy([doubled])[0] is pickled(doubled) is doubled
    for nameless in (tn.jit(lambda x: x), tn.grad(doubled), tn.jit(doubled)):
        assert copy.deepcopy(nameless) is nameless
        with pytest.raises(pickle.PicklingError, match="compile it where it is loaded"):
            pickle.dumps(nameless)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_components_come_back_with_their_options(again, tmp_path):
    np.savez(tmp_path / "data.npz", x=X, label=X)
    data = again(tn.data.npz(tmp_path / "data.npz"))
    assert len(data) == 1 and np.array_equal(data.batch([0])["x"], X)
    optimizer = again(tn.optim.sgd(lr=0.5, momentum=0.25))
    step = tn.Step(lambda w: (w * w).sum(), np.float32([1.0]), optimizer)
    step()
    assert step.parameters == 0.0
    cosine = tn.schedule.cosine()
    assert again(cosine)(3, 10) == cosine(3, 10)


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_a_copied_network_has_layers_of_its_own_that_are_shared_as_before(again):
    layer = tn.nn.Linear(2)
    net = tn.nn.Sequential(layer, tn.nn.Linear(2), layer)
    other = again(net)
    assert other.layers[0] is other.layers[2] is not layer
    both = tn.nn.build(lambda x: other(net(x)), {"x": ("N", 2)}, seed=0)
    assert len(both.parameters()) == 8
    alone = tn.nn.build(other, {"x": ("N", 2)}, seed=0)
    assert np.array_equal(tn.nn.build(net, {"x": ("N", 2)}, seed=0)(X), alone(X))


def test_what_cannot_be_pickled_says_what_to_do():
    step = tn.Step(lambda w: (w * w).sum(), np.float32([1.0]), tn.optim.sgd(lr=0.5))
    for again in (copy.copy, copy.deepcopy, pickled):
        with pytest.raises(TypeError, match=r"keep state\(\), make the Step again"):
            again(step)
    with pytest.raises(TypeError, match="stands for Python objects"):
        pickle.dumps(tn.callback(step=print))
    assert copy.deepcopy(tn.callback(step=print)).id == "python.function"
