# SPDX-License-Identifier: Apache-2.0
"""The peers' chain on a reference network: Torch-Pruning, PyTorch fine-tuning, NNCF's int8.

    PYTHONPATH=build/release/python .venv-bench/bin/python tests/bench/slim/peer_chain.py mnist_cnn
        --ours runs/chain/chain_mnist_cnn.onnx [--epochs 8] [--labels] [--threads 1]
        [--rounds 7] [--seed 1]

The network with the weights that are kept loses channels by DepGraph and magnitudes (widths in
eights) until its weights in 8 bits are as many bytes as our file has; then it is taught, by the
whole network's answers as chain.lua teaches (--labels: by labels alone), for so many epochs, and
quantized after training (NNCF on ONNX, 256 samples). Printed: bytes of the files, accuracy of the
three quarters of the held-out samples that chain.lua reports, with the points that ours is ahead,
part by part; and times at batch 1, in turns: OpenVINO / ONNX Runtime / Tenon over ours in Tenon,
with the 95 % interval of the paired ratios.
"""

import argparse
import copy
import math
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
import torch
from safetensors.torch import load_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench"))
import figures  # noqa: E402
import peer_quantize  # noqa: E402
import peers  # noqa: E402
import reference  # noqa: E402

MODELS = ROOT / ".cache/models"
PARTS = 20
TEMPERATURE, ALPHA = 4, 0.7  # as chain.lua
OPSET = 18


def trained(name: str) -> nn.Module:
    net = reference.NETWORKS[name].make()
    kept = load_file(ROOT / f"scripts/reference/{name}.safetensors")
    weights = {key: kept[key].float() for key in net.state_dict() if key in kept}
    missing = [key for key in net.state_dict() if key not in weights and "num_batches" not in key]
    assert not missing, missing
    net.load_state_dict(weights, strict=False)
    return net.eval()


def narrowed(whole: nn.Module, example: torch.Tensor, ratio: float) -> nn.Module:
    import torch_pruning

    net = copy.deepcopy(whole)
    last = [layer for layer in net.modules() if isinstance(layer, nn.Linear)][-1]
    torch_pruning.pruner.MagnitudePruner(
        net,
        (example,),
        importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
        pruning_ratio=ratio,
        ignored_layers=[last],
        round_to=8,
    ).step()
    return net


def n_weights(net: nn.Module) -> int:
    return sum(one.numel() for one in net.parameters())


def of_size(whole: nn.Module, example: torch.Tensor, most: int) -> nn.Module:
    """The widest network of at most so many weights, by bisection of the ratio."""
    low, high = 0.0, 0.98
    for _ in range(10):
        middle = (low + high) / 2
        fits = n_weights(narrowed(whole, example, middle)) <= most
        low, high = (low, middle) if fits else (middle, high)
    return narrowed(whole, example, high)


def divergence(scores: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    target = (answers / TEMPERATURE).softmax(-1)
    found = (scores / TEMPERATURE).log_softmax(-1)
    return nn.functional.kl_div(found, target, reduction="batchmean") * TEMPERATURE**2


def teach(net: nn.Module, whole: nn.Module, x: torch.Tensor, y: torch.Tensor, args) -> None:
    batch, base, warmup = 64, 2e-3, 50
    torch.manual_seed(args.seed)
    with torch.no_grad():
        answers = None if args.labels else torch.cat([whole(part) for part in x.split(100)])
    optimizer = torch.optim.AdamW(net.parameters(), base, weight_decay=0.01)
    total, step = len(y) // batch * args.epochs, 0
    for _ in range(args.epochs):
        net.train()
        for rows in torch.randperm(len(y))[: len(y) // batch * batch].split(batch):
            done = (step - warmup) / max(1, total - warmup)
            rate = step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * done))
            for group in optimizer.param_groups:
                group["lr"] = base * rate
            with torch.autocast("cpu", torch.bfloat16):
                scores = net(x[rows])
            scores = scores.float()
            loss = nn.functional.cross_entropy(scores, y[rows])
            if answers is not None:
                loss = (1 - ALPHA) * loss + ALPHA * divergence(scores, answers[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    net.eval()


def make(data, path: pathlib.Path, args) -> None:
    """Narrowed and taught, in float."""
    whole, example = trained(args.network), data[0][:1]
    net = of_size(whole, example, args.ours.stat().st_size)
    teach(net, whole, *data, args)
    write(net, example, path)


def write(net: nn.Module, example: torch.Tensor, path: pathlib.Path) -> None:
    axes = {"image": {0: "N"}, "scores": {0: "N"}}
    names = {"input_names": ["image"], "output_names": ["scores"], "dynamic_axes": axes}
    torch.onnx.export(net, (example,), str(path), dynamo=False, opset_version=OPSET, **names)


def accuracies(path: pathlib.Path, x: np.ndarray, y: np.ndarray) -> list[float]:
    """Percent of each part of the samples that chain.lua reports, by ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    first = len(y) // 4
    x, y = x[first:], y[first:]
    size = len(y) // PARTS
    ends = [*(size * i for i in range(PARTS)), len(y)]
    found = []
    for begin, end in zip(ends, ends[1:]):
        scores = session.run(None, {name: x[begin:end]})[0]
        found.append(100 * float((scores.argmax(-1) == y[begin:end]).mean()))
    return found


def runner(engine: str, path: pathlib.Path, threads: int, x: np.ndarray):
    inputs = {one.name: x[:1] for one in onnx.load(path).graph.input}
    if engine != "tenon":
        return peers.ENGINES[engine](str(path), "int8", threads, inputs)
    import tenon

    plan = tenon.load(path).compile(backend="onednn", threads=threads)
    return lambda: plan.run(inputs)


def timed(contestants: list[tuple[str, str, pathlib.Path]], x: np.ndarray, args) -> list:
    runs = [runner(engine, path, args.threads, x) for _, engine, path in contestants]
    slices = [[] for _ in runs]
    for round_ in range(args.rounds + 1):
        for run, kept in zip(runs, slices):
            times = peers.measure(run, 5, 0.1, 20)
            if round_:
                kept.append(times)
    return slices


def report(name: str, files: dict[str, pathlib.Path], data, args) -> None:
    (_, _), (x, y) = data
    right = {one: accuracies(path, x.numpy(), y.numpy()) for one, path in files.items()}
    print(f"{name}, {args.threads} thread(s), batch 1, seed {args.seed}")
    for one, path in files.items():
        apart = [ours - theirs for ours, theirs in zip(right["ours"], right[one])]
        mean = statistics.fmean(apart)
        half = figures.T95_ABOVE * statistics.stdev(apart) / math.sqrt(PARTS)
        print(f"{one:<8}{path.stat().st_size / 1e3:>9.1f} KB{statistics.fmean(right[one]):>8.2f} %"
              f"   ours is ahead by {mean:.2f} ± {half:.2f}")  # fmt: skip
    contestants = [("ours", "tenon", files["ours"])]
    for one, path in files.items():
        engines = ("tenon", "openvino", "onnxruntime")
        contestants += [
            (one, engine, path) for engine in engines if (one, engine) != contestants[0][:2]
        ]
    slices = timed(contestants, x.numpy(), args)
    for (one, engine, _), kept in zip(contestants, slices):
        median = figures.summary(kept)["median_ms"]
        ratio, low, high = figures.paired_ratio(kept, slices[0])
        print(f"{one:<8}{engine:<13}{median:>9.4f} ms   {ratio:.2f} [{low:.2f}, {high:.2f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=("lenet", "mnist_cnn", "resnet20", "mobilenet"))
    parser.add_argument("--ours", type=pathlib.Path, required=True, help="what chain.lua saved")
    parser.add_argument("--epochs", type=int, default=8, help="as many as the chain had in all")
    parser.add_argument("--labels", action="store_true", help="no teacher")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=pathlib.Path, help="folder for the peers' files; taken if there"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    of = reference.NETWORKS[args.network]
    data = [reference.load(MODELS, of.data, part) for part in ("train", "test")]
    data = [(fields[0], labels) for fields, labels in data]
    calibration = ["--data", str(MODELS / f"{of.data}_train.npz"), "--samples", "256"]
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or pathlib.Path(made)
        path = folder / f"{args.network}_{args.seed}_peers.onnx"
        if not path.exists():
            make(data[0], path.with_suffix(".float.onnx"), args)
            words = [str(path.with_suffix(".float.onnx")), str(path), "--with", "nncf"]
            if peer_quantize.main([*words, *calibration]):
                sys.exit("NNCF gave no file")
        report(args.network, {"ours": args.ours, "peers": path}, data, args)


if __name__ == "__main__":
    main()
