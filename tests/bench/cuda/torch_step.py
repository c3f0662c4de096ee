# SPDX-License-Identifier: Apache-2.0
"""The training step of figures.cpp in PyTorch, eager and compiled: microseconds, as JSON, beside
what bench_cuda printed into the file that is given."""

import json
import statistics
import sys
import time
from pathlib import Path

try:
    import torch
except ImportError:
    print("PyTorch is not installed: nothing to compare with")
    sys.exit(0)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU: nothing to compare with")
    sys.exit(0)


def gradient_step(w0, w1, x, t, rate):
    r = torch.relu(x @ w0)
    e = r @ w1 - t
    g1 = r.T @ e
    g0 = x.T @ ((e @ w1.T) * torch.sign(r))
    w0 -= g0 * rate
    w1 -= g1 * rate


def microseconds(function) -> float:
    tensors = [torch.randn(64, 64, device="cuda") * 0.1 for _ in range(4)]
    rate = torch.tensor(1e-4, device="cuda")
    times = []
    for _ in range(220):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function(*tensors, rate)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[20:])


def of_bench(path):
    """What bench_cuda measured for the step through captured graphs, in microseconds."""
    for line in Path(path).read_text().splitlines():
        if line.startswith('{"mlp_step"'):
            return json.loads(line)["mlp_step"]["graph_us"]
    return None


out = {"torch": torch.__version__, "eager_us": microseconds(gradient_step)}
ours = of_bench(sys.argv[1]) if len(sys.argv) > 1 else None
if ours:
    out |= {"tenon_us": ours, "eager_ratio": out["eager_us"] / ours, "wanted": 3}
print(json.dumps(out), flush=True)
print(json.dumps({"compiled_us": microseconds(torch.compile(gradient_step))}))
