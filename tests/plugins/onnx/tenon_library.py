# SPDX-License-Identifier: Apache-2.0
"""libtenon through ctypes, as far as these tests need it: load and save."""

import ctypes
import os
import re


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_uint64)]


WRITE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


class Sink(ctypes.Structure):
    _fields_ = [("ctx", ctypes.c_void_p), ("write", WRITE)]


class TenonError(Exception):
    pass


def text(value):
    data = str(value).encode()
    return Text(data, len(data))


class Tenon:
    def __init__(self):
        self._lib = ctypes.CDLL(os.environ["TENON_LIBRARY"])
        for name in ("tenon_open", "tenon_load", "tenon_save", "tenon_status_text"):
            getattr(self._lib, name).restype = ctypes.c_void_p
        self._session = ctypes.c_void_p()
        self._check(self._lib.tenon_open(text("{}"), ctypes.byref(self._session)))

    def _check(self, status):
        if not status:
            return
        parts = []

        def write(_, data, size):
            parts.append(ctypes.string_at(data, size))

        sink = Sink(None, WRITE(write))
        self._lib.tenon_status_text(ctypes.c_void_p(status), ctypes.byref(sink))
        self._lib.tenon_status_release(ctypes.c_void_p(status))
        message = b"".join(parts).decode()
        raise TenonError(re.sub(r" \((component|role|function) [^)]*\)", "", message))

    def load(self, path):
        """A graph handle; graphs live until the process ends, which is fine in a test."""
        graph = ctypes.c_void_p()
        self._check(
            self._lib.tenon_load(self._session, text(path), text(""), None, ctypes.byref(graph))
        )
        return graph

    def save(self, graph, path, options=""):
        self._check(self._lib.tenon_save(self._session, graph, text(path), text(options), None))

    def convert(self, source, target, options=""):
        self.save(self.load(source), target, options)
