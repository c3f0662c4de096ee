# SPDX-License-Identifier: Apache-2.0
"""What published models are for, measured: fp32 and int8 on one backend, beside ONNX Runtime where
it is installed, and the figure that is expected.

  python tests/bench/models/tasks.py [--only 'silero*'] [--backend onednn] [--speech FOLDER]
"""

import argparse
import fnmatch
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import task_data as data
import tenon

CACHE = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "models"
Run = Callable[[dict], list[np.ndarray]]
RANGE = {"fmin": np.array(46.875, np.float32), "fmax": np.array(2093.75, np.float32)}


class Missing(Exception):
    """Data that are not on this machine."""


@dataclass(frozen=True)
class Task:
    """score: of a run, in percent. least, most: its bounds; int8 may be a point below.

    calibrate: arrays for quantizer.static; None: quantizer.dynamic needs none.
    """

    name: str
    file: str
    what: str
    expected: str
    score: Callable[[Run], float]
    least: float = 0.0
    most: float = 100.0
    calibrate: Callable[[], dict[str, np.ndarray]] | None = None

    def is_met(self, precision: str, found: float) -> bool:
        return self.least - (1 if precision == "int8" else 0) <= found <= self.most


def arrays(name: str) -> dict[str, np.ndarray]:
    path = CACHE / name
    if not path.exists():
        raise Missing(f"{name} is not fetched (scripts/fetch)")
    with np.load(path) as file:
        return dict(file)


def distance(a: str, b: str) -> int:
    """Levenshtein's, by rows."""
    row = np.arange(len(b) + 1)
    for i, left in enumerate(a, start=1):
        before, row = row, np.empty_like(row)
        row[0] = i
        for j, right in enumerate(b, start=1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
    return int(row[-1])


def character_errors(run: Run) -> float:
    lines = arrays("ppocr_rec_eval.npz")
    wrong = total = 0
    for image, label in list(zip(lines["x"], lines["label"], strict=True))[:40]:
        best = run({"x": image[None]})[0][0].argmax(-1)
        kept = best[np.insert(best[1:] != best[:-1], 0, True)]
        said = "".join(map(chr, kept[kept > 0]))
        wanted = "".join(map(chr, label[label >= 0]))
        wrong += distance(said, wanted)
        total += len(wanted)
    return 100 * wrong / total


def listened(run: Run, clip: np.ndarray) -> np.ndarray:
    """Silero's probability of speech for each window of a whole clip, its state carried on."""
    state, heard = np.zeros((2, 1, 128), np.float32), []
    padded = np.concatenate([np.zeros(64, np.float32), clip])
    for begin in range(0, clip.size - 511, 512):
        probability, state = run({"input": padded[None, begin : begin + 576], "state": state})
        heard.append(probability.item())
    return np.array(heard)


def speech_found(run: Run) -> float:
    """Clips of which at least every fourth window is called speech."""
    clips = data.spoken(data.SPEECH)
    if not clips:
        raise Missing(f"no 8 kHz prompts in {data.SPEECH}: install asterisk-core-sounds-en-wav")
    return 100 * np.mean([np.mean(listened(run, clip) > 0.5) >= 0.25 for clip in clips])


def false_alarms(run: Run) -> float:
    """Windows of noise and of a tone that are called speech."""
    noise = 0.05 * np.random.default_rng(5).standard_normal(5 * 16000).astype(np.float32)
    clips = [noise, data.tone(440, 5, 16000, seed=5)]
    return 100 * np.mean(np.concatenate([listened(run, clip) for clip in clips]) > 0.5)


def file_types(run: Run) -> float:
    names = json.loads((CACHE / "magika_config.json").read_text())["target_labels_space"]
    right = [
        names[run({"bytes": data.magika_bytes(path)})[0].argmax()] in kinds
        for path, kinds in data.files_by_kind()
    ]
    return 100 * np.mean(right)


def crepe_pitch(run: Run) -> float:
    """Frames whose strongest bin (20 cents) is within 50 cents."""
    frames = arrays("crepe_eval.npz")
    best = run({"frames": frames["frames"]})[0].argmax(-1)
    return 100 * np.mean(np.abs(best - frames["label"]) <= 2)


def swift_pitch(run: Run) -> float:
    """Frames within 50 cents, of tones from 80 to 800 Hz."""
    right = []
    for i, hertz in enumerate(np.geomspace(80, 800, 24)):
        pitch = run({"audio": data.tone(hertz, 1, 16000, seed=i)[None], **RANGE})[0]
        right.append(np.abs(1200 * np.log2(pitch[0] / hertz)) <= 50)
    return 100 * np.mean(np.concatenate(right))


NOTES, CLIP, PITCH_RATE = range(45, 81, 3), 43844, 22050


def clip_of(midi: int) -> dict[str, np.ndarray]:
    return {"serving_default_input_2:0": data.note(midi, CLIP, PITCH_RATE)[None, :, None]}


def notes_found(run: Run) -> float:
    """Notes whose key is the strongest while they sound, key 0 being midi 21."""
    right = []
    for midi in NOTES:
        _, keys, _ = run(clip_of(midi))  # onsets, notes, contours
        right.append(keys[0, 50:120].mean(0).argmax() == midi - 21)
    return 100 * np.mean(right)


def stacked(samples: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([sample[key] for sample in samples]) for key in samples[0]}


TASKS = (
    Task("ppocr_rec", "ppocr_rec", "character error rate, 40 lines", "3.1 %", character_errors,
         most=3.1, calibrate=lambda: {"x": arrays("ppocr_rec_calib.npz")["x"]}),
    Task("silero speech", "silero_no_if", "spoken prompts found, of 20", "95 %", speech_found,
         least=95),
    Task("silero noise", "silero_no_if", "windows of noise and tone taken for speech", "0 %",
         false_alarms, most=0),
    Task("magika", "magika", "types of 256 files", "94.9 %", file_types, least=94.9,
         calibrate=lambda: stacked([{"bytes": data.magika_bytes(path)}
                                    for path, _ in data.files_by_kind()[::8]])),
    Task("crepe", "crepe_tiny", "frames within 50 cents", "100 %", crepe_pitch, least=100,
         calibrate=lambda: {"frames": arrays("crepe_calib.npz")["frames"]}),
    Task("swift_f0", "swift_f0", "frames within 50 cents", "99.9 %", swift_pitch, least=99.9),
    Task("basic_pitch", "basic_pitch", "synthetic notes found, of 12", "100 %", notes_found,
         least=100, calibrate=lambda: stacked([clip_of(midi) for midi in range(40, 90, 7)])),
)  # fmt: skip


def quantized(task: Task, model: tenon.Model) -> tenon.Model:
    plain = model.apply("fusion.default")
    if task.calibrate is None:
        return plain.apply("quantizer.dynamic")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "calibration.npz"
        np.savez(path, **task.calibrate())
        return plain.apply("quantizer.static", data=str(path), batch=1)


def load(task: Task) -> tenon.Model:
    path = CACHE / f"{task.file}.onnx"
    if not path.exists():
        raise Missing(f"{path.name} is not fetched (scripts/fetch)")
    return tenon.load(path)


def measure(task: Task, precision: str, backend: str) -> float:
    """fp32 or int8."""
    model = load(task)
    if precision == "int8":
        model = quantized(task, model)
    return float(task.score(model.compile(backend=backend).run))


def peer(task: Task) -> float | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    path = str(CACHE / f"{task.file}.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return float(task.score(lambda feeds: session.run(None, feeds)))


def cells(task: Task, backend: str) -> list[str]:
    found = {precision: measure(task, precision, backend) for precision in ("fp32", "int8")}
    figures = [peer(task), *found.values()]
    shown = ["-" if figure is None else f"{figure:.1f} %" for figure in figures]
    missed = not all(task.is_met(precision, figure) for precision, figure in found.items())
    return [task.what, task.expected, *shown, *(["missed"] if missed else [])]


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="tasks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--backend", default="onednn")
    parser.add_argument("--speech", type=pathlib.Path, help="folder of spoken prompts, 8 kHz")
    args = parser.parse_args(argv)
    if args.speech:
        data.SPEECH = args.speech
    missed = 0
    print("| task | figure | expected | ONNX Runtime | fp32 | int8 |\n|---|---|---|---|---|---|")
    for task in TASKS:
        if not any(fnmatch.fnmatch(task.name, pattern) for pattern in args.only.split(",")):
            continue
        try:
            found = cells(task, args.backend)
        except Missing as why:
            found = [str(why)]
        missed += found[-1] == "missed"
        print(f"| {task.name} | {' | '.join(found)} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
