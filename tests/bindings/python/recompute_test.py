# SPDX-License-Identifier: Apache-2.0
"""tn.checkpoint and the pass autodiff.recompute: the same values and gradients to the bit, draws
too, in less memory."""

import re

import numpy as np
import pytest
import tenon as tn
from same_sums import assert_same

RANDOM = np.random.default_rng(2)
WIDTH, LAYERS = 64, 8
WEIGHTS = [
    {
        "a": RANDOM.normal(size=(WIDTH, 4 * WIDTH)) / 16,
        "b": RANDOM.normal(size=(4 * WIDTH, WIDTH)) / 16,
    }
    for _ in range(LAYERS)
]
WEIGHTS = [{k: v.astype("float32") for k, v in w.items()} for w in WEIGHTS]
X = RANDOM.normal(size=(256, WIDTH)).astype("float32")
RECOMPUTE = {"autodiff.recompute": {}}


def block(p, x):
    centred = x - x.mean(-1, keepdims=True)
    normal = centred / tn.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return x + tn.tanh(normal @ p["a"]) @ p["b"]


def network(f):
    def loss(params, x):
        for p in params:
            x = f(p, x)
        return (x * x).mean()

    return loss


def batch(backend):  # the plain kernels take their time, and too few rows take little memory
    return X[:128] if backend == "reference" else X


def gradients(f, backend="reference"):
    x = batch(backend)
    g = tn.value_and_grad(network(f), backend=backend)
    loss, grads = g(WEIGHTS, x)
    return [loss, *(grads[i][k] for i in range(LAYERS) for k in "ab")], g


def same(got, wanted):
    for mine, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("backend", ["reference", None])
def test_checkpoint_changes_no_bit(backend):
    same(gradients(tn.checkpoint(block), backend)[0], gradients(block, backend)[0])


def arena(made):
    report = made.describe()
    parts = [p.get("arena_bytes", p.get("workspace_bytes", 0)) for p in report["partitions"]]
    return max(parts) + report.get("arena_bytes", 0)


def test_checkpoint_takes_less_memory():
    kept, again = (gradients(f, None)[1] for f in (block, tn.checkpoint(block)))
    if not arena(kept):
        pytest.skip("the default backend here reports no arena")
    # A block keeps its input alone, one value where it kept four of it and two as large together.
    assert arena(again) < 0.5 * arena(kept)


def test_checkpoint_is_a_function_like_others():
    f = tn.checkpoint(lambda x, scale=2.0: tn.sin(x) * scale)
    np.testing.assert_allclose(f(X[0]), np.sin(X[0]) * 2, rtol=1e-5)
    np.testing.assert_allclose(
        tn.grad(lambda x: f(x, scale=3.0).sum())(X[0]), np.cos(X[0]) * 3, rtol=1e-5
    )
    second = tn.grad(lambda x: tn.grad(lambda v: f(v).sum())(x).sum())
    np.testing.assert_allclose(second(X[0]), -2 * np.sin(X[0]), rtol=1e-5, atol=1e-6)
    many = tn.vmap(tn.grad(lambda x: f(x).sum()))
    np.testing.assert_allclose(many(X[:3]), np.cos(X[:3]) * 2, rtol=1e-5)
    pushed = tn.jvp(f, (X[0],), (np.ones_like(X[0]),))[1]
    np.testing.assert_allclose(pushed, np.cos(X[0]) * 2, rtol=1e-5)
    looped = tn.grad(lambda x: tn.fori_loop(0, 3, lambda i, s: tn.checkpoint(tn.sin)(s), x).sum())
    plain = tn.grad(lambda x: tn.fori_loop(0, 3, lambda i, s: tn.sin(s), x).sum())
    np.testing.assert_array_equal(looped(X[0]), plain(X[0]))


def test_checkpoint_takes_what_it_uses_from_outside_and_gives_trees():
    def loss(w, x, n):
        f = tn.checkpoint(lambda v: {"y": v * w, "places": tn.argmax(v), "n": n + 1})
        made = f(x)
        return (made["y"] * tn.astype(made["n"], "float32")).sum()

    by_w, by_x = tn.grad(loss, argnums=(0, 1))(X[0], X[1], np.int64(3))
    np.testing.assert_allclose(by_w, 4 * X[1], rtol=1e-6)
    np.testing.assert_allclose(by_x, 4 * X[0], rtol=1e-6)


def test_checkpoint_repeats_its_draws():
    f = tn.checkpoint(lambda x: tn.dropout(x, 0.5))

    def both(x):
        y = f(x)
        return y.sum(), (y, f(x))

    slope, (y, other) = tn.grad(both, has_aux=True)(X)
    np.testing.assert_array_equal(slope != 0, y != 0)
    assert 0.4 < (y == 0).mean() < 0.6
    assert ((y == 0) != (other == 0)).mean() > 0.3, "each call draws other numbers"


def dropping(p, x):
    return tn.dropout(block(p, x), 0.25)


@pytest.mark.parametrize("f", [block, dropping])
@pytest.mark.parametrize("backend", ["reference", None])
def test_the_pass_changes_no_bit(f, backend):
    made = [
        tn.Step(network(f), WEIGHTS, tn.optim.sgd(lr=0.1), backend=backend, joint=joint)
        for joint in ({}, RECOMPUTE)
    ]
    for _ in range(2):
        losses = [step(batch(backend)) for step in made]
        np.testing.assert_array_equal(*losses)
    for one, other in zip(*(step.parameters for step in made)):
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])
    report = made[1].joint_reports["autodiff.recompute"]
    assert report["segments"] >= 2 and report["nodes_again"] > 10
    if backend is None:  # fewer rows take less beside the gradients of weights
        assert report["planned_peak"] < 0.7 * report["planned_peak_before"]
        assert not arena(made[0]) or arena(made[1]) < 0.8 * arena(made[0])


def with_budget(f, **given):
    joint = {"autodiff.recompute": given}
    return tn.Step(network(f), WEIGHTS, tn.optim.sgd(lr=0.1), joint=joint)


@pytest.mark.parametrize("f", [block, dropping])
def test_a_budget_is_kept_without_a_change_of_a_bit(f):
    plain = tn.Step(network(f), WEIGHTS, tn.optim.sgd(lr=0.1))
    wanted = [plain(X) for _ in range(2)]
    costs = []
    for share in (0.65, 0.75, 0.85, 0.95, 1):
        step = with_budget(f, budget=share)
        assert_same([step(X) for _ in range(2)], wanted)
        for one, other in zip(step.parameters, plain.parameters):
            for key in one:
                assert_same(one[key], other[key])
        report = step.joint_reports["autodiff.recompute"]
        assert report["planned_peak"] <= share * report["planned_peak_before"]
        costs.append(report["cost_again"])
    assert costs == sorted(costs, reverse=True), "a larger budget never computes more again"
    assert costs[0] > 0 and costs[-1] == 0


def test_a_budget_beyond_all_bytes_computes_nothing_again():
    step = with_budget(block, budget=1e300)
    step(X)
    assert step.joint_reports["autodiff.recompute"]["nodes_again"] == 0


def uneven(params, x):
    """Layers whose results shrink, as a CNN's do."""
    for p in params:
        y = x
        for _ in range(3):
            y = tn.tanh(y * p["scale"]) + y
        x = tn.relu(y @ p["w"])
    return (x * x).mean()


@pytest.mark.parametrize("widths", [[64] * 9, [256, 128, 128, 64, 64, 32, 32, 16, 16, 8]])
def test_no_budget_has_a_lower_peak_than_the_pass_without_one(widths):
    random = np.random.default_rng(3)
    weights = [
        {"scale": np.ones(a, "float32"), "w": random.normal(size=(a, b)).astype("float32") / a}
        for a, b in zip(widths, widths[1:])
    ]
    x = random.normal(size=(2048, widths[0])).astype("float32")

    def step(**given):
        joint = {"autodiff.recompute": given}
        return tn.Step(uneven, weights, tn.optim.sgd(lr=0.1), joint=joint, backend="reference")

    made = step()
    made.trace(x)
    report = made.joint_reports["autodiff.recompute"]
    assert report["planned_peak"] < 0.62 * report["planned_peak_before"]
    with pytest.raises(tn.OutOfRange) as refused:
        step(budget=1000).trace(x)
    least = int(re.search(r"at least (\d+) bytes", str(refused.value))[1])
    assert report["planned_peak"] == least


def test_a_budget_is_judged_by_the_plan_that_will_run():
    def peak(**given):
        step = with_budget(block, budget=1, **given)
        step.trace(np.tile(X, (64, 1)))
        return step.joint_reports["autodiff.recompute"]["planned_peak_before"]

    def peak_of_step(**given):
        joint = {"autodiff.recompute": {"budget": 1}}
        step = tn.Step(network(block), WEIGHTS, tn.optim.sgd(lr=0.1), joint=joint, **given)
        step.trace(np.tile(X, (64, 1)))
        return step.joint_reports["autodiff.recompute"]["planned_peak_before"]

    assert 0.5 <= peak(precision="bf16") / peak() < 0.75
    assert peak_of_step(precision="bf16") == peak(precision="bf16")
    assert peak_of_step() == peak()
    assert peak(precision="fp32") == peak()
    with pytest.raises(tn.InvalidArgument, match="precision: expected"):
        peak(precision="half")


def test_a_budget_in_bytes_keeps_what_was_measured_as_dear():
    plain, _ = tn.Step(network(block), WEIGHTS, tn.optim.sgd(lr=0.1)).trace(X)
    products = re.findall(r"= MatMul\(.*@(\S+)", plain.text())[: 2 * LAYERS]
    whole = with_budget(block, budget=1)
    whole.trace(X)
    before = whole.joint_reports["autodiff.recompute"]["planned_peak_before"]
    dear = dict.fromkeys(products, 1e3)  # ms
    for share, times in ((0.9, dear), (0.7, {})):
        step = with_budget(block, budget=int(share * before), times=times)
        text = step.trace(X)[0].text()
        assert step.joint_reports["autodiff.recompute"]["planned_peak"] <= share * before
        again = len(re.findall(r"= MatMul\(.*/again", text))
        assert (again == 0) == bool(times), (share, again)


def test_the_first_of_three_is_free_until_its_turn():
    def loss(w, x):
        for i in range(3):
            x = tn.tanh(x @ w[i])
        return x.sum()

    w = [RANDOM.normal(size=(8, 8)).astype("float32") for _ in range(3)]
    kept, _ = tn.Step(loss, w, tn.optim.sgd(lr=0.1)).trace(X[:, :8])
    again, _ = tn.Step(loss, w, tn.optim.sgd(lr=0.1), joint=RECOMPUTE).trace(X[:, :8])

    def idle(text):  # the lines between the last forward and the first backward use of the first
        lines = text.splitlines()
        name = next(line for line in lines if "= Tanh(" in line).split(":")[0].strip()
        uses = [
            i for i, line in enumerate(lines) if re.search(rf"[(, ]{re.escape(name)}[,)]", line)
        ]
        loss = next(i for i, line in enumerate(lines) if "= ReduceSum(" in line)
        return [i for i in uses if i > loss]

    assert idle(kept.text()), "the backward pass reads the first activation"
    assert not idle(again.text()), "it reads one that is computed again"


def report_of_chain(layers):
    """Weights that are broadcast, whose gradients are sums over all samples."""

    def loss(params, x):
        for w in params:
            x = tn.tanh(x * w)
        return x.sum()

    step = tn.Step(loss, [np.ones(64, "f")] * layers, tn.optim.sgd(lr=0.1), joint=RECOMPUTE)
    step.trace(np.ones((32, 64), "f"))
    return step.joint_reports["autodiff.recompute"]


def test_gradients_of_broadcasts_are_summed_before_the_next_segment():
    report = report_of_chain(64)
    assert report["planned_peak"] < 0.5 * report["planned_peak_before"]


@pytest.mark.parametrize("layers", range(1, 7))
def test_nothing_is_computed_again_that_saves_nothing(layers):
    report = report_of_chain(layers)
    assert report["planned_peak"] <= report["planned_peak_before"]
    assert report["nodes_again"] == 0 or report["planned_peak"] < report["planned_peak_before"]


def test_what_is_no_joint_graph_is_refused():
    model = tn.jit(lambda x: x * 2).trace(X)
    with pytest.raises(tn.TenonError, match="expected a graph with gradients"):
        model.apply("autodiff.recompute")
