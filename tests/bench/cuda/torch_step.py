# SPDX-License-Identifier: Apache-2.0
"""The training step of figures.cpp in PyTorch, eager and compiled: microseconds, as JSON."""

import json
import statistics
import sys
import time

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


print(
    json.dumps(
        {
            "torch": torch.__version__,
            "eager_us": microseconds(gradient_step),
            "compiled_us": microseconds(torch.compile(gradient_step)),
        }
    )
)
