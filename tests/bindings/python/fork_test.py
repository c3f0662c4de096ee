# SPDX-License-Identifier: Apache-2.0
"""What was compiled before a fork runs in the child, as workers of data loaders need it."""

import os
import signal
import threading

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


def in_child(body):
    """What the body, run in a child, gives or raises, as a text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            answer = str(body())
        except Exception as raised:
            answer = f"{type(raised).__name__}: {raised}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return answer


def test_a_child_of_a_busy_process_runs_what_there_is_and_refuses_to_compile():
    compiled = tn.jit(lambda x: x * 2)
    one = np.ones((1, 1), "float32")
    compiled(one)
    inside, may_end = threading.Event(), threading.Event()

    def wait(_):
        inside.set()
        may_end.wait()

    net = tn.nn.build(tn.nn.Linear(1), {"x": ("N", 1)}, seed=0)
    data = {"x": one, "label": one}
    named = {"loss": "trainer.mse", "epochs": 1, "callbacks": [tn.callback(step=wait)]}
    training = threading.Thread(target=tn.train, args=(net, data), kwargs=named)
    training.start()
    inside.wait()
    try:
        assert in_child(lambda: compiled(one)) == "[[2.]]"
        answer = in_child(lambda: tn.jit(lambda x: x * 3)(one))
        assert "forked while other threads were compiling" in answer and "spawn" in answer
    finally:
        may_end.set()
        training.join()
    assert in_child(lambda: tn.jit(lambda x: x * 3)(one)) == "[[3.]]"
