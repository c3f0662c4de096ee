# SPDX-License-Identifier: Apache-2.0
"""Recomputation in a training run: what is computed again has the type that it had the first time,
and a budget is counted in the precision of the plan that runs."""

import re

import numpy as np
import pytest
import tenon as tn

LAYERS, WIDTH, ROWS = 6, 48, 256


def layer(x):
    return x + tn.tanh(tn.nn.Linear(WIDTH)(tn.gelu(tn.nn.Linear(2 * WIDTH)(x))))


@pytest.fixture(scope="module")
def model():
    layers = [layer] * LAYERS
    return tn.nn.build(tn.nn.Sequential(*layers, tn.nn.Linear(3)), {"x": ("N", WIDTH)}, seed=0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2 * ROWS, WIDTH)).astype("float32")
    return {"x": x, "label": np.argmax(x[:, :3], 1)}


def trained(model, data, precision, budget=None, **options):
    joint = {"autodiff.recompute": {} if budget == 0 else {"budget": budget}}
    made = tn.train(
        model,
        data,
        epochs=2,
        shuffle=False,
        optimizer=tn.optim.adamw(lr=1e-2),
        precision=precision,
        joint={} if budget is None else joint,
        **{"batch": ROWS, **options},
    )
    weights = {name: np.asarray(x) for name, x in made.constants().items()}
    return [x["loss"] for x in made.report["history"]], weights


def least(model, data, precision):
    """The bytes that the smallest plan takes, as the refusal of a smaller budget names them."""
    with pytest.raises(tn.OutOfRange, match="expected at least") as refused:
        trained(model, data, precision, 2)
    return int(re.search(r"at least (\d+) bytes", str(refused.value))[1])


def test_plain_kernels_give_the_same_bits_in_bf16(model, data):
    few = {name: x[:24] for name, x in data.items()}
    runs = [
        trained(model, few, "bf16", budget, batch=8, backend="reference") for budget in (None, 0)
    ]
    assert runs[0][0] == runs[1][0]
    for name, x in runs[0][1].items():
        np.testing.assert_array_equal(runs[1][1][name], x, name)
    single = trained(model, few, "fp32", batch=8, backend="reference")[0]
    assert single != runs[0][0], "the runs are in bf16"


# Fused kernels round what they do not store later: in float32 the last bits differ, in bfloat16 the
# eighth.
@pytest.mark.parametrize(("precision", "eps"), [("fp32", 2.0**-24), ("bf16", 2.0**-9)])
def test_fused_kernels_give_the_same_within_a_rounding(model, data, precision, eps):
    losses, weights = trained(model, data, precision)
    again, same = trained(model, data, precision, least(model, data, precision))
    np.testing.assert_allclose(again, losses, 4 * eps)
    apart = [np.abs(same[name] - x).mean() / np.abs(x).mean() for name, x in weights.items()]
    assert max(apart) < 16 * eps


def test_a_budget_is_counted_in_the_precision_of_the_run(model, data):
    half, whole = (least(model, data, precision) for precision in ("bf16", "fp32"))
    assert 0.45 * whole < half < 0.85 * whole
    trained(model, data, "bf16", half)
    with pytest.raises(tn.OutOfRange, match=f"at least {whole} bytes"):
        trained(model, data, "fp32", half)


def with_rest(data):
    """A last batch of 8: parameters and their gradients are nearly all that its step takes."""
    return {name: np.concatenate([x, x[:8]]) for name, x in data.items()}


def test_a_share_is_one_of_a_whole_batch_in_each_step(model, data):
    share = 1.02 * least(model, data, "fp32") / whole_peak(model, data)
    with pytest.raises(tn.OutOfRange, match="expected at least"):
        trained(model, {k: x[:8] for k, x in data.items()}, "fp32", share, batch=8)
    losses = trained(model, with_rest(data), "fp32")[0]
    again = trained(model, with_rest(data), "fp32", share)[0]
    np.testing.assert_allclose(again, losses, 2.0**-20)


def whole_peak(model, data):
    """The planned peak of a step that recomputes nothing: what a share is one of."""
    with pytest.raises(tn.OutOfRange, match="expected at least") as refused:
        trained(model, data, "fp32", 0.01)
    return 100 * int(re.search(r"got (\d+)", str(refused.value))[1])


def test_the_largest_batch_is_found_with_a_share(model, data):
    options = {"epochs": 1, "optimizer": "adam", "memory": 2_000_000}
    joint = {"autodiff.recompute": {"budget": 0.85}}  # batches of 64 cannot do with that
    plain, again = (tn.train(model, data, **options, joint=j).report for j in ({}, joint))
    assert again["batch"] > plain["batch"]
    assert again["planned_bytes"] <= 2_000_000


def test_a_run_with_a_share_goes_on_with_batches_of_another_size(model, data, tmp_path):
    options = {"optimizer": "adam", "run": str(tmp_path), "resume": True}
    joint = {"autodiff.recompute": {"budget": 0.95}}
    for batch, epochs in ((ROWS, 1), (ROWS // 2, 2)):
        made = tn.train(model, data, batch=batch, epochs=epochs, joint=joint, **options)
    assert made.report["steps"] == 2 + 4
