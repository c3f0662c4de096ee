# SPDX-License-Identifier: Apache-2.0
"""Data of the reference networks: a function of the seed, in range, split by source."""

import numpy as np
import pytest
from models import characters, glyphs, leaves, shapes

MAKES = [
    lambda seed: glyphs.drawn("dejavu", 12, seed),
    lambda seed: shapes.drawn("dejavu", 6, seed),
    lambda seed: characters.windows(characters.TRAIN_TEXTS, 12, seed),
]


@pytest.mark.parametrize("make", MAKES)
def test_it_is_a_function_of_the_seed(make):
    first, again, other = make(1), make(1), make(2)
    for name, array in first.items():
        assert np.array_equal(array, again[name])
        assert not np.array_equal(array, other[name])


def test_glyphs_are_of_another_family_to_test():
    assert not set(glyphs.fonts_of("dejavu")) & set(glyphs.fonts_of("liberation"))
    data = glyphs.drawn("liberation", 200, 3)
    assert data["image"].shape == (200, 1, 32, 32) and data["image"].dtype == np.float32
    assert 0 <= data["image"].min() and data["image"].max() <= 1
    assert 0 <= data["label"].min() and 80 < data["label"].max() < 94
    assert (data["image"].std((1, 2, 3)) > 0.01).all()  # something is drawn on each


def test_every_kind_of_shape_is_there_and_differs_from_the_ground():
    data = shapes.drawn("dejavu", 60, 3)
    assert set(np.unique(data["label"])) == {0, 1, 2, 3, 4}
    assert data["image"].shape == (60, 1, 64, 64) and data["label"].dtype == np.int64
    apart = [
        abs(x[0][y > 0].mean() - x[0][y == 0].mean()) for x, y in zip(data["image"], data["label"])
    ]
    assert np.median(apart) > 0.1


def test_a_label_is_the_next_character():
    data = characters.windows(characters.TEST_TEXTS, 20, 3)
    assert np.array_equal(data["token"][:, 1:], data["label"][:, :-1])
    assert data["token"].min() >= 0 and data["token"].max() <= 95
    assert not set(characters.TRAIN_TEXTS) & set(characters.TEST_TEXTS)


def test_series_are_read_with_their_classes():
    data = leaves.parsed("@problemName x\n@data\n1.5,-2:3\n0,1e-1:1\n2,2:3\n")
    assert data["series"].shape == (3, 2, 1)
    np.testing.assert_array_equal(data["series"][:2, :, 0], np.array([[1.5, -2], [0, 0.1]], "f"))
    assert data["label"].tolist() == [1, 0, 1]
