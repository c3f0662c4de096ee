# SPDX-License-Identifier: Apache-2.0
"""Reads the ABI headers with pycparser. The compiler's preprocessor expands the macros."""

import re
import subprocess
from pathlib import Path

from comments import Comments
from model import Abi, Constant, Field, Function, Header, Param, Struct
from pycparser import c_ast, c_generator, c_parser

# TN_NULLABLE as the parser sees it: a qualifier of pointers that the ABI has no use for.
NULLABLE = "restrict"

STANDINS = Path(__file__).parent / "standins"
SIZES = {
    "char": 1,
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "float": 4,
    "double": 8,
    # Rule R1 forbids these; they have a size here so that it can say so.
    "_Bool": 1,
    "short": 2,
    "int": 4,
    "unsigned int": 4,
    "unsigned": 4,
    "long": 8,
    "unsigned long": 8,
    "size_t": 8,
    "long double": 16,
}
DEFINE = re.compile(r"^#define (\w+)[ \t]+(?!\\)(\S.*)$", re.MULTILINE)
NOT_CONSTANTS = {"TN_CALL", "TN_EXPORT", "TENON_API"}


class HeaderError(Exception):
    """A header that cannot be read as C, with file and line."""


def read(include: Path, compiler: str = "cc") -> Abi:
    paths = sorted((include / "tenon").rglob("*.h"))
    texts = {str(path.relative_to(include)): path.read_text() for path in paths}
    names = {header: list(_defines(text)) for header, text in texts.items()}
    source = "".join(f'#include "{header}"\n' for header in texts)
    source += "".join(f'@"{name}" {name}\n' for found in names.values() for name in found)
    expanded = _preprocess(source, include, compiler)
    values = dict(re.findall(r'^@"(\w+)" (.*)$', expanded, re.MULTILINE))
    code = re.sub(r"^@.*$", "", expanded, flags=re.MULTILINE)
    try:
        tree = c_parser.CParser().parse(code)
    except Exception as error:  # pycparser raises a type of its own that moved between versions
        raise HeaderError(str(error)) from error
    nullable = _Nullable()
    nullable.visit(tree)
    reader = _Reader(include, texts, nullable.found)
    for node in tree.ext:
        reader.declaration(node)
    for header in texts:
        comments = reader.comments[header]
        for name, line in _defines(texts[header]).items():
            value = _value(values.get(name, ""))
            if value is not None:
                reader.headers[header].constants.append(
                    Constant(name, header, value, _define_doc(comments, line))
                )
    return Abi(list(reader.headers.values()), "\n".join(reader.plain) + "\n")


def _define_doc(comments: Comments, line: int) -> str:
    return next((c.text for c in comments.found if c.first == line and not c.alone), "")


def _defines(text: str) -> dict[str, int]:
    return {
        match.group(1): text.count("\n", 0, match.start()) + 1
        for match in DEFINE.finditer(text)
        if match.group(1) not in NOT_CONSTANTS
    }


def _value(expression: str) -> int | None:
    """An integer constant expression as C means it, or None for anything else."""
    expression = re.sub(r"\(u?int(?:8|16|32|64)_t\)", "", expression)
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]*\b", r"\1", expression)
    if not re.fullmatch(r"[0-9a-fA-Fx()|<>+\-*& ]+", expression):
        return None
    try:
        return int(eval(expression, {"__builtins__": {}}))  # digits and operators only, see above
    except SyntaxError:
        return None


def _preprocess(source: str, include: Path, compiler: str) -> str:
    command = [
        compiler,
        "-E",
        "-x",
        "c",
        "-std=c11",
        "-nostdinc",
        "-D__attribute__(x)=",
        f"-DTN_NULLABLE={NULLABLE}",
        "-I",
        str(STANDINS),
        "-I",
        str(include),
        "-",
    ]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode != 0:
        raise HeaderError(done.stderr.strip())
    return done.stdout


class _Nullable(c_ast.NodeVisitor):
    """Takes the qualifier out of the tree, so that what is printed is plain C."""

    def __init__(self) -> None:
        self.found: set[int] = set()

    def visit_PtrDecl(self, node: c_ast.PtrDecl) -> None:
        if NULLABLE in node.quals:
            node.quals.remove(NULLABLE)
            self.found.add(id(node))
        self.generic_visit(node)


class _Reader:
    def __init__(self, include: Path, texts: dict[str, str], nullable: set[int]):
        self.include = include
        self.nullable = nullable
        self.comments = {header: Comments(text) for header, text in texts.items()}
        self.headers = {
            header: Header(header, self.comments[header].opening(), text)
            for header, text in texts.items()
        }
        self.structs: dict[str, Struct] = {}
        self.aliases: dict[str, str] = {}
        self.plain: list[str] = []
        self.c = c_generator.CGenerator()

    def declaration(self, node: c_ast.Node) -> None:
        path = Path(node.coord.file)
        if not path.is_relative_to(self.include):
            return
        header = str(path.relative_to(self.include))
        into = self.headers[header]
        self.plain.append(self.c.visit(node) + ";")
        if isinstance(node, c_ast.Typedef):
            self._typedef(node, into)
        elif isinstance(node.type, c_ast.FuncDecl):
            into.functions.append(self._function(node.name, node.type, header, node.coord.line))
        elif isinstance(node.type, (c_ast.Struct, c_ast.Union, c_ast.Enum)) and node.type.name:
            if isinstance(node.type, c_ast.Enum) or node.type.decls:
                raise HeaderError(
                    f"{header}:{node.coord.line}: expected `typedef struct x {{...}} x;`"
                )
        else:
            raise HeaderError(f"{header}:{node.coord.line}: expected a type or a function")

    def _typedef(self, node: c_ast.Typedef, into: Header) -> None:
        kind = node.type.type if isinstance(node.type, c_ast.TypeDecl) else None
        if isinstance(kind, c_ast.Struct) and kind.decls is None:
            into.opaque.append(node.name)
        elif isinstance(kind, c_ast.Struct):
            struct = self._struct(node.name, kind, into.name)
            into.structs.append(struct)
            self.structs[struct.name] = struct
        else:
            self.aliases[node.name] = into.aliases[node.name] = self._base(node.type)

    def _struct(self, name: str, node: c_ast.Struct, header: str) -> Struct:
        comments = self.comments[header]
        line = node.coord.line
        behind = comments.of(line)
        struct = Struct(
            name,
            header,
            line,
            bool(re.search(r"\bFROZEN\b", behind)),
            re.sub(r"\s*\bFROZEN\b[:,]?\s*", " ", behind).strip(),
        )
        end = 0
        for decl in node.decls:
            size, align = self._layout(decl.type)
            offset = -(-end // align) * align
            struct.fields.append(self._field(decl, header, offset, size))
            end = offset + size
            struct.align = max(struct.align, align)
        struct.size = -(-end // struct.align) * struct.align
        return struct

    def _field(self, decl: c_ast.Decl, header: str, offset: int, size: int) -> Field:
        line = decl.coord.line
        pointee = self._pointee(decl.type)
        function = None
        if isinstance(pointee, c_ast.FuncDecl):
            function = self._function(decl.name, pointee, header, line)
        return Field(
            decl.name,
            self.c.visit(decl),
            self._base(decl.type),
            self._pointers(decl.type),
            offset,
            size,
            line,
            self.comments[header].of(line),
            function,
            decl.bitsize is not None,
            id(decl.type) in self.nullable,
        )

    def _function(self, name: str, node: c_ast.FuncDecl, header: str, line: int) -> Function:
        params = [
            self._param(param, header)
            for param in (node.args.params if node.args else [])
            if not isinstance(param, c_ast.EllipsisParam)
        ]
        if len(params) == 1 and params[0].base == "void" and params[0].pointers == 0:
            params = []
        variadic = bool(node.args) and any(
            isinstance(p, c_ast.EllipsisParam) for p in node.args.params
        )
        result = Param("", self._text(node.type), self._base(node.type), self._pointers(node.type))
        comments = self.comments[header]
        return Function(
            name,
            result,
            params,
            comments.of(line),
            comments.tags(line),
            line,
            variadic,
            comments.errors(line),
            comments.around(line),
        )

    def _param(self, node: c_ast.Node, header: str) -> Param:
        pointee = self._pointee(node.type)
        callback = None
        if isinstance(pointee, c_ast.FuncDecl):
            callback = self._function(node.name or "", pointee, header, node.coord.line)
        return Param(
            node.name or "",
            self._text(node.type),
            self._base(node.type),
            self._pointers(node.type),
            callback,
            id(node.type) in self.nullable,
            id(pointee) in self.nullable,
            self._is_const(node.type),
            isinstance(pointee, c_ast.PtrDecl) and "const" in pointee.quals,
        )

    def _is_const(self, node: c_ast.Node) -> bool:
        while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            node = node.type
        return isinstance(node, c_ast.TypeDecl) and "const" in node.quals

    def _text(self, node: c_ast.Node) -> str:
        return self.c.visit(c_ast.Typename(None, [], None, _nameless(node)))

    def _pointee(self, node: c_ast.Node) -> c_ast.Node | None:
        return node.type if isinstance(node, c_ast.PtrDecl) else None

    def _pointers(self, node: c_ast.Node) -> int:
        count = 0
        while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            count += isinstance(node, c_ast.PtrDecl)
            node = node.type
        return count

    def _base(self, node: c_ast.Node) -> str:
        while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl, c_ast.TypeDecl)):
            node = node.type
        if isinstance(node, c_ast.FuncDecl):
            return "function"
        if isinstance(node, c_ast.IdentifierType):
            return " ".join(node.names)
        return {c_ast.Union: "union", c_ast.Enum: "enum"}.get(type(node)) or node.name

    def _layout(self, node: c_ast.Node) -> tuple[int, int]:
        """Size and alignment where pointers have 64 bits; the compiler confirms them in a test."""
        if isinstance(node, c_ast.PtrDecl):
            return 8, 8
        if isinstance(node, c_ast.ArrayDecl):
            size, align = self._layout(node.type)
            return size * int(node.dim.value), align
        if isinstance(node.type, (c_ast.Union, c_ast.Struct)) and node.type.decls:
            parts = [self._layout(decl.type) for decl in node.type.decls]
            return max(size for size, _ in parts), max(align for _, align in parts)
        base = self._base(node)
        base = self.aliases.get(base, base)
        if base in self.structs:
            return self.structs[base].size, self.structs[base].align
        size = SIZES.get(base, 4)
        return size, size


def _nameless(node: c_ast.Node) -> c_ast.Node:
    if isinstance(node, c_ast.TypeDecl):
        return c_ast.TypeDecl(None, node.quals, None, node.type)
    if isinstance(node, c_ast.PtrDecl):
        return c_ast.PtrDecl(node.quals, _nameless(node.type))
    if isinstance(node, c_ast.ArrayDecl):
        return c_ast.ArrayDecl(_nameless(node.type), node.dim, node.dim_quals)
    return c_ast.FuncDecl(node.args, _nameless(node.type))
