# SPDX-License-Identifier: Apache-2.0
"""Plugins that transform anybody's graphs know no operator by name: what they need is in its row.

Every string literal that is an operator of ONNX or of plugins/ops is found, with a domain in front,
in a list ("Conv,Gemm") or in a pattern ("Relu(%x)") as well, but for those that make a node
(`op("Mul", ...)`, `.type = "Cast"`) and those in sentences. What is left has its reason here, or is
a violation.
"""

import re
from pathlib import Path

import onnx

FOLDERS = ("quantizer", "pruner", "decomposer", "precision", "recovery", "distiller")
# Quantized meaning lives in these two nodes and nowhere else (plugins/quantizer/README.md).
MEANING = {"QuantizeLinear", "DequantizeLinear"}
EXCEPTIONS = {
    # Its own nodes: a mask that a pass of this plugin has written, and reads again.
    "plugins/pruner/masks.cpp": {"Mul", "Cast"},
    # The score is that operator's factor, which no column of a row names.
    "plugins/pruner/importance/batch_norm.cpp": {"BatchNormalization"},
    # Names handed to op(): the smallest and the largest of a tensor and of two.
    "plugins/quantizer/track.cpp": {"ReduceMin", "ReduceMax", "Min", "Max"},
    # Scale and shift of a normalization take factors of what reads it: no column says which inputs.
    "plugins/quantizer/input_scaling.cpp": {"LayerNormalization"},
    # A bias that stands behind a product that has no place for one.
    "plugins/quantizer/layer_bias.cpp": {"Add"},
    # It alone says mean and deviation of its result, and no column of a row names which input does.
    "plugins/quantizer/normal_inputs.cpp": {"BatchNormalization"},
    # The form of a dynamic product, which "quantizer.dynamic" writes node by node.
    "plugins/quantizer/dynamic_form.cpp": {
        "Cast",
        "Conv",
        "ConvInteger",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "Mul",
    },
    # It dequantizes what it looks up: no column of a row says which inputs are the table's.
    "plugins/quantizer/stored_moves.cpp": {"GatherBlockQuantized"},
    # They write zeros where their inputs have nothing, or take means whose weights add up to 1: no
    # column of a row says it.
    "plugins/quantizer/role.cpp": {"CenterCropPad", "MaxUnpool", "Pad", "Resize", "Trilu"},
    # Which integers compute what an operator says: no column of a row has that.
    "plugins/quantizer/integer_rewriting.cpp": {
        "Add",
        "Clip",
        "Conv",
        "Div",
        "Gemm",
        "GlobalAveragePool",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "ReduceMean",
        "Relu",
        "Softmax",
    },
    "plugins/quantizer/integer_sums.cpp": {
        "Clip",
        "Conv",
        "Gemm",
        "GlobalAveragePool",
        "Max",
        "Min",
        "Mul",
    },
    # Its own nodes: signs with their gradient, which quantizer.convert reads again.
    "plugins/quantizer/signs.cpp": {"Add", "Clip", "StopGradient", "Sub", "Where"},
    # Its own nodes: factors of columns that quantizer.static has written behind stored weights.
    "plugins/quantizer/recurrent_weights.cpp": {"Mul"},
    # Windows along one axis each are written in the attributes of ONNX's Conv.
    "plugins/decomposer/cp.cpp": {"Conv"},
    "plugins/decomposer/spatial.cpp": {"Conv"},
    # Its own nodes: casts that a pass has written, and finds again.
    "plugins/precision/casts.cpp": {"Cast"},
    # Tables of the nodes that are made.
    "plugins/precision/gradient_histogram.cpp": {"Greater", "GreaterOrEqual"},
    "plugins/precision/loss_scale_step.cpp": {"Min", "Max"},
    "plugins/distiller/hints.cpp": {"Conv", "MatMul"},
    # A bias, or the way around a block, added to the sums of a layer.
    "plugins/recovery/layer.cpp": {"Add"},
    # Its running statistics are estimated: no column says which inputs they are.
    "plugins/recovery/statistics.cpp": {"BatchNormalization"},
    # What a teacher answers with is followed back to its logits.
    "plugins/distiller/teacher.cpp": {"Softmax", "LogSoftmax"},
    # Probabilities sum to 1 whatever flows: the flow is measured in front of them.
    "plugins/pruner/batch_values.cpp": {"Softmax", "LogSoftmax"},
}
ROW = re.compile(r'\.type = "(\w+)"')
LITERAL = re.compile(
    r'(?P<before>(?:\bop\(|\badd\(|\.type = [^"\n]*)\s*)?"(?P<text>(?:[^"\\\n]|\\.)*)"'
)
SENTENCE = re.compile(r"\b[a-z]{2,} | [a-z]{2,}\b")


def operators(root: Path) -> set[str]:
    found = {schema.name for schema in onnx.defs.get_all_schemas()}
    for path in sorted((root / "plugins" / "ops").glob("*.cpp")):
        found |= set(ROW.findall(path.read_text()))
    return found


def violations(root: Path) -> list[str]:
    names = operators(root)
    found = []
    for folder in FOLDERS:
        for path in sorted((root / "plugins" / folder).rglob("*.?pp")):
            where = path.relative_to(root)
            allowed = MEANING | EXCEPTIONS.get(str(where), set())
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines, 1):
                for literal in LITERAL.finditer(line.split("//")[0]):
                    if literal["before"] or SENTENCE.search(literal["text"]):
                        continue
                    for name in re.findall(r"\w+", literal["text"]):
                        if name not in names or name in allowed:
                            continue
                        found.append(
                            f"{where}:{number}: expected what the operator's row says, got the "
                            f'name "{name}" (abi/quant.md)'
                        )
    return found
