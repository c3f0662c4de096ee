# SPDX-License-Identifier: Apache-2.0
"""Reference networks computed in integers alone beside the same files in QDQ form.

tenon run scripts/reference.lua --set networks=lenet,resnet20 --set kept=scripts/reference \
    --set onnx=FOLDER
.venv/bin/python tests/bench/models/integers.py FOLDER/lenet.onnx .cache/models/mnist --samples 500

`quantizer.static` on 256 samples of DATA_train.npz, then `quantizer.integers`, which runs on the
backend `reference` with floats refused. On samples of DATA_test.npz: accuracies in percent, how
many decisions differ from those of the QDQ file, and signal to noise of the scores in dB: of both
to the float model's, and of the integers' to the QDQ file's.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import tenon


def scores(path, x, batch, **options):
    plan = tenon.load(str(path)).compile(**options)
    parts = [plan(x[i : i + batch])[0] for i in range(0, len(x), batch)]
    return np.concatenate([np.asarray(part) for part in parts])


def snr(signal, other):
    return 10 * np.log10((signal**2).sum() / ((signal - other) ** 2).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--batch", type=int, default=50)
    arguments = parser.parse_args()
    train = tenon.data.npz(arguments.data + "_train.npz")
    test = np.load(arguments.data + "_test.npz")
    x, label = test["image"][: arguments.samples], test["label"][: arguments.samples]
    model = tenon.load(arguments.model).apply("fusion.default")
    small = model.apply("quantizer.static", data=train)
    whole = small.apply("quantizer.integers")
    with tempfile.TemporaryDirectory() as folder:
        made = {}
        for name, one in {"float": model, "qdq": small, "integers": whole}.items():
            one.save(str(Path(folder) / f"{name}.onnx"))
            options = {"backend": "reference", "floats": "refuse"} if one is whole else {}
            file = Path(folder) / f"{name}.onnx"
            made[name] = scores(file, x, arguments.batch, **options)
    right = {name: 100 * (y.argmax(1) == label).mean() for name, y in made.items()}
    differ = (made["qdq"].argmax(1) != made["integers"].argmax(1)).sum()
    print(f"{Path(arguments.model).stem}, {len(x)} samples")
    print("accuracy: " + ", ".join(f"{name} {each:.2f}" for name, each in right.items()))
    print(f"decisions that differ between QDQ and integers: {differ}")
    print(
        f"SNR dB: qdq {snr(made['float'], made['qdq']):.1f}, integers "
        f"{snr(made['float'], made['integers']):.1f}; integers to qdq "
        f"{snr(made['qdq'], made['integers']):.1f}"
    )


if __name__ == "__main__":
    main()
