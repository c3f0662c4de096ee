# SPDX-License-Identifier: Apache-2.0
"""scripts/chain.lua beside its controls: each network at the chain's bytes and at its time.

    .venv/bin/python tests/bench/slim/chain.py [--network mnist_cnn] [--seeds 1,2,3] [--epochs 1]
        [--threads 1] [--folder runs/chain] [--only chain,pruned]

Rows: the chain; the chain less each of its stages and less its teacher; pruning and QAT alone, and
pruning alone, to as many bytes and to as much time as the chain has; QAT, decomposition and
fewer blocks alone, which have the bytes and time that they have. A control is chain.lua with
stages left out, taught for as many epochs as the chain. Means over seeds: bytes of the
file, ms at batch 1, held-out accuracy in percent, how many points the chain is ahead of it, sample
part by sample part, with the 95 % interval over parts and seeds. What was made is kept in the
folder: called again, only what is missing is made.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

import networks

STAGES = ("shallower", "narrower", "decomposed", "taught", "int8", "stored sparse")


@dataclasses.dataclass
class Control:
    """What is left out, and what pruning aims at, as a function of what the chain came to."""

    name: str
    without: tuple[str, ...] = ()
    target: tuple[str, str] | None = None  # what of ("bytes" or "ms"), and in which precision


def alone(*stages: str) -> tuple[str, ...]:
    return tuple(stage for stage in STAGES if stage not in stages)


CONTROLS = (
    Control("chain"),
    *(Control(f"less {stage}", (stage,)) for stage in STAGES[:-1]),
    Control("less teacher", ("teacher",)),
    Control("prune + QAT to its bytes", alone("narrower", "taught", "int8"), ("bytes", "int8")),
    Control("prune + QAT to its time", alone("narrower", "taught", "int8"), ("ms", "int8")),
    Control("pruned to its bytes", alone("narrower", "taught"), ("bytes", "float")),
    Control("pruned to its time", alone("narrower", "taught"), ("ms", "float")),
    Control("taught and QAT", alone("taught", "int8")),
    Control("decomposed", alone("decomposed", "taught")),
    Control("shallower", alone("shallower", "taught")),
)


def stage(rows: list[dict], name: str) -> dict:
    return [row for row in rows if row["stage"] == name][-1]


def aim(control: Control, chain: dict) -> dict:
    """The target of pruning under which the control has the chain's bytes, or its time."""
    what, precision = control.target
    rows = chain["rows"]
    whole, end = rows[0], rows[-1]
    share = end["KB" if what == "bytes" else "ms"] / whole["KB" if what == "bytes" else "ms"]
    int8 = stage(rows, "int8")
    if precision == "int8" and "smaller" in int8:  # where it stands it brings a share of its own
        share *= int8["smaller"] if what == "bytes" else int8["faster"]["times"]
    return {"parameters" if what == "bytes" else "time": round(min(share, 0.99), 4)}


def run(control: Control, seed: int, chain: dict | None, args) -> dict:
    folder = args.folder / f"{args.network}_{seed}" / control.name.replace(" ", "_")
    kept = folder / "result.json"
    sets = {"network": args.network, "seed": seed, "threads": args.threads, "out": folder}
    sets |= {"models": networks.MODELS}
    sets["epochs"] = args.epochs
    if control.without:
        sets["without"] = ",".join(control.without)
    if control.target:
        sets["narrower"] = json.dumps(aim(control, chain))
    if chain:
        sets["force"] = "true"  # whatever it loses: it is compared
    settings = {key: str(value) for key, value in sets.items()}
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["settings"] != settings:
            sys.exit(
                f"{folder}: expected what was made with {settings}, got {found['settings']}: "
                "remove the folder, or give another one"
            )
        return found["result"]
    folder.mkdir(parents=True, exist_ok=True)
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "tenon", "run", "--json", networks.ROOT / "scripts/chain.lua"]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, cwd=networks.ROOT, check=False
    )
    if done.returncode:
        sys.exit(f"{control.name}: {done.stderr}")
    result = json.loads(done.stdout)
    kept.write_text(json.dumps({"settings": settings, "result": result}))
    return result


def line(name: str, found: list[dict], chains: list[dict]) -> str:
    ends = [one["rows"][-1] for one in found]
    ahead = [
        ours - theirs
        for chain, one in zip(chains, found)
        for ours, theirs in zip(chain["parts"], one["parts"])
    ]
    mean = {key: statistics.fmean(end[key] for end in ends) for key in ("KB", "ms", "held out %")}
    points = statistics.fmean(one["points"] for one in found)
    text = f"{name:<25}{mean['KB']:>9.1f}{mean['ms']:>9.4f}{mean['held out %']:>9.2f}{points:>9.2f}"
    return text + ("" if found is chains else f"   {networks.with_interval(ahead)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="mnist_cnn")
    parser.add_argument("--seeds", default="1", type=lambda text: [int(s) for s in text.split(",")])
    parser.add_argument("--epochs", type=float, default=1, help="times those of chain.lua")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, default=networks.ROOT / "runs/chain")
    parser.add_argument("--only", default="", help="controls by name, by commas")
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    wanted = args.only.split(",") if args.only else [one.name for one in CONTROLS]
    print(f"{args.network}, seeds {args.seeds}, {args.threads} thread(s), batch 1")
    print(f"{'':<25}{'KB':>9}{'ms':>9}{'%':>9}{'points':>9}   the chain is ahead by", flush=True)
    chains = [run(CONTROLS[0], seed, None, args) for seed in args.seeds]
    print(line("chain", chains, chains), flush=True)
    for control in CONTROLS[1:]:
        if control.name in wanted:
            pairs = zip(args.seeds, chains)
            found = [run(control, seed, chain, args) for seed, chain in pairs]
            print(line(control.name, found, chains), flush=True)


if __name__ == "__main__":
    main()
