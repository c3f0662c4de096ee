# SPDX-License-Identifier: Apache-2.0
"""The small perceptron learns, and its graph is what was trained."""

import numpy as np
from models import digits


def blobs(seed: int):
    """Ten well separated clouds in 64 dimensions."""
    centres = np.random.default_rng(0).uniform(0, 1, (10, 64))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, 300)
    points = centres[labels] + 0.1 * rng.standard_normal((300, 64))
    return points.astype(np.float32), labels


def test_training_learns_separated_clouds(run):
    layers = digits.train(*blobs(1), seed=2, epochs=10)
    points, labels = blobs(3)

    logits = run(digits.graph_of(layers).model(), {"pixels": points})[0]

    assert np.mean(logits.argmax(axis=1) == labels) > 0.95
    np.testing.assert_allclose(logits, digits.forward(layers, points)[-1], atol=1e-4)


def test_training_repeats_with_its_seed():
    first, again = (digits.train(*blobs(1), seed=5, epochs=2) for _ in range(2))

    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, again))


def test_the_fetched_model_is_right_on_most_digits(fetched, run):
    data = np.load(fetched("digits_test.npz"))

    logits = run(str(fetched("digits_mlp.onnx")), {"pixels": data["pixels"]})[0]

    assert np.mean(logits.argmax(axis=1) == data["label"]) > 0.94
