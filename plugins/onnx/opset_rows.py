# SPDX-License-Identifier: Apache-2.0
"""Writes what each operator takes at each opset from 21 on, from onnx's own schemas.

One row per operator and definition: {type, since, most inputs, outputs that it must have,
",attr,attr,", type masks, type variables}. Bit t of a mask says that tensors of ONNX's element type
t are allowed, bit 32 + t that sequences and optional values are. What has the same variable, above
0, has one element type. Masks and variables of the first 8 inputs, then of 4 outputs.
"""

import sys

import onnx
from onnx import defs, helper

OLDEST, NEWEST = 21, 28
INPUTS, OUTPUTS = 8, 4
Option = defs.OpSchema.FormalParameterOption
ALL = 0xFFFFFFFFFFFFFFFF


def element_mask(types):
    mask = 0
    for text in types:
        inner = text.split("(")[-1].rstrip(")")
        if "tensor(" not in text or not hasattr(onnx.TensorProto, inner.upper()):
            return ALL  # maps, and types that onnx.proto does not have: not looked at
        of = 0 if text.startswith("tensor(") else 32
        mask |= 1 << (of + getattr(onnx.TensorProto, inner.upper()))
    return mask


def formal_at(formals, i):
    """The formal parameter of argument i, where there is one."""
    is_variadic = bool(formals) and formals[-1].option == Option.Variadic
    return formals[min(i, len(formals) - 1)] if i < len(formals) or is_variadic else None


def masks(schema):
    formals = [formal_at(schema.inputs, i) for i in range(INPUTS)]
    formals += [formal_at(schema.outputs, i) for i in range(OUTPUTS)]
    variables, numbers = {}, []
    for formal in formals:
        is_one = formal and (formal.option != Option.Variadic or formal.is_homogeneous)
        numbers.append(variables.setdefault(formal.type_str, len(variables) + 1) if is_one else 0)
    return [element_mask(formal.types) if formal else ALL for formal in formals], numbers


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
            all_masks, numbers = masks(schema)
            most = min(schema.max_input, 1 << 30)
            listed = ", ".join(f"{m:#x}u" for m in all_masks)
            same = ", ".join(map(str, numbers))
            head = f'"{name}", {since}, {most}, {schema.min_output}, "{attrs}"'
            yield f"    {{{head}, {{{listed}}}, {{{same}}}}},"


def ir_versions():
    for opset in range(OLDEST, NEWEST + 1):
        yield f"    {{{opset}, {helper.OP_SET_ID_VERSION_MAP[('ai.onnx', opset)]}}},"


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("// Written by opset_rows.py.\nconstexpr OpsetRow kOpsetRows[] = {\n")
    out.write("\n".join(rows()) + "\n};\nconstexpr IrRow kIrRows[] = {\n")
    out.write("\n".join(ir_versions()) + "\n};\n")
