# SPDX-License-Identifier: Apache-2.0
"""Runs libFuzzer's targets one after another, and adds up over many runs what they have done.

usage: readers.py BUILD [--seconds S] [--timeout S] [--state FILE] TARGET...

Inputs that reach something new are kept in BUILD/corpus, inputs that fail in BUILD/found. A target
goes on after a finding until its time is over. What only took long is asked again alone, since a
machine with other work stands still at times: it is a finding where it takes long again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

SEEDS = Path(__file__).resolve().parent / "corpus"
MOST_FINDINGS = 5  # of one target in one run: one fault is met again and again
PROGRESS = re.compile(r"^#(\d+)\s.*?\bcov: (\d+) ft: (\d+)")
CAME = re.compile(r"^(\d+) read, (\d+) compiled or opened, (\d+) run$")  # behind.cpp
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)")
ARTIFACT = re.compile(r"Test unit written to (.+)$")
# Shared libraries of several plugins define the same inline objects: no fault (detect_odr).
SURROUNDINGS = {**os.environ, "ASAN_OPTIONS": "detect_odr_violation=0"}


@dataclasses.dataclass
class Tally:
    """Of one target, in this process and those before it."""

    executions: int = 0
    seconds: float = 0.0
    edges: int = 0  # reached by the corpus
    features: int = 0  # edges with how often, and comparisons, as libFuzzer counts them
    findings: list[str] = dataclasses.field(default_factory=list)
    read: int = 0  # of what is compiled and run behind the reader, as is what follows
    compiled: int = 0
    ran: int = 0

    def line(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0.0
        behind = f", {self.compiled} compiled or opened, {self.ran} run" if self.read else ""
        return (
            f"{self.executions} executions, {self.seconds / 3600:.2f} hours, {rate:.0f} a second, "
            f"{self.edges} edges, {self.features} features, {len(self.findings)} findings"
            f"{behind}"
        )


class State:
    """What each target has come to, in a file: whole whenever the process ends."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._last = 0.0
        kept = json.loads(path.read_text()) if path and path.exists() else {}
        self.targets = {name: Tally(**counts) for name, counts in kept.items()}

    def write(self, every: float = 0.0) -> None:
        if self._path is None or time.monotonic() - self._last < every:
            return
        self._last = time.monotonic()
        beside = self._path.with_name(self._path.name + ".new")
        counts = {name: dataclasses.asdict(tally) for name, tally in self.targets.items()}
        beside.write_text(json.dumps(counts, indent=1) + "\n")
        os.replace(beside, self._path)


@dataclasses.dataclass
class Target:
    name: str
    build: Path
    timeout: int  # seconds that one input may take

    @property
    def program(self) -> Path:
        return self.build / "bin" / f"fuzz_{self.name}"

    def command(self, seconds: int) -> list[str]:
        corpus, found = self.build / "corpus" / self.name, self.build / "found"
        corpus.mkdir(parents=True, exist_ok=True)
        found.mkdir(exist_ok=True)
        folders = [folder for folder in (corpus, SEEDS / self.name) if folder.exists()]
        command = [self.program, f"-max_total_time={seconds}", f"-timeout={self.timeout}"]
        command += ["-rss_limit_mb=4096", "-print_final_stats=1"]
        command += [f"-artifact_prefix={found}/{self.name}-", *folders]
        return [str(part) for part in command]

    def repeats(self, artifact: Path) -> bool:
        """Whether an input that took long does so when alone; other findings are believed."""
        if not artifact.name.removeprefix(f"{self.name}-").startswith("timeout"):
            return True
        done = subprocess.run(
            [self.program, f"-timeout={self.timeout}", artifact],
            capture_output=True,
            env=SURROUNDINGS,
            check=False,
        )
        if done.returncode == 0:
            artifact.unlink()
        return done.returncode != 0


def once(target: Target, state: State, seconds: int) -> bool:
    """One process of a target, until its time is over or it has found something; false then."""
    tally = state.targets[target.name]
    before, begin = dataclasses.replace(tally), time.monotonic()
    artifact, said = None, []
    with subprocess.Popen(
        target.command(seconds),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=SURROUNDINGS,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout:
            if executed := PROGRESS.match(line) or EXECUTED.match(line):
                tally.executions = before.executions + int(executed[1])
                tally.seconds = before.seconds + time.monotonic() - begin
                if executed.re is PROGRESS:
                    tally.edges, tally.features = int(executed[2]), int(executed[3])
                state.write(every=5.0)
            elif came := CAME.match(line):
                tally.read, tally.compiled, tally.ran = (
                    count + int(more)
                    for count, more in zip(
                        (before.read, before.compiled, before.ran), came.groups(), strict=True
                    )
                )
            elif written := ARTIFACT.search(line):
                artifact = Path(written[1].strip())
            elif not line.startswith("stat::"):
                said = [*said, line][-60:]
    tally.seconds = before.seconds + time.monotonic() - begin
    if process.returncode != 0 and (artifact is None or target.repeats(artifact)):
        tally.findings.append(str(artifact) if artifact else f"exit code {process.returncode}")
        sys.stderr.writelines(said)
    state.write()
    return process.returncode == 0


def run(target: Target, seconds: int, state: State) -> bool:
    """A target for so many seconds; whether it found nothing."""
    tally = state.targets.setdefault(target.name, Tally())
    end, n_before = time.monotonic() + seconds, len(tally.findings)
    while (left := round(end - time.monotonic())) > 0:
        whole = once(target, state, left)
        if whole or len(tally.findings) - n_before >= MOST_FINDINGS:
            break
    print(f"{target.name}: {tally.line()}", flush=True)
    for finding in tally.findings[n_before:]:
        print(f"{target.name}: FOUND {finding}", flush=True)
    return len(tally.findings) == n_before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--seconds", type=int, default=20, help="of each target")
    parser.add_argument("--timeout", type=int, default=30, help="seconds that one input may take")
    parser.add_argument("--state", type=Path, help="a file that adds up what runs have done")
    args = parser.parse_args()
    state = State(args.state)
    targets = [Target(name, args.build.resolve(), args.timeout) for name in args.targets]
    clean = [run(target, args.seconds, state) for target in targets]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
