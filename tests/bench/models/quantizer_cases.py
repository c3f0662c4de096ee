# SPDX-License-Identifier: Apache-2.0
"""Pretrained models, data to quantize them with, others to judge on, and the task's figure."""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import task_data


class Missing(Exception):
    """A model or data that are not on this machine."""


@dataclass
class Scores:
    """signal: what is compared, a sample each; decided: classes, a sample each; task: right or
    not, or a share, of each sample."""

    signal: list[np.ndarray]
    decided: list[np.ndarray]
    task: np.ndarray | None


Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """load: the arrays to quantize with and to judge on, from the parsed arguments; those named
    `label` are no input. signal, classes: of a sample's outputs; right: of its classes and label,
    0 to 1."""

    name: str
    load: Callable[[object], tuple[Arrays, Arrays]]
    signal: Callable[[list[np.ndarray]], np.ndarray]
    classes: Callable[[list[np.ndarray]], np.ndarray] | None = None
    right: Callable[[np.ndarray, np.ndarray], float] | None = None
    file: str = ""
    kept: bool = False  # one of scripts/reference
    is_transformer: bool = False

    def model(self, args) -> pathlib.Path:
        path = (args.networks if self.kept else args.models) / f"{self.file or self.name}.onnx"
        if not path.exists():
            raise Missing(f"{path.name} is not there")
        return path

    def data(self, args):
        """Arrays to quantize with; feeds and labels to judge on, a sample each."""
        calibration, judged = self.load(args)
        chosen = spread(len(next(iter(calibration.values()))), args.calibration)
        calibration = {k: v[chosen] for k, v in calibration.items() if k != "label"}
        count = min(args.samples, len(next(iter(judged.values()))))
        feeds = [{k: v[i : i + 1] for k, v in judged.items() if k != "label"} for i in range(count)]
        return calibration, feeds, judged.get("label", np.zeros(0))[:count]

    def scores(self, outputs: list[list[np.ndarray]], labels: np.ndarray) -> Scores:
        decided = [self.classes(one) for one in outputs] if self.classes else []
        task = None
        if self.right:
            task = np.array([self.right(*both) for both in zip(decided, labels, strict=True)])
        return Scores([self.signal(one) for one in outputs], decided, task)


def spread(whole: int, count: int) -> np.ndarray:
    return np.unique(np.linspace(0, whole - 1, min(count, whole)).astype(int))


def npz(name: str, args) -> Arrays:
    path = args.models / f"{name}.npz"
    if not path.exists():
        raise Missing(f"{path.name} is not fetched (scripts/fetch)")
    with np.load(path) as file:
        return dict(file)


def two_files(calibration: str, judged: str):
    return lambda args: (npz(calibration, args), npz(judged, args))


def output(index: int):
    return lambda outputs: outputs[index][0]


def scores_before_softmax(outputs: list[np.ndarray]) -> np.ndarray:
    """What the Softmax read, but for a number for each row."""
    logs = np.log(np.maximum(outputs[0][0], 1e-12))
    return logs - logs.mean(-1, keepdims=True)


def best(index: int, axis: int = -1):
    return lambda outputs: outputs[index][0].argmax(axis)


def share(found: np.ndarray, label: np.ndarray) -> float:
    return float(np.mean(found == label))


def distance(a: list[int], b: list[int]) -> int:
    """Levenshtein's, by rows."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        before, row = row, [i]
        for j, right in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (left != right)))
    return row[-1]


def characters_read(found: np.ndarray, label: np.ndarray) -> float:
    """1 - character error rate; `found` are CTC's classes, 0 is blank."""
    kept = found[np.insert(found[1:] != found[:-1], 0, True)]
    wanted = [int(one) for one in label if one >= 0]
    return 1 - distance([int(one) for one in kept if one > 0], wanted) / max(len(wanted), 1)


def pages(lines: np.ndarray, count: int) -> np.ndarray:
    """Six lines of text on each page of 320x320, as the detector reads them."""
    mean, spread_ = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    random = np.random.default_rng(7)
    made = []
    for _ in range(count):
        page = np.concatenate([lines[i] for i in random.choice(len(lines), 6, False)], axis=1)
        page = np.pad(page, ((0, 0), (16, 16), (0, 0)), mode="edge") * 0.5 + 0.5
        made.append((page - mean[:, None, None]) / spread_[:, None, None])
    return np.stack(made).astype(np.float32)


def pages_of_text(args):
    calibration, judged = npz("ppocr_rec_calib", args), npz("ppocr_rec_eval", args)
    return {"x": pages(calibration["x"], 64)}, {"x": pages(judged["x"], 60)}


def files(args):
    """Every other file of the disk to quantize with; a file's label is its place in the list."""
    found = task_data.files_by_kind(800)
    read = np.concatenate([task_data.magika_bytes(path) for path, _ in found])
    return {"bytes": read[::2]}, {"bytes": read[1::2]}


def clips(args):
    name = "serving_default_input_2:0"

    def made(keys):
        return np.stack([task_data.note(key, 43844, 22050)[:, None] for key in keys])

    return {name: made(range(24, 104, 2))}, {name: made(range(25, 104, 2))}


CASES = (
    Case("minilm", two_files("minilm_calib", "minilm_eval"), output(0), best(1), share,
         file="minilm_probe", is_transformer=True),
    Case("ppocr_rec", two_files("ppocr_rec_calib", "ppocr_rec_eval"), scores_before_softmax,
         best(0), characters_read),
    Case("ppocr_det", pages_of_text, output(0), lambda outputs: outputs[0][0] > 0.3),
    Case("magika", files, scores_before_softmax, best(0)),
    Case("basic_pitch", clips, output(1), lambda outputs: outputs[1][0] > 0.3),
    Case("lenet", two_files("mnist_train", "mnist_test"), output(0), best(0), share, kept=True),
    Case("mnist_cnn", two_files("mnist_train", "mnist_test"), output(0), best(0), share,
         kept=True),
    Case("resnet20", two_files("glyphs_train", "glyphs_test"), output(0), best(0), share,
         kept=True),
    Case("mobilenet", two_files("glyphs_train", "glyphs_test"), output(0), best(0), share,
         kept=True),
    Case("unet", two_files("shapes_train", "shapes_test"), output(0), best(0), share,
         kept=True),
    Case("transformer", two_files("characters_train", "characters_test"), output(0), best(0),
         share, kept=True, is_transformer=True),
    Case("lstm", two_files("leaves_train", "leaves_test"), output(0), best(0), share, kept=True),
)  # fmt: skip
