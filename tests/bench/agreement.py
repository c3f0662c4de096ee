# SPDX-License-Identifier: Apache-2.0
"""A quantized model in Tenon and in ONNX Runtime: product by product, and decision by decision.

  agreement.py QUANTIZED --data FILE.npz [--rows 64] [--output 0] [--json]

Needs both `tenon` and `onnxruntime` importable. Takes QDQ files and files of 8-bit operators.
Product by product: each, with what follows it up to its rounding, is cut out and fed the values
that ONNX Runtime computed, optimizations off. Quantized values may differ by one, and only where
what was rounded lies within TIE of a step from the middle of two of them (a result in float:
within 1/127 of the largest). Then the same up to the rounding behind that one, where a residual
or an activation stands between the two: by one step too, but where the first rounding was a tie.
Decisions: the whole model over the data; the index of the largest value along the last axis of an
output (MiniLM with its probe: --output 1), beside ONNX Runtime's own two modes: with optimizations,
which compute in 8 bits, and without, products in float (8-bit operators are the same in both: there
`as_float` says what is computed without), and beside itself with all float constants larger by the
last bit. Where one flips that does not flip between those, its lead must be one that they could
turn: a tie of the whole network.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import peer_rows
import tenon
from quantized_regions import Graph, as_float

TIE = 0.01  # of a step
TIES = 1e-3  # share of results behind a second rounding that may be ties of the first
STEPS = 1.0


def session_of(model: onnx.ModelProto, optimized: bool = False) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def in_steps(ours: np.ndarray, theirs: np.ndarray, ties: float = 0) -> float:
    """The furthest, but for a share of `ties`."""
    if np.issubdtype(theirs.dtype, np.integer):
        far = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        return float(np.quantile(far, 1 - ties, method="higher")) if far.size else 0.0
    # Its Sigmoid is right to the last bit of 1: 0 or 1.2e-7 where all results are that small.
    step = max(float(np.abs(theirs).max(initial=0)) / 127, float(np.finfo(np.float32).eps))
    far = np.abs(ours - theirs)
    return float(np.quantile(far, 1 - ties, method="higher")) / step if far.size else 0.0


def recorded(graph: Graph, names: set[str], feeds: dict) -> dict[str, np.ndarray]:
    """What ONNX Runtime computes for inner values."""
    tapped = onnx.ModelProto()
    tapped.CopyFrom(graph.model)
    wanted = sorted(name for name in names if name not in feeds and name not in graph.outputs)
    known = {value.name: value for value in graph.model.graph.value_info}
    untyped = onnx.helper.make_empty_tensor_value_info
    tapped.graph.output.extend(known.get(name) or untyped(name) for name in wanted)
    session = session_of(tapped)
    asked = wanted + sorted(graph.outputs)
    return dict(zip(asked, session.run(asked, feeds), strict=True)) | feeds


def run_part(part: onnx.ModelProto, fed: dict, backend: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "part.onnx")
        onnx.save(part, path)
        return np.asarray(tenon.load(path).compile(backend=backend)(**fed)[0])


class Parts:
    """Pieces of a model by the names of their values."""

    def __init__(self, model: onnx.ModelProto, feeds: dict):
        self.graph = Graph(model)
        self.values = feeds
        known = self.graph.model.graph.value_info
        self.known = {value.name for value in known}

    def record(self, regions: list, feeds: dict) -> None:
        names = {name for inputs, result in regions for name in [*inputs, result]}
        self.values = recorded(self.graph, names, feeds)

    def cut(self, inputs: list[str], results: list[str]) -> onnx.ModelProto:
        """As a model; types that inference does not know are those of the recorded values."""
        missing = [name for name in [*inputs, *results] if name not in self.known]
        for name in missing:
            if (value := self.values.get(name)) is not None:
                kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
                shape = [None] * value.ndim
                info = onnx.helper.make_tensor_value_info(name, kind, shape)
                self.graph.model.graph.value_info.append(info)
                self.known.add(name)
        return onnx.utils.Extractor(self.graph.model).extract_model(inputs, results)


def far_from_ties(parts: Parts, floats: Parts, region, ours, theirs, fed) -> int:
    """Quantized values that differ though what was rounded was no tie."""
    inputs, result = region
    asked = parts.graph.rounding(result)
    differ = ours != theirs
    if asked is None or not differ.any():
        return 0
    number, scale, axis = asked
    weights = parts.graph.model.graph.initializer
    scale = onnx.numpy_helper.to_array(next(t for t in weights if t.name == scale))
    if scale.size > 1:
        scale = scale.reshape([-1 if a == axis else 1 for a in range(ours.ndim)])
    tapped = onnx.ModelProto()
    tapped.CopyFrom(floats.cut(inputs, [result]))
    tapped.graph.output.append(onnx.helper.make_tensor_value_info(number, 1, None))
    (exact,) = session_of(tapped).run([number], fed)
    codes = (exact / scale.astype(np.float64))[differ]
    return int((np.abs(codes - np.floor(codes) - 0.5) > TIE).sum())


def products(model: onnx.ModelProto, feeds: dict, backend: str) -> list[dict]:
    parts, floats = Parts(model, feeds), Parts(as_float(model), feeds)
    nodes = parts.graph.products()
    first = [parts.graph.region(node) for node in nodes]
    ends = {result for _, result in first}
    behind = [parts.graph.region(node, 2) for node in nodes]
    behind = [region for region in behind if region[1] not in ends]
    parts.record(first + behind, feeds)
    floats.values = parts.values
    rows = []
    for region in first + behind:
        inputs, result = region
        part = parts.cut(inputs, [result])
        fed = {name: parts.values[name] for name in inputs}
        (theirs,) = session_of(part).run([result], fed)
        ours = run_part(part, fed, backend)
        is_first = result in ends
        row = {"node": result, "roundings": 1 if is_first else 2, "values": ours.size}
        row["steps"] = in_steps(ours, theirs, 0.0 if is_first else TIES)
        row["differ"] = int((ours != theirs).sum()) if ours.dtype.kind in "iu" else 0
        row["no_ties"] = far_from_ties(parts, floats, region, ours, theirs, fed) if is_first else 0
        rows.append(row)
    return rows


def nudged_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            more = np.nextafter(onnx.numpy_helper.to_array(tensor), np.float32(np.inf))
            tensor.CopyFrom(onnx.numpy_helper.from_array(more, tensor.name))
    return model


def decisions(args, model: onnx.ModelProto, rows) -> dict:
    """How many are the same here, with ONNX Runtime, and with its optimizations."""
    plain, optimized = session_of(as_float(model)), session_of(model, optimized=True)
    last_bits = session_of(nudged_constants(as_float(model)))
    plan = tenon.load(args.model).compile(backend=args.backend)
    answers: dict[str, list] = {"ours": [], "plain": [], "optimized": [], "nudged": []}
    while (feeds := rows.get_next()) is not None:
        answers["ours"].append(np.asarray(plan(**feeds)[args.output]))
        answers["plain"].append(plain.run(None, feeds)[args.output])
        answers["optimized"].append(optimized.run(None, feeds)[args.output])
        answers["nudged"].append(last_bits.run(None, feeds)[args.output])
    scores = {name: np.concatenate(some) for name, some in answers.items()}
    best = {name: some.argmax(-1) for name, some in scores.items()}
    flips = best["ours"] != best["plain"]
    modes = best["optimized"] != best["plain"]
    nudged = best["nudged"] != best["plain"]
    alone = flips & ~modes & ~nudged

    def lead(name: str, other: np.ndarray) -> np.ndarray:
        """Of the plain mode's decision over another one."""
        first = np.take_along_axis(scores[name], best["plain"][..., None], -1)
        return (first - np.take_along_axis(scores[name], other[..., None], -1))[..., 0]

    # Over the second, and over what any of them decides for: that may have been the third.
    others = [np.argsort(scores["plain"], -1)[..., -2], *best.values()]
    moves = [
        np.abs(lead("plain", other) - lead(name, other)).max(initial=0)
        for name in ("optimized", "nudged")
        for other in others
    ]
    deviations = {name: float(np.std(some - scores["plain"])) for name, some in scores.items()}
    return {
        "decisions": flips.size,
        "agreed": int((~flips).sum()),
        "modes_agree": int((~modes).sum()),
        "nudged_agree": int((~nudged).sum()),
        "alone": int(alone.sum()),
        "lead_of_alone": float(lead("plain", best["ours"])[alone].max(initial=0)),
        "moved": float(max(moves)),
        "deviations": deviations,
    }


def report(rows: list[dict], summary: dict) -> bool:
    is_right = True
    for roundings in (1, 2):
        some = [row for row in rows if row["roundings"] == roundings]
        if not some:
            continue
        within = [row for row in some if row["steps"] <= STEPS and row["no_ties"] == 0]
        values, differ = (sum(row[key] for row in some) for key in ("values", "differ"))
        is_right = is_right and len(within) == len(some)
        print(
            f"up to rounding {roundings}: {len(within)} of {len(some)} regions right; "
            f"{differ} of {values} quantized values differ, "
            f"{sum(row['no_ties'] for row in some)} of them no ties; the furthest:"
        )
        for row in sorted(some, key=lambda row: (-row["no_ties"], -row["steps"]))[:5]:
            print(f"  {row['steps']:8.3f} steps  {row['no_ties']:6} no ties  {row['node']}")
    of, lead = summary["deviations"], summary["lead_of_alone"]
    print(
        f"decisions: {summary['agreed']} of {summary['decisions']} as ONNX Runtime; its own two "
        f"modes: {summary['modes_agree']}, itself nudged: {summary['nudged_agree']}; flipped here "
        f"alone: {summary['alone']}, by a lead of {lead:.3g} at most, where its own leads "
        f"move by up to {summary['moved']:.3g}; deviation of scores: {of['ours']:.3g}, of the "
        f"modes': {of['optimized']:.3g}, nudged: {of['nudged']:.3g}"
    )
    return is_right and summary["lead_of_alone"] <= summary["moved"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--output", type=int, default=0, help="place of the one that decides")
    parser.add_argument("--backend", default="onednn")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    model = onnx.load(args.model)
    names = peer_rows.input_names(args.model)
    first = peer_rows.Rows(args.data, names, args.batch, args.batch).get_next()
    rows = products(model, first, args.backend)
    summary = decisions(args, model, peer_rows.Rows(args.data, names, args.rows, args.batch))
    if args.json:
        print(json.dumps({"nodes": rows} | summary))
        return 0
    return 0 if report(rows, summary) else 1


if __name__ == "__main__":
    sys.exit(main())
