# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's single-operator cases in child processes, so that a crash costs one case."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

CHUNK = 200
CASE_SECONDS = 60  # a case takes milliseconds; this ends one that hangs


@dataclass
class Outcome:
    passed: bool
    why: str = ""
    fallback: int = 0  # nodes that ran on the reference backend instead


def cases() -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(collect_testcases(None), key=lambda case: case.name)


def as_values(array: np.ndarray) -> np.ndarray:
    """What NumPy's comparison knows: ml_dtypes' types as float32."""
    if array.dtype.kind == "V" or array.dtype.name.startswith(("float8", "float4", "bfloat16")):
        return array.astype("float32")
    if array.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return array.astype("int32")
    return array


def difference(got, wanted, case) -> str:
    """Empty when the result is the one that the case wants."""
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return f"expected a list of {len(wanted)}, got {got}"[:200]
        return "; ".join(filter(None, (difference(a, b, case) for a, b in zip(got, wanted))))
    if not isinstance(wanted, np.ndarray | np.generic) or not isinstance(got, np.ndarray):
        same = wanted is None and got is None
        return "" if same else f"expected a {type(wanted).__name__}, got {type(got).__name__}"
    wanted = np.asarray(wanted)
    if got.dtype != wanted.dtype:
        return f"expected {wanted.dtype}, got {got.dtype}"
    if got.shape != wanted.shape:
        return f"expected shape {wanted.shape}, got {got.shape}"
    try:
        np.testing.assert_allclose(
            as_values(got), as_values(wanted), rtol=case.rtol, atol=case.atol
        )
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def as_array(value):
    """Cases of Cast keep their data as protocol buffers; None stays what it is."""
    if isinstance(value, list):
        return [as_array(one) for one in value]
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def run_case(case, device: str) -> Outcome:
    from tenon import onnx_backend

    try:
        prepared = onnx_backend.prepare(case.model, device)
        for inputs, outputs in case.data_sets:
            got = prepared.run([as_array(value) for value in inputs])
            if len(got) != len(outputs):
                return Outcome(False, f"expected {len(outputs)} outputs, got {len(got)}")
            for name, one, wanted in zip(prepared.plan.names, got, map(as_array, outputs)):
                if text := difference(one, wanted, case):
                    return Outcome(False, f"{name}: {text}")
        return Outcome(True, "", len(prepared.plan.describe()["fallback_nodes"]))
    except Exception as error:
        return Outcome(False, f"{type(error).__name__}: {error}")


def child(chunk: list, device: str, log: Path) -> None:
    """Writes a line before and after each case: what died in between crashed."""
    with log.open("a", buffering=1) as out:
        for case in chunk:
            print(json.dumps([case.name]), file=out)
            signal.alarm(CASE_SECONDS)
            seen = run_case(case, device)
            signal.alarm(0)
            print(json.dumps([case.name, seen.passed, seen.why, seen.fallback]), file=out)


def run_chunk(chunk: list, device: str) -> dict[str, Outcome]:
    """A chunk in one child; after a crash the rest in another."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.touch()
        pid = os.fork()
        if pid == 0:
            try:
                child(chunk, device, log)
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    done = {line[0]: Outcome(*line[1:]) for line in lines if len(line) > 1}
    rest = [case for case in chunk if case.name not in done]
    if not rest:
        return done
    started = {line[0] for line in lines if len(line) == 1}
    how = "took too long" if status == signal.SIGALRM else f"crashed, wait status {status}"
    if rest[0].name not in started:
        how = f"did not start, wait status {status}"
    done[rest[0].name] = Outcome(False, how)
    return done | run_chunk(rest[1:], device)


def run_all(all_cases: list, device: str) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for start in range(0, len(all_cases), CHUNK):
        outcomes |= run_chunk(all_cases[start : start + CHUNK], device)
    return outcomes


def operator(case) -> str:
    """The operator that the case is about: the file's own order has it first."""
    nodes = case.model.graph.node
    return nodes[0].op_type if nodes else "(none)"


def opset(case) -> int:
    return max((one.version for one in case.model.opset_import if not one.domain), default=0)
