# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 and MiniLM of model_figures.cpp in PyTorch: milliseconds, eager and compiled; a line
each, as soon as it is measured. Usage: torch_models.py [FOLDER]. Compiling takes by far the most
time, so that processes of their own compile, all at once; with a folder, `ready` is written there
when they are done, and nothing is measured before somebody writes `go` beside it."""

import itertools
import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

try:
    import torch
    from torch import nn
except ImportError:
    print("PyTorch is not installed: nothing to compare with")
    sys.exit(0)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU: nothing to compare with")
    sys.exit(0)

COMPILE_SECONDS = 75  # what is not compiled by then is left out


class Bottleneck(nn.Module):
    def __init__(self, channels, inner, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(inner, inner * 4, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (inner, inner, inner * 4))
        self.shortcut = nn.Identity()
        if channels != inner * 4:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, inner * 4, 1, stride, bias=False), nn.BatchNorm2d(inner * 4)
            )

    def forward(self, x):
        y = torch.relu(self.norms[0](self.conv1(x)))
        y = torch.relu(self.norms[1](self.conv2(y)))
        return torch.relu(self.norms[2](self.conv3(y)) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage and i == 0 else 1))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class MiniLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30522, 384)
        self.places = nn.Parameter(torch.randn(128, 384) * 0.02)
        self.norm = nn.LayerNorm(384, 1e-12)
        layer = nn.TransformerEncoderLayer(
            384, 12, 1536, dropout=0, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 6)
        self.head = nn.Linear(384, 16)

    def forward(self, ids):
        return self.head(self.layers(self.norm(self.words(ids) + self.places)).mean(1))


def milliseconds(function):
    times = []
    for i in range(25):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        if i >= 5:
            times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def inference(model, x):
    def run():
        with torch.no_grad():
            model(x)

    return run


def training(model, x, classes, precision):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    label = torch.randint(0, classes, (len(x),), device="cuda")
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")

    def run():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype or torch.float16, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(x).float(), label)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return run


def subject(name, what, precision, compiled):
    """A function that runs the model once."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    model = (resnet50() if name == "resnet50" else MiniLm()).cuda()
    if name == "resnet50":
        model = model.to(memory_format=torch.channels_last)
        x = torch.randn(32, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    else:
        x = torch.randint(0, 10, (16, 128), device="cuda")
    if what == "inference":
        model = model.to(dtype)
        x = x.to(dtype) if x.is_floating_point() else x
        model.eval()
    run = torch.compile(model) if compiled else model
    if what == "inference":
        return inference(run, x)
    return training(run, x, 1000 if name == "resnet50" else 16, precision)


def compile_and_measure(case, pipe):
    """Compiles, says so, and measures when asked."""
    function = subject(*case, True)
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    pipe.send("ready")
    pipe.recv()
    pipe.send(milliseconds(function))


def start(case):
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=compile_and_measure, args=(case, theirs), daemon=True).start()
    theirs.close()
    return ours


def answer(pipe, until):
    """What a process says, or None: it has ended, or takes too long."""
    try:
        return pipe.recv() if pipe.poll(max(0, until - time.monotonic())) else None
    except EOFError:
        return None


def wait_for_go(folder):
    (folder / "ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)


def main():
    cases = [
        (name, what, precision)
        for precision, name, what in itertools.product(
            ("bf16", "fp16", "fp32"), ("resnet50", "minilm"), ("step", "inference")
        )
    ]
    pipes = {case: start(case) for case in cases}
    until = time.monotonic() + COMPILE_SECONDS
    compiled = [case for case in cases if answer(pipes[case], until)]
    if len(sys.argv) > 1:
        wait_for_go(Path(sys.argv[1]))
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for case in cases:
        key = "_".join(case)
        took = {"eager_ms": milliseconds(subject(*case, False))}
        if case in compiled:
            pipes[case].send("go")
            took["compiled_ms"] = answer(pipes[case], time.monotonic() + 20)
        print(json.dumps({key: took}), flush=True)


if __name__ == "__main__":
    main()
