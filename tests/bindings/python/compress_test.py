# SPDX-License-Identifier: Apache-2.0
"""The pass autodiff.compress: gradients of the right mean within a stated variance, and fewer
bytes between forward and backward."""

import numpy as np
import pytest
import tenon as tn

RANDOM = np.random.default_rng(5)
COMPRESS = {"autodiff.compress": {"min_bytes": 0}}
ROWS, WIDE, OUT = 256, 64, 32
X = RANDOM.normal(size=(ROWS, 16)).astype("float32")
A = (RANDOM.normal(size=(16, WIDE)) / 4).astype("float32")
B = (RANDOM.normal(size=(WIDE, OUT)) / 8).astype("float32")
C = RANDOM.normal(size=(OUT, 4)).astype("float32")
T = RANDOM.normal(size=(ROWS, 4)).astype("float32")


def gradients(f, params, joint, n=1):
    """Of n steps from the same parameters, each with another draw: what a rate of 1 takes off."""
    made, out = tn.Step(f, params, tn.optim.sgd(lr=1.0), joint=joint, backend="reference"), []
    for _ in range(n):
        made(X)
        now = made.parameters
        out.append({k: params[k] - now[k] for k in params})
        back = {name: params[name[-1]] for name in made.state() if name[-2:] in (".a", ".b")}
        made.set_state({**made.state(), **back})
    return out, made.joint_reports.get("autodiff.compress")


def linear(p, x):
    """The backward pass is linear in x @ a, which the gradient of b reads."""
    return (((x @ p["a"]) @ p["b"]) @ C * T).sum()


PARAMS = {"a": A, "b": B}


def test_the_mean_of_gradients_stays_and_their_variance_is_bounded():
    n = 300
    (exact,), _ = gradients(linear, PARAMS, None)
    draws, report = gradients(linear, PARAMS, COMPRESS, n)
    assert report["int8"] == 1 and report["bfloat16"] == 0, report
    got = np.stack([d["b"] for d in draws]).astype("float64")
    # dB = H^T dY: H is kept by groups of 256 numbers, four rows each.
    h, dy = (X @ A).astype("float64"), (T @ C.T).astype("float64")
    groups = h.reshape(-1, 256)
    scale = (groups.max(1) - groups.min(1)) / 255
    scale = np.repeat(scale, 4)[:, None]
    bound = (scale**2 / 4 * dy**2).sum(0)  # of each of [64, 32]
    error = got.mean(0) - exact["b"]
    # 2,048 numbers: the largest of so many is within 4.5 deviations.
    assert (np.abs(error) <= 4.5 * np.sqrt(bound / n) + 1e-4).all()
    assert abs((error / np.sqrt(bound / n)).mean()) < 0.15
    variance = got.var(0, ddof=1)
    assert variance.mean() <= bound.mean()
    assert variance.mean() >= 0.4 * bound.mean(), "s^2/6 where x is spread evenly, s^2/4 at most"
    np.testing.assert_allclose(draws[0]["a"], exact["a"], rtol=1e-4, atol=1e-4)


def relu_net(p, x):
    h = tn.relu(x @ p["a"])
    return ((tn.relu(h @ p["b"]) @ C - T) ** 2).mean()


def gelu_net(p, x):
    h = x @ p["a"]
    h = h * 0.5 * (1 + tn.erf(h * 0.5**0.5))
    return ((tn.tanh(h @ p["b"]) @ C - T) ** 2).mean()


def test_a_relu_keeps_its_mask_exactly():
    (exact,), _ = gradients(relu_net, PARAMS, None)
    draws, report = gradients(relu_net, PARAMS, COMPRESS, 40)
    assert report["bytes"] < 0.6 * report["bytes_before"], report
    mean = np.mean([d["a"] for d in draws], axis=0)
    np.testing.assert_allclose(mean, exact["a"], atol=0.01 * np.abs(exact["a"]).max())


def test_the_gradient_of_a_relu_reads_its_result():
    """Nothing but results of the two Relus and what the loss squares is saved."""
    _, report = gradients(relu_net, PARAMS, {"autodiff.compress": {"form": "bfloat16"}})
    assert report["bytes_before"] == 4 * ROWS * (WIDE + OUT + 4), report


def test_a_mask_is_read_from_bfloat16_and_not_kept_beside_it():
    form = {"form": "bfloat16", "min_bytes": 0}
    (exact,), _ = gradients(relu_net, PARAMS, None)
    (got,), report = gradients(relu_net, PARAMS, {"autodiff.compress": form})
    assert report["bytes"] == report["bytes_before"] // 2, report
    for k in "ab":
        np.testing.assert_allclose(got[k], exact[k], atol=0.01 * np.abs(exact[k]).max())


def test_nothing_is_packed_that_a_plan_of_bfloat16_keeps_in_two_bytes():
    form = {"form": "bfloat16", "precision": "bf16"}
    wide = {"a": np.tile(A, 4), "b": np.tile(B, (4, 1))}  # smaller results stay in float32
    (exact,), _ = gradients(linear, wide, None)
    (got,), report = gradients(linear, wide, {"autodiff.compress": form})
    assert report["bfloat16"] == 0 and report["bytes"] == report["bytes_before"], report
    np.testing.assert_array_equal(got["b"], exact["b"])


def test_what_is_not_linear_is_kept_in_bfloat16():
    (exact,), _ = gradients(gelu_net, PARAMS, None)
    (got,), report = gradients(gelu_net, PARAMS, COMPRESS)
    assert report["bfloat16"] >= 1 and report["int8"] >= 1, report
    for k in "ab":
        np.testing.assert_allclose(got[k], exact[k], atol=0.02 * np.abs(exact[k]).max())


def test_all_in_bfloat16_has_a_bounded_error():
    (exact,), _ = gradients(linear, PARAMS, None)
    (got,), report = gradients(linear, PARAMS, {"autodiff.compress": {"form": "bfloat16"}})
    assert report["int8"] == 0 and report["bytes"] <= 0.51 * report["bytes_before"], report
    h, dy = np.abs(X @ A).astype("float64"), np.abs(T @ C.T).astype("float64")
    assert (np.abs(got["b"] - exact["b"]) <= 2.0**-8 * (h.T @ dy) + 1e-4).all()


def test_codes_take_little_more_than_a_quarter():
    _, report = gradients(linear, PARAMS, COMPRESS)
    assert report["bytes"] == ROWS * WIDE + 2 * 4 * ROWS * WIDE // 256
    assert report["bytes"] <= 0.26 * report["bytes_before"], report


def test_one_seed_is_one_run_and_another_seed_another():
    first, _ = gradients(linear, PARAMS, COMPRESS, 2)
    again, _ = gradients(linear, PARAMS, COMPRESS, 2)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one["b"], other["b"])
    assert (first[0]["b"] != first[1]["b"]).any(), "each step draws other numbers"
    other, _ = gradients(linear, PARAMS, {"autodiff.compress": {"min_bytes": 0, "seed": 7}})
    assert (first[0]["b"] != other[0]["b"]).any()


def test_constant_groups_and_zeros_come_back_exactly():
    zero = {"a": np.zeros_like(A), "b": B}
    (exact,), _ = gradients(linear, zero, None)
    (got,), _ = gradients(linear, zero, COMPRESS)
    np.testing.assert_array_equal(got["b"], exact["b"])


def test_small_values_stay_as_they_are():
    (exact,), _ = gradients(linear, PARAMS, None)
    (got,), report = gradients(linear, PARAMS, {"autodiff.compress": {"min_bytes": 10**9}})
    assert report["int8"] == report["bfloat16"] == 0
    np.testing.assert_array_equal(got["b"], exact["b"])


def test_it_goes_behind_recomputation():
    blocks = [{"a": A @ B[:, :16], "b": B[:16, :16]} for _ in range(8)]

    def deep(params, x):
        for p in params:
            x = x + tn.tanh(x @ p["a"]) @ p["b"]
        return (x * x).mean()

    both = {"autodiff.recompute": {}, "autodiff.compress": {"min_bytes": 0}}
    losses = []
    for joint in (None, both):
        made = tn.Step(deep, blocks, tn.optim.sgd(lr=0.1), joint=joint, backend="reference")
        losses.append([float(made(X)) for _ in range(5)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.01)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: tn.cond(y.sum() > 0, lambda a: tn.tanh(a) * 2, lambda a: tn.sin(a) * a, y),
        lambda y: tn.fori_loop(0, 3, lambda i, a: tn.tanh(a + 1), y),
        lambda y: tn.scan(lambda c, a: (tn.tanh(c + a), c * a), y * 0, tn.stack([y, y]))[0],
    ],
    ids=["cond", "fori_loop", "scan"],
)
def test_what_only_the_gradient_reads_of_control_flow_is_packed_behind_it(f):
    losses = []
    for joint in (None, COMPRESS):
        made = tn.Step(
            lambda p, x: (f(x @ p["a"]) @ p["b"]).sum(1).mean(),
            PARAMS,
            tn.optim.sgd(lr=0.1),
            joint=joint,
            backend="reference",
        )
        losses.append([float(made(X)) for _ in range(4)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)


def test_bad_options_and_graphs_are_refused():
    with pytest.raises(tn.InvalidArgument, match="group"):
        gradients(linear, PARAMS, {"autodiff.compress": {"group": 8}})
    with pytest.raises(tn.InvalidArgument, match="form"):
        gradients(linear, PARAMS, {"autodiff.compress": {"form": "int4"}})
    model = tn.jit(lambda x: x * 2).trace(X) if hasattr(tn.jit(lambda x: x), "trace") else None
    if model is not None:
        with pytest.raises(tn.InvalidArgument, match="expected a graph with gradients"):
            model.apply("autodiff.compress")
