# SPDX-License-Identifier: Apache-2.0
"""What each preparation and each repair of a quantized model wins at equal bytes, on samples that
calibration has not seen: signal to noise sample by sample, with a 95 % interval of the paired gain.

  python tests/bench/models/repairs.py [--only 'minilm*'] [--samples 100] [--methods gptq]
                                       [--networks FOLDER]
"""

import argparse
import fnmatch
import pathlib
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from figures import decibels  # noqa: E402

CACHE = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "models"
BEFORE = ("smooth", "equalize")  # of the float model; the others repair what has been rounded
METHODS = (*BEFORE, "gptq", "adaround", "correct_bias", "correct_bias_by_norms")


@dataclass(frozen=True)
class Case:
    """bits: of weights, 4 in groups of 32 but where `in_codes`: then as few values of 8 bits. data,
    judged: files of the cache. decides: rows of scores are compared by their logarithms around
    their mean, which is what the Softmax read. kept: one of scripts/reference, as ONNX."""

    name: str
    file: str
    data: str
    judged: str
    bits: int = 8
    decides: bool = False
    in_codes: bool = False
    kept: bool = False


CASES = (
    Case("mobilenet_v2 int8", "mobilenet_v2", "photos_calib", "photos_eval"),
    Case("resnet50 int8", "resnet50", "photos_calib", "photos_eval"),
    Case("ppocr_rec int8", "ppocr_rec", "ppocr_rec_calib", "ppocr_rec_eval", decides=True),
    Case("ppocr_rec int4", "ppocr_rec", "ppocr_rec_calib", "ppocr_rec_eval", 4, decides=True),
    Case("minilm int8", "minilm", "minilm_calib", "minilm_eval"),
    Case("minilm int4", "minilm", "minilm_calib", "minilm_eval", 4),
    Case("resnet20 4 bits", "resnet20", "glyphs_train", "glyphs_test", 4, in_codes=True, kept=True),
    Case("mobilenet 4 bits", "mobilenet", "glyphs_train", "glyphs_test", 4, in_codes=True,
         kept=True),
)  # fmt: skip


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


def made(case: Case, norms: tenon.Model, model: tenon.Model, methods: list[str]) -> tenon.Model:
    data = str(CACHE / f"{case.data}.npz")
    for method in methods:
        if method in BEFORE:
            given = {"data": data} if method == "smooth" else {}
            model = model.apply(f"quantizer.{method}", **given)
    if case.bits == 8 or case.in_codes:
        small = model.apply("quantizer.static", data=data, weight_bits=case.bits)
    else:
        small = model.apply("quantizer.weights", bits=case.bits, group=32, clip="clip" in methods)
    for method in methods:
        if method == "correct_bias_by_norms":
            small = small.apply(f"quantizer.{method}", original=model, norms=norms)
        elif method in METHODS and method not in BEFORE:
            small = small.apply(f"quantizer.{method}", data=data, original=model)
    return small


def written(model: tenon.Model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        model.save(path)
        return path.stat().st_size


def rows(case: Case, methods: list[str], samples: int, networks: pathlib.Path):
    norms = tenon.load((networks if case.kept else CACHE) / f"{case.file}.onnx")
    model = norms.apply("fusion.default")
    right = judged(case, model, samples)
    in_groups = case.bits == 4 and not case.in_codes
    lists = [[], *([["clip"]] if in_groups else []), *([method] for method in methods)]
    if in_groups:
        lists = [one for one in lists if one in ([], ["clip"], ["gptq"], ["adaround"])]
        lists += [["clip", method] for method in ("gptq", "adaround") if method in methods]
    plain = None
    for chosen in lists:
        small = made(case, norms, model, chosen)
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
    networks = CACHE.parents[1] / "runs" / "networks"
    parser.add_argument("--networks", type=pathlib.Path, default=networks, help="kept ones")
    args = parser.parse_args(argv)
    print("| model | with | MB | SNR dB | gain dB |\n|---|---|---|---|---|")
    for case in CASES:
        if not any(fnmatch.fnmatch(case.name, pattern) for pattern in args.only.split(",")):
            continue
        for row in rows(case, args.methods.split(","), args.samples, args.networks):
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
