# SPDX-License-Identifier: Apache-2.0
"""Writes augmentation.json: what torchvision's functions make of two small pictures.

    python tests/golden/augmentation.py > tests/golden/augmentation.json   # needs torchvision

Each case has the component, and options that leave nothing to chance; `parts` lists what each
part of a size becomes, of which a random crop must give one.
"""

import json

import torch
import torchvision
from torchvision.transforms.v2 import functional as F

IMAGES = torch.randint(0, 256, (2, 3, 9, 7), generator=torch.Generator().manual_seed(7)).byte()
IMAGES[1, :, 2:5, 1:4] = 90  # gray pixels have no hue
IMAGES[1, :, 0] = 0


def padded(mode, fill=0):
    torch_mode = {"edge": "edge", "reflect": "reflect", "constant": "constant"}[mode]
    return lambda x: F.pad(x, [2, 2, 2, 2], fill=fill, padding_mode=torch_mode)


def resized(height, width):
    return lambda x: F.resized_crop(x, 0, 0, 9, 7, [height, width], antialias=True)


WHOLE = {"scale": [1, 1], "ratio": [7 / 9, 7 / 9]}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BOTH = ("uint8", "float32")
CASES = [
    ("flip", {"p": 1}, BOTH, F.horizontal_flip),
    ("flip", {"p": 1, "direction": "vertical"}, BOTH, F.vertical_flip),
    ("crop", {"size": [13, 11], "padding": 2}, BOTH, padded("constant")),
    ("crop", {"size": [13, 11], "padding": 2, "fill": 7}, ("uint8",), padded("constant", 7)),
    ("crop", {"size": [13, 11], "padding": 2, "padding_mode": "edge"}, BOTH, padded("edge")),
    ("crop", {"size": [13, 11], "padding": 2, "padding_mode": "reflect"}, BOTH, padded("reflect")),
    ("resized_crop", {"size": [4, 3], **WHOLE}, BOTH, resized(4, 3)),
    ("resized_crop", {"size": [5, 12], **WHOLE}, BOTH, resized(5, 12)),
    ("resized_crop", {"size": [19, 15], **WHOLE}, BOTH, resized(19, 15)),
    ("normalize", {"mean": MEAN, "std": STD}, ("float32",), lambda x: F.normalize(x, MEAN, STD)),
    (
        "normalize",
        {"mean": MEAN, "std": STD},
        ("uint8",),
        lambda x: F.normalize(F.to_dtype(x, torch.float32, scale=True), MEAN, STD),
    ),
]
for option, adjust, factors in [
    ("brightness", F.adjust_brightness, (0.3, 1.7)),
    ("contrast", F.adjust_contrast, (0.0, 0.6, 1.8)),
    ("saturation", F.adjust_saturation, (0.0, 0.4, 2.2)),
    ("hue", F.adjust_hue, (-0.5, -0.21, 0.07, 0.34)),
]:
    for factor in factors:
        run = lambda x, adjust=adjust, factor=factor: adjust(x, factor)  # noqa: E731
        CASES.append(("color_jitter", {option: [factor, factor]}, BOTH, run))


def numbers(images):
    return images.flatten().tolist() if images.dtype == torch.uint8 else [
        round(x, 7) for x in images.flatten().tolist()
    ]  # fmt: skip


def given(dtype):
    return IMAGES if dtype == "uint8" else F.to_dtype(IMAGES, torch.float32, scale=True)


def main():
    cases = []
    for name, options, dtypes, run in CASES:
        for dtype in dtypes:
            out = torch.stack([run(image) for image in given(dtype)])
            cases.append(
                {"id": f"augment.{name}", "options": options, "dtype": dtype,
                 "shape": list(out.shape), "out": numbers(out)}
            )  # fmt: skip
    parts = [
        numbers(F.resized_crop(IMAGES[0], top, left, 4, 4, [5, 5], antialias=True))
        for top in range(6)
        for left in range(4)
    ]
    options = {"size": 5, "scale": [16 / 63, 16 / 63], "ratio": [1, 1]}
    print(
        json.dumps(
            {"source": f"torchvision {torchvision.__version__}", "images": numbers(IMAGES),
             "cases": cases, "parts": {"options": options, "outs": parts}}
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
