# SPDX-License-Identifier: Apache-2.0
"""What the ABI headers say, as data. Made by read.py; everything else here only looks at it."""

from dataclasses import dataclass, field


@dataclass
class Param:
    name: str  # "" where the header gives none
    type: str  # C, as "const DLTensor * const *"
    base: str  # the type without pointers and const: "DLTensor"
    pointers: int
    callback: "Function | None" = None  # a parameter that is a function pointer itself
    nullable: bool = False  # the pointer itself
    nullable_items: bool = False  # what a pointer to pointers points at
    const: bool = False  # what it points at, at the end of all stars
    const_items: bool = False  # the pointers that a pointer to pointers points at


@dataclass
class Function:
    name: str
    result: Param
    params: list[Param]
    doc: str = ""
    tags: tuple[str, ...] = ()
    line: int = 0
    variadic: bool = False
    errors: str = ""  # what its header says of the codes, as text
    around: str = ""  # all comments that are about it

    @property
    def gives_status(self) -> bool:
        return self.result.base == "tn_status" and not self.result.type.startswith("const")


@dataclass
class Field:
    name: str
    declaration: str  # C, as "uint64_t len" or "void (*destroy)(void *self)"
    base: str
    pointers: int
    offset: int
    size: int
    line: int
    doc: str = ""
    function: Function | None = None
    bits: bool = False
    nullable: bool = False


@dataclass
class Struct:
    name: str
    header: str  # "tenon/base.h"
    line: int
    frozen: bool
    doc: str
    fields: list[Field] = field(default_factory=list)
    size: int = 0
    align: int = 1

    @property
    def growable(self) -> bool:
        return bool(self.fields) and self.fields[0].name == "struct_size"


@dataclass
class Constant:
    name: str
    header: str
    value: int
    doc: str


@dataclass
class Header:
    name: str  # "tenon/base.h"
    doc: str
    text: str
    opaque: list[str] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)  # tn_node_id -> uint64_t
    structs: list[Struct] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)


@dataclass
class Abi:
    headers: list[Header]
    declarations: str  # every declaration as plain C, in order, without macros

    @property
    def structs(self) -> dict[str, Struct]:
        return {struct.name: struct for header in self.headers for struct in header.structs}

    @property
    def constants(self) -> dict[str, int]:
        return {
            constant.name: constant.value
            for header in self.headers
            for constant in header.constants
        }
