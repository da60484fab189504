# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import fingerprint
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version

STACK = {
    "path": "/dev/vg0/lv",
    "verdict": "durable",
    "reason": "whatever",
    "layers": [
        {
            "name": "dm-3",
            "kind": "lvm",
            "queue": {"scheduler": "none", "nr_requests": 128},
            "below": ["sdb"],
            "caches": [{"layer": "block_cache", "mode": "writeback", "settings": {"migration_threshold": 2048}, "dirty": 4096, "counters": {"read_hits": 5}}],
        },
        {"name": "sdb", "kind": "disk", "firmware": "A1", "caches": [{"layer": "drive", "drive": "enabled", "kernel": "write back"}]},
    ],
}


def changed(where, value):
    other = copy.deepcopy(STACK)
    place = other
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    return fingerprint.stack_sha256(other)


@pytest.mark.parametrize(
    "where",
    [
        ("path",),
        ("reason",),
        ("verdict",),
        ("layers", 0, "name"),
        ("layers", 0, "below"),
        ("layers", 0, "caches", 0, "dirty"),
        ("layers", 0, "caches", 0, "counters"),
    ],
)
def test_volatile_values_do_not_change_the_stack_hash(where):
    assert changed(where, "another") == fingerprint.stack_sha256(STACK)


@pytest.mark.parametrize(
    "where",
    [
        ("layers", 0, "queue", "scheduler"),
        ("layers", 0, "caches", 0, "mode"),
        ("layers", 0, "caches", 0, "settings", "migration_threshold"),
        ("layers", 1, "firmware"),
        ("layers", 1, "caches", 0, "drive"),
        ("layers", 1, "caches", 0, "kernel"),
    ],
)
def test_settings_change_the_stack_hash(where):
    assert changed(where, "another") != fingerprint.stack_sha256(STACK)


def measurement(**values):
    target = {"kind": "device", "identity": "S-1", "path": "/dev/sdb", "size": 10, "used_size": None, **values.pop("target", {})}
    return fingerprint.measurement_sha256(
        *{"workload": "w", "target": target, "version": Version(3, 33, text="fio-3.33"), "stack": "s", "kind": None, **values}.values()
    )


def test_inputs_of_the_measurement_hash():
    same = measurement()
    assert measurement(target={"path": "/dev/sdc"}) == same, "the kernel gives names anew"
    others = [
        measurement(workload="x"),
        measurement(target={"identity": "S-2"}),
        measurement(target={"size": 11}),
        measurement(version=Version(3, 33, text="fio-3.33-dirty")),
        measurement(stack="t"),
        measurement(kind={"limit": 5}),
    ]
    assert same not in others and len(set(others)) == len(others)


def test_quick_fingerprint_detects_changes(tmp_path):
    folder = tmp_path / "sys/class/block/dm-0"
    (folder / "queue").mkdir(parents=True)
    (folder / "dm").mkdir()
    (folder / "dm/name").write_text("vg0-lv\n")
    (folder / "queue/scheduler").write_text("[none] bfq\n")
    (folder / "stat").write_text("1 2 3\n")
    tables = "vg0-lv: 0 8 linear 8:16 0\nother: 0 8 linear 8:32 0\n"

    def look(text=tables):
        return fingerprint.cheap_fingerprint(["dm-0", "gone"], tmp_path, text)

    before = look()
    (folder / "stat").write_text("9 9 9\n")
    assert look() == before == look(tables.replace("8:32", "8:48")), "counters and other people's devices do not count"
    assert look(tables.replace("8:16", "8:48")) != before
    (folder / "queue/scheduler").write_text("none [bfq]\n")
    assert look() != before
