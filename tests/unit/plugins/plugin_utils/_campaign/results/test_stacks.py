# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How drives are attached, from the layers of a ``stack.json``."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import TRANSPORTS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import ATTACHMENTS, attachment_of, serial_of

VOLUME = {"layer": "controller", "raid_level": "0", "drive_serials": ["S1"]}
UNMATCHED = {"layer": "controller", "controller": "MODEL", "driver": "megaraid_sas"}
PASSED = {"layer": "drive", "drive": "enabled"}


def drive(transport, *caches, serial="S9"):
    return {"transport": transport, "serial": serial, "caches": list(caches)}


@pytest.mark.parametrize(
    ("layer", "attachment", "serial"),
    [
        (drive("sata", PASSED), "SATA", "S9"),
        (drive("nvme"), "NVMe", "S9"),
        (drive("aoe"), "AoE", "S9"),
        (drive("raid", PASSED), "JBOD", "S9"),
        (drive("raid", VOLUME), "RAID volume", "S1"),
        (drive("sas", VOLUME), "RAID volume", "S1"),
        (drive("raid", {**VOLUME, "drive_serials": ["S1", "S2"]}), "RAID volume", None),
        (drive("raid", {**VOLUME, "drive_serials": [None]}), "RAID volume", None),
        (drive("raid", {**VOLUME, "drive_serials": 7}), "RAID volume", None),
        (drive("raid", UNMATCHED), "unknown", None),
        (drive("raid"), "unknown", None),
        (drive("unknown"), "unknown", None),
        (drive(["sata"], "caches"), "unknown", None),
        ({}, "unknown", None),
    ],
)
def test_attachment_and_serial_number(layer, attachment, serial):
    assert (attachment_of([layer]), serial_of([layer])) == (attachment, serial)


def test_several_drives_have_no_serial_number():
    both = [drive("sata"), drive("nvme"), drive("sata")]
    assert (attachment_of(both), serial_of(both)) == ("NVMe, SATA", None)
    assert (attachment_of([]), serial_of([])) == (None, None)


def test_every_transport_is_known():
    assert ATTACHMENTS.keys() == set(TRANSPORTS) - {"raid", "unknown"}
