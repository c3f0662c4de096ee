# SPDX-License-Identifier: Apache-2.0
"""Characters of Debian's fonts as images of 32x32: glyphs_train.npz, glyphs_test.npz.

The 94 visible characters of ASCII, each drawn in a font of some size, position and slant, in two
colours, blurred, with noise. Test images are of a font family that training does not see: DejaVu to
train, Liberation to test. Some characters look alike in some fonts (I, l, |), so that no model gets
all of them right.
"""

import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from models import wheels
from models.output import Output

SIZE = 32
CHARACTERS = [chr(code) for code in range(33, 127)]
FONT_ROOT = pathlib.Path("/usr/share/fonts/truetype")
TRAIN_FAMILY, TEST_FAMILY = "dejavu", "liberation"  # fonts-dejavu-core, fonts-liberation


def fonts_of(family: str) -> list[pathlib.Path]:
    """Every face of a family that has the characters."""
    found = sorted(p for p in (FONT_ROOT / family).glob("*.ttf") if "Math" not in p.name)
    if not found:
        raise wheels.FetchError(
            f"glyphs: expected fonts in {FONT_ROOT / family} (package fonts-{family}), got none"
        )
    return found


def glyph(character: str, font: ImageFont.FreeTypeFont, rng: np.random.Generator) -> np.ndarray:
    """[1, 32, 32] in 0..1."""
    mask = Image.new("L", (SIZE, SIZE))
    centre = SIZE / 2 + rng.uniform(-3, 3, 2)
    ImageDraw.Draw(mask).text(tuple(centre), character, 255, font=font, anchor="mm")
    slant = rng.uniform(-0.25, 0.25)
    shear = (1, slant, -slant * SIZE / 2, 0, 1, 0)
    mask = mask.transform((SIZE, SIZE), Image.Transform.AFFINE, shear, Image.Resampling.BILINEAR)
    mask = mask.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1)))
    share = np.asarray(mask, "f") / 255
    paper, ink = rng.uniform(0, 0.4), rng.uniform(0.6, 1)
    if rng.random() < 0.5:
        paper, ink = ink, paper
    noise = rng.standard_normal(share.shape) * rng.uniform(0, 0.1)
    return np.clip(paper + share * (ink - paper) + noise, 0, 1)[None].astype("f")


def drawn(family: str, count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    faces = [
        [ImageFont.truetype(path, size) for size in range(16, 29)] for path in fonts_of(family)
    ]
    label = rng.integers(0, len(CHARACTERS), count)
    images = []
    for i in label:
        sizes = faces[rng.integers(len(faces))]
        images.append(glyph(CHARACTERS[i], sizes[rng.integers(len(sizes))], rng))
    return {"image": np.stack(images), "label": label}


def build(output: Output, n_train=20000, n_test=4000, seed=4) -> None:
    output.put_arrays("glyphs_train.npz", drawn(TRAIN_FAMILY, n_train, seed))
    output.put_arrays("glyphs_test.npz", drawn(TEST_FAMILY, n_test, seed + 1))
