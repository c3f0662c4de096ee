# SPDX-License-Identifier: Apache-2.0
"""What it brings to quantize the products inside of attention, which `products=none` leaves in
float: the same int8 recipe with `none`, `scores` and `all`, of networks that have attention.

  scores.py [--only 'minilm*'] [--samples 200] [--rounds 200] [--threads 1] [--work FOLDER]
            [--networks FOLDER]

For each: the share of multiply-adds in 8 bits (quantizer.macs), decibels on samples that
calibration has not seen and their paired difference, decisions that stay the float model's, and the
processor time of one sample: runs of the models in turn, the ratio of their times with its 95 %
interval. Random weights say something about time alone.
"""

import argparse
import fnmatch
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch_exports
from quantizer_cases import npz, spread
from quantizer_macs import integer_macs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from figures import decibels  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHOICES = ("none", "scores", "all")
COLUMNS = ("model", "products", "int8 MACs %", "SNR dB", "less than none", "decisions %", "CPU ms",
           "time of none over it")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """data: arrays to quantize with, and to judge on. output: which one decides and is compared."""

    name: str
    file: Callable[[argparse.Namespace], pathlib.Path]
    data: Callable[[argparse.Namespace], tuple[dict, dict]]
    is_trained: bool = True
    mask: str = ""
    output: int = 0


def two_files(calibration: str, judged: str):
    def load(args):
        seen = npz(calibration, args)
        chosen = spread(len(next(iter(seen.values()))), 64)
        return {k: v[chosen] for k, v in seen.items()}, npz(judged, args)

    return load


def drawn(name: str, shape: tuple, top: int = 0):
    """Random samples: of images where top is 0, else of words."""

    def load(args):
        rng = np.random.default_rng(5)
        made = rng.integers(0, top, (16, *shape)) if top else rng.standard_normal((16, *shape))
        array = made.astype(np.int64 if top else np.float32)
        return {name: array[:8]}, {name: array[8:]}

    return load


def exported(name: str):
    return lambda args: torch_exports.obtain(name, "script", args.exports)


CASES = (
    Case("minilm", lambda args: args.models / "minilm_probe.onnx",
         two_files("minilm_calib", "minilm_eval"), mask="attention_mask", output=1),
    Case("transformer", lambda args: args.networks / "transformer.onnx",
         two_files("characters_train", "characters_test")),
    Case("vit_s", exported("vit_s"), drawn("image", (3, 224, 224)), is_trained=False),
    Case("swin_t", exported("swin_t"), drawn("image", (3, 224, 224)), is_trained=False),
    Case("gpt2", exported("gpt2"), drawn("input_ids", (128,), 50257), is_trained=False),
)  # fmt: skip


def half_of(values: np.ndarray) -> float:
    return 1.96 * values.std(ddof=1) / np.sqrt(len(values))


def timed(plans: list, feed: dict, rounds: int) -> np.ndarray:
    """Processor seconds, [rounds, plans]: each once in each round."""
    for plan in plans:
        for _ in range(5):
            plan.run(feed)
    out = np.zeros((rounds, len(plans)))
    for r in range(rounds):
        for i in np.roll(np.arange(len(plans)), r):
            begin = time.process_time()
            plans[i].run(feed)
            out[r, i] = time.process_time() - begin
    return out


def judged(plan, case: Case, feeds: list[dict]) -> list[np.ndarray]:
    return [np.asarray(plan.run(feed)[case.output][0], np.float64) for feed in feeds]


def rows(case: Case, folder: pathlib.Path, args):
    import tenon

    model = tenon.load(case.file(args)).apply("fusion.default")
    names = [one["name"] for one in model.inspect()["inputs"]]
    seen, unseen = case.data(args)
    data = folder / f"{case.name}.npz"
    np.savez(data, **{name: seen[name] for name in names})
    count = min(args.samples, len(unseen[names[0]]))
    feeds = [{name: unseen[name][i : i + 1] for name in names} for i in range(count)]
    made, shares = [], []
    for products in CHOICES:
        mask = {"mask": case.mask} if case.mask else {}
        small = model.apply(
            "quantizer.static", data=str(data), products=products, batch=1, samples=64, **mask
        )
        path = folder / f"{case.name}.{products}.onnx"
        small.save(path)
        made.append(small.compile(backend="onednn", threads=args.threads))
        shares.append(integer_macs(str(path), feeds[0])["share"])
    right = judged(model.compile(backend="onednn", threads=args.threads), case, feeds)
    found = [judged(plan, case, feeds) for plan in made]
    snr = [decibels(right, one) for one in found]
    seconds = timed(made, feeds[0], args.rounds)
    for i, products in enumerate(CHOICES):
        same = [np.mean(a.argmax(-1) == b.argmax(-1)) for a, b in zip(right, found[i], strict=True)]
        less, ratio = snr[0] - snr[i], np.log(seconds[:, 0] / seconds[:, i])
        ends = np.exp([ratio.mean() - half_of(ratio), ratio.mean() + half_of(ratio)])
        yield [
            case.name + ("" if case.is_trained else " (random)"),
            products,
            f"{100 * shares[i]:.1f}",
            f"{snr[i].mean():.2f}",
            f"{less.mean():+.2f} ± {half_of(less):.2f}" if i else "",
            f"{100 * np.mean(same):.2f}",
            f"{1e3 * np.median(seconds[:, i]):.3g}",
            f"{np.exp(ratio.mean()):.3f} [{ends[0]:.3f}, {ends[1]:.3f}]" if i else "",
        ]


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="scores", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--samples", type=int, default=200, help="to judge on")
    parser.add_argument("--rounds", type=int, default=200, help="of times")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".cache" / "models")
    parser.add_argument("--exports", type=pathlib.Path, default=ROOT / ".cache" / "exports")
    networks = ROOT / "runs" / "networks"
    parser.add_argument("--networks", type=pathlib.Path, default=networks, help="kept ones")
    parser.add_argument("--work", type=pathlib.Path, help="keeps the files here")
    args = parser.parse_args(argv)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in CASES:
            if any(fnmatch.fnmatch(case.name, one) for one in args.only.split(",")):
                for row in rows(case, folder, args):
                    print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
