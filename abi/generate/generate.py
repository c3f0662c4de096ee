# SPDX-License-Identifier: Apache-2.0
"""From the ABI headers: generate.py COMMAND [options].

check     the rules of abi/README.md; one line a violation, exit code 1
make      tenon.cdef, tenon.json, tenon.rs, layout.c, the host's guards and roles, and the
          reference pages, into --out
compare   against the baseline: a change of what is frozen fails, and one of a draft that older
          plugins would not notice; others are reported
record    writes the baseline anew, with a line in CHANGELOG.md; what fails to compare wants a new
          minor
"""

import argparse
import json
import sys
from pathlib import Path

import ffi
import guards
import layout
import pages
import rules
import rust
import tables
from model import Abi
from read import HeaderError, read

ABI = Path(__file__).resolve().parent.parent


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def check(abi: Abi, _args: argparse.Namespace) -> int:
    found = rules.violations(abi)
    print("\n".join(found) or f"{len(abi.headers)} headers keep the rules")
    return 1 if found else 0


def make(abi: Abi, args: argparse.Namespace) -> int:
    write(args.out / "share/tenon/tenon.cdef", ffi.cdef(abi))
    write(args.out / "share/tenon/tenon.json", json.dumps(ffi.description(abi), indent=1) + "\n")
    write(args.out / "share/tenon/tenon.rs", rust.bindings(ffi.description(abi)))
    write(args.out / "share/tenon/layout.c", layout.asserts(abi))
    write(args.out / "made/guards.hpp", guards.declarations(abi))
    write(args.out / "made/guards.cpp", guards.services_guarded(abi))
    write(args.out / "made/exports.cpp", guards.exports_guarded(abi))
    write(args.out / "made/roles.inc", tables.adopted(abi))
    write(args.out / "made/op_functions.inc", tables.operator_functions(abi))
    for name, text in pages.pages(abi).items():
        write(args.out / "docs/abi" / name, text)
    return 0


def compare(abi: Abi, args: argparse.Namespace) -> int:
    broken, reported = layout.changes(json.loads(args.baseline.read_text()), layout.record(abi))
    for line in reported:
        print(f"changed: {line}")
    for line in broken:
        print(f"broken: {line}")
    return 1 if broken else 0


def record(abi: Abi, args: argparse.Namespace) -> int:
    now = layout.record(abi)
    if args.baseline.exists():
        before = json.loads(args.baseline.read_text())
        broken, _ = layout.changes(before, now)
        if broken and not layout.leaves_behind(before, now):
            print("\n".join(f"broken: {line}" for line in broken))
            print(f"not recorded: {layout.REMEDY}")
            return 1
    write(args.baseline, json.dumps(now, indent=1) + "\n")
    return 0


COMMANDS = {"check": check, "make": make, "compare": compare, "record": record}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--include", type=Path, default=ABI / "include")
    parser.add_argument("--baseline", type=Path, default=ABI / "history/draft.json")
    parser.add_argument("--out", type=Path, default=Path("build"))
    parser.add_argument("--compiler", default="cc")
    args = parser.parse_args()
    try:
        return COMMANDS[args.command](read(args.include.resolve(), args.compiler), args)
    except HeaderError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
