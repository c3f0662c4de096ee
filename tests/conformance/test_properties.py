# SPDX-License-Identifier: Apache-2.0
"""What ONNX's cases leave out: properties that hold between forms of an operator."""

import numpy as np
import pytest
from onnx_run import run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([4, 2, 3], np.int32)


def flipped(x):
    """Each sequence of [steps, batch, ..] backwards, within its length."""
    out = np.zeros_like(x)
    for b, length in enumerate(LENGTHS):
        out[:length, b] = x[:length, b][::-1]
    return out


def weights(gates, directions=1, seed=5):
    random = np.random.default_rng(seed)
    shapes = (directions, 2 * gates, 3), (directions, 2 * gates, 2), (directions, 4 * gates)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.fixture
def x():
    return np.random.default_rng(1).normal(size=(4, 3, 3)).astype(np.float32)


@pytest.mark.parametrize("op", GATES)
def test_reverse_is_forward_over_reversed_sequences(op, x):
    w = weights(GATES[op])
    backwards = run(op, [x, *w, LENGTHS], 2, hidden_size=2, direction="reverse")
    forwards = run(op, [flipped(x), *w, LENGTHS], 2, hidden_size=2)

    np.testing.assert_allclose(backwards[0][:, 0], flipped(forwards[0][:, 0]), atol=1e-6)
    np.testing.assert_allclose(backwards[1], forwards[1], atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_bidirectional_is_both_side_by_side(op, x):
    w = weights(GATES[op], directions=2)
    both = run(op, [x, *w, LENGTHS], 2, hidden_size=2, direction="bidirectional")
    one = [
        run(op, [x, *(a[i : i + 1] for a in w), LENGTHS], 2, hidden_size=2, direction=direction)
        for i, direction in enumerate(("forward", "reverse"))
    ]

    np.testing.assert_allclose(both[0], np.concatenate([a[0] for a in one], 1), atol=1e-6)
    np.testing.assert_allclose(both[1], np.concatenate([a[1] for a in one], 0), atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_two_halves_with_a_state_between_are_the_whole(op, x):
    w = weights(GATES[op])
    n = 3 if op == "LSTM" else 2
    whole = run(op, [x, *w], n, hidden_size=2)
    first = run(op, [x[:1], *w], n, hidden_size=2)
    second = run(op, [x[1:], *w, None, *first[1:]], n, hidden_size=2)

    np.testing.assert_allclose(np.concatenate([first[0], second[0]]), whole[0], atol=1e-6)


def test_named_activations_are_used(x):
    w = weights(1)
    affine = run(
        "RNN", [x[:1], *w], 1, hidden_size=2, activations=["Affine"], activation_alpha=[2.0]
    )
    wanted = 2 * (np.einsum("sbi,dhi->sdbh", x[:1], w[0]) + w[2][:, :2] + w[2][:, 2:])

    np.testing.assert_allclose(affine[0], wanted, atol=1e-5)


def test_an_unknown_activation_is_named(x):
    with pytest.raises(Exception, match="expected Affine, Elu.*got 'Tahn'"):
        run("RNN", [x, *weights(1)], 1, hidden_size=2, activations=["Tahn"])


def test_a_seed_repeats_and_another_differs():
    first, again, other = (
        run("RandomNormal", [], 1, shape=[1000], seed=seed, mean=3.0)[0] for seed in (1.0, 1.0, 2.0)
    )

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert abs(first.mean() - 3) < 0.1
    assert abs(first.std() - 1) < 0.1


def test_bernoulli_keeps_its_probability():
    p = np.full(10000, 0.3, np.float32)

    assert abs(run("Bernoulli", [p], 1, seed=1.0)[0].mean() - 0.3) < 0.02


def test_a_key_is_the_seed_of_tenon_random():
    shape = np.array([500])
    draws = [
        run("Random", [shape, np.array(key)], 1, domain="tenon")[0] for key in ([1], [1], [1, 1])
    ]

    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert 0 <= draws[0].min() < draws[0].max() < 1


@pytest.mark.parametrize(
    "equation", ["ij,jk,kl->il", "ii->i", "ii", "b...i,b...i->b...", "ij , kj"]
)
def test_einsum_is_numpys(equation):
    random = np.random.default_rng(3)
    left = equation.split("->")[0].replace(" ", "").split(",")
    shapes = [[3] * len(term.replace("...", "..")) for term in left]
    given = [random.normal(size=shape).astype(np.float32) for shape in shapes]

    got = run("Einsum", given, 1, equation=equation)[0]

    np.testing.assert_allclose(got, np.einsum(equation, *given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", ["ij,jk", "i1->i", "i..j->ij", "ij->ijj", "ij->k"])
def test_einsum_refuses_what_is_no_equation(equation):
    with pytest.raises(Exception, match="equation"):
        run("Einsum", [np.ones((2, 2), np.float32)], 1, equation=equation)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("LSTM", [np.ones((2, 3, 4), np.float32)], {"hidden_size": 2}),
        ("Attention", [np.ones((2, 3, 4), np.float32), None], {"q_num_heads": 2}),
        ("TopK", [np.ones(4, np.float32)], {}),
        ("Unique", [], {}),
        ("DFT", [], {}),
        ("OptionalGetElement", [], {}),
    ],
)
def test_an_input_that_is_left_out_is_an_error(op, inputs, attributes):
    with pytest.raises(Exception, match="input .*expected a tensor, got none|expected .*got"):
        run(op, inputs, 1, **attributes)
