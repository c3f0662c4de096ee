# SPDX-License-Identifier: Apache-2.0
"""Pictures of shapes and words, and what each pixel belongs to: shapes_train.npz, shapes_test.npz.

`image` float32 [n, 1, 64, 64] in 0..1, `label` int64 [n, 64, 64]: 0 the ground, 1 discs, 2 boxes,
3 triangles, 4 text. Later ones cover earlier ones; grey values say nothing of the class, and there
is noise.
"""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from models.glyphs import CHARACTERS, fonts_of
from models.output import Output

SIZE = 64


def outline(kind: int, rng: np.random.Generator) -> tuple:
    x, y = rng.uniform(8, SIZE - 8, 2)
    r, s = rng.uniform(5, 13, 2)
    if kind == 3:
        turns = rng.uniform(0, 6.28) + np.array([0, 2.1, 4.2])
        return tuple(zip(x + r * np.cos(turns), y + r * np.sin(turns)))
    return (x - r, y - (r if kind == 1 else s), x + r, y + (r if kind == 1 else s))


def picture(fonts: list, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    image, label = Image.new("F", (SIZE, SIZE), rng.uniform(0, 1)), Image.new("L", (SIZE, SIZE))
    on_both = [(ImageDraw.Draw(image), lambda shade, _: shade)]
    on_both.append((ImageDraw.Draw(label), lambda _, kind: kind))
    for kind in rng.integers(1, 5, rng.integers(2, 6)):
        shade, box = float(rng.uniform(0, 1)), outline(int(kind), rng)
        word = "".join(rng.choice(CHARACTERS, 4))
        font = fonts[rng.integers(len(fonts))]
        for draw, fill in on_both:
            draw.fontmode = "1"  # a pixel belongs to the text or not
            ink = fill(shade, int(kind))
            if kind == 4:
                draw.text(box[:2], word, ink, font=font)
            else:
                (draw.ellipse, draw.rectangle, draw.polygon)[kind - 1](box, ink)
    noisy = np.asarray(image) + rng.standard_normal((SIZE, SIZE)) * 0.08
    return np.clip(noisy, 0, 1)[None].astype("f"), np.asarray(label).astype("i8")


def drawn(family: str, count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    fonts = [ImageFont.truetype(p, size) for p in fonts_of(family) for size in (12, 16, 20)]
    images, labels = zip(*(picture(fonts, rng) for _ in range(count)))
    return {"image": np.stack(images), "label": np.stack(labels)}


def build(output: Output, n_train=2000, n_test=300, seed=8) -> None:
    output.put_arrays("shapes_train.npz", drawn("dejavu", n_train, seed))
    output.put_arrays("shapes_test.npz", drawn("liberation", n_test, seed + 1))
