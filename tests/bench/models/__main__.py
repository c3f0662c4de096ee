# SPDX-License-Identifier: Apache-2.0
"""Every model of the list in Tenon beside ONNX Runtime, one line each.

  python tests/bench/models [--only 'silero*'] [--parts onednn,bf16,int8,reference]
                            [--threads 2] [--json FILE] [--list]

fp32: the largest difference over the output's range; bf16, int8: the least cosine with ONNX
Runtime's fp32. A model runs in a process of its own. Exit code 1 when one of them is out of bounds.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys

import rows

SHARE = 0.02
MOSTLY_WEIGHTS = 0.95
COLUMNS = (
    ("model", 24),
    ("MB", 7),
    ("reference", 10),
    ("onednn", 9),
    ("fallbacks", 10),
    ("share", 7),
    ("bf16", 8),
    ("int8", 8),
    ("weights", 8),
    ("file", 7),
    ("float", 6),
)


def cell(found: dict, key: str) -> str:
    if key in found.get("failed", {}):
        return "failed"
    value = found.get(key)
    if value is None:
        return "-"
    if key in ("reference", "onednn"):
        return f"{value:.1e}"
    if key == "share":
        return f"{100 * value:.1f}%"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def line(found: dict) -> str:
    shown = {"model": found["name"], "MB": f"{found.get('bytes', 0) / 1e6:.1f}"}
    shown |= {key: cell(found, key) for key, _ in COLUMNS[2:]}
    return "".join(
        f"{shown[key]:<{w}}" if key == "model" else f"{shown[key]:>{w}}" for key, w in COLUMNS
    )


def complaints(found: dict) -> list[str]:
    out = [f"{part}: {text}" for part, text in found.get("failed", {}).items()]
    for part in ("reference", "onednn"):
        if found.get(part, 0) > found["tolerance"]:
            out.append(f"{part}: expected at most {found['tolerance']:g}, got {found[part]:.3g}")
    for part, least in found.get("least", {}).items():
        if part in found and not found[part] >= least:
            out.append(f"{part}: expected a cosine of at least {least}, got {found[part]:.4f}")
    for key, most in found.get("most", {}).items():
        if key == "file" and (found.get("share_of_weights") or 0) < MOSTLY_WEIGHTS:
            continue
        if (found.get(key) or 0) > most:
            out.append(f"{key}: expected at most {most}x of the bytes, got {found[key]:.3f}x")
    if found.get("share", 0) > SHARE:
        out.append(f"share of fallbacks: {100 * found['share']:.1f} %: " + "; ".join(found["why"]))
    return out


def one(name: str, args) -> dict:
    """Runs one row in a process of its own; a crash is a finding."""
    command = [sys.executable, str(pathlib.Path(__file__).parent), "--row", name]
    command += ["--parts", args.parts, "--threads", str(args.threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return {"name": name, "failed": {"all": f"no answer within {args.timeout} s"}}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return {"name": name, "failed": {"all": f"exit code {done.returncode}: {last}"}}


def arguments(argv):
    parser = argparse.ArgumentParser(prog="models", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--parts", default="onednn,bf16,int8,reference")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one model")
    parser.add_argument("--json", metavar="FILE", help="all that was found, as JSON")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv=None) -> int:
    args = arguments(argv)
    if args.row:
        import check

        row = next(row for row in rows.ROWS if row.name == args.row)
        print(json.dumps(check.examine(row, args.threads, set(args.parts.split(",")))))
        return 0
    patterns = args.only.split(",")
    chosen = [r for r in rows.ROWS if any(fnmatch.fnmatch(r.name, p) for p in patterns)]
    if args.list or not chosen:
        print("\n".join(row.name for row in rows.ROWS))
        return 0 if args.list else 2
    print("".join(f"{key:<{w}}" if key == "model" else f"{key:>{w}}" for key, w in COLUMNS))
    all_found, wrong = [], []
    for row in chosen:
        found = one(row.name, args)
        print(line(found), flush=True)
        all_found.append(found)
        wrong += [f"{row.name}: {text}" for text in complaints(found)]
    for row in chosen:
        if row.note:
            print(f"  {row.name} has a bound of its own: {row.note}")
    print(f"{len(chosen)} models, {len(wrong)} out of bounds")
    print("\n".join(f"  {text}" for text in wrong))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(all_found, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    sys.exit(main())
