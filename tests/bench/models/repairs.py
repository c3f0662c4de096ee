# SPDX-License-Identifier: Apache-2.0
"""What each preparation and each repair of a quantized model wins at equal bytes, on samples that
calibration has not seen: signal to noise sample by sample, with a 95 % interval of the paired gain.

  python tests/bench/models/repairs.py [--only 'minilm*'] [--samples 100] [--methods gptq]
"""

import argparse
import fnmatch
import pathlib
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import tenon

CACHE = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "models"
BEFORE = ("smooth", "equalize")  # of the float model; the others repair what has been rounded
METHODS = (*BEFORE, "gptq", "adaround", "correct_bias")


@dataclass(frozen=True)
class Case:
    """bits: of weights. data, judged: files of the cache. decides: rows of scores are compared by
    their logarithms around their mean, which is what the Softmax read."""

    name: str
    file: str
    data: str
    judged: str
    bits: int = 8
    decides: bool = False


CASES = (
    Case("mobilenet_v2 int8", "mobilenet_v2", "photos_calib", "photos_eval"),
    Case("resnet50 int8", "resnet50", "photos_calib", "photos_eval"),
    Case("ppocr_rec int8", "ppocr_rec", "ppocr_rec_calib", "ppocr_rec_eval", decides=True),
    Case("ppocr_rec int4", "ppocr_rec", "ppocr_rec_calib", "ppocr_rec_eval", 4, decides=True),
    Case("minilm int8", "minilm", "minilm_calib", "minilm_eval"),
    Case("minilm int4", "minilm", "minilm_calib", "minilm_eval", 4),
)


def scores(case: Case, plan: tenon.Plan, feeds: dict[str, np.ndarray]) -> np.ndarray:
    found = np.asarray(plan.run(feeds)[0], np.float64)
    if not case.decides:
        return found
    logs = np.log(np.maximum(found, 1e-12))
    return logs - logs.mean(-1, keepdims=True)


def judged(case: Case, model: tenon.Model, samples: int) -> list[np.ndarray]:
    plan = model.compile(backend="onednn")
    with np.load(CACHE / f"{case.judged}.npz") as file:
        names = [one["name"] for one in model.inspect()["inputs"]]
        arrays = {name: file[name] for name in names}
    count = min(samples, len(next(iter(arrays.values()))))
    return [scores(case, plan, {k: v[i : i + 1] for k, v in arrays.items()}) for i in range(count)]


def decibels(right: list[np.ndarray], found: list[np.ndarray]) -> np.ndarray:
    return np.array(
        [
            10 * np.log10(np.sum(a**2) / np.sum((a - b) ** 2))
            for a, b in zip(right, found, strict=True)
        ]
    )


def made(case: Case, model: tenon.Model, methods: list[str]) -> tenon.Model:
    data = str(CACHE / f"{case.data}.npz")
    for method in methods:
        if method in BEFORE:
            given = {"data": data} if method == "smooth" else {}
            model = model.apply(f"quantizer.{method}", **given)
    if case.bits == 8:
        small = model.apply("quantizer.static", data=data)
    else:
        small = model.apply("quantizer.weights", bits=case.bits, group=32, clip="clip" in methods)
    for method in methods:
        if method in METHODS and method not in BEFORE:
            small = small.apply(f"quantizer.{method}", data=data, original=model)
    return small


def written(model: tenon.Model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        model.save(path)
        return path.stat().st_size


def rows(case: Case, methods: list[str], samples: int):
    model = tenon.load(CACHE / f"{case.file}.onnx").apply("fusion.default")
    right = judged(case, model, samples)
    lists = [[], *([["clip"]] if case.bits == 4 else []), *([method] for method in methods)]
    if case.bits == 4:
        lists = [one for one in lists if one in ([], ["clip"], ["gptq"], ["adaround"])]
        lists += [["clip", method] for method in ("gptq", "adaround") if method in methods]
    plain = None
    for chosen in lists:
        small = made(case, model, chosen)
        found = decibels(right, judged(case, small, samples))
        plain = found if plain is None else plain
        gain = found - plain
        half = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
        yield [
            case.name,
            " + ".join(chosen) or "nearest",
            f"{written(small) / 1e6:.3f}",
            f"{found.mean():.2f}",
            f"{gain.mean():+.2f} ± {half:.2f}" if chosen else "",
        ]


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="repairs", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--samples", type=int, default=100, help="to judge on")
    parser.add_argument("--methods", default=",".join(METHODS))
    args = parser.parse_args(argv)
    print("| model | with | MB | SNR dB | gain dB |\n|---|---|---|---|---|")
    for case in CASES:
        if not any(fnmatch.fnmatch(case.name, pattern) for pattern in args.only.split(",")):
            continue
        for row in rows(case, args.methods.split(","), args.samples):
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
