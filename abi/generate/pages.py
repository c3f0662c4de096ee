# SPDX-License-Identifier: Apache-2.0
"""Reference pages in Markdown: one a header, and an index."""

import re

from comments import TAG
from model import Abi, Function, Header, Struct


def pages(abi: Abi) -> dict[str, str]:
    """File name to text."""
    made = {page_name(header): _page(header) for header in abi.headers}
    rows = [
        f"| [`{header.name}`]({page_name(header)}) | {_first_sentence(header.doc)} |"
        for header in abi.headers
    ]
    made["index.md"] = "\n".join(
        ["# The ABI, header by header", "", "| header | what it is |", "|---|---|", *rows, ""]
    )
    return made


def page_name(header: Header) -> str:
    return header.name.removeprefix("tenon/").replace("/", "_").removesuffix(".h") + ".md"


def _page(header: Header) -> str:
    parts = [f"# {header.name}", "", header.doc, ""]
    for function in header.functions:
        parts += _function(function)
    for struct in header.structs:
        parts += _struct(struct)
    if header.constants:
        parts += ["## Constants", "", "| name | value | meaning |", "|---|---|---|"]
        parts += [f"| `{c.name}` | {c.value} | {_cell(c.doc)} |" for c in header.constants] + [""]
    return "\n".join(parts)


def _struct(struct: Struct) -> list[str]:
    life = "frozen" if struct.frozen else "grows at the end only"
    parts = [f"## {struct.name}", "", f"{struct.size} bytes, {life}. {struct.doc}".strip(), ""]
    data = [field for field in struct.fields if not field.function]
    if data:
        parts += ["| offset | field | meaning |", "|---|---|---|"]
        parts += [
            f"| {field.offset} | `{_c(' '.join(field.declaration.split()))}` | {_cell(field.doc)} |"
            for field in data
        ] + [""]
    for field in struct.fields:
        if field.function:
            parts += _function(field.function)
    return parts


def _function(function: Function) -> list[str]:
    params = ", ".join(
        _c(param.type) if param.callback else f"{_c(param.type)} {param.name}".strip()
        for param in function.params
    )
    threads = " ".join(f"[{tag}]" for tag in function.tags)
    doc = " ".join(TAG.sub("", function.doc).split())
    return [
        f"### {function.name}",
        "",
        "```c",
        f"{_c(function.result.type)} {function.name}({params or 'void'})",
        "```",
        "",
        f"Threads: {threads}. {doc}".strip(),
        "",
    ]


def _c(text: str) -> str:
    """Stars beside the type, as the headers have them."""
    return re.sub(r" ?\*(?=\w)", "* ", re.sub(r" \*(?!\w)", "*", text))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _first_sentence(text: str) -> str:
    return _cell(text.partition(". ")[0].rstrip("."))
