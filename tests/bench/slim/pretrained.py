# SPDX-License-Identifier: Apache-2.0
"""Published models made narrower, and what comes back of them without labels.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/pretrained.py
        [--models minilm,ppocr_rec] [--ratio 0] [--draws 3] [--samples 256] [--importance l2]
        [--tests 0] [--damping 0.001]

Normalization is folded, so many of each layer's channels go (`pruner.structured`; by default what
takes about 30 % of the multiply-adds), and what is left is fitted to what the whole model made
(`recovery.refit`) on calibration inputs without labels, drawn anew each time. Printed: the metric
in percent (minilm: accuracy of a probe; ppocr_rec: 1 - CER), the share of the loss that came back
with its 95 % interval over draws, the same of the squared error of the first output, relative to
its size, on the samples that judge (an accuracy of few samples moves by chance where a model loses
little), and seconds of the refit. minilm's own width is its output's and
stays: heads and inner units go.
"""

import argparse
import dataclasses
import pathlib
import statistics
import tempfile
import time

import networks
import numpy as np
import tenon as tn
from recovery import back


@dataclasses.dataclass(frozen=True)
class Published:
    file: str
    data: str
    metric: str
    options: dict
    batch: int
    ratio: float  # with which about 30 % of the multiply-adds go
    mask: str = ""  # the input that is 0 at padding

    def score(self, model: tn.Model, limit: int) -> float:
        """In percent."""
        test = tn.data.npz(networks.MODELS / f"{self.data}_eval.npz")
        found = tn.evaluate(
            model,
            test,
            metric=self.metric,
            metric_options=self.options,
            batch=self.batch,
            limit=limit,
        )
        return 100 * (1 - found["cer"] if self.metric == "cer" else found["accuracy"])

    def outputs(self, model: tn.Model, limit: int) -> np.ndarray:
        """The first output of the samples that judge: of minilm the embedding."""
        plan, names = model.compile(), [port.name for port in model.inputs]
        with np.load(networks.MODELS / f"{self.data}_eval.npz") as file:
            inputs = {name: file[name][: limit or None] for name in names}
        count = len(next(iter(inputs.values())))
        rows = []
        for begin in range(0, count, self.batch):
            batch = {name: array[begin : begin + self.batch] for name, array in inputs.items()}
            rows.append(np.asarray(plan.run(batch)[0]))
        return np.concatenate(rows)

    def draw(self, folder: pathlib.Path, seed: int, samples: int) -> str:
        """So many calibration inputs, drawn without replacement, without labels."""
        with np.load(networks.MODELS / f"{self.data}_calib.npz") as file:
            arrays = {key: array for key, array in file.items() if key != "label"}
        count = len(next(iter(arrays.values())))
        chosen = np.random.default_rng(seed).permutation(count)[:samples]
        path = folder / f"{self.data}_{seed}.npz"
        np.savez(path, **{key: array[chosen] for key, array in arrays.items()})
        return path.as_posix()


MODELS = {
    "minilm": Published(
        "minilm_probe.onnx", "minilm", "accuracy", {"output": 1}, 16, 0.3, "attention_mask"
    ),
    "ppocr_rec": Published("ppocr_rec.onnx", "ppocr_rec", "cer", {}, 8, 0.17),
}


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Squares of the difference over those of what was expected."""
    return float(np.square(found - expected).sum() / np.square(expected).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="minilm,ppocr_rec")
    parser.add_argument("--ratio", type=float, default=0, help="of channels; 0: the model's")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--importance", default="l2")
    parser.add_argument("--damping", type=float, default=0.001)
    parser.add_argument("--tests", type=int, default=0, help="samples that judge; 0: all")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    print(f"{'model':<12}{'weights':>9}{'whole':>8}{'pruned':>8}{'refitted':>17}{'back %':>17}"
          f"{'error':>8}{'refitted':>10}{'back %':>17}{'seconds':>9}", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tenon_slim_") as folder:
        for name in args.models.split(","):
            model = MODELS[name]
            whole_model = tn.load(networks.MODELS / model.file).apply("fusion.default")
            pruned_model = whole_model.apply(
                "pruner.structured", ratio=args.ratio or model.ratio, importance=args.importance
            )
            whole = model.score(whole_model, args.tests)
            pruned = model.score(pruned_model, args.tests)
            expected = model.outputs(whole_model, args.tests)
            cut = error(model.outputs(pruned_model, args.tests), expected)
            then, errors, seconds = [], [], []
            for draw in range(args.draws):
                data = model.draw(pathlib.Path(folder), draw, args.samples)
                began = time.monotonic()
                refitted = pruned_model.apply(
                    "recovery.refit", data=data, samples=args.samples, batch=args.batch,
                    damping=args.damping, **({"mask": model.mask} if model.mask else {}),
                )  # fmt: skip
                seconds.append(time.monotonic() - began)
                then.append(model.score(refitted, args.tests))
                errors.append(error(model.outputs(refitted, args.tests), expected))
            shares = [back(whole, pruned, one) for one in then]
            of_error = [100 * (1 - one / cut) for one in errors]
            weights = pruned_model.report["parameters"]["ratio"]
            print(f"{name:<12}{weights:>9.3f}{whole:>8.2f}{pruned:>8.2f}"
                  f"{networks.with_interval(then):>17}{networks.with_interval(shares):>17}"
                  f"{cut:>8.4f}{statistics.fmean(errors):>10.4f}"
                  f"{networks.with_interval(of_error):>17}{statistics.median(seconds):>9.1f}",
                  flush=True)  # fmt: skip
            found = {"model": name, "weights": weights, "whole": whole, "pruned": pruned}
            found |= {"refitted": then, "error": cut, "errors": errors, "seconds": seconds}
            networks.say(found, args.rows)


if __name__ == "__main__":
    main()
