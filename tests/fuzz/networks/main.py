#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random networks through passes and trainings (tests/fuzz/README.md).

    main.py [--seed N] [--from N] [--count N] [--trial NAME]...

Prints each promise that is broken, with the network and what repeats it. Exits with 1 where there
was one, or where a trial found nothing to do on any network.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import passes
import trainings
from agreement import Finding
from growth import grow

TRIALS = {one.__name__: one for one in passes.TRIALS + trainings.TRIALS}


def tried(trial, seed: int, number: int) -> tuple[bool, str]:
    """Whether there was something to do, and what is wrong."""
    network = grow(seed, number)
    rng = np.random.default_rng([seed, number, list(TRIALS).index(trial.__name__)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            return trial(network, rng, Path(folder)), ""
        except Exception as wrong:  # what a network should not be refused for is a finding as well
            kind = "" if isinstance(wrong, Finding) else f"{type(wrong).__name__}: "
            return True, f"{kind}{wrong}\n  {network.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--trial", action="append", choices=TRIALS)
    arguments = parser.parse_args()
    names = arguments.trial or list(TRIALS)
    start, done, found = time.monotonic(), collections.Counter(), 0
    for number in range(arguments.first, arguments.first + arguments.count):
        for name in names:
            did, wrong = tried(TRIALS[name], arguments.seed, number)
            done[name] += did
            found += bool(wrong)
            if wrong:
                again = f"--seed {arguments.seed} --from {number} --count 1 --trial {name}"
                print(f"FOUND {name}: {wrong}\n  again: {again}", flush=True)
    for name in names:
        print(f"{done[name]:6} of {arguments.count} networks: {name}")
    idle = [name for name in names if not done[name]]
    if idle:
        print(f"nothing to do on any network: {', '.join(idle)}")
    print(f"{found} findings, {time.monotonic() - start:.0f} s")
    sys.exit(bool(found or idle))


if __name__ == "__main__":
    main()
