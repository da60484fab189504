# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a host has in place of a value of its journal or its description, a sweep ends with a sentence, or goes on; it never breaks."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.cachefleet.storage.plugins.action import sweep
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.journal import checked
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CACHES, CONTROLLERS, DRIVES, LINKS, QUEUES
from ansible_collections.cachefleet.storage.tests.unit.plugins.action.test_sweep_action import DISK, MEASUREMENT, Campaign

ODD = (None, 7, "text", [], {}, ["text"], [{}])
ENTRIES = {
    DRIVES: [{"device": DISK, "write_cache": "enabled"}],
    QUEUES: [{"device": DISK, "scheduler": "none", "persistent": False}],
    LINKS: [{"interface": "eth1", "mtu": 9000}],
    CACHES: [
        {
            "name": "c",
            "type": "lvm_cache",
            "origin": "vg0/images",
            "cache_devices": ["/dev/sdb"],
            "mode": "writeback",
            "settings": {"migration_threshold": 2048},
        }
    ],
    CONTROLLERS: [
        {
            "provider": "arcconf",
            "id": "1",
            "serial": "S1",
            "volumes": [{"name": "v", "write": "writeback", "maxcache": {"read": True, "write": "disabled"}}],
            "drives": [{"address": "0,5", "write_cache": "disabled"}],
            "maxcache": {"pool_drives": ["0,6"]},
        }
    ],
}
DESCRIPTION = {
    "variables": [
        {"name": name, "entries": [{"values": one, "notes": ["n"]} for one in ones], "value": None, "notes": ["n"]} for name, ones in ENTRIES.items()
    ],
    "controllers": [{"provider": "arcconf", "id": "1", "serial": "S1", "model": "M", "volumes": [{"id": "0", "name": "v", "wwn": "w"}]}],
}
JOURNAL = {"campaign": "night", "host": "node1", "created": "2026-11-25", "description": DESCRIPTION, "restore": ENTRIES, "schema": 1, "machine_id": "aaaa"}
FOUND = {"journal": JOURNAL, "description": {}, "paths": {DISK: "/dev/sda", "/dev/sdb": "/dev/sdb"}, "machine_id": "aaaa"}
AXES = {
    "drive": {"off": {DRIVES: [{"device": DISK, "write_cache": "disabled"}]}},
    "queue": {"deadline": {QUEUES: [{"device": DISK, "scheduler": "mq-deadline"}]}},
    "mtu": {"small": {LINKS: [{"interface": "eth1", "mtu": 1500}]}},
    "cache": {"through": {CACHES: [{"name": "c", "mode": "writethrough", "settings": {"migration_threshold": 4096}}]}},
    "raid": {
        "through": {
            CONTROLLERS: [
                {
                    "id": 1,
                    "volumes": [{"name": "v", "write": "writethrough", "maxcache": {"read": False}}],
                    "drives": [{"address": "0,5", "write_cache": "enabled"}],
                }
            ]
        }
    },
}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    # Each of many runs would import the modules of the layers.
    monkeypatch.setattr(sweep.ActionModule, "_require_precedence", lambda *_args: None)
    (tmp_path / "night").mkdir()
    return Campaign(tmp_path / "night")


def places(value, path=()):
    """Every place in plain data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from places(one, (*path, key))


def changed(value, path, odd):
    found = copy.deepcopy(value)
    if not path:
        return odd
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return found


def use(campaign, operation, found):
    if operation == "open":
        return campaign.open(axes=AXES, repeats=1, found=found, measurement=MEASUREMENT, check_mode=True)
    if operation == "restored":
        return campaign.run("restored", journal=found["journal"], found=DESCRIPTION)
    return campaign.run("recall", found=found)


@pytest.mark.parametrize("operation", ["open", "recall", "restored"])
def test_usual_journal_is_used(campaign, operation):
    assert "msg" not in use(campaign, operation, FOUND)


@pytest.mark.parametrize("operation", ["open", "recall", "restored"])
def test_odd_values_are_one_sentence_or_harmless(campaign, operation):
    refused = 0
    for path in places(FOUND):
        for odd in ODD:
            if len(path) < (2 if operation == "restored" else 1):
                # Ansible itself checks the kind of an option.
                continue
            result = use(campaign, operation, changed(FOUND, path, odd))
            assert "exception" not in result
            if result.get("failed"):
                refused += 1
                assert result["msg"].endswith(".") and "Traceback" not in result["msg"], (path, odd, result)
    assert refused > 100


@pytest.mark.parametrize(
    ("path", "odd", "message"),
    [
        (("journal",), ["x"], "journal is not a dictionary"),
        (("journal", "restore"), ["x"], "restore in the journal is not a dictionary"),
        (("journal", "restore", DRIVES), {"x": 1}, f"restore in the journal has {DRIVES}, which is not a list of a role"),
        (("journal", "restore", DRIVES, 0), "x", f"an entry of {DRIVES} is not a dictionary of the journal"),
        (("journal", "restore", CONTROLLERS, 0, "maxcache"), [], f"maxcache is not a dictionary in an entry of {CONTROLLERS}"),
        (("journal", "restore", CONTROLLERS, 0, "volumes", 0), 5, f"volumes is not a list of dictionaries in an entry of {CONTROLLERS}"),
        (("journal", "campaign"), 5, "campaign in the journal is not a text"),
        (("journal",), [], "journal is not a dictionary"),
        (("paths",), ["x"], "paths is not a dictionary"),
        (("machine_id",), 7, "machine_id is not a text"),
    ],
)
def test_message_names_what_is_wrong(campaign, path, odd, message):
    result = use(campaign, "open", changed(FOUND, path, odd))
    assert message in result.get("msg", "")


def test_absent_values_are_empty():
    assert checked("node1", {"journal": None, "machine_id": None}) == {"journal": {}, "description": {}, "paths": {}}
