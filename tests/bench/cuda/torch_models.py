# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 and MiniLM of model_figures.cpp in PyTorch: milliseconds, eager and compiled;
a line each, as soon as it is measured."""

import itertools
import json
import statistics
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("PyTorch is not installed: nothing to compare with")
    sys.exit(0)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU: nothing to compare with")
    sys.exit(0)

SECONDS = 60  # the whole run is limited: what comes later is left out


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


def milliseconds(function, until):
    times = []
    for i in range(25):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        if i >= 5:
            times.append((time.perf_counter() - begin) * 1e3)
        if time.monotonic() > until:
            break
    return statistics.median(times) if times else None


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


def figure(name, what, precision, compiled, until):
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
        return milliseconds(inference(run, x), until)
    return milliseconds(training(run, x, 1000 if name == "resnet50" else 16, precision), until)


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    until = time.monotonic() + SECONDS
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for mode, precision, name, what in itertools.product(
        ("eager", "compiled"),
        ("fp32", "fp16", "bf16"),
        ("resnet50", "minilm"),
        ("inference", "step"),
    ):
        if time.monotonic() > until:
            break
        key = f"{name}_{what}_{precision}_{mode}"
        try:
            took = figure(name, what, precision, mode == "compiled", until)
        except RuntimeError as error:
            took = f"failed: {error}"
        print(json.dumps({key: took}), flush=True)


main()
