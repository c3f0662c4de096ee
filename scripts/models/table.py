# SPDX-License-Identifier: Apache-2.0
"""The one table of what can be fetched. One model or data set is one row."""

from collections.abc import Callable
from dataclasses import dataclass, field

from models import (
    bert_base,
    characters,
    crepe,
    digits,
    glyphs,
    leaves,
    minilm,
    mnist,
    mobilenet_v2,
    photos,
    ppocr_lines,
    resnet50,
    shapes,
    wheels,
)
from models.output import Output


@dataclass(frozen=True)
class Row:
    """version rises whenever the built files change, so that old ones are made anew."""

    name: str
    summary: str
    build: Callable
    options: dict = field(default_factory=dict)
    version: int = 1


def copies(package: wheels.Package, members: dict[str, str]) -> Callable:
    """A build that only takes files out of a wheel: {name in the wheel: name here}."""

    def build(output: Output) -> None:
        for inside, outside in members.items():
            output.put_bytes(outside, output.member(package, inside))

    return build


_OCR = "rapidocr_onnxruntime/models/"

ROWS = (
    Row("minilm", "MiniLM-L6 sentence encoder, ONNX from safetensors", minilm.build),
    Row(
        "minilm-data",
        "tokenised film sentences: minilm_calib.npz, minilm_eval.npz",
        minilm.build_data,
        {"length": 128, "n_calib": 256, "n_eval": 600, "seed": 7},
    ),
    Row(
        "minilm-probe",
        "MiniLM-L6 with a sentiment head (logistic regression)",
        minilm.build_probe,
        {"n_train": 3000, "seed": 7},
    ),
    Row(
        "sentences",
        "rated sentences, MiniLM-L6 to fine-tune: sentences_train.npz, sentences_test.npz",
        minilm.build_sentences,
        {"length": 48, "n_train": 8000, "n_test": 2000, "seed": 7},
    ),
    Row("bert-base", "BERT-base encoder, random weights", bert_base.build, {"seed": 11}),
    Row("resnet50", "ResNet-50 v1.5, random weights", resnet50.build, {"seed": 12}),
    Row("mobilenet-v2", "MobileNetV2, random weights", mobilenet_v2.build, {"seed": 13}),
    Row(
        "photos",
        "crops of two photographs, 3x224x224: photos_calib.npz, photos_eval.npz",
        photos.build,
        {"n_calib": 64, "n_eval": 32, "seed": 3},
    ),
    Row(
        "glyphs",
        "characters of Debian's fonts, tested on unseen ones: glyphs_train.npz, glyphs_test.npz",
        glyphs.build,
        {"n_train": 20000, "n_test": 4000, "seed": 4},
    ),
    Row(
        "characters",
        "windows of English text, other authors to test: characters_train.npz, characters_test.npz",
        characters.build,
        {"n_train": 8000, "n_test": 1000, "seed": 6},
    ),
    Row(
        "shapes",
        "shapes and words to segment, tested on unseen fonts: shapes_train.npz, shapes_test.npz",
        shapes.build,
        {"n_train": 2000, "n_test": 300, "seed": 8},
    ),
    Row(
        "leaves",
        "outlines of leaves as series: leaves_train.npz, leaves_test.npz",
        leaves.build,
        {"turns": 16, "seed": 10},
        version=2,
    ),
    Row(
        "ppocr-rec",
        "PP-OCRv4 text recogniser and its dictionary",
        ppocr_lines.build_model,
    ),
    Row(
        "ppocr-rec-data",
        "rendered lines of text: ppocr_rec_calib.npz, ppocr_rec_eval.npz",
        ppocr_lines.build_data,
        {"n_calib": 100, "n_eval": 400, "width": 320, "seed": 5},
    ),
    Row(
        "ppocr-det",
        "PP-OCRv4 text detector",
        copies(wheels.RAPIDOCR, {_OCR + "ch_PP-OCRv4_det_infer.onnx": "ppocr_det.onnx"}),
    ),
    Row(
        "ppocr-cls",
        "PP-OCR text direction classifier",
        copies(wheels.RAPIDOCR, {_OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx": "ppocr_cls.onnx"}),
    ),
    Row(
        "magika",
        "file type classifier",
        copies(
            wheels.MAGIKA,
            {
                "magika/models/standard_v3_3/model.onnx": "magika.onnx",
                "magika/models/standard_v3_3/config.min.json": "magika_config.json",
            },
        ),
    ),
    Row(
        "silero",
        "voice activity detector: six graphs, plain to nested If",
        copies(
            wheels.SILERO,
            {
                "silero_vad/data/silero_vad_16k_sequence.onnx": "silero_sequence.onnx",
                "silero_vad/data/silero_vad_openvino_16k.onnx": "silero_no_if.onnx",
                "silero_vad/data/silero_vad.onnx": "silero_nested_if.onnx",
                "silero_vad/data/silero_vad_16k_op15.onnx": "silero_op15.onnx",
                "silero_vad/data/silero_vad_half.onnx": "silero_half.onnx",
                "silero_vad/data/silero_vad_op18_ifless.onnx": "silero_op18.onnx",
            },
        ),
        version=2,
    ),
    Row(
        "swift-f0",
        "pitch tracker",
        copies(wheels.SWIFT_F0, {"swift_f0/model.onnx": "swift_f0.onnx"}),
    ),
    Row(
        "basic-pitch",
        "note transcriber",
        copies(
            wheels.BASIC_PITCH,
            {"basic_pitch/saved_models/icassp_2022/nmp.onnx": "basic_pitch.onnx"},
        ),
    ),
    Row(
        "crepe",
        "CREPE tiny pitch tracker, and tones: crepe_calib.npz, crepe_eval.npz",
        crepe.build,
        {"n_calib": 128, "n_eval": 512, "seed": 6},
    ),
    Row(
        "t5-titler",
        "flan-t5-small in dynamic int8: encoder and decoder",
        copies(
            wheels.T5_TITLER,
            {
                "traceforge_title_model/data/span/encoder.onnx": "t5_encoder.onnx",
                "traceforge_title_model/data/span/decoder.onnx": "t5_decoder.onnx",
            },
        ),
    ),
    Row(
        "surfaces",
        "small MLPs behind a Scaler, and a classifier of ai.onnx.ml",
        copies(
            wheels.SURFACES,
            {
                f"surfaces_onnx_files/{name}.onnx": f"surfaces_{short}.onnx"
                for name, short in (
                    ("gradient_boosting_regressor", "boosting"),
                    ("k_neighbors_regressor", "neighbors"),
                    ("k_neighbors_classifier", "classifier"),
                    ("k_neighbors_classifier.validity", "validity"),
                )
            },
        ),
    ),
    Row("mnist", "5,000 handwritten digits, 28x28", mnist.build, {"seed": 1}),
    Row("digits", "8x8 digits and a small MLP trained on them", digits.build, {"seed": 2}),
)


def find(name: str) -> Row:
    for row in ROWS:
        if row.name == name:
            return row
    raise wheels.FetchError(
        f"fetch: name: expected one of {', '.join(row.name for row in ROWS)}, got '{name}'"
    )
