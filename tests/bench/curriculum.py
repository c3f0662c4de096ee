# SPDX-License-Identifier: Apache-2.0
"""How many tokens a character transformer needs to one loss, with and without a curriculum.

    scripts/fetch characters
    PYTHONPATH=build/release/python .venv/bin/python tests/bench/curriculum.py [--seeds 5]

Plain: all windows of 64 symbols from the first step on. Curriculum: windows are cut to a length
that grows from 8 to 64 over the first --grow of the steps (`sequence_length`). Both are trained for
as many tokens, and judged on whole windows of texts by other authors behind every so many tokens.
Tokens to one loss: where the curve, linear between two judgements, first reaches what the plain
run of the same seed has reached behind a quarter, half and all of its tokens; the ratio is of the
curriculum's tokens to the plain run's, with the 95 % interval of its mean over seeds (of
logarithms).
"""

import argparse
import json
from pathlib import Path

import numpy as np
import tenon as tn
from figures import mean_interval
from tenon import nn

SYMBOLS, LENGTH, WIDTH, BATCH = 96, 64, 64, 16


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        small = nn.init.normal(deviation=0.02)
        self.token = nn.Embedding(SYMBOLS, WIDTH, init=small)
        self.position = nn.Embedding(LENGTH, WIDTH, init=small)
        self.blocks = nn.Sequential(*(self.block() for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(), nn.Linear(SYMBOLS, bias=False)

    @staticmethod
    def block():
        attend = nn.Sequential(nn.LayerNorm(), nn.MultiHeadAttention(4, causal=True))
        think = nn.Sequential(nn.LayerNorm(), nn.Linear(4 * WIDTH), tn.gelu, nn.Linear(WIDTH))
        return nn.Sequential(nn.Residual(attend), nn.Residual(think))

    def forward(self, token, place):
        return self.head(self.norm(self.blocks(self.token(token) + self.position(place))))


def windows(models: Path, part: str, count: int):
    with np.load(models / f"characters_{part}.npz") as arrays:
        token, label = arrays["token"][:count], arrays["label"][:count]
    place = np.broadcast_to(np.arange(LENGTH), token.shape)
    return tn.data.arrays(token=token, place=np.ascontiguousarray(place), label=label)


def curve(args, data, seed: int, grows: bool) -> list[tuple[float, float]]:
    """Tokens seen and the loss on whole windows, by judgement."""
    inputs = {name: nn.Input(("N", "S"), "int64") for name in ("token", "place")}
    model = nn.build(Reader(), inputs, seed=seed)
    steps = args.tokens // (BATCH * LENGTH)
    more = {}
    if grows:
        growing = int(args.grow * steps)
        length = tn.schedule.linear(**{"from": 8, "to": LENGTH, "steps": growing})
        more = {"schedules": {"sequence_length": length}, "curriculum": {"buckets": 8}}
    made: list[tuple[float, float]] = []
    seen = 0

    def judged(record, model):
        nonlocal seen
        seen += record.get("sequence_steps", len(data["train"]) // BATCH * BATCH * LENGTH)
        made.append((seen, record["validation_loss"]))
        return seen >= args.tokens

    tn.train(
        model, data=data["train"], validation=data["test"], batch=BATCH, epochs=1000, seed=seed,
        drop_last=True, threads=args.threads, clip_norm=1, loss=tn.loss.cross_entropy(axis=-1),
        optimizer=tn.optim.adamw(lr=tn.schedule.constant(base=args.rate, warmup=50)),
        callbacks=[judged], **more,
    )  # fmt: skip
    return made


def tokens_to(made: list[tuple[float, float]], loss: float) -> float:
    before = made[0]
    for now in made:
        if now[1] <= loss:
            share = 1.0 if now[1] == before[1] else (before[1] - loss) / (before[1] - now[1])
            return before[0] + share * (now[0] - before[0])
        before = now
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, choices=range(2, 11))
    parser.add_argument("--tokens", type=int, default=3_000_000)
    parser.add_argument("--windows", type=int, default=2000, help="between two judgements")
    parser.add_argument("--grow", type=float, default=0.5, help="of the plain run's steps")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", type=Path, default=Path(".cache/models"))
    args = parser.parse_args()
    data = {
        "train": windows(args.models, "train", args.windows),
        "test": windows(args.models, "test", 500),
    }
    shares = (0.25, 0.5, 1.0)
    ratios: dict[float, list[float]] = {share: [] for share in shares}
    for seed in range(1, args.seeds + 1):
        plain, grown = (curve(args, data, seed, grows) for grows in (False, True))
        for name, made in (("plain", plain), ("curriculum", grown)):
            print(json.dumps({"seed": seed, "steps": name, "curve": made}), flush=True)
        for share in shares:
            target = next(loss for seen, loss in plain if seen >= share * plain[-1][0] - 1)
            needed = tokens_to(grown, target) / tokens_to(plain, target)
            ratios[share].append(needed)
            print(f"seed {seed}: to {target:.3f}, {needed:.2f} of the tokens", flush=True)
    for share, found in ratios.items():
        reached = np.log([ratio for ratio in found if np.isfinite(ratio)])
        line = f"what the plain run reaches with {share:.0%} of its tokens: "
        if len(reached) > 1:
            middle, low, high = np.exp(mean_interval(reached))
            line += f"{middle:.2f} [{low:.2f}, {high:.2f}] of the tokens, "
        print(line + f"reached in {len(reached)} of {len(found)} seeds")


if __name__ == "__main__":
    main()
