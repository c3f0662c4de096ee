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
