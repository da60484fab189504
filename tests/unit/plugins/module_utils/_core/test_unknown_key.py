# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of Ansible about keys that are not known."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import unknown_key, wrong_types

SPEC = {"drives": {"type": "list", "elements": "dict", "options": {"device": {"type": "str", "aliases": ["path"]}, "write_cache": {"type": "str"}}}}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"write_cahce": "x"}, "there is no key write_cahce: did you mean write_cache?"),
        ({"zzz": "x"}, "there is no key zzz: give one of device, write_cache."),
        ({"my key": "x"}, "there is no key my key: give one of device, write_cache."),
        ({"devise": "x", "write_cahce": "x"}, "there is no key devise: did you mean device? there is no key write_cahce: did you mean write_cache?"),
    ],
)
def test_unknown_key_is_a_sentence_with_what_was_meant(entry, sentence):
    (message,) = ArgumentSpecValidator(SPEC).validate({"drives": [entry]}).error_messages
    assert unknown_key(message) == sentence


def test_other_messages_are_not_about_keys():
    (message,) = ArgumentSpecValidator(SPEC).validate({"drives": 5}).error_messages[:1]
    assert unknown_key(message) is None


TYPES = {
    "links": {
        "type": "list",
        "elements": "dict",
        "options": {
            "interface": {"type": "str", "required": True},
            "mtu": {"type": "int"},
            "match": {"type": "dict", "options": {"model": {"type": "str"}}},
            "drives": {"type": "list", "elements": "dict", "options": {"address": {"required": True}}},
        },
    },
    "on": {"type": "bool"},
}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"links": [{}, {"interface": "eth1", "mtu": "9k"}]}, "links, entry 2 (eth1): mtu must be a whole number, not '9k': for example mtu: 9000"),
        ({"links": [{"match": "text"}]}, "links, entry 1: match must be a dictionary, not 'text': for example match: {model: ...}"),
        ({"links": [{"drives": "0,16"}]}, "links, entry 1: drives must be a list of dictionaries, not '0,16': for example drives: [{address: ...}]"),
        ({"links": [{"match": {"model": "x"}}, "eth1"]}, "links, entry 2 must be a dictionary, not 'eth1': for example links: [{interface: ...}]"),
        ({"on": "perhaps"}, "on must be true or false, not 'perhaps': for example on: true"),
        ({"on": "x" * 99}, "on must be true or false, not '" + "x" * 59 + "…: for example on: true"),
    ],
)  # fmt: skip
def test_value_of_another_type_is_named_with_its_place_and_an_example(values, sentence):
    assert ArgumentSpecValidator(TYPES).validate(values).error_messages
    assert list(wrong_types(TYPES, values)) == [sentence]


@pytest.mark.parametrize(
    "values", [{"links": [{"interface": 5, "mtu": "9000", "match": "model=x"}]}, {"on": "yes"}, {"links": None}, {"links": [{"interfacee": "x"}]}]
)
def test_values_that_ansible_converts_and_unknown_keys_are_no_wrong_types(values):
    assert list(wrong_types(TYPES, values)) == []
