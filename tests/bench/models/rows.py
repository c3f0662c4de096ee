# SPDX-License-Identifier: Apache-2.0
"""The one list of models of the table. One model is one row."""

import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import light
import numpy as np
import torch_exports

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache"
sys.path.insert(0, str(ROOT / "scripts"))


LEAST_COSINE = {"bf16": 0.99, "int8": 0.9}
MOST_BYTES = {"weights": 0.27, "file": 0.3}


@dataclass(frozen=True)
class Row:
    """file: gives the path. shapes: of the inputs of one run; top: integers stay below.

    given: inputs with fixed values. carry: {input: output that it takes on in the next run}.
    signal: how floats are drawn (SIGNALS). recipe: the quantizing pass, None where the file is
    int8 already. tolerance: of fp32 against ONNX Runtime, over the output's range. least: cosines
    with it of bf16 and int8. most: shares of the bytes that int8 leaves. A bound of a row's own has
    its reason in the note.
    """

    name: str
    file: Callable[[], pathlib.Path]
    shapes: dict[str, tuple]
    top: dict[str, int] = field(default_factory=dict)
    given: dict[str, np.ndarray] = field(default_factory=dict)
    carry: dict[str, str] = field(default_factory=dict)
    runs: int = 1
    signal: str = "noise"
    recipe: str | None = "quantizer.static"
    tolerance: float = 1e-4
    least: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def network(self) -> str:
        """The same for the files of both exporters."""
        return self.name.split()[0]

    def bounds(self) -> dict[str, dict[str, float]]:
        return {"least": LEAST_COSINE | self.least, "most": MOST_BYTES | self.most}


def noise(random, shape):
    return random.standard_normal(shape)


def quiet(random, shape):
    """The size of hidden states behind a normalization of t5."""
    return 0.15 * random.standard_normal(shape)


def smooth(random, shape):
    """Random images without an edge, [..., height, width], and some noise on them."""
    height, width = (n // 16 + 2 for n in shape[-2:])
    coarse = random.standard_normal((*shape[:-2], height, width))
    rows = np.linspace(0, height - 1.001, shape[-2])
    columns = np.linspace(0, width - 1.001, shape[-1])
    upper, left = rows.astype(int), columns.astype(int)
    down, right = (rows - upper)[:, None], columns - left
    above, below = coarse[..., upper, :], coarse[..., upper + 1, :]
    image = (above[..., left] * (1 - right) + above[..., left + 1] * right) * (1 - down)
    image += (below[..., left] * (1 - right) + below[..., left + 1] * right) * down
    return image + 0.2 * random.standard_normal(shape)


def sound(random, shape):
    """A harmonic tone that glides, with noise; time is the longest axis, 16 kHz."""
    n = int(np.prod(shape))
    hertz = np.linspace(*random.uniform(100, 400, 2), n)
    phase = np.cumsum(2 * np.pi * hertz / 16000)
    wave = sum(np.sin(k * phase) / k for k in range(1, 6))
    return (0.2 * wave + 0.02 * random.standard_normal(n)).reshape(shape)


def text(random, shape):
    """Lines of letters, dark on light, as [batch, 3, height, width] in -1..1."""
    from PIL import Image, ImageDraw, ImageFont

    made = np.zeros(shape)
    height, width = shape[-2:]
    size = min(32, height * 2 // 3)
    for image in made:
        page = Image.new("L", (width, height), 235)
        draw = ImageDraw.Draw(page)
        for y in range(size // 3, height - size, 2 * size):
            letters = "".join(chr(c) for c in random.integers(97, 123, width // size))
            draw.text((size // 2, y), letters, 20, ImageFont.load_default(size))
        image[:] = np.asarray(page, np.float64) / 127.5 - 1
    return made


INT8_FILE = (
    "dynamic int8 in the file: on inputs 1e-7 apart ONNX Runtime is 5e-2 from itself; where no "
    "activation moves to the next code, onednn is 2e-7 from it"
)
SIGNALS = {"noise": noise, "quiet": quiet, "smooth": smooth, "sound": sound, "text": text}


def fetched(row: str, file: str) -> Callable[[], pathlib.Path]:
    def get():
        from models import fetch

        fetch.fetch(row, CACHE / "models", say=lambda text: None)
        return CACHE / "models" / file

    return get


def light_row(name: str, data: str, **more) -> Row:
    shapes = {data: (1, 3, 224, 224)}
    make = lambda: light.obtain(name, CACHE / "exports")  # noqa: E731
    return Row(f"light_{name}", make, shapes, signal="smooth", **more)


def export_rows(name: str, shapes: dict[str, tuple], **more) -> list[Row]:
    return [
        Row(
            f"{name} {exporter}",
            lambda exporter=exporter: torch_exports.obtain(name, exporter, CACHE / "exports"),
            shapes,
            **more,
        )
        for exporter in torch_exports.EXPORTERS
    ]


TOKENS = {"input_ids": (1, 128), "attention_mask": (1, 128), "token_type_ids": (1, 128)}
TOKEN_TOPS = {"input_ids": 30000, "attention_mask": 2, "token_type_ids": 1}
RATE = {"sr": np.array(16000, np.int64)}
SILERO = {"input": (1, 576), "state": (2, 1, 128)}
PITCH = {"fmin": np.array(46.875, np.float32), "fmax": np.array(2093.75, np.float32)}
IMAGE = {"image": (1, 3, 224, 224)}


def silero(file: str, **given) -> Row:
    return Row(
        file,
        fetched("silero", f"{file}.onnx"),
        SILERO,
        given=given,
        carry={"state": "stateN"},
        runs=20,
        signal="sound",
        recipe="quantizer.dynamic",
    )


FETCHED = [
    Row(
        "ppocr_det",
        fetched("ppocr-det", "ppocr_det.onnx"),
        {"x": (1, 3, 320, 320)},
        signal="text",
        least={"int8": 0.885},
        note="ONNX Runtime gives 0.894 on the same int8 file, and 0.890 with mse for minmax",
    ),
    Row("ppocr_rec", fetched("ppocr-rec", "ppocr_rec.onnx"), {"x": (1, 3, 48, 320)}, signal="text"),
    Row("ppocr_cls", fetched("ppocr-cls", "ppocr_cls.onnx"), {"x": (1, 3, 48, 192)}, signal="text"),
    Row(
        "silero_sequence",
        fetched("silero", "silero_sequence.onnx"),
        {"input": (60, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
        carry={"h": "hn", "c": "cn"},
        runs=3,
        signal="sound",
        recipe="quantizer.dynamic",
        tolerance=5e-4,
        note="ONNX Runtime itself is 1.8e-4 from a run in fp64, onednn 3.8e-6",
    ),
    silero("silero_no_if"),
    silero("silero_half"),
    silero("silero_op15", **RATE),
    silero("silero_op18", **RATE),
    silero("silero_nested_if", **RATE),
    Row("magika", fetched("magika", "magika.onnx"), {"bytes": (1, 2048)}, top={"bytes": 257}),
    Row(
        "swift_f0",
        fetched("swift-f0", "swift_f0.onnx"),
        {"audio": (1, 16000)},
        given=PITCH,
        signal="sound",
        recipe="quantizer.dynamic",
    ),
    Row(
        "basic_pitch",
        fetched("basic-pitch", "basic_pitch.onnx"),
        {"serving_default_input_2:0": (1, 43844, 1)},
        signal="sound",
        tolerance=3e-3,
        note="takes the least logarithm of a spectrum: against a run in fp64 ONNX Runtime is 1.4e-3"
        " off, reference 3.9e-5",
    ),
    Row("crepe", fetched("crepe", "crepe_tiny.onnx"), {"frames": (8, 1024)}, signal="sound"),
    Row(
        "t5_encoder",
        fetched("t5-titler", "t5_encoder.onnx"),
        {"input_ids": (1, 32)},
        top={"input_ids": 32000},
        given={"attention_mask": np.ones((1, 32), np.int64)},
        recipe=None,
        tolerance=0.05,
        note=INT8_FILE,
    ),
    Row(
        "t5_decoder",
        fetched("t5-titler", "t5_decoder.onnx"),
        {"input_ids": (1, 8), "encoder_hidden_states": (1, 32, 512)},
        top={"input_ids": 32000},
        given={"encoder_attention_mask": np.ones((1, 32), np.int64)},
        signal="quiet",
        recipe=None,
        tolerance=0.05,
        note=INT8_FILE,
    ),
    Row("surfaces_boosting", fetched("surfaces", "surfaces_boosting.onnx"), {"input": (16, 4)}),
    Row("surfaces_neighbors", fetched("surfaces", "surfaces_neighbors.onnx"), {"input": (16, 4)}),
    Row("surfaces_classifier", fetched("surfaces", "surfaces_classifier.onnx"), {"input": (16, 4)}),
    Row("minilm", fetched("minilm", "minilm.onnx"), TOKENS, top=TOKEN_TOPS),
    Row("bert_base", fetched("bert-base", "bert_base.onnx"), TOKENS, top=TOKEN_TOPS),
]

LIGHT = [
    light_row("bvlc_alexnet", "data_0"),
    light_row("densenet121", "data_0"),
    light_row("inception_v1", "data_0"),
    light_row("inception_v2", "data_0"),
    light_row("resnet50", "gpu_0/data_0"),
    light_row(
        "shufflenet",
        "gpu_0/data_0",
        most={"weights": 0.271},
        note="depthwise filters of nine numbers have four bytes of scale, and as much for the bias",
    ),
    light_row("squeezenet", "data_0"),
    light_row("vgg19", "data_0"),
    light_row("zfnet512", "gpu_0/data_0"),
]

VISION = (
    "resnet50 mobilenet_v2 mobilenet_v3 efficientnet_b0 convnext_t vit_s swin_t regnet densenet121 "
    "shufflenet_v2 squeezenet vgg16"
).split()
EXPORTED = [row for name in VISION for row in export_rows(name, IMAGE, signal="smooth")]
EXPORTED += export_rows(
    "inception_v3",
    {"image": (1, 3, 299, 299)},
    signal="smooth",
    least={"bf16": 0.985},
    note="random weights: OpenVINO's bf16 gives 0.9880",
)
EXPORTED += export_rows("unet", {"image": (1, 3, 256, 256)}, signal="smooth")
EXPORTED += export_rows("lstm", {"series": (64, 1, 32)}, recipe="quantizer.dynamic")
EXPORTED += export_rows("gpt2", {"input_ids": (1, 32)}, top={"input_ids": 50257})
EXPORTED += export_rows(
    "gpt2_cached",
    {"input_ids": (1, 4), "past": (12, 2, 1, 12, 7, 64)},
    top={"input_ids": 50257},
    carry={"past": "present"},
    runs=3,
    recipe="quantizer.dynamic",
)

ROWS = FETCHED + LIGHT + EXPORTED
