# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that the collection writes on a host outside of devices: the one table behind its removal and ``docs/removal.md``.

A test compares it with the code: whatever writes a file is the writer of a row here.
"""

from __future__ import annotations

import fnmatch
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class HostFiles:
    """A row of the table.

    :param pattern: below the root; ``*`` is a part of one name. A folder, which ends with a slash, is removed with everything in it.
    :param contents: what is in it.
    :param writers: modules below ``module_utils``; a role for what a template of a role writes.
    :param needed: what such a file is still needed for, and what to do first, as the end of a sentence: it is refused, and nothing is removed.
        Empty if it can be removed at any time.
    :param marked: whether only files that contain ``cachefleet.storage`` are meant, because others have such names too.
    """

    pattern: str
    contents: str
    writers: tuple[str, ...]
    needed: str = ""
    marked: bool = False


#: What to do before the files of a cache can go.
REMOVE_CACHE = "remove the cache first (its entry in block_cache_caches with state: absent, and site)"
_BOOTS = f"brings its cache up at boot, and without it the host would use an origin that lacks the newest data, or has changed behind the cache: {REMOVE_CACHE}"
_FLUSHED = "is of a removal or flush that was interrupted, and continues it: run site once more, which completes it"
STATE = "var/lib/cachefleet"
RUN = "run/cachefleet.storage"

TABLE = (
    HostFiles("etc/udev/rules.d/99-cachefleet-drive-write-cache.rules", "write caches of drives, at boot", ("_device/udev_rule",)),
    HostFiles("etc/udev/rules.d/99-cachefleet-block-queue.rules", "settings of block queues, at boot", ("_device/udev_rule", "_device/queue/boot")),
    HostFiles("etc/modprobe.d/cachefleet-block-queue.conf", "options of kernel modules", ("_device/queue/boot",)),
    HostFiles("etc/udev/rules.d/99-cachefleet-bcache.rules", "settings of bcache, at boot", ("_blockcache/bcache/udev_rules",)),
    HostFiles("etc/udev/rules.d/09-cachefleet-dm-cache.rules", "what hides the parts of a cache of dm_cache", ("_blockcache/dm_cache/layer",)),
    HostFiles(
        "etc/udev/rules.d/62-cachefleet-enhanceio-*.rules", "what hides the origin of a cache of EnhanceIO", ("_blockcache/enhanceio/operations",), _BOOTS
    ),
    HostFiles("etc/systemd/system/cachefleet-dm_cache-*.service", "the unit of a cache of dm_cache", ("_blockcache/boot_unit",), _BOOTS),
    HostFiles("etc/systemd/system/cachefleet-flashcache-*.service", "the unit of a cache of flashcache", ("_blockcache/boot_unit",), _BOOTS),
    HostFiles(
        "etc/systemd/system/cachefleet-enhanceio-*.service",
        "the unit of a cache of EnhanceIO",
        ("_blockcache/boot_unit", "_blockcache/enhanceio/operations"),
        _BOOTS,
    ),
    HostFiles("etc/systemd/system/*.wants/cachefleet-*.service", "the link that enables such a unit", ("_blockcache/boot_unit",), _BOOTS),
    HostFiles("etc/modules-load.d/cachefleet-aoe.conf", "the driver of ATA over Ethernet, at boot", ("_net/aoe/initiator",)),
    HostFiles("etc/modprobe.d/cachefleet-aoe.conf", "the interfaces of ATA over Ethernet", ("_net/aoe/initiator",)),
    HostFiles("etc/sysctl.d/90-cachefleet-aoe-target.conf", "the receive buffer of AoE targets", ("_net/aoe/target",)),
    HostFiles(
        "etc/vblade.conf.d/*.conf",
        "an AoE target",
        ("_net/aoe/target",),
        "exports a device at boot, which other hosts use: remove the target first (its entry in storage_network_aoe_targets with state: absent, and site)",
        marked=True,
    ),
    HostFiles("etc/netplan/90-cachefleet-mtu.yaml", "MTUs at boot", ("_net/links/plan",)),
    HostFiles("etc/systemd/network/*.d/50-cachefleet-mtu.conf", "MTUs at boot", ("_net/links/plan",)),
    HostFiles("etc/systemd/network/00-cachefleet-mtu-*.link", "MTUs at boot", ("_net/links/plan",)),
    HostFiles(
        f"{STATE}/sweep/",
        "the journal of a sweep: what the host was like before",
        ("_sweep/journal",),
        "is the journal of a sweep that was not restored: restore the host first (the playbook sweep with --tags restore)",
    ),
    HostFiles(
        f"{STATE}/power_loss/",
        "runs of power-loss tests",
        ("_power_loss/background", "_power_loss/witness_log"),
        "is of a power-loss test that was not concluded: conclude it first (the playbook power_loss), or remove the folder if its run is of no use",
    ),
    HostFiles(
        f"{STATE}/storage_network/",
        "the journal, program and log of the rollback of network changes",
        ("_net/storage_network/rollback_timer", "_net/storage_network/rollback_program", "_net/links/plan"),
    ),
    HostFiles(f"{STATE}/flashcache-*.emptying", "what is left on the device of a removed cache", ("_blockcache/flashcache/remains",), _FLUSHED),
    HostFiles(f"{STATE}/bcache-sets.json", "cache sets that are between two states", ("_blockcache/bcache/journal",), _FLUSHED),
    HostFiles(f"{STATE}/purges/", "the last purge of each drive", ("_device/purge/record",)),
    HostFiles(f"{STATE}/released/", "what removed caches left on their devices", ("_blockcache/released",)),
    HostFiles(f"{STATE}/health.json", "the last readings of the health check", ("roles/cache_health",)),
    HostFiles(
        f"{STATE}/spool/",
        "finished cells until they are collected; which files and devices were made or left by measurements",
        ("_fio/spool", "_fio/supplied_logs", "_fio/handover/made_files", "_guard/left_devices"),
    ),
    HostFiles(f"{STATE}/traces/", "recorded traces until they are fetched", ("_trace/control", "_trace/recorder", "_trace/sampling")),
    HostFiles(f"{RUN}/bcache-flush.json", "settings to put back after a flush", ("_blockcache/bcache/journal",), _FLUSHED),
    HostFiles(f"{RUN}/", "compiled code, locks, and when an MTU was changed; gone at the next boot", ("_core/lock", "_core/archive_import", "_net/interfaces")),
)

#: What the collection changes inside of files of the host, and writes where the user says: a removal leaves these.
LEFT = (
    ("lines with the MTU in `/etc/network/interfaces`, `/etc/sysconfig/network/ifcfg-*` and profiles of NetworkManager", "`site` with the MTU of before"),
    ("`cachefleet-health.timer` and `.service` on the controller", "`cache_health_timer: {state: absent}` and the playbook `health`"),
    ("the file of metrics that `cache_health_textfile` names", "`rm`"),
    ("logical volumes for measurements", "the playbook `test_volumes`, once their entries have `state: absent`"),
    ("the log of a witness of a power-loss test, in `~/.cache/cachefleet` of its host", "the playbook `power_loss`, at the end of the test"),
    ("`/etc/dracut.conf.d/cachefleet.conf`, if you made it because a message said so", "`rm`, and `dracut -f --regenerate-all`"),
    ("packages that `block_cache_packages` installed", "the package manager"),
)


def row_of(path: str, table: t.Sequence[HostFiles] = TABLE) -> HostFiles | None:
    """The first row that has a path, without a leading slash; None if no row has it."""
    return next((row for row in table if _has(row.pattern, path)), None)


def _has(pattern: str, path: str) -> bool:
    parts, names = pattern.rstrip("/").split("/"), path.rstrip("/").split("/")
    if len(names) < len(parts) or (len(names) > len(parts) and not pattern.endswith("/")):
        return False
    return all(fnmatch.fnmatchcase(name, part) for part, name in zip(parts, names))
