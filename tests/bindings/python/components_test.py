# SPDX-License-Identifier: Apache-2.0
"""Components by name: completion, signatures and texts come from the plugins' schemas."""

import inspect
import re

import pytest
import tenon as tn

MODULES = {
    tn.data: "dataset",
    tn.loss: "loss",
    tn.optim: "optimizer",
    tn.schedule: "schedule",
}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_completion_knows_every_component_of_the_role(module):
    ids = [one["id"] for one in tn.components(MODULES[module])]

    assert {id.rpartition(".")[2] for id in ids} <= set(dir(module))
    assert "annotations" not in dir(module)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_help_has_every_option_of_every_component(module):
    for one in tn.components(MODULES[module]):
        made = getattr(module, one["id"].rpartition(".")[2])
        if made is vars(module).get(made.__name__):
            continue  # a function of the module's own, as tn.data.arrays is

        options = one["schema"].get("properties", {})
        assert [name for name in options if f"\n{name}:" not in made.__doc__] == []
        assert one["summary"] in made.__doc__


def test_a_signature_has_defaults_of_the_schema_behind_what_the_module_asks_for():
    signature = inspect.signature(tn.optim.adamw)

    assert list(signature.parameters)[0] == "lr"
    assert signature.parameters["beta1"].default == 0.9
    assert signature.parameters["lr"].default is inspect.Parameter.empty
    assert inspect.signature(tn.data.npz).parameters["path"].default is None


def test_a_required_option_has_no_default():
    schema = next(
        one["schema"] for one in tn.components("dataset") if one["id"] == "datasets.subset"
    )
    parameters = inspect.signature(tn.data.subset).parameters

    assert schema["required"]
    assert all(parameters[name].default is inspect.Parameter.empty for name in schema["required"])


def test_a_number_that_a_description_calls_the_default_is_the_schemas():
    stated = re.compile(r"default: [-\d./]+(, [-\d./]+)*$")
    options = [
        (one["id"], name, said)
        for one in tn.components()
        for name, said in one["schema"].get("properties", {}).items()
    ]

    assert len(options) > 500
    assert [one[:2] for one in options if stated.search(one[2].get("description", ""))] == []


def test_an_unknown_name_is_reported_with_the_place_and_the_nearest_one():
    with pytest.raises(tn.NotFound, match=r"^tn\.optim: .*got 'adm' \(did you mean 'adam'\?\)"):
        tn.optim.adm(lr=0.1)


def test_the_package_lists_its_public_names_alone():
    assert dir(tn) == sorted(tn.__all__)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "uint8", "int64"])
def test_element_types_are_equal_to_those_of_arrays_and_traced_values(name):
    dtype = getattr(tn, name)
    seen = []

    @tn.jit
    def f(x):
        y = x.astype(dtype)
        seen.append(y.dtype == dtype)
        return y

    assert f(tn.ones((2,))).dtype == dtype
    assert seen == [True]
