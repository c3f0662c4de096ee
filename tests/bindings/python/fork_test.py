# SPDX-License-Identifier: Apache-2.0
"""What was compiled before a fork runs in the child, as workers of data loaders need it."""

import os
import signal

import numpy as np
import tenon as tn


def test_a_compiled_function_runs_on_both_sides():
    f = tn.jit(lambda x: (x @ x).sum(), threads=2)
    x = np.ones((600, 600), "float32")
    want = f(x)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if f(x) == want else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert f(x) == want
