# SPDX-License-Identifier: Apache-2.0
"""Errors, log lines, progress, threads and interrupts."""

import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tenon
from conftest import single
from onnx import TensorProto, helper
from tenon import errors, events, onnx_backend


@pytest.mark.parametrize("code", sorted(errors._CLASSES))
def test_each_code_has_a_class(code):
    made = errors.from_status(code, "who", "what")

    assert isinstance(made, tenon.TenonError)
    assert (made.code, made.domain, str(made)) == (code, "who", "what")
    assert type(made).code == code


def test_an_unknown_code_is_kept():
    assert errors.from_status(99, "", "").code == 99


def test_an_error_carries_code_and_domain():
    with pytest.raises(tenon.NotFound) as caught:
        tenon.load("no/such.onnx")

    assert caught.value.code == 5
    assert caught.value.domain
    assert "no/such.onnx" in str(caught.value)


def test_errors_are_also_pythons_own():
    with pytest.raises(LookupError):
        tenon.load("no/such.onnx")
    with pytest.raises(ValueError):
        single("Neg", "float32")(np.ones((2, 2), "float32"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "input x0: expected float32.n., got nothing"),
        ((np.ones(2, "float64"),), "expected float32.n., got float64.2."),
        ((np.ones(2, "f"), np.ones(2, "f")), "expected 1 inputs, got 2"),
    ],
)
def test_wrong_inputs_say_what_is_expected(arguments, message):
    with pytest.raises(tenon.InvalidArgument, match=message):
        single("Neg", "float32")(*arguments)


def test_wrong_names_say_what_is_expected():
    plan = single("Neg", "float32")
    x = np.ones(2, "float32")

    with pytest.raises(tenon.InvalidArgument, match="expected inputs x0, got 'x1'"):
        plan(x1=x)
    with pytest.raises(tenon.InvalidArgument, match="given twice"):
        plan(x, x0=x)


def test_one_plan_runs_on_many_threads():
    plan = single("Add", "float32", inputs=2)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in rng.integers(1, 50, 100):
            a, b = rng.normal(size=(2, size)).astype("float32")
            if not np.array_equal(plan(a, b)[0], a + b):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_others_run_while_a_plan_runs():
    # The other thread interrupts the main one in the midst of the run: it needs the GIL for that.
    program = """if True:
        import os, signal, threading, time
        import numpy as np, tenon
        from conftest import single
        plan = single("MatMul", "float32", inputs=2, shape=("n", "n"))
        x = np.ones((400, 400), "float32")
        plan.prepare(x, x)
        running = threading.Event()
        def interrupt():
            running.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            running.set()
            while True:
                plan(x, x)
        except KeyboardInterrupt:
            print("stopped")
        assert plan(np.eye(2, dtype="f"), np.eye(2, dtype="f"))[0].sum() == 2
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=os.path.dirname(__file__),
    )

    assert done.stdout == "stopped\n", done.stderr


def test_the_interrupt_handler_is_pythons_again_after_a_run():
    before = signal.getsignal(signal.SIGINT)
    single("Neg", "float32")([1.0])

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        signal.sigtimedwait([], 0.01)
        for _ in range(1000):
            pass
    assert signal.getsignal(signal.SIGINT) == before


def test_a_tap_whose_type_a_pass_has_changed_is_no_contradiction(caplog):
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2])

    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Sqrt", ["h"], ["y"])]
    w = helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1, 0, 0, 1])
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")], [w], value_info=[info("h")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    model = onnx_backend.model_of(proto).apply("precision.autocast", dtype="float16")

    assert model.compile(taps=["h"])(np.ones((3, 2), np.float32))[1].dtype == np.float16
    assert "declared" not in caplog.text


def test_log_lines_go_to_logging(caplog):
    with caplog.at_level(logging.DEBUG, logger="tenon"):
        events._log(2, "onednn", "a 100 % warning")

    assert caplog.record_tuples == [("tenon.onednn", logging.WARNING, "a 100 % warning")]


def test_a_bar_shows_what_takes_long_and_clears_it():
    stream = io.StringIO()
    bar = events.Bar(stream, patience=0)

    bar(1, "calibrating", 5, 10)
    bar(1, "calibrating", None, 10)

    assert stream.getvalue() == "\rcalibrating:  50 % of 10\r\x1b[K"


def test_a_bar_is_silent_about_short_work():
    stream = io.StringIO()

    events.Bar(stream, patience=1000)(1, "short", 1, 2)

    assert stream.getvalue() == ""


def test_outputs_survive_pickling():
    y = single("Neg", "float32")([1.0])

    again = pickle.loads(pickle.dumps(y))

    assert again["y"].tolist() == [-1]


def test_configuration_comes_before_use():
    tenon.session()

    with pytest.raises(RuntimeError, match="before the first use"):
        tenon.configure(threads=1)


def test_threads_that_never_end_do_not_keep_a_program_from_ending():
    script = """
import threading, time, numpy, tenon
f, x = tenon.jit(lambda x: (x @ x).sum()), numpy.ones((99, 99), "float32")
f(x)
run = lambda: [f(x) for _ in iter(int, 1)]
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
while f.stats.hits < 50:
    time.sleep(0)
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
