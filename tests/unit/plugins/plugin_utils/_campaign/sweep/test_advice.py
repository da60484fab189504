# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the field, and where it applies."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.recommend import advice_on

SSD = "INTEL SSDSC2BB080G4"
THROUGH, BACK = {"id": "0", "write": "writethrough"}, {"id": "0", "write": "writeback"}


def controller(volume, **more):
    return {"raid_cache_controllers": [{"serial": "S1", "volumes": [volume], **more}]}


@pytest.mark.parametrize(
    ("variables", "applies"),
    [
        (controller({**THROUGH, "drive_cache": "enabled"}), True),
        (controller(THROUGH, drives=[{"address": "all", "write_cache": "enabled"}]), True),
        (controller(THROUGH, drive_cache={"configured": "enabled"}), True),
        (controller({**THROUGH, "drive_cache": "disabled"}), False),
        (controller({**BACK, "drive_cache": "enabled"}), False),
        (controller(THROUGH, drive_cache={"jbod": "enabled"}), False),
        ({"raid_cache_controllers": None, "drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "enabled"}]}, False),
    ],
)
def test_drive_cache_behind_a_controller_that_writes_through(variables, applies):
    found = advice_on("v", {"v": variables, "other": {}}, ["ST4000NM0035"], {})
    assert found == (
        [
            "v enables the caches of drives behind a controller that writes through. Nothing reports whether such a controller passes flushes on: "
            "test it with the playbook power_loss, or disable these caches."
        ]
        if applies
        else []
    )


@pytest.mark.parametrize(
    ("swept", "applies"),
    [
        ({"v": {}}, True),
        ({"v": {"drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "enabled"}]}}, True),
        ({"v": {}, "off": {"drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "disabled"}]}}, False),
        ({"v": {}, "off": controller({**BACK, "drive_cache": "disabled"})}, False),
        ({"v": {}, "off": controller(BACK, drive_cache={"all": "disabled"})}, False),
    ],
)
def test_drives_with_capacitors_of_which_no_variant_disables_the_cache(swept, applies):
    found = advice_on("v", swept, [SSD, "ST4000NM0035"], {})
    assert bool(found) == applies
    assert not applies or found[0].startswith(
        f"The vendor documents power-loss protection for {SSD}: such SSDs are usually faster with their write cache disabled"
    )
    assert advice_on("v", swept, ["ST4000NM0035", ""], {}) == []


def test_caches_that_were_disabled_before_and_in_all_variants_are_not_said_to_be_unmeasured():
    before = {"drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "disabled"}]}
    assert advice_on("v", {"baseline": {}, "v": {"block_cache_caches": []}}, [SSD], before) == []
