# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements, judgements and what is certified with them."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.certificate import Context, Device, Figure, Measured
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import Judgement, Requirement

WAL = Requirement("wal_fsync", "measured", "etcd_wal", "p99", "sync", 10.0, "ms", False, 0.99, 0.95, "etcd FAQ, 2026")
POWER = Requirement("power", "survives_power_failure", None, None, None, None, None, False, None, 0.95, "own, 2026")
CONDITIONS = {"bs": "8k", "ioengine": "sync", "workload_sha256": "aa", "kernel": "6.1", "firmware": "F1", "fio_version": "fio-3.33"}


def judgement(host: str = "node1", state: str = "pass", requirement: Requirement = WAL, **changes: t.Any) -> Judgement:
    return replace(Judgement(host, "/dev/sda", requirement, state, 5.0, 4.5, 5.5, 3, "p99 of 5 ms, limit 10 ms"), **changes)


def device(host: str = "node1", serial: str = "S1", **changes: t.Any) -> Device:
    return replace(Device(host, "/dev/sda", serial, "SSD A", "F1", "SATA", 10**12, "6.1", "fio-3.33", {"drive write cache": "disabled"}), **changes)


def measured(host: str = "node1", target: str = "/dev/sda", *, conditions: t.Mapping[str, t.Any] | None = None, **figures: Figure) -> Measured:
    return Measured(host, target, "etcd_wal", "sync", {**CONDITIONS, **(conditions or {})}, figures or {"p99": Figure(5.0, 4.5, 5.5, 3)})


def context(*devices: Device, **changes: t.Any) -> Context:
    some = devices or (device(),)
    hashes = {one.host: "b" * 64 for one in some}
    return replace(Context("2026-11-29T12:00:00Z", "accept1", "a" * 64, hashes, some, tuple(measured(one.host, one.target) for one in some)), **changes)
