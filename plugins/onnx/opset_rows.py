# SPDX-License-Identifier: Apache-2.0
"""Writes what each operator takes at each opset from 21 on, from onnx's own schemas.

One row per operator and definition: {type, since, most inputs, outputs that it must have,
",attr,attr,", type masks}.
Bit t of a mask says that ONNX's element type t is allowed. Masks of the first 8 inputs, then of
4 outputs.
"""

import sys

import onnx
from onnx import defs, helper

OLDEST, NEWEST = 21, 28
INPUTS, OUTPUTS = 8, 4
ALL = 0xFFFFFFFF


def element_mask(types):
    mask = 0
    for text in types:
        if not (text.startswith("tensor(") and text.endswith(")")):
            return ALL  # sequences, optionals, maps: not looked at
        name = text[len("tensor(") : -1].upper()
        mask |= 1 << getattr(onnx.TensorProto, name, 0)
    return mask


def masks(formals, count):
    out = [ALL] * count
    for i in range(count):
        formal = formals[min(i, len(formals) - 1)] if formals else None
        variadic = (
            bool(formals) and formals[-1].option == defs.OpSchema.FormalParameterOption.Variadic
        )
        if formal is not None and (i < len(formals) or variadic):
            out[i] = element_mask(formal.types)
    return out


def rows():
    versions = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            versions.setdefault(schema.name, {})[schema.since_version] = schema
    for name, by_version in sorted(versions.items()):
        old = [v for v in by_version if v <= OLDEST]
        for since in sorted({max(old)} if old else set()) + sorted(
            v for v in by_version if v > OLDEST
        ):
            schema = by_version[since]
            attrs = "," + "".join(a + "," for a in sorted(schema.attributes))
            all_masks = masks(schema.inputs, INPUTS) + masks(schema.outputs, OUTPUTS)
            most = min(schema.max_input, 1 << 30)
            listed = ", ".join(f"{m:#x}u" for m in all_masks)
            yield f'    {{"{name}", {since}, {most}, {schema.min_output}, "{attrs}", {{{listed}}}}},'


def ir_versions():
    for opset in range(OLDEST, NEWEST + 1):
        yield f"    {{{opset}, {helper.OP_SET_ID_VERSION_MAP[('ai.onnx', opset)]}}},"


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("// Written by opset_rows.py.\nconstexpr OpsetRow kOpsetRows[] = {\n")
    out.write("\n".join(rows()) + "\n};\nconstexpr IrRow kIrRows[] = {\n")
    out.write("\n".join(ir_versions()) + "\n};\n")
