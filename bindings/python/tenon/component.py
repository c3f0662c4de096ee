# SPDX-License-Identifier: Apache-2.0
"""Live components of plugins, and how they are found by name: what `tn.optim.adamw`,
`tn.loss.mse`, `tn.schedule.cosine` and `tn.data.npz` are. Nothing is listed by hand, so what
another plugin brings is there too.

`dir(tn.optim)` (and so completion) has the names, `help(tn.optim.adamw)` the options with their
defaults, both from the schemas that plugins state.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import json
import keyword
import sys
from collections.abc import Callable
from typing import Any

from . import _core
from .errors import NotFound
from .events import session
from .options import split_options


class Component:
    """A live component of a plugin, by role and id, made with options of its schema."""

    def __init__(self, role: str, id: str, /, **options: Any) -> None:
        full_role = role if role.startswith("tenon.") else f"tenon.{role}/1"
        self.role = full_role
        self.id = id
        self._options = options
        self._native = _core.Component(session(), full_role, id, *split_options(options))

    def __copy__(self) -> Component:
        """Another one over the same component, which never changes: a layer with parameters of its
        own."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Component:
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickled as its id and options; the other process has to have the plugin."""
        if "_options" not in self.__dict__:
            raise TypeError(f"{self!r} stands for Python objects: pickle these and make it again")
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        options = split_options(self._options)
        self._native = _core.Component(session(), self.role, self.id, *options)

    def __repr__(self) -> str:
        what = "" if type(self) is not Component else f" of role {self.role}"
        return f"<tenon.{type(self).__name__} {self.id}{what}>"


def listed(role: str) -> list[dict[str, Any]]:
    """The known components of a role, with the schemas of their options; runs no plugin code."""
    return json.loads(_core.components(session(), role))


def find(role: str, prefix: str, name: str, where: str | None = None) -> dict[str, Any]:
    """What is listed of the component that `name` stands for: its id, `prefix.name`, or the only
    one with that last word. where: what the error begins with, instead of the role's name."""
    known = {one["id"]: one for one in listed(role)}
    ends = [id for id in known if id.rpartition(".")[2] == name]
    for id in (name, f"{prefix}.{name}", *(ends if len(ends) == 1 else ())):
        if id in known:
            return known[id]
    names = ends or sorted(
        (id.removeprefix(prefix + ".") for id in known), key=lambda id: ("." in id, id)
    )
    near = difflib.get_close_matches(name, names, 1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    what = where or role.partition("/")[0].removeprefix("tenon.")
    raise NotFound(
        f"{what}: expected one of {', '.join(names) or '(no plugin was found)'}, got '{name}'{hint}"
    )


def full_id(role: str, prefix: str, name: str, where: str | None = None) -> str:
    """The id that `name` stands for, as `find` has it."""
    return find(role, prefix, name, where)["id"]


class Named:
    """The attributes of a module that makes components of one role.

    A module has `__getattr__ = made.get` and `__dir__ = made.names`. make: called with an id and
    what the user gave, with the parameters that options of the schema follow."""

    def __init__(self, module: str, role: str, prefix: str, make: Callable[..., Any]) -> None:
        self._module = module
        self._where = "tn." + module.rpartition(".")[2]
        self._role = role
        self._prefix = prefix
        self._make = make
        own = list(inspect.signature(make).parameters.values())[1:]  # behind the id
        self._own = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]

    def get(self, name: str) -> Callable[..., Any]:
        """The function that makes the component of this name. A name that no plugin has fails when
        the function is called."""
        if name.startswith("_"):
            raise AttributeError(name)

        def make(*args: Any, **options: Any) -> Any:
            return self._make(self._find(name)["id"], *args, **options)

        make.__name__ = make.__qualname__ = name
        make.__module__ = self._module
        try:
            one = self._find(name)
        except NotFound:
            return make  # the call says what there is
        make.__doc__ = _text(one)
        make.__signature__ = self._signature(one["schema"])  # type: ignore[attr-defined]
        return make

    def _find(self, name: str) -> dict[str, Any]:
        return find(self._role, self._prefix, name, self._where)

    def names(self) -> list[str]:
        """The module's own public names and the last words of all ids of the role."""
        own = sys.modules[self._module].__dict__.get("__all__", [])
        return sorted({*own, *(one["id"].rpartition(".")[2] for one in listed(self._role))})

    def _signature(self, schema: dict[str, Any]) -> inspect.Signature:
        taken = {each.name for each in self._own}
        required = schema.get("required", [])
        options = [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=said.get(
                    "default", inspect.Parameter.empty if option in required else None
                ),
            )
            for option, said in schema.get("properties", {}).items()
            if option not in taken and option.isidentifier() and not keyword.iskeyword(option)
        ]
        return inspect.Signature([*self._own, *options])


def _text(component: dict[str, Any]) -> str:
    """Summary and options of a component, as a docstring."""
    lines = [f"{component['summary']} (component {component['id']})."]
    required = component["schema"].get("required", [])
    for name, said in component["schema"].get("properties", {}).items():
        values = said.get("enum")
        is_one_of = f" one of {', '.join(map(str, values))};" if values else ""
        default = "required" if name in required else f"default {said.get('default', 'none')}"
        lines.append(f"{name}:{is_one_of} {said.get('description', 'an option')} ({default})")
    return "\n\n".join([lines[0], "\n".join(lines[1:])]) if len(lines) > 1 else lines[0]
