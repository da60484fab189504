# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of Ansible about keys that are not known."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import unknown_key

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
