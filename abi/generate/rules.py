# SPDX-License-Identifier: Apache-2.0
"""The rules of abi/README.md that every header must keep: one function a rule, one row in RULES."""

import re
from collections.abc import Iterator

from model import Abi, Field, Function, Header, Param, Struct
from read import SIZES
from tables import named, table_of

FIXED_WIDTH = {
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "float",
    "double",
}
STANDARD = "tenon/dlpack.h"  # somebody else's structs: their form is given
CODE = re.compile(r"\bTN_[A-Z_]+\b")
OWNER = re.compile(
    r"\b(borrow\w*|lives?|until|caller's|static|lent|retained|released?)\b",
    re.IGNORECASE,
)
UNITLESS = {"offset", "align", "alignment", "size", "timeout", "interval", "duration"}
UNIT = re.compile(r"\b(bytes?|\w+_ns|nanoseconds|elements)\b")
COUNT = re.compile(r"n|n_\w+|\w+_count|count")
Found = Iterator[tuple[str, int, str]]  # header, line, what is wrong


def _structs(abi: Abi, standard: bool = False) -> Iterator[Struct]:
    for header in abi.headers:
        if standard or header.name != STANDARD:
            yield from header.structs


def _functions(abi: Abi) -> Iterator[tuple[str, str, Function]]:
    """Header, name with its struct, function: callbacks among the parameters included."""
    for header in abi.headers:
        for function in header.functions:
            yield from _with_callbacks(header.name, function.name, function)
        for struct in header.structs:
            for field in struct.fields:
                if field.function:
                    yield from _with_callbacks(
                        header.name, f"{struct.name}.{field.name}", field.function
                    )


def _with_callbacks(header: str, name: str, function: Function):
    yield header, name, function
    for param in function.params:
        if param.callback:
            yield from _with_callbacks(header, f"{name}.{param.name}", param.callback)


def fixed_width_types(abi: Abi) -> Found:
    known = FIXED_WIDTH | abi.structs.keys() | {"union", "function", "void"}
    for header in abi.headers:
        known |= set(header.opaque) | header.aliases.keys()

    def wrong(base: str, pointers: int) -> bool:
        if base in ("void", "char"):
            return pointers == 0
        return base in SIZES and base not in FIXED_WIDTH or base == "enum"

    for struct in _structs(abi, standard=True):
        for field in struct.fields:
            if field.bits:
                yield struct.header, field.line, f"{struct.name}.{field.name}: got a bit-field"
            elif wrong(field.base, field.pointers):
                yield struct.header, field.line, f"{struct.name}.{field.name}: got {field.base}"
            elif field.base not in known | {"char"}:
                yield struct.header, field.line, f"{struct.name}.{field.name}: unknown {field.base}"
    for header, name, function in _functions(abi):
        void_result = function.result.base == "void" and function.result.pointers == 0
        for param in [*function.params, *([] if void_result else [function.result])]:
            if wrong(param.base, param.pointers):
                yield header, function.line, f"{name}: got {param.type}"
        if function.variadic:
            yield header, function.line, f"{name}: got a variable argument list"


def no_hidden_padding(abi: Abi) -> Found:
    for struct in _structs(abi, standard=True):
        end = 0
        for field in struct.fields:
            if field.offset != end:
                yield (
                    struct.header,
                    field.line,
                    f"{struct.name}: {field.offset - end} hidden bytes before {field.name}",
                )
            end = field.offset + field.size
        if struct.size != end:
            yield (
                struct.header,
                struct.line,
                f"{struct.name}: {struct.size - end} hidden bytes at the end",
            )
        elif struct.size % 8 and struct.header != STANDARD:
            yield (
                struct.header,
                struct.line,
                f"{struct.name}: {struct.size} bytes, no multiple of 8",
            )


def struct_size_first(abi: Abi) -> Found:
    structs = abi.structs
    for struct in _structs(abi):
        for index, field in enumerate(struct.fields):
            if field.name == "struct_size" and (index > 0 or field.base != "uint32_t"):
                yield (
                    struct.header,
                    field.line,
                    f"{struct.name}: struct_size must be the first field and a uint32_t",
                )
            inner = structs.get(field.base)
            if inner and inner.growable and field.pointers == 0:
                yield (
                    struct.header,
                    field.line,
                    f"{struct.name}.{field.name}: {inner.name} may grow, so hold a pointer to it",
                )


def arrays_of_pointers(abi: Abi) -> Found:
    structs = abi.structs

    def wrong(item: Field | Param, after: str) -> bool:
        inner = structs.get(item.base)
        return bool(inner and inner.growable and item.pointers == 1 and COUNT.fullmatch(after))

    def pairs(items):
        names = [item.name for item in items]
        return zip(items, [*names[1:], ""])

    for struct in _structs(abi):
        for field, after in pairs(struct.fields):
            if wrong(field, after):
                yield (
                    struct.header,
                    field.line,
                    f"{struct.name}.{field.name}: {field.base} may grow, "
                    "so its arrays are arrays of pointers",
                )
    for header, name, function in _functions(abi):
        for param, after in pairs(function.params):
            if wrong(param, after):
                yield (
                    header,
                    function.line,
                    f"{name}: {param.base} may grow, so its arrays are "
                    f"arrays of pointers (got {param.type} with {after})",
                )


def frozen_or_growable(abi: Abi) -> Found:
    for struct in _structs(abi):
        if struct.frozen == struct.growable:
            got = "both" if struct.frozen else "neither"
            yield (
                struct.header,
                struct.line,
                f"{struct.name}: expected either a FROZEN mark or a struct_size, got {got}",
            )


def function_form(abi: Abi) -> Found:
    for header in abi.headers:
        if header.name == STANDARD:
            continue
        for match in re.finditer(r"\(\s*\*\s*(\w+)\s*\)\s*\(", header.text):
            line = header.text.count("\n", 0, match.start()) + 1
            yield header.name, line, f"{match.group(1)}: expected result(TN_CALL* name)(...)"
        for match in re.finditer(r"^typedef[^;{]*\(\s*TN_CALL", header.text, re.MULTILINE):
            line = header.text.count("\n", 0, match.start()) + 1
            yield (
                header.name,
                line,
                "a function pointer is written where it is used, not as a typedef",
            )
        for name, line in _unexported(header):
            yield header.name, line, f"{name}: expected TENON_API or TN_EXPORT before the result"


def _unexported(header: Header) -> Iterator[tuple[str, int]]:
    lines = header.text.splitlines()
    for function in header.functions:
        start = function.line - 1
        while (
            start > 0
            and not re.search(r"[;{}/]\s*$", lines[start - 1])
            and lines[start - 1].strip()
        ):
            start -= 1
        if not re.search(r"\b(TENON_API|TN_EXPORT)\b", " ".join(lines[start : function.line])):
            yield function.name, function.line


def text_has_a_length(abi: Abi) -> Found:
    for struct in _structs(abi):
        names = {field.name for field in struct.fields}
        for field in struct.fields:
            is_text = field.base == "char" and field.pointers == 1
            if is_text and not names & {"len", f"{field.name}_len"} and "static" not in field.doc:
                yield (
                    struct.header,
                    field.line,
                    f"{struct.name}.{field.name}: text needs a length: "
                    "tn_str, or say that it is static",
                )
    for header, name, function in _functions(abi):
        for param in [*function.params, function.result]:
            if param.base == "char" and param.pointers == 1:
                yield header, function.line, f"{name}: text is a tn_str, got {param.type}"


def _owned(abi: Abi) -> Iterator[tuple[str, str, Function]]:
    """Header, name with its struct, function: without callbacks among parameters."""
    for header in abi.headers:
        for function in header.functions:
            yield header.name, function.name, function
        for struct in header.structs:
            for field in struct.fields:
                if field.function:
                    yield header.name, f"{struct.name}.{field.name}", field.function


def thread_tags(abi: Abi) -> Found:
    for header, name, function in _owned(abi):
        if not function.tags:
            yield (
                header,
                function.line,
                f"{name}: expected one of [pure] [serial] [any] [finish] beside it, above its "
                'paragraph, or after "All functions:" in the opening comment',
            )


def error_codes(abi: Abi) -> Found:
    for header, name, function in _owned(abi):
        if not function.gives_status:
            continue
        if not function.errors:
            yield (
                header,
                function.line,
                f'{name}: expected "Errors: " with the codes that it gives, or "Errors of these: " '
                'above its paragraph, or "Errors of all functions: " in the opening comment',
            )
        for code in CODE.findall(function.errors):
            if code not in abi.constants:
                yield header, function.line, f"{name}: there is no code {code}"


def ownership(abi: Abi) -> Found:
    """Of what comes out. Opaque objects are the caller's, as base.h says for all."""
    opaque = {name for header in abi.headers for name in header.opaque}
    for header, name, function in _owned(abi):
        if header == STANDARD:
            continue
        result = function.result
        text_out = result.base == "tn_str" or result.base != "tn_status" and result.pointers == 1
        handle_out = any(
            p.name.startswith("out")
            and p.pointers == 2
            and p.base not in opaque
            and not p.const_items
            for p in function.params
        )
        if (text_out or handle_out) and not OWNER.search(function.around):
            yield (
                header,
                function.line,
                f"{name}: expected who owns what comes out, and until when "
                '("borrowed, until release")',
            )


def units(abi: Abi) -> Found:
    for header, name, function in _owned(abi):
        for param in function.params:
            if param.name in UNITLESS and param.pointers == 0 and not UNIT.search(function.around):
                yield header, function.line, f"{name}: expected the unit of {param.name}"


def every_header_is_in_abi_h(abi: Abi) -> Found:
    texts = {header.name: header.text for header in abi.headers}
    top = [name for name in ("tenon/abi.h", "tenon/tenon.h") if name in texts]
    reached = set(top)
    while top:
        for name in re.findall(r'#include "(tenon/[^"]+)"', texts[top.pop()]):
            if name in texts and name not in reached:
                reached.add(name)
                top.append(name)
    for name in sorted(texts.keys() - reached):
        yield name, 1, "not reached from tenon/abi.h"


def one_table_a_header(abi: Abi) -> Found:
    """What the loader, the guards, the check suites and the templates are found by."""
    for header in abi.headers:
        folder = header.name.split("/")[1]
        kind = {"role": "Role", "host": "Service"}.get(folder)
        name = named(header)
        if kind and (not name or name[0] != kind):
            yield header.name, 1, f'expected {kind} "tenon..../1" in the opening comment'
        if kind and table_of(header) is None:
            yield header.name, 1, "expected one struct that begins with struct_size, revision"


RULES = [
    ("R1", "fixed-width types only", fixed_width_types),
    ("R2", "no hidden padding, sizes are multiples of 8", no_hidden_padding),
    ("R3", "struct_size first in what may grow", struct_size_first),
    ("R4", "arrays of growable structs are arrays of pointers", arrays_of_pointers),
    ("R5", "frozen or growable", frozen_or_growable),
    ("R6", "function pointers as result(TN_CALL* name)(...)", function_form),
    ("R7", "text has a length", text_has_a_length),
    ("T", "each function has a thread tag", thread_tags),
    ("E", "each function that gives a status says which codes", error_codes),
    ("O", "what comes out has an owner", ownership),
    ("U", "sizes and times have a unit", units),
    ("A", "abi.h has every header", every_header_is_in_abi_h),
    ("S", "a role or service header names it and has its table", one_table_a_header),
]


def violations(abi: Abi) -> list[str]:
    return [
        f"{header}:{line}: {rule} ({meaning}): {text}"
        for rule, meaning, check in RULES
        for header, line, text in check(abi)
    ]
