# SPDX-License-Identifier: Apache-2.0
"""PP-OCRv4's recogniser, and lines of text rendered for it with Debian's fonts.

Class 0 is the CTC blank; class i is line i of ppocr_rec_dictionary.txt, whose last line is a space.
Labels are class numbers, int32 [n, longest], padded with -1. Calibration and evaluation share no
line of text and no font family.
"""

import pathlib
import re

import numpy as np
import onnx

from models import wheels
from models.output import Output

MODEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
HEIGHT = 48
FONT_ROOT = pathlib.Path("/usr/share/fonts/truetype")
TEXT_ROOT = pathlib.Path("/usr/share/common-licenses")

# Debian packages fonts-dejavu-core, fonts-liberation; the texts are in base-files.
CALIB_FONTS = tuple(
    f"dejavu/DejaVu{face}.ttf"
    for face in ("Sans", "Sans-Bold", "SansMono", "SansMono-Bold", "Serif", "Serif-Bold")
)
EVAL_FONTS = tuple(
    f"liberation/Liberation{face}.ttf"
    for face in (
        "Sans-Regular",
        "Sans-Bold",
        "Sans-Italic",
        "Serif-Regular",
        "Serif-Bold",
        "Serif-Italic",
        "Mono-Regular",
        "Mono-Bold",
    )
)
CALIB_TEXTS = ("GPL-3", "LGPL-2.1")
EVAL_TEXTS = ("Apache-2.0", "Artistic", "MPL-2.0", "GFDL-1.3")


def dictionary(model: onnx.ModelProto) -> list[str]:
    """The characters of classes 1, 2, ...; the model's metadata has all but the space."""
    for entry in model.metadata_props:
        if entry.key == "character":
            return entry.value.splitlines() + [" "]
    raise wheels.FetchError("ppocr-rec: metadata: expected a key 'character', got none")


def build_model(output: Output) -> None:
    data = output.member(wheels.RAPIDOCR, MODEL)
    characters = dictionary(onnx.load_from_string(data))
    output.put_bytes("ppocr_rec.onnx", data)
    output.put_bytes("ppocr_rec_dictionary.txt", ("\n".join(characters) + "\n").encode())


def read_text(name: str) -> list[str]:
    path = TEXT_ROOT / name
    if not path.exists():
        raise wheels.FetchError(f"ppocr-rec-data: expected the text {path} (package base-files)")
    return re.findall(r"[!-~]+", path.read_text(errors="ignore"))


def fragment(words: list[str], rng) -> str:
    """A run of words, 8 to 22 characters long."""
    limit = int(rng.integers(8, 23))
    begin = int(rng.integers(0, len(words) - 12))
    line = ""
    for word in words[begin : begin + 12]:
        if len(line) + len(word) + 1 > limit:
            break
        line = f"{line} {word}".strip()
    return line


def number_line(rng) -> str:
    """A line as on a receipt or a form."""
    kinds = (
        lambda: f"{rng.integers(1, 29):02d}/{rng.integers(1, 13):02d}/{rng.integers(1970, 2030)}",
        lambda: f"Total: {rng.integers(1, 9999)}.{rng.integers(0, 100):02d} USD",
        lambda: f"No. {rng.integers(10000, 99999999)}",
        lambda: f"+{rng.integers(1, 99)} {rng.integers(100, 999)} {rng.integers(100000, 9999999)}",
        lambda: f"{rng.integers(0, 24):02d}:{rng.integers(0, 60):02d} {rng.integers(1, 100)}%",
    )
    return kinds[int(rng.integers(0, len(kinds)))]()


def lines(names, count: int, rng, taken: set[str]) -> list[str]:
    """count different lines, four of five from texts, none of them in taken (which grows)."""
    sources = [read_text(name) for name in names]
    out = []
    while len(out) < count:
        words = sources[int(rng.integers(0, len(sources)))]
        line = fragment(words, rng) if rng.random() < 0.8 else number_line(rng)
        if len(line) < 4 or line in taken:
            continue
        taken.add(line)
        out.append(line)
    return out


def render(text: str, font_path: pathlib.Path, rng) -> np.ndarray:
    """A tight line of dark text on a light ground, uint8 [h, w, 3]."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(font_path), int(rng.integers(26, 44)))
    left, top, right, bottom = font.getbbox(text)
    margin = int(rng.integers(3, 8))
    ground = tuple(int(v) for v in rng.integers(200, 256, 3))
    ink = tuple(int(v) for v in rng.integers(0, 80, 3))
    image = Image.new("RGB", (right - left + 2 * margin, bottom - top + 2 * margin), ground)
    ImageDraw.Draw(image).text((margin - left, margin - top), text, font=font, fill=ink)
    noise = rng.normal(0, rng.uniform(0, 6), (image.height, image.width, 1))
    return np.clip(np.asarray(image, np.float32) + noise, 0, 255).astype(np.uint8)


def normalize(pixels: np.ndarray, width: int) -> np.ndarray:
    """Height 48, ratio kept up to width, BGR in -1..1, zeros on the right: [3, 48, width]."""
    from PIL import Image

    wanted = min(width, int(np.ceil(HEIGHT * pixels.shape[1] / pixels.shape[0])))
    scaled = Image.fromarray(pixels).resize((wanted, HEIGHT), Image.Resampling.BILINEAR)
    out = np.zeros((3, HEIGHT, width), np.float32)
    bgr = np.asarray(scaled, np.float32)[:, :, ::-1]
    out[:, :, :wanted] = (bgr / 255 - 0.5).transpose(2, 0, 1) / 0.5
    return out


def label_matrix(texts: list[str], characters: list[str]) -> np.ndarray:
    classes = {character: index for index, character in enumerate(characters, start=1)}
    out = np.full((len(texts), max(map(len, texts))), -1, np.int32)
    for row, text in zip(out, texts):
        row[: len(text)] = [classes[character] for character in text]
    return out


def fonts(names) -> list[pathlib.Path]:
    paths = [FONT_ROOT / name for name in names]
    for path in paths:
        if not path.exists():
            raise wheels.FetchError(
                f"ppocr-rec-data: expected the font {path}: install"
                " fonts-dejavu-core and fonts-liberation"
            )
    return paths


def build_data(output: Output, n_calib=100, n_eval=400, width=320, seed=5) -> None:
    characters = dictionary(onnx.load_from_string(output.member(wheels.RAPIDOCR, MODEL)))
    rng = np.random.default_rng(seed)
    taken: set[str] = set()
    parts = (
        ("calib", n_calib, CALIB_FONTS, CALIB_TEXTS),
        ("eval", n_eval, EVAL_FONTS, EVAL_TEXTS),
    )
    for part, count, font_names, text_names in parts:
        faces = fonts(font_names)
        texts = lines(text_names, count, rng, taken)
        images = [
            normalize(render(text, faces[i % len(faces)], rng), width)
            for i, text in enumerate(texts)
        ]
        arrays = {"x": np.stack(images), "label": label_matrix(texts, characters)}
        output.put_arrays(f"ppocr_rec_{part}.npz", arrays)
    output.say(f"rendered lines: seed {seed}, no line and no font family in both parts")
