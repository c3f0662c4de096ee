# SPDX-License-Identifier: Apache-2.0
"""The handshake check passes a good plugin and names what a bad one does wrong."""

import subprocess

import ffi
import handshake
import pytest
from conftest import ABI, HERE
from read import read

GOOD = (HERE / "c99_plugin.c").read_text()


@pytest.fixture(scope="module")
def cdef():
    return ffi.cdef(read(ABI / "include"))


def violations(folder, cdef: str, old: str = "", new: str = "") -> list[str]:
    assert old in GOOD
    library = folder / "acme.so"
    strict = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-fvisibility=hidden",
        "-shared",
        "-fPIC",
    ]
    subprocess.run(
        ["cc", *strict, "-I", ABI / "include", "-x", "c", "-", "-o", library],
        input=GOOD.replace(old, new, 1) if old else GOOD,
        text=True,
        check=True,
    )
    return handshake.violations(cdef, library)


def test_a_plain_c99_plugin_shakes_hands(tmp_path, cdef):
    assert violations(tmp_path, cdef) == []


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("offer->oldest_major > TN_ABI_MAJOR ||", "0 &&", "accepted a newer major only"),
        ("offer->abi_minor < made.needs_minor", "0", "accepted an older minor"),
        ("offer->sanitizer != made.sanitizer", "0", "accepted other sanitizers"),
        ("offer->pointer_bits != made.pointer_bits", "0", "accepted another pointer width"),
        ('"needs a newer minor of the ABI: install a newer Tenon"', '"no"', "without a text"),
        ("memcpy(accept, &made, size)", "memcpy(accept, &made, sizeof made)", "wrote behind"),
        (
            "offer->oldest_major >",
            "offer->abi_major != TN_ABI_MAJOR || 0 >",
            "refused a newer host",
        ),
        ('"C99 test\\0"', '"Another\\0"', "does not say what the entry function says"),
        ('"TENON-PLUGIN-1\\0"', '"TENON-PLUGIN-9\\0"', "cannot be read"),
        ("made.plugin = &plugin;", "", "refused an offer of its own version"),
    ],
)
def test_what_a_plugin_does_wrong_is_named(tmp_path, cdef, old, new, words):
    found = violations(tmp_path, cdef, old, new)

    assert any(words in line for line in found), found
