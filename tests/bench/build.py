#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a build from nothing costs, in CPU seconds, which other programs on the machine change less
than the time it takes: each leg (what `scripts/demo` builds, what `scripts/test` adds), and what
takes longest.

usage: tests/bench/build.py [--batch N] [--cache] [--folder build/cold] [--longest 20] [TARGET...]

A leg for each TARGET, in order: `product` and `all` if none is given. Nothing is taken from a
compiler cache; with `--cache` one that is empty is filled, as on a machine that has never built.
It stands in front of each compiler and linker as CMake's launcher.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOG = "TENON_BUILD_LOG"


def launch(command: list[str]) -> int:
    """Runs the command; adds a line to the log: CPU seconds, most MB in memory, what it makes."""
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(process, 0)
    made = command[command.index("-o") + 1] if "-o" in command else command[-1]
    line = f"{used.ru_utime + used.ru_stime:.3f} {used.ru_maxrss // 1024} {made}\n"
    with open(os.environ[LOG], "a") as log:
        log.write(line)
    return os.waitstatus_to_exitcode(status)


@dataclass
class Step:
    seconds: float
    megabytes: int
    made: str

    @property
    def is_compile(self) -> bool:
        return self.made.endswith(".o")


def steps_in(log: Path) -> list[Step]:
    if not log.exists():
        return []
    rows = (line.split(" ", 2) for line in log.read_text().splitlines())
    return [Step(float(seconds), int(size), made) for seconds, size, made in rows]


def used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def configure(folder: Path, batch: str | None, cache: bool) -> None:
    launcher = f"{sys.executable};{Path(__file__).resolve()};--launch"
    compilers = f"{launcher};ccache" if cache else launcher
    options = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={compilers}" for language in ("C", "CXX")]
    options += [f"-DCMAKE_{language}_LINKER_LAUNCHER={launcher}" for language in ("C", "CXX")]
    options += [f"-DTENON_BATCH={batch}"] if batch else []
    command = ["cmake", "--preset", "release", "-B", folder, *options]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def report(target: str, total: float, steps: list[Step], longest: int) -> None:
    compiled = [step for step in steps if step.is_compile]
    linked = [step for step in steps if not step.is_compile]
    compiling, linking = (sum(step.seconds for step in part) for part in (compiled, linked))
    print(
        f"{target}: {total:.0f} CPU s: {len(compiled)} units {compiling:.0f}, "
        f"{len(linked)} links {linking:.0f}, the rest {total - compiling - linking:.0f}; "
        f"two quiet cores at least {total / 2:.0f} s"
    )
    for step in sorted(steps, key=lambda step: -step.seconds)[:longest]:
        print(f"  {step.seconds:6.2f} s {step.megabytes:5} MB  {step.made}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=["product", "all"], metavar="TARGET")
    parser.add_argument("--batch", help="TENON_BATCH; else what the tree has")
    parser.add_argument("--cache", action="store_true", help="fill an empty compiler cache")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "cold")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--longest", type=int, default=20, help="how many of the longest steps to print"
    )
    given = parser.parse_args(arguments)
    given.folder = given.folder.resolve()

    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    cache = {"CCACHE_DIR": str(given.folder / "cache")} if given.cache else {}
    os.environ |= {**cache, LOG: str(given.folder / "steps.log")}
    configure(given.folder, given.batch, given.cache)
    print(f"configure: {used_by_children():.0f} CPU s")
    for target in given.targets:
        log = given.folder / f"{target}.log"
        os.environ[LOG] = str(log)
        before = used_by_children()
        command = [
            "cmake",
            "--build",
            given.folder,
            "--target",
            target,
            "--parallel",
            str(given.jobs),
        ]
        with open(given.folder / f"{target}.out", "w") as out:
            done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"build: {target} failed: {out.name} says why")
        report(target, used_by_children() - before, steps_in(log), given.longest)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--launch"]:
        sys.exit(launch(sys.argv[2:]))
    main(sys.argv[1:])
