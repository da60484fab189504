# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stacks of tests/unit/data/stacks.yml as hosts: facts come from the functions that make them on real hosts."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import parse_arguments
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveCache
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CacheVolume,
    Controller,
    Drive,
    MaxCache,
    Policy,
    Protection,
    Volume,
    VolumeMaxCache,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import volume_finding
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import readers, zfs
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import LayerFacts, Proof, Stack

TABLE = yaml.safe_load((pathlib.Path(__file__).resolve().parents[1] / "data/stacks.yml").read_text())["stacks"]

#: What the word for a disk in the table means: what the drive says, what the kernel believes.
DRIVES = {
    "on": ("enabled", "write back"),
    "off": ("disabled", "write through"),
    "none": ("absent", "write through"),
    "lie": ("enabled", "write through"),
    "silent": (None, "write through"),
}
_OWN_QUEUE = {"flashcache": "write through", "aoe": "write through", "bcache": "write back", "zfs": None, "loop": "write back"}
_TARGETS = {"raid": "raid", "cache": "cache", "writecache": "writecache", "flashcache": "flashcache"}


class Builder:
    """A host from one entry of the table."""

    def __init__(self, entry: dict[str, t.Any]) -> None:
        self.entry = entry
        self.devices: dict[str, BlockDevice] = {}
        self.facts: dict[str, list[LayerFacts]] = {}
        for name, word in entry.get("disks", {}).items():
            self.disk(name, word)
        for name, plan in entry.get("devices", {}).items():
            self.device(name, plan)

    def stack(self) -> Stack:
        devices = Devices(self.devices.values())
        pools = zfs.Pools(
            tuple(dataclasses.replace(pool, sync=self.entry.get("sync", {})) for pool in zfs.parse_status(self.entry.get("zpool", ""))),
            bool(self.entry.get("nocacheflush")),
        )
        devices, facts = zfs.with_pools(devices, pools, pathlib.Path("/nowhere"))
        for name, found in facts.items():
            self.facts.setdefault(name, []).extend(found)
        self.arrays(devices)
        self.caches(devices)
        for reader in (readers.read_memory, readers.read_elsewhere):
            for name, found in reader(devices, None, pathlib.Path("/nowhere"), ()):
                self.facts.setdefault(name, []).append(found)
        for plan in self.entry.get("exports", ()):
            self.facts.setdefault(plan["device"], []).append(readers.export_facts(parse_arguments([*plan["options"].split(), "7", "1", "eth1", "/dev/x"])))
        proofs = [Proof(**plan) for plan in self.entry.get("proofs", ())]
        return Stack(devices, self.facts, self.entry.get("protected", ()), proofs)

    def disk(self, name: str, plan: t.Any) -> None:
        plan = plan if isinstance(plan, dict) else {"cache": plan}
        drive, kernel = DRIVES[plan.get("cache", "on")]
        transport = plan.get("transport", "nvme" if name.startswith("nvme") else "sata")
        device = BlockDevice(
            name,
            f"/dev/{name}",
            f"8:{len(self.devices)}",
            size=1 << 40,
            transport=transport,
            serial=name.upper(),
            model="MODEL",
            queue={"write_cache": kernel},
            links=tuple(plan.get("links", ())),
            driver=plan.get("driver"),
        )
        self.devices[name] = device
        if "volume" in plan:
            self.facts[name] = [LayerFacts("controller", **vars(volume_finding(*_controller(plan["volume"]))))]
        elif not name.startswith("zd"):
            self.facts[name] = [readers.drive_facts(device, DriveCache(name, "ata", drive, kernel))]

    def device(self, name: str, plan: dict[str, t.Any]) -> None:
        kind = plan.get("kind", "md" if name.startswith("md") else "lvm")
        on = tuple(plan.get("over", ()))
        below = [self.devices[one].queue.get("write_cache") for one in on]
        queue = plan.get("queue") or _OWN_QUEUE.get(kind) or ("write back" if "write back" in below else "write through")
        volume = plan.get("name", name)
        self.devices[name] = BlockDevice(
            name,
            f"/dev/{name}",
            f"253:{len(self.devices)}",
            kind=kind,
            size=1 << 40,
            transport="virtual",
            dm_name=volume.replace("/", "-") if kind in ("lvm", "dm") else None,
            dm_uuid="LVM-abc" if "/" in volume else "LVM-abc-part",
            dm_targets=(_TARGETS.get(plan.get("target", ""), "linear"),) if kind in ("lvm", "dm", "flashcache") else (),
            parent=on[0] if kind == "partition" else None,
            slaves=() if kind == "partition" else on,
            queue={"write_cache": queue},
        )

    def arrays(self, devices: Devices) -> None:
        for name, plan in self.entry.get("devices", {}).items():
            device = devices.get(name)
            if device.kind == "md":
                state = {"level": plan["level"], "degraded": "0", "raid_disks": str(len(device.slaves)), "sync_action": "idle", **plan.get("md", {})}
                self.facts.setdefault(name, []).append(readers.md_facts(device, state))
            if plan.get("target") == "raid":
                self.facts.setdefault(name, []).append(readers.dm_facts(device, devices, plan["status"].split()))

    def caches(self, devices: Devices) -> None:
        for plan in self.entry.get("caches", ()):
            plan = {**plan, "cache_device_names": tuple(plan.get("fast", ())), "device_name": plan["device"], "origin_name": plan["origin"]}
            rest = {key: plan[key] for key in ("mode", "dirty", "redundancy", "sends_flushes", "state", "problem", "cache_device_names") if key in plan}
            cache = CacheState(plan["type"], plan["device"], plan["kind"], None, plan["device"], None, plan["origin"], **rest)
            self.facts.setdefault(plan["device"], []).append(readers.cache_facts(cache, devices.get(plan["device"]), devices))


def _controller(plan: dict[str, t.Any]) -> tuple[Controller, Volume]:
    members = ("0,0", "0,1", "0,2")
    drives = [Drive(address, write_cache=plan.get("drives", "disabled")) for address in members]
    ssd, maxcache, on_volume = plan.get("ssd"), None, None
    if ssd:
        drives.append(Drive("0,7", write_cache=ssd.get("drives", "disabled")))
        maxcache = MaxCache(volumes=(CacheVolume("100", raid_level=str(ssd["level"]), status="optimal", members=("0,7",)),))
        on_volume = VolumeMaxCache(write=Policy("enabled", "enabled"), write_policy=ssd.get("policy", "writeback"))
    volume = Volume(
        "0",
        name="data",
        raid_level=str(plan["level"]),
        status=plan.get("status", "optimal"),
        write=Policy(plan["write"], plan["write"]),
        io=Policy("direct", "direct"),
        members=members,
        maxcache=on_volume,
    )
    protection = Protection("capacitor", plan.get("protection", "healthy"))
    return Controller("arcconf", "1", model="MODEL", protection=protection, volumes=(volume,), drives=tuple(drives), maxcache=maxcache), volume


def judged(entry: t.Mapping[str, t.Any]) -> str:
    """The device of an entry that is measured, and that has the verdict."""
    return entry.get("judge") or list(entry["devices"])[-1]


def described(name: str) -> dict[str, t.Any]:
    """An entry of the table, by its name, as a measurement records it on one side of its ``stack.json``."""
    [entry] = [one for one in TABLE if one["name"] == name]
    return Builder(entry).stack().describe(judged(entry))
