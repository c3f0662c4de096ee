# SPDX-License-Identifier: Apache-2.0
"""No option is without effect in silence: each option of each recipe, set to another value than its
default, changes the model or the report, or something is said, on two small models; and each can be
used: on one of them the recipe succeeds. What need not is named below, with the reason."""

import itertools
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper, numpy_helper

TENON = os.environ["TENON_BIN"]
BOUND = "a bound that need not bind"
HOW = "how it is computed, not what"
TABLE = "of operators that the model need not have"
OFF = "switches off what is not on"
OTHER = "changes what else is written, needs files or objects, or has tests of its own"
MAY_BE_SILENT = {
    **dict.fromkeys(("max_bytes", "shared", "min_channels", "allow_slower", "measure"), BOUND),
    **dict.fromkeys(
        ("min_error", "min_delta", "patience", "limit", "min_snr", "max_drop", "gain"), BOUND
    ),
    **dict.fromkeys(("samples", "clip_norm", "clip_value", "max_error", "max_ratio"), BOUND),
    **dict.fromkeys(("batch", "threads", "backend", "step_shapes", "memory", "bench"), HOW),
    **dict.fromkeys(
        ("low", "follow", "level", "device", "precision", "non_finite", "drop_last", "dtype"), TABLE
    ),
    "tables": TABLE,
    **dict.fromkeys(("insert", "rounds", "alpha", "per_channel", "reduce_range"), BOUND),
    **dict.fromkeys(("restore_best", "shard_bytes", "checkpoint_steps"), OFF),
    **dict.fromkeys(("metric", "requantize", "dry_run", "teacher", "gptq", "unsuited"), OTHER),
    **dict.fromkeys((("finetune", "target"), ("prune", "axis"), ("prune", "loss")), "the default"),
}
# The network of products has one group of channels, and no normalization to fold.
CONVOLUTIONS_ALONE = {("prune", name) for name in ("scope", "only", "fuse", "normalize")}
CONVOLUTIONS_ALONE |= {("decompose", "methods")}
# What else an option that says so itself must be given with.
TOGETHER = {
    ("decompose", "budget"): ["methods=svd", "max_ratio=9", "allow_slower=true"],
    ("decompose", "energy"): ["rank=energy"],
    ("decompose", "error"): ["rank=error"],
    ("prune", "normalize"): ["scope=global"],
    ("prune", "order_seed"): ["importance=shapley"],
    ("prune", "orders"): ["importance=shapley"],
    ("weights", "clip"): ["bits=4", "gptq=false"],
    ("weights", "group"): ["bits=4", "gptq=false"],
}
# Of models with scopes, in float64, of a run in a folder.
CANNOT_BE_USED_HERE = {"scope", "to", "keep_last", "keep_steps", "resume"}
# What the value of an option without a rule to make one of is; %s: a layer of the model.
VALUES = {
    "only": ['["%s"]'],
    "skip": ['["%s"]'],
    "observer": ["minmax"],
    "methods": ["none"],
    "ranges": ['{"x": [-1, 1]}'],
    "weak": ["1000"],
    "round_to": ["8"],
    "fuse": ["false"],
    "importance": ["l1"],
    "layers": ['{"%s": 0.5}'],
    "target": ['{"macs": 0.5}'],
    "fp32": ['["%s"]'],
    "scope": ["global"],
    ("decompose", "budget"): ["0.9"],
    ("decompose", "methods"): ["svd"],
    ("simplify", "only"): ['["cse"]'],
    ("simplify", "skip"): ['["conv_batch_norm"]'],
}
BESIDE = {"prune": ["round_to=1", "ratio=0.4"], "finetune": ["epochs=1", "batch=16"]}
PASSES_WITHOUT_DATA = ("simplify", "bf16", "fp16", "weights", "dynamic", "decompose")


def numbers(name: str, *shape: int) -> TensorProto:
    seeded = np.random.default_rng(len(name) + sum(shape))
    return numpy_helper.from_array(seeded.standard_normal(shape).astype("f"), name)


def save(folder: Path, name: str, nodes: list, shape: list, constants: list) -> Path:
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4]),
    ]
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), folder / f"{name}.onnx")
    seeded = np.random.default_rng(5)
    x = seeded.standard_normal((128, *shape)).astype("f")
    label = (x.reshape(128, -1)[:, :4]).argmax(1)
    np.savez(folder / f"{name}.npz", x=x, label=label)
    return folder / f"{name}.onnx"


def products(folder: Path) -> Path:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], "second"),
    ]
    shapes = {"w1": (8, 64), "b1": (64,), "w2": (64, 4), "b2": (4,)}
    constants = [numbers(name, *shape) for name, shape in shapes.items()]
    return save(folder, "products", nodes, [8], constants)


def convolutions(folder: Path) -> Path:
    norm = ["scale", "shift", "mean", "variance"]
    nodes = [
        helper.make_node("Conv", ["x", "k1"], ["c1"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", *norm], ["n1"], "norm"),
        helper.make_node("Relu", ["n1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "k2", "b2"], ["c2"], "second", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["g"], "pool"),
        helper.make_node("Flatten", ["g"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], "head"),
    ]
    shapes = {"k1": (16, 3, 3, 3), "shift": (16,), "mean": (16,), "k2": (24, 16, 3, 3)}
    shapes |= {"b2": (24,), "w": (24, 4), "b": (4,)}
    constants = [numbers(name, *shape) for name, shape in shapes.items()]
    for name in ("scale", "variance"):
        constants.append(numpy_helper.from_array(np.linspace(0.5, 2, 16, dtype="f"), name))
    return save(folder, "convolutions", nodes, [3, 8, 8], constants)


def recipes() -> dict[str, dict[str, str]]:
    """Options of each recipe, with what is said of them, as --help lists them."""
    text = subprocess.run([TENON, "optimize", "--help"], capture_output=True, text=True).stdout
    out: dict[str, dict[str, str]] = {}
    for line in text[text.index("Recipes, with") :].splitlines()[1:]:
        name, _, about = line.strip().partition(" ")
        if line.startswith("    "):
            out[list(out)[-1]][name] = about.strip()
        elif name:
            out[name] = {}
    return out


def schemas() -> dict[tuple[str, str], dict]:
    found = {}
    for one in tn.components():
        for name, option in ((one.get("schema") or {}).get("properties") or {}).items():
            found[name, option.get("description", "")] = option
    return found


def others(recipe: str, name: str, schema: dict) -> list[str]:
    """Values that are not the default."""
    if given := VALUES.get((recipe, name)) or VALUES.get(name):
        return given
    usual, types = schema.get("default"), schema.get("type", [])
    if "enum" in schema:
        return [str(one) for one in schema["enum"] if one != usual]
    if "boolean" in types:
        return ["false" if usual else "true"]
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    if "integer" in types:
        highest = schema.get("maximum", math.inf)
        known = [2 * (usual or 3), int(low) + 1]
        return [str(next(one for one in known if one != usual and one <= highest))]
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", 1)), 1)
    return [str(low + (high - low) * 0.3)] if "number" in types else []


def without_times(value: object) -> object:
    """A report without measured times."""
    if isinstance(value, dict):
        timed = ("output", "seconds", "samples_per_second", "ms")
        return {key: without_times(one) for key, one in value.items() if key not in timed}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def outcome(recipe: str, model: Path, *given: str) -> tuple:
    out = model.with_suffix(f".{recipe}.onnx")
    out.unlink(missing_ok=True)
    command = [TENON, "optimize", model, "-o", out, "--recipe", recipe, "--json"]
    if recipe not in PASSES_WITHOUT_DATA:
        command += ["--data", model.with_suffix(".npz")]
    for one in given:
        command += ["--set", one]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    said = re.sub(r"[\d.e+]+ samples/s|\d+:\d+ left", "", result.stderr)
    report = without_times(json.loads(result.stdout)) if result.stdout else None
    return result.returncode, said, report, out.read_bytes() if out.exists() else b""


def options() -> Iterator[tuple[str, str, str]]:
    """Each option with a value; those of the trainer once, of `finetune`."""
    known = schemas()
    for recipe, taken in recipes().items():
        if recipe in ("qat", "distil", "fp16"):
            continue
        for name, about in taken.items():
            for value in others(recipe, name, known.get((name, about), {})):
                if name not in MAY_BE_SILENT and (recipe, name) not in MAY_BE_SILENT:
                    yield recipe, name, value


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {make.__name__: make(folder) for make in (products, convolutions)}


def test_no_option_is_without_effect_in_silence(models: dict[str, Path]) -> None:
    silent, plain, count, used = [], {}, 0, {}
    for (recipe, name, value), model in itertools.product(options(), models.values()):
        if (recipe, name) in CONVOLUTIONS_ALONE and model.stem == "products":
            continue
        beside = BESIDE.get(recipe, []) + TOGETHER.get((recipe, name), [])
        key = (recipe, model.stem, *beside)
        if key not in plain:
            plain[key] = outcome(recipe, model, *beside)
            assert plain[key][0] == 0, (key, plain[key])
        given = f"{name}={value % 'first' if '%s' in value else value}"
        kept = [one for one in beside if not one.startswith(f"{name}=")]
        if name == "target":
            kept = [one for one in kept if not one.startswith("ratio=")]
        count += 1
        result = outcome(recipe, model, *kept, given)
        if result == plain[key]:
            silent.append(f"{recipe}: {given}, {model.stem}")
        used.setdefault((recipe, name), []).append(result)
    assert not silent, "\n".join(silent)
    assert count > 120
    refused = [
        f"{recipe}: {name}: {results[0][1]}"
        for (recipe, name), results in used.items()
        if name not in CANNOT_BE_USED_HERE and all(one[0] != 0 for one in results)
    ]
    assert not refused, "\n".join(refused)
