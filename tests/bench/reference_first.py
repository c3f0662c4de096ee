# SPDX-License-Identifier: Apache-2.0
"""`reference.py --first`: the first steps of a recipe in both, from the same weights."""

import json
import math
from pathlib import Path

import numpy as np
import torch
from reference_networks import NETWORKS, load, load_weights, rate_at
from torch import nn


def without_dropout(net) -> None:
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module, nn.LSTM):
            module.dropout = 0.0


def spreads(name: str, net, draws: int = 8) -> None:
    """Of each parameter as it begins: Tenon's deviation and largest value over PyTorch's own."""
    own = [dict(NETWORKS[name].make().named_parameters()) for _ in range(draws)]
    for key, parameter in net.named_parameters():
        values = parameter.detach().flatten()
        others = torch.cat([one[key].detach().flatten() for one in own])
        if others.abs().max() == 0 or others.std() == 0:
            same = "same" if torch.equal(values, others[: len(values)]) else "DIFFERS"
            print(f"  {key:40} constant {others[0]:.3f}: {same}")
            continue
        wide = (values.pow(2).mean() / others.pow(2).mean()).sqrt()
        far = values.abs().max() / others.abs().max()
        print(f"  {key:40} {len(values):8} numbers, deviation {wide:.3f}, largest {far:.3f}")


def losses_of(name: str, net, lines: list[dict], folder: Path, dtype, bf16: bool) -> list[float]:
    """PyTorch's at each of these steps, which say what rates they had."""
    of, (fields, y) = NETWORKS[name], load(folder, NETWORKS[name].data, "train")
    without_dropout(net)
    net.to(dtype).train()
    optimizer, base, warmup = of.optimizer(net)
    per_epoch, losses = len(y) // of.batch, []
    for step, line in enumerate(lines):
        begin = step % per_epoch * of.batch
        rate = base * rate_at(step, warmup, per_epoch * of.epochs)
        assert math.isclose(rate, line["rate"], rel_tol=1e-6), (step, rate, line["rate"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = slice(begin, begin + of.batch)
        inputs = (x[rows].to(dtype) if x.is_floating_point() else x[rows] for x in fields)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16 and dtype is torch.float32):
            scores = net(*inputs)
        scores = scores.to(dtype).flatten(0, -2)
        loss = nn.functional.cross_entropy(scores, y[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        if of.clip_norm:
            nn.utils.clip_grad_norm_(net.parameters(), of.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def first_steps(name: str, seed: int, runs: Path, folder: Path, bf16: bool) -> None:
    place, sides = runs / f"{name}_{seed}", {}
    lines = [json.loads(one) for one in Path(f"{place}.first.jsonl").read_text().splitlines()]
    for dtype in (torch.float64, torch.float32):
        net = NETWORKS[name].make()
        load_weights(net, f"{place}.initial.safetensors")
        if not sides:
            spreads(name, net)
        sides[dtype] = np.array(losses_of(name, net, lines, folder, dtype, bf16))
    exact = sides.pop(torch.float64)
    for who, losses in (("tenon", [one["loss"] for one in lines]), ("pytorch", *sides.values())):
        apart, mean = np.abs(losses / exact - 1), np.mean(losses / exact - 1)
        upto = ", ".join(
            f"{n}: {apart[:n].max():.1e}" for n in (1, 3, 10, 30, 100) if n <= len(apart)
        )
        print(
            f"{name} {seed} {who:8} beside float64, up to step {upto}; mean {mean:+.1e}", flush=True
        )
