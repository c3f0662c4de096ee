# SPDX-License-Identifier: Apache-2.0
"""libtenon as the ABI's JSON describes it: one good argument for each type, to spoil one by one."""

import json
import os
from pathlib import Path

import cffi

BUILD = Path(os.environ.get("TENON_BUILD", "build/release"))
COUNTS = {"n", "count", "bytes", "len"}


def is_count(name: str) -> bool:
    return name in COUNTS or name.startswith("n_") or name.endswith("_bytes")


class Calls:
    """A session, a live object of each kind, and every function of the host by name."""

    def __init__(self, scratch: Path):
        self.ffi = cffi.FFI()
        self.ffi.cdef((BUILD / "share/tenon/tenon.cdef").read_text())
        self.abi = json.loads((BUILD / "share/tenon/tenon.json").read_text())
        self.c = self.ffi.dlopen(str(BUILD / "lib/libtenon.so"))
        self.keep: list = []
        self.file = scratch / "file.bin"
        self.file.write_bytes(bytes(64))
        self.scratch = scratch
        os.environ["XDG_STATE_HOME"] = str(scratch)  # a crash here is nobody else's
        self.session = self.out("tenon_session*", self.c.tenon_open, self.str(self.config()))
        self.host = self.c.tenon_host(self.session)
        self.services = {
            id: self.ffi.cast(f"const {struct}*", self.host.get_interface(self.host, self.str(id)))
            for id, struct in self.abi["services"].items()
        }
        self.objects = self._objects()

    def config(self) -> str:
        return json.dumps({"plugin_path": [str(BUILD / "lib/tenon/plugins")]})

    def str(self, text: str):
        data = self.new("char[]", text.encode())
        return self.new("tn_str*", {"data": data, "len": len(text.encode())})[0]

    def new(self, kind: str, value=None):
        made = self.ffi.new(kind, value)
        self.keep.append(made)
        return made

    def text(self, value) -> str:
        return bytes(self.ffi.buffer(value.data, value.len)).decode() if value.data else ""

    def message(self, status) -> str:
        return self.text(self.c.tenon_status_message(status))

    def out(self, kind: str, function, *given):
        place = self.new(f"{kind}*")
        failed = function(*given, place)
        assert failed == self.ffi.NULL, self.message(failed)
        return place[0]

    def service(self, name: str):
        return self.services[f"tenon.host.{name}/1"]

    def _objects(self) -> dict:
        ctx = self.host.ctx
        graph = self.out("tn_graph*", self.service("graph").create, ctx)
        edited = self.out("tn_graph*", self.service("graph").create, ctx)
        blob = self.service("blob")
        fields = dict(self.ffi.typeof("tn_schedule").fields)
        value = self.ffi.callback(fields["value"].type, lambda *given: self.ffi.NULL)
        self.keep.append(value)
        size = self.ffi.sizeof("tn_schedule")
        schedule = self.new("tn_schedule*", {"struct_size": size, "revision": 1, "value": value})
        lend = self.service("component").lend
        lent = (ctx, self.str("tenon.schedule/1"), self.str("x"), schedule, self.ffi.NULL)
        return {
            "tenon_session": self.session,
            "tn_ctx": ctx,
            "tn_status": self.service("status").make(
                ctx, 3, self.str("x"), self.str("x"), self.ffi.NULL
            ),
            "tn_tensor": self.out("tn_tensor*", self.service("tensor").alloc, ctx, self.tensor()),
            "tn_graph": graph,
            "tn_edit": self.out("tn_edit*", self.service("graph_edit").begin, edited),
            "tn_options": self.out("tn_options*", self.service("options").create, ctx),
            "tn_cancel": self.out("tn_cancel*", self.c.tenon_cancel_new, self.session),
            "tn_blob": self.out("tn_blob*", blob.open, ctx, self.str(str(self.file))),
            "tn_target": self.out(
                "tn_target*", blob.create, ctx, self.str(str(self.scratch / "made.bin"))
            ),
            "tn_plan": self.out(
                "tn_plan*", self.c.tenon_compile, self.session, graph, self.str("")
            ),
            "tn_component_ref": self.out("tn_component_ref*", lend, *lent, self.ffi.NULL),
        }

    def tensor(self):
        return self.new(
            "DLTensor*",
            {
                "data": self.new("float[4]"),
                "device": {"device_type": 1},
                "ndim": 1,
                "dtype": {"code": 2, "bits": 32, "lanes": 1},
                "shape": self.new("int64_t[1]", [4]),
                "strides": self.new("int64_t[1]", [1]),
            },
        )

    def functions(self):
        """(name, function, its description) of all that the host gives away."""
        for name, said in self.abi["functions"].items():
            if said["header"] == "tenon/tenon.h":
                yield name, getattr(self.c, name), said
        for id, struct in self.abi["services"].items():
            for field in self.abi["structs"][struct]["fields"]:
                if "function" in field:
                    table = self.services[id]
                    yield f"{id}: {field['name']}", getattr(table, field["name"]), field["function"]

    def good(self, kinds, params) -> list:
        """An argument of each type; what a call of all of them does is the host's affair."""
        return [
            self._good(kind, param, params[i - 1] if i else None)
            for i, (kind, param) in enumerate(zip(kinds, params))
        ]

    def _good(self, kind, param, before):
        base = kind.item.cname.replace("const ", "") if kind.kind == "pointer" else kind.cname
        name = base.replace("struct ", "")
        if kind.kind == "function" or "callback" in param:
            return self._callback(kind)
        if kind.kind == "primitive":
            return 1 if before and is_count(param["name"]) else 0
        if kind.cname == "tn_str":
            path = "path" in param["name"]
            return self.str(str(self.file) if path else "{}" if param["name"] == "options" else "x")
        if kind.kind != "pointer":
            return self.new(f"{kind.cname}*")[0]
        if name in self.objects:
            return self.objects[name]
        return self._pointer(kind, name)

    def _pointer(self, kind, name: str):
        if name == "DLTensor":
            return self.tensor()
        if kind.item.kind == "pointer":  # a list of one, or a place for an object
            inner = kind.item.item.cname.replace("const ", "")
            made = self.new(f"{inner}*[4]")
            if inner == "DLTensor":
                made[0] = self.tensor()
            return made
        if kind.item.kind == "void":
            return self.new("char[64]")
        made = self.new(f"{name}[4]")
        fields = {field["name"] for field in self.abi["structs"].get(name, {}).get("fields", [])}
        if "struct_size" in fields:
            made[0].struct_size = self.ffi.sizeof(name)
        for function in fields & {"write", "get"}:
            field = dict(self.ffi.typeof(name).fields)[function]
            setattr(made[0], function, self._callback(field.type))
        return made

    def _callback(self, kind):
        zero = None if kind.result.kind == "void" else 0
        zero = self.ffi.NULL if kind.result.kind == "pointer" else zero
        made = self.ffi.callback(kind, lambda *_: zero)
        self.keep.append(made)
        return made
