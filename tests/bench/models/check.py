# SPDX-License-Identifier: Apache-2.0
"""Everything that the table says about one model, as a dict of plain values."""

import pathlib
import tempfile
import zlib
from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import rows as table
import tenon

DATA_SAMPLES = 8


def draw(row: table.Row, model: tenon.Model, run: int) -> dict[str, np.ndarray]:
    """The inputs of one run; the same numbers for the same row and run."""
    random = np.random.default_rng(zlib.crc32(f"{row.name.split()[0]}/{run}".encode()))
    dtypes = {port.name: port.dtype for port in model.inputs}
    feeds = dict(row.given)
    for name, shape in row.shapes.items():
        if np.issubdtype(np.dtype(dtypes[name]), np.integer):
            array = random.integers(0, row.top.get(name, 2), shape)
        else:
            array = table.SIGNALS[row.signal](random, shape)
        feeds[name] = np.ascontiguousarray(array.astype(dtypes[name]))
    for name in row.carry:  # the first run starts from nothing
        feeds[name] = np.zeros_like(feeds[name])
    return feeds


def play(row: table.Row, run, names, feeds: list[dict]) -> Iterator[dict[str, np.ndarray]]:
    """The outputs of each run by name; what is carried goes from one to the next."""
    carried: dict[str, np.ndarray] = {}
    for given in feeds:
        outputs = dict(zip(names, run(given | carried), strict=True))
        carried = {into: np.asarray(outputs[out]) for into, out in row.carry.items()}
        yield outputs


def peer(path: pathlib.Path, threads: int):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def error(ours: list[dict], theirs: list[dict]) -> float:
    """The largest difference over the range of the output, over all outputs and runs."""
    worst = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        for name, wanted in other.items():
            got, wanted = np.asarray(mine[name]), np.asarray(wanted)
            if got.shape != wanted.shape:
                raise ValueError(f"output {name}: expected {wanted.shape}, got {got.shape}")
            if wanted.size == 0:
                continue
            got, wanted = got.astype(np.float64), wanted.astype(np.float64)
            if not np.array_equal(np.isfinite(got), np.isfinite(wanted)):
                return float("inf")
            finite = np.isfinite(wanted)
            got, wanted = got[finite], wanted[finite]
            span = np.ptp(wanted) or np.abs(wanted).max() or 1.0
            worst = max(worst, float(np.abs(got - wanted).max(initial=0) / span))
    return worst


def likeness(ours: list[dict], theirs: list[dict]) -> float:
    """The least cosine between outputs, over all outputs and runs."""
    least = 1.0
    for mine, other in zip(ours, theirs, strict=True):
        for name, wanted in other.items():
            a = np.asarray(mine[name], np.float64).ravel()
            b = np.asarray(wanted, np.float64).ravel()
            size = np.linalg.norm(a) * np.linalg.norm(b)
            if a.size != b.size or not np.isfinite(size):
                return float("nan")
            least = min(least, float(a @ b / size) if size else 1.0)
    return least


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The constants of a graph and of all bodies in it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from tensors(attribute.g)


def weight_bytes(model: tenon.Model, folder: str) -> tuple[int, int]:
    """All constants' bytes as they are saved, and those of float weights of two and more axes."""
    path = pathlib.Path(folder) / "counted.onnx"
    model.save(path)
    total = weights = 0
    for tensor in tensors(onnx.load(path, load_external_data=False).graph):
        count = int(np.prod(tensor.dims))
        size = (count * tensor_bits(tensor.data_type) + 7) // 8
        total += size
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 1 and count >= 1024:
            weights += size
    return total, weights


def tensor_bits(element: int) -> int:
    name = onnx.TensorProto.DataType.Name(element)
    wide = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8}.get(name)
    if wide or name.startswith("FLOAT8"):
        return wide or 8
    return int("".join(c for c in name if c.isdigit()))


def fallbacks(plan: tenon.Plan, feeds: dict) -> dict:
    """Nodes outside of onednn, and their share of the time of a second run."""
    nodes = plan.describe()["fallback_nodes"]
    layers = plan.profile(**feeds)
    total = sum(layer["ns"] for layer in layers) or 1
    outside = sum(layer["ns"] for layer in layers if layer["backend"] == "reference")
    why = sorted({f"{node['op']}: {node['why']}" for node in nodes})
    return {"fallbacks": len(nodes), "share": outside / total, "why": why}


def calibration(row: table.Row, model: tenon.Model, folder: str) -> pathlib.Path:
    """An npz of samples that no run of the row is drawn from."""
    batches = [draw(row, model, 100 + i) for i in range(DATA_SAMPLES)]
    path = pathlib.Path(folder) / "calibration.npz"
    np.savez(path, **{k: np.concatenate([b[k] for b in batches]) for k in batches[0]})
    return path


def quantized(row: table.Row, model: tenon.Model, folder: str) -> tenon.Model:
    plain = model.apply("fusion.default")
    if row.recipe != "quantizer.static":
        return plain.apply(row.recipe)
    path = calibration(row, model, folder)
    return plain.apply(row.recipe, data=str(path), observer="minmax", batch=1)


def int8(row: table.Row, model: tenon.Model, feeds: list[dict], wanted: list[dict], threads: int):
    with tempfile.TemporaryDirectory() as folder:
        small = quantized(row, model, folder)
        before, weights = weight_bytes(model.apply("fusion.default"), folder)
        after, _ = weight_bytes(small, folder)
    names = [port.name for port in model.outputs]
    plan = small.compile(backend="onednn", threads=threads)
    got = list(play(row, plan.run, names, feeds))
    counts = (small.report or {}).get("counts", {})
    left = [f"{n['op']}: {n['why']}" for n in (small.report or {}).get("float", [])]
    return {
        "int8": likeness(got, wanted),
        "int8_fallbacks": len(plan.describe()["fallback_nodes"]),
        "weights": (after - (before - weights)) / weights if weights else None,
        "file": after / before if before else None,
        "share_of_weights": weights / before if before else None,
        "quantized": counts.get("quantized"),
        "float": counts.get("float"),
        "left": sorted({f"{left.count(one)} {one}" for one in left}),
    }


def examine(row: table.Row, threads: int, parts: set[str]) -> dict:
    """parts: of reference, onednn, bf16, int8."""
    path = row.file()
    model = tenon.load(path)
    names = [port.name for port in model.outputs]
    feeds = [draw(row, model, i) for i in range(row.runs)]
    theirs = list(play(row, peer(path, threads), names, feeds))
    found: dict = {"name": row.name, "bytes": path.stat().st_size, "tolerance": row.tolerance}
    found |= row.bounds()

    def attempt(part: str, work) -> None:
        if part not in parts:
            return
        try:
            found.update(work())
        except (tenon.TenonError, ValueError) as failure:
            found.setdefault("failed", {})[part] = str(failure).splitlines()[0]

    def ran(precision: str | None, backend: str) -> tuple[tenon.Plan, list[dict]]:
        plan = model.compile(backend=backend, precision=precision, threads=threads)
        return plan, list(play(row, plan.run, names, feeds))

    def onednn():
        plan, got = ran(None, "onednn")
        last = feeds[0]
        return {"onednn": error(got, theirs)} | fallbacks(plan, last)

    attempt("onednn", onednn)
    attempt("bf16", lambda: {"bf16": likeness(ran("bf16", "onednn")[1], theirs)})
    if row.recipe:
        attempt("int8", lambda: int8(row, model, feeds, theirs, threads))
    attempt("reference", lambda: {"reference": error(ran(None, "reference")[1], theirs)})
    return found
