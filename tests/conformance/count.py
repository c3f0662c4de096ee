# SPDX-License-Identifier: Apache-2.0
"""How many of ONNX's single-operator cases pass, here and in the peers that are installed.

    python tests/conformance/count.py [--only reference,onednn,onnxruntime,openvino] [--json FILE]

One line each: all cases, those of opset 26 or lower, and of onednn those with no node on another
backend. The peers' lines need tests/bench/requirements.txt.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import runner

NEWEST_OF_PEERS = 26  # ONNX Runtime 1.31 reads no later opset
TENON = ("reference", "onednn")


def onnxruntime_outputs(case, inputs: list) -> list:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        case.model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    names = [port.name for port in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs)))


def openvino_outputs(case, inputs: list) -> list:
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(case.model, path)
        core = openvino.Core()
        compiled = core.compile_model(
            core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
    found = compiled([np.asarray(one) for one in inputs])
    return [found[port] for port in compiled.outputs]


PEERS = {"onnxruntime": onnxruntime_outputs, "openvino": openvino_outputs}


def run_peer(case, device: str) -> runner.Outcome:
    """As runner.run_case, of a peer."""
    try:
        for inputs, outputs in case.data_sets:
            got = PEERS[device](case, [runner.as_array(one) for one in inputs])
            if len(got) != len(outputs):
                return runner.Outcome(False, f"expected {len(outputs)} outputs, got {len(got)}")
            for one, wanted in zip(got, map(runner.as_array, outputs)):
                if text := runner.difference(one, wanted, case):
                    return runner.Outcome(False, text)
        return runner.Outcome(True)
    except Exception as error:
        return runner.Outcome(False, f"{type(error).__name__}: {error}")


def count(cases: list, device: str) -> dict:
    own = runner.run_case
    try:
        runner.run_case = run_peer if device in PEERS else own
        outcomes = runner.run_all(cases, device)
    finally:
        runner.run_case = own
    passed = [case for case in cases if outcomes[case.name].passed]
    early = [case for case in cases if runner.opset(case) <= NEWEST_OF_PEERS]
    found = {
        "device": device,
        "passed": len(passed),
        "cases": len(cases),
        "passed_early": sum(outcomes[case.name].passed for case in early),
        "cases_early": len(early),
    }
    if device in TENON:
        found["alone"] = sum(outcomes[case.name].fallback == 0 for case in passed)
    return found


def line(found: dict) -> str:
    text = f"{found['device']:<12} {found['passed']} of {found['cases']}, of opset "
    text += f"{NEWEST_OF_PEERS} or lower {found['passed_early']} of {found['cases_early']}"
    if found["device"] == "onednn":
        text += f", with no fallback node {found['alone']}"
    return text


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="count", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join((*TENON, *PEERS)))
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(argv)
    cases = runner.cases()
    all_found = []
    for device in args.only.split(","):
        if device in PEERS and importlib.util.find_spec(device) is None:
            print(f"{device:<12} is not installed")
            continue
        all_found.append(count(cases, device))
        print(line(all_found[-1]), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(all_found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
