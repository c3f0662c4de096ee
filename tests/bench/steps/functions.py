# SPDX-License-Identifier: Apache-2.0
"""A pointwise chain and a product, as functions traced in Python: alternating processes, one table.

  functions.py [chain product small] [--rounds 5] [--threads 2]

chain: tanh(a*b+a)*0.5 + exp(-a)*b - sqrt(a+1) on 16 M floats, beside np.add(a, b, out=o) with one
thread, which is what memory allows. product: x.T @ (x - x.mean(0)), 1000x1000. small: the same
10x10, in microseconds a call. NumPy is asked for the same numbers as everybody.
first ms: the first call in the process, with libraries loaded and kernels made. again ms: what the
first call of the same function made anew takes beyond a usual call: tracing and compiling.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ENGINES = {
    "chain": ("tenon", "numpy_add", "numpy", "torch_add", "torch_compile", "jax"),
    "product": ("tenon", "numpy", "torch", "jax"),
    "small": ("tenon", "numpy", "torch", "jax"),
}


def chain(m, a, b):
    return m.tanh(a * b + a) * 0.5 + m.exp(-a) * b - m.sqrt(a + 1)


def product(m, x):
    return x.T @ (x - x.mean(0))


def data(task: str):
    import numpy as np

    random = np.random.default_rng(0)
    if task == "chain":
        return [random.random(1 << 24, dtype=np.float32) for _ in range(2)]
    size = 1000 if task == "product" else 10
    return [random.random((size, size), dtype=np.float32)]


def numpy_run(engine, task, arrays, threads):
    import numpy as np

    if engine == "numpy_add":
        out = np.empty_like(arrays[0])
        return lambda: np.add(*arrays, out=out)
    return lambda: (chain if task == "chain" else product)(np, *arrays)


def torch_run(engine, task, arrays, threads):
    import torch

    torch.set_num_threads(threads)
    tensors = [torch.from_numpy(array) for array in arrays]
    if engine == "torch_add":
        out = torch.empty_like(tensors[0])
        return lambda: torch.add(*tensors, out=out)
    function = chain if task == "chain" else product
    if engine == "torch_compile":
        function = torch.compile(function)
    return lambda: function(torch, *tensors)


def jax_run(engine, task, arrays, threads):
    import jax
    import jax.numpy as jnp

    function = chain if task == "chain" else product
    compiled = jax.jit(lambda *given: function(jnp, *given))
    given = [jnp.asarray(array) for array in arrays]
    return lambda: compiled(*given).block_until_ready()


def tenon_run(engine, task, arrays, threads):
    import tenon as tn

    if task == "chain":
        compiled = tn.jit(lambda a, b: chain(tn, a, b))
    else:
        compiled = tn.jit(lambda x: product(tn, x))
    return lambda: compiled(*arrays)


RUNS = {"tenon": tenon_run, "numpy": numpy_run, "torch": torch_run, "jax": jax_run}


def contestant(task: str, engine: str, threads: int) -> None:
    arrays = data(task)
    run = RUNS[engine.split("_")[0]](engine, task, arrays, threads)
    begin = time.perf_counter()
    made = run()
    first_ms = 1e3 * (time.perf_counter() - begin)
    calls = 200 if task == "small" else 1
    times = []
    end = time.perf_counter() + 1.5
    while len(times) < 10 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(calls):
            made = run()
        times.append(1e3 * (time.perf_counter() - begin) / calls)
    total = float(abs(made).sum())
    median = statistics.median(times)
    anew = RUNS[engine.split("_")[0]](engine, task, arrays, threads)
    begin = time.perf_counter()
    anew()
    again_ms = 1e3 * (time.perf_counter() - begin) - median
    figures = {"median": median, "min": min(times), "first": first_ms, "again": again_ms}
    print(json.dumps(figures | {"sum": total}))


def play(task: str, engine: str, args) -> dict | str:
    command = [args.python, __file__, task, "--as", engine, "--threads", str(args.threads)]
    path = os.pathsep.join([str(args.build / "python"), os.environ.get("PYTHONPATH", "")])
    threads = {"OMP_NUM_THREADS": str(args.threads), "OPENBLAS_NUM_THREADS": str(args.threads)}
    environment = {**os.environ, "PYTHONPATH": path, **threads}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return "no answer within 120 s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="functions.py", description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(ENGINES))
    parser.add_argument("--as", dest="engine", help="run as this contestant and print JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args(argv)
    if args.engine:
        contestant(args.tasks[0], args.engine, args.threads)
        return 0
    for task in args.tasks:
        found: dict[str, list[dict]] = {engine: [] for engine in ENGINES[task]}
        failed: dict[str, str] = {}
        for _ in range(args.rounds):
            for engine in found:
                made = play(task, engine, args) if engine not in failed else None
                if isinstance(made, str):
                    failed[engine] = made
                elif made:
                    found[engine].append(made)
        print(f"\n{task}\n{'engine':16}{'median ms':>12}{'min ms':>12}{'first ms':>12}", end="")
        print(f"{'again ms':>12}  sum")
        for engine, rounds in found.items():
            if not rounds:
                print(f"{engine:16}failed: {failed.get(engine)}")
                continue
            keys = ("median", "min", "first", "again")
            each = [statistics.median(r[key] for r in rounds) for key in keys]
            numbers = "".join(f"{number:12.4f}" for number in each)
            print(f"{engine:16}{numbers}  {rounds[0]['sum']:.7g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
