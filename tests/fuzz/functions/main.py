#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random functions of arrays and their transforms, beside JAX or NumPy (tests/fuzz/README.md).

    main.py [--oracle jax|numpy] [--seed N] [--from N] [--count N] [--backend ID]... [--words 1]
            [--state FILE]: what is done so far, where the same command goes on

Every function is computed under jit, grad, jvp, vmap, vmap(grad), grad(vmap) and hessian. One that
differs, or that Tenon refuses, is made smaller and printed. Exits with 1 where there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

# One thread of XLA, and little optimization: what it is asked for runs a few times only.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false "
    "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true",
)

from growth import grow  # noqa: E402
from judgement import TYPES, Judge, Verdict  # noqa: E402
from oracles import TRANSFORMS, NumPy  # noqa: E402
from program import Program, text, words  # noqa: E402
from resume import Tally  # noqa: E402
from smaller import smaller  # noqa: E402
from vocabulary import WORDS  # noqa: E402


def report(judge: Judge, program: Program, number: int, verdict: Verdict) -> None:
    print(f"FOUND function {number} ({program.floats}, {judge.backend}): {verdict.finding}")
    transform = verdict.finding.split(":")[0]

    def fails(candidate: Program) -> bool:
        return bool(judge.judge(candidate, number, (transform,)).finding)

    small = smaller(program, fails)
    left = judge.judge(small, number, (transform,)).finding or "nothing that fails alone"
    print(f"  of which is left: {left}\n{text(small)}", flush=True)


def _oracle(name: str) -> Any:
    if name == "numpy":
        return NumPy()
    from jax_oracle import Jax  # only who asks for it needs JAX

    return Jax()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", choices=("jax", "numpy"), default="jax")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--backend", action="append")
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--state", type=Path)
    arguments = parser.parse_args()
    backends = arguments.backend or ["onednn", "reference"]
    oracle = _oracle(arguments.oracle)
    judges = [Judge(oracle, backend, arguments.seed) for backend in backends]
    run = {
        "oracle": arguments.oracle,
        "seed": arguments.seed,
        "from": arguments.first,
        "backends": backends,
    }
    tally = Tally(arguments.first)
    tally.read(arguments.state, run)
    while tally.next < arguments.first + arguments.count:
        number = tally.next
        program = grow(arguments.seed, number)
        if program is not None and oracle.takes(program):
            judge = judges[number % len(judges)]
            try:
                verdict = judge.judge(program, number)
            except NotImplementedError as why:  # JAX has no slopes of scatter_mul
                verdict = Verdict(refused=f"{oracle.name}: {why}")
            tally.functions += 1
            tally.values += verdict.values
            tally.compared += verdict.compared
            tally.words.update(set(words(program)))
            tally.refused[verdict.refused] += bool(verdict.refused)
            tally.types[program.floats] += 1
            if verdict.finding:
                tally.found.append(number)
                report(judge, program, number, verdict)
        tally.next += 1
        tally.write(arguments.state, run)
        if number % 200 == 199:
            oracle.forget()
        if number % 20 == 19:
            counts = f"{tally.functions} functions, {len(tally.found)} findings"
            print(f"{counts}, {tally.seconds:.0f} s", flush=True)
    summary(tally, oracle.name, arguments)


def summary(tally: Tally, oracle: str, arguments: argparse.Namespace) -> None:
    for floats, (tolerance, noise) in TYPES.items():
        print(
            f"{floats}: {tally.types[floats]} functions, within {tolerance:g} of 1 + the largest "
            f"number, and 6 times what noise of {noise:g} does"
        )
    for why, count in tally.refused.items():
        if why:
            print(f"{count} functions with a transform that there is not: {why}")
    used = {word: tally.words[word] for word in WORDS}
    rarest = min(used, key=lambda word: used[word])
    for word, count in sorted(used.items(), key=lambda item: item[1]) if arguments.words else ():
        print(f"{count:8} {word}")
    print(f"{len(used)} words, each in at least {used[rarest]} functions ({rarest})")
    print(
        f"seed {arguments.seed}: {tally.functions} functions under {', '.join(TRANSFORMS)}, beside "
        f"{oracle}: {tally.compared} of {tally.values} numbers compared, {len(tally.found)} "
        f"findings, {tally.seconds:.0f} s"
    )
    is_deep = tally.compared * 2 >= tally.values
    if not is_deep:
        print("expected half of the numbers to be compared")
    sys.exit(bool(tally.found) or not is_deep)


if __name__ == "__main__":
    main()
