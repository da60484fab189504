# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused of the lists of a host, in words that name the variable of the user."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._host import request

EMPTY = {name: option.get("default") for name, option in request.argument_spec().items()}


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            {"drives": [{"device": "/dev/sda", "write_cache": "off"}]},
            "drives (variable drive_write_cache_drives): value of write_cache must be one of: enabled, disabled, got: off.",
        ),
        (
            {"queues": [{"device": "/dev/sda", "schedular": "none"}]},
            "queues (variable block_queue_devices): there is no key schedular: did you mean scheduler?",
        ),
        (
            {"caches": [{"type": "lvm_cache", "name": "a", "origin": "vg/a", "mode": "fast"}]},
            "caches of type lvm_cache (variable block_cache_caches): value of mode must be one of:",
        ),
        ({"controllers": [{"volumes": [{"id": 0, "write": "WB"}]}]}, "controllers (variable raid_cache_controllers): volumes: value of write must be one of:"),
        (
            {"controllers": [{"volumes": {"id": 0}}]},
            "controllers: volumes must be a list of dictionaries: for example volumes: [{id: 0, write: writethrough}].",
        ),
        ({"queues": [{"scheduler": "none"}]}, "queues (variable block_queue_devices): set one of device, match."),
        ({"queues": [{"device": "/dev/x", "match": {}}]}, "queues (variable block_queue_devices): set only one of device and match."),
        ({"network": {"links": [{"purpose": "nfs"}]}}, "network: storage_network_links: value of purpose must be one of:"),
        (
            {"network": {"aoe_initiator": "max_sectors"}},
            "network: storage_network_aoe_options must be a dictionary, not 'max_sectors': for example storage_network_aoe_options: {",
        ),
    ],
)
def test_a_wrong_entry_names_the_variable(lists, message):
    with pytest.raises(BadInput) as failure:
        request.read_request({**EMPTY, **lists})
    assert failure.value.message.startswith(message)
    assert "found in" not in failure.value.message


@pytest.mark.parametrize("value", ["yes", ["/dev/sda"], {"device": "/dev/sda"}, 5])
def test_a_list_that_is_none_of_dictionaries_is_named(value):
    example = "[{device: /dev/disk/by-id/ata-SERIAL, write_cache: disabled}]"
    sentence = f"drives (variable drive_write_cache_drives) must be a list of dictionaries: for example drive_write_cache_drives: {example}."
    assert request.wrong_list({"drives": value}) == sentence


def test_examples_of_the_lists_are_accepted():
    examples = {name: [yaml.safe_load(text)] for name, text in request._EXAMPLES.items()}
    assert set(examples) == set(request.VARIABLES)
    request.read_request({**EMPTY, **examples})


@pytest.mark.parametrize(
    ("value", "sentence"), [("maybe", "block_queue_exclusive must be true or false, not 'maybe': for example block_queue_exclusive: true."), ("yes", "")]
)
def test_text_that_is_no_boolean_is_named_with_its_variable(value, sentence):
    assert request.wrong_list({"queues_exclusive": value}) == sentence


def test_lists_of_dictionaries_and_what_is_not_given_are_right():
    assert request.wrong_list({"drives": [{"device": "/dev/sda"}], "caches": [], "queues": None}) == ""
