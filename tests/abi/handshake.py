# SPDX-License-Identifier: Apache-2.0
"""The handshake of a plugin file, checked through the generated FFI description alone.

usage: handshake.py TENON_CDEF FOLDER...   checks every plugin below; exit code 1 for a violation
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cffi

PLUGIN, COMPONENT = "TENON-PLUGIN-1", "TENON-COMPONENT-1"
N_TEXTS = {PLUGIN: 6, COMPONENT: 5}
TAIL = 64  # bytes behind what a plugin may write


class Handshake:
    def __init__(self, cdef: str, library: Path):
        self.ffi = cffi.FFI()
        self.ffi.cdef(cdef)
        self.path = library
        self.library = self.ffi.dlopen(str(library))
        self.major = self.library.TN_ABI_MAJOR
        self.minor = self.library.TN_ABI_MINOR
        self.keep = []

    def offer(self, extra: int = 0, **changed):
        size = self.ffi.sizeof("tn_offer")
        memory = self.ffi.new("char[]", b"\xab" * (size + extra))
        self.ffi.memmove(memory, b"\0" * size, size)
        offer = self.ffi.cast("tn_offer*", memory)
        offer.struct_size = size + extra
        offer.abi_major = offer.oldest_major = self.major
        offer.abi_minor = self.minor
        offer.pointer_bits = 8 * self.ffi.sizeof("void*")
        for text in ("host_name", "host_version"):
            data = self.ffi.new("char[]", b"test")
            self.keep.append(data)
            getattr(offer, text).data, getattr(offer, text).len = data, 4
        for name, value in changed.items():
            setattr(offer, name, value)
        self.keep.append(memory)
        return offer

    def call(self, offer, size: int | None = None):
        """The result, the answer, and the bytes behind it that nobody may touch."""
        size = size or self.ffi.sizeof("tn_accept")
        memory = self.ffi.new("char[]", b"\0" * size + b"\xcd" * (TAIL + 64))
        self.keep.append(memory)
        accept = self.ffi.cast("tn_accept*", memory)
        accept.struct_size = size
        result = self.library.tenon_plugin_entry(offer, accept)
        return result, accept, bytes(self.ffi.buffer(memory, size + TAIL))[size:]

    def text(self, value) -> str:
        return bytes(self.ffi.buffer(value.data, value.len)).decode() if value.len else ""

    def table(self) -> list[tuple[str, ...]]:
        """What the entry function reports, in the form of the description's records."""
        _, accept, _ = self.call(self.offer())
        plugin = accept.plugin
        names = ("id", "version", "name", "vendor", "license", "url")
        records = [(PLUGIN, *(self.text(getattr(plugin, name)) for name in names))]
        names = ("role", "id", "version", "summary", "options_schema")
        for index in range(plugin.component_count):
            component = plugin.components[index]
            records.append((COMPONENT, *(self.text(getattr(component, name)) for name in names)))
        return records


def description(library: Path) -> list[tuple[str, ...]]:
    """The records of the section that is read without running any code."""
    with tempfile.NamedTemporaryFile() as section:
        only = ["--output-target=binary", "--only-section=.tenon.plugin"]
        subprocess.run(["objcopy", *only, library, section.name], check=True)
        texts = Path(section.name).read_bytes().decode().split("\0")
    records, at = [], 0
    while at < len(texts):
        length = N_TEXTS.get(texts[at], 0)
        if length:
            records.append(tuple(texts[at : at + 1 + length]))
        elif texts[at]:
            raise ValueError(f"unknown record {texts[at]!r}")
        at += 1 + length
    return records


def refusals(shake: Handshake) -> list[str]:
    wrong_offers = {
        "a newer major only": {"abi_major": shake.major + 1, "oldest_major": shake.major + 1},
        "an older minor": {"abi_minor": 0},
        "other sanitizers": {"sanitizer": shake.library.TN_SAN_MEMORY},
        "another pointer width": {"pointer_bits": 32},
    }
    found = []
    for what, changed in wrong_offers.items():
        result, accept, _ = shake.call(shake.offer(**changed))
        if result == shake.library.TN_OK:
            found.append(f"accepted {what}")
        elif accept.refusal == shake.ffi.NULL or len(shake.ffi.string(accept.refusal)) < 10:
            found.append(f"refused {what} without a text that says why and what to do")
    return found


def violations(cdef: str, library: Path) -> list[str]:
    shake = Handshake(cdef, library)
    ok = shake.library.TN_OK
    result, accept, tail = shake.call(shake.offer())
    if result != ok or accept.plugin == shake.ffi.NULL or accept.abi_major != shake.major:
        return [f"{library.name}: refused an offer of its own version"]
    found = refusals(shake)
    if shake.call(shake.offer(abi_major=shake.major + 1, abi_minor=0))[0] != ok:
        found.append("refused a newer host that still speaks this major")
    if shake.call(shake.offer(extra=32))[0] != ok:
        found.append("refused an offer that is longer than it knows")
    short = shake.ffi.offsetof("tn_accept", "plugin")
    if shake.call(shake.offer(), short)[2] != b"\xcd" * TAIL or tail != b"\xcd" * TAIL:
        found.append("wrote behind the struct_size of the answer")
    if any(shake.call(shake.offer())[1].plugin != accept.plugin for _ in range(100)):
        found.append("gave another table when asked again")
    try:
        if sorted(description(library)) != sorted(shake.table()):
            found.append("the section .tenon.plugin does not say what the entry function says")
    except (ValueError, subprocess.CalledProcessError) as error:
        found.append(f"the section .tenon.plugin cannot be read: {error}")
    for record in shake.table():
        if record[0] == COMPONENT:
            json.loads(record[5] or "{}")
    return [f"{library.name}: {text}" for text in found]


def main(cdef: str, folders: list[str]) -> int:
    libraries = sorted(path for folder in folders for path in Path(folder).rglob("*.so"))
    found = [line for path in libraries for line in violations(Path(cdef).read_text(), path)]
    for line in found:
        print(line)
    print(f"{len(libraries)} plugins shook hands")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
