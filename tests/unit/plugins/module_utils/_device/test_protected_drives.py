# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Declarations of protected drives, and what vendors document."""

from __future__ import annotations

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import (
    PROTECTED_DRIVES_OPTION,
    checked_declarations,
    declaration,
    declares,
    documented_protection,
    fits,
    is_declared,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Drive


@pytest.mark.parametrize(
    ("text", "does"),
    [("*SSDSC2BB*", True), ("INTEL SSDSC2BB080G?", True), ("SSDSC2BB", False), ("INTEL SSDSC2BB080G4", False), ("*ssdsc2bb*", False), ("*SSDSC2BA*", False)],
)
def test_patterns_fit_models_and_other_texts_fit_nothing(text, does):
    assert fits(text, (None, "INTEL SSDSC2BB080G4 ")) is does


@pytest.mark.parametrize("text", ["*", "?*", "*SSD", "[A-Z]*"])
def test_a_pattern_of_nearly_every_drive_is_refused(text):
    with pytest.raises(BadInput, match="would declare nearly every drive"):
        checked_declarations(["INTEL SSDSC2BB080G4", text])


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_that_would_declare_drives_without_a_serial_number_is_refused(text):
    with pytest.raises(BadInput, match="An entry of the declared drives is empty"):
        checked_declarations(["INTEL SSDSC2BB080G4", text])


@pytest.mark.parametrize(
    ("model", "document"),
    [
        ("INTEL SSDSC2BB080G4", "Intel SSD DC S3500 Series Product Specification"),
        ("INTEL SSDSC2BA400G3", "Intel SSD DC S3700 Series Product Specification"),
        ("INTEL SSDSC2KG480G7", "Intel SSD DC S4500/S4600 Series Product Specification"),
        ("INTEL SSDSA2M080G2GC", None),
        ("INTEL SSDSC2KW256G8", None),
        ("Samsung SSD 870 EVO 1TB", None),
        ("", None),
        (None, None),
    ],
)
def test_documented_models(model, document):
    assert documented_protection(model) == document


def declared(*entries):
    """The option of a module, as texts."""
    validated = ArgumentSpecValidator(dict(PROTECTED_DRIVES_OPTION)).validate({"protected_drives": list(entries)})
    assert validated.error_messages == []
    return [declaration(one) for one in validated.validated_parameters["protected_drives"]]


@pytest.mark.parametrize(
    ("match", "does"),
    [
        ({"model": "intel ssdsc2*", "transport": "sata"}, True),
        ({"model": ["SAMSUNG*", "INTEL SSDSC2KB*"], "rotational": False}, True),
        ({"model": "INTEL SSDSC2*", "transport": "nvme"}, False),
        ({"model": "INTEL SSDSC2*", "size_max": "1k"}, False),
        ({"serial": "BTYF*"}, True),
        ({"wwn": "0x5000c500a1b2*"}, False),
    ],
)
def test_a_declaration_by_match_is_for_drives_of_the_host_and_behind_a_controller(match, does):
    texts = declared("unrelated", {"match": match})
    assert checked_declarations(texts) == texts == checked_declarations(["unrelated", {"match": match}])
    device = BlockDevice("sda", "/dev/sda", "8:0", size=1 << 30, transport="sata", model="INTEL SSDSC2KB960G8", serial="BTYF1", rotational=False)
    assert is_declared(Devices([device]), device, texts) is does
    drive = Drive("0,1", model="INTEL SSDSC2KB960G8", serial="BTYF1", interface="sata", media="ssd", size=1 << 30)
    assert declares(texts, drive.traits) is does
    # What the tool does not report matches nothing.
    unknown = Drive("0,1", model="INTEL SSDSC2KB960G8")
    assert declares(declared({"match": {"model": "INTEL*", "size_max": "9T"}}), unknown.traits) is False
    assert declares(declared({"match": {"model": "INTEL*"}}), unknown.traits) is True


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"match": {"transport": "sata"}}, "Entry 2 of the declared drives .storage_protected_drives. would declare nearly every drive"),
        ({"match": {"wwn": "0x5000c5*"}}, "would declare nearly every drive"),
        ({"match": {"model": "*SSD*"}}, "would declare nearly every drive"),
        ({"match": {"model": "INTEL*"}, "allow_data_loss": True}, "must be a text, or a dictionary with match alone"),
        ({"match": "INTEL*"}, "must be a text, or a dictionary with match alone"),
        ({"model": "INTEL*"}, "must be a text, or a dictionary with match alone"),
        ("match: INTEL*", "must be a text, or a dictionary with match alone"),
        ("match: [1]", "must be a text, or a dictionary with match alone"),
        ({"match": {"modell": "INTEL*"}}, "Entry 2 .*match: there is no key modell: did you mean model"),
    ],
)
def test_a_wrong_declaration_by_match_is_refused_with_its_number(entry, words):
    with pytest.raises(BadInput, match=words):
        checked_declarations(declared("INTEL SSDSC2BB080G4", entry))


def test_a_number_is_a_text_as_before():
    assert declared(12345, "X") == ["12345", "X"]
