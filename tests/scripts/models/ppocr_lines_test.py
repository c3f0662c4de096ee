# SPDX-License-Identifier: Apache-2.0
"""Rendered lines fit the recogniser's input, and the two sets share neither line nor font."""

import numpy as np
import pytest
from models import ppocr_lines, wheels


def test_a_narrow_line_keeps_its_ratio_and_is_padded():
    pixels = np.full((24, 30, 3), 255, np.uint8)

    got = ppocr_lines.normalize(pixels, 320)

    assert got.shape == (3, 48, 320)
    assert (got[:, :, :60] == 1).all() and (got[:, :, 60:] == 0).all()


def test_a_wide_line_is_squeezed():
    pixels = np.zeros((10, 900, 3), np.uint8)

    assert (ppocr_lines.normalize(pixels, 320) == -1).all()


def test_channels_are_blue_green_red():
    pixels = np.zeros((48, 320, 3), np.uint8)
    pixels[:, :, 0] = 255

    assert ppocr_lines.normalize(pixels, 320)[:, 0, 0].tolist() == [-1, -1, 1]


def test_labels_are_classes_padded_with_minus_one():
    assert ppocr_lines.label_matrix(["ab", "b "[:1]], ["a", "b", " "]).tolist() == [[1, 2], [2, -1]]


def test_lines_differ_and_avoid_those_taken():
    rng = np.random.default_rng(1)
    taken: set[str] = set()

    first = ppocr_lines.lines(("GPL-3",), 40, rng, taken)
    second = ppocr_lines.lines(("Apache-2.0",), 40, rng, taken)

    assert len(set(first) | set(second)) == 80
    assert all(4 <= len(line) <= 30 for line in first + second)


def test_font_families_are_held_out():
    def families(names):
        return {name.split("/")[0] for name in names}

    assert not families(ppocr_lines.CALIB_FONTS) & families(ppocr_lines.EVAL_FONTS)


def test_a_missing_font_names_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(ppocr_lines, "FONT_ROOT", tmp_path)

    with pytest.raises(wheels.FetchError, match="install fonts-dejavu-core and fonts-liberation"):
        ppocr_lines.fonts(ppocr_lines.EVAL_FONTS)


def test_a_rendered_line_has_ink_and_ground():
    if not (ppocr_lines.FONT_ROOT / ppocr_lines.CALIB_FONTS[0]).exists():
        pytest.skip("no fonts-dejavu-core")
    path = ppocr_lines.fonts(ppocr_lines.CALIB_FONTS[:1])[0]

    pixels = ppocr_lines.render("Tenon 42", path, np.random.default_rng(2))

    assert pixels.min() < 100 and pixels.max() > 190
    assert pixels.shape[1] > 2 * pixels.shape[0]


def test_fetched_labels_are_classes_of_the_dictionary(fetched):
    characters = fetched("ppocr_rec_dictionary.txt").read_text().split("\n")[:-1]
    data = np.load(fetched("ppocr_rec_eval.npz"))

    assert len(characters) == 6624 and characters[-1] == " "
    assert len(data["x"]) == len(data["label"]) >= 300
    assert data["label"].max() <= len(characters) and data["label"].min() == -1
