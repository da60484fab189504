# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of ZFS as metrics. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._health.prometheus import Family, Labels, family, states
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import CACHE, LOGS, redundancy_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import ZfsHealth

#: zpoolconcepts(7), "Device Failure and Recovery"; SUSPENDED is a state of pools only.
_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")

#: Names of metrics with their kind, and for each value of a label the kstat that it is taken from.
_ARC: tuple[tuple[str, str, str, str, dict[str, str]], ...] = (
    ("arc_size_bytes", "gauge", "Size of the ARC.", "", {"": "size"}),
    ("arc_target_bytes", "gauge", "Size that the ARC aims at.", "", {"": "c"}),
    ("arc_max_bytes", "gauge", "Maximum size of the ARC.", "", {"": "c_max"}),
    ("arc_lookups_total", "counter", "Lookups in the ARC, by result.", "result", {"hit": "hits", "miss": "misses"}),
    ("arc_memory_throttles_total", "counter", "Writes that were delayed because memory was short.", "", {"": "memory_throttle_count"}),
    ("l2arc_lookups_total", "counter", "Lookups in the cache devices, by result.", "result", {"hit": "l2_hits", "miss": "l2_misses"}),
    ("l2arc_read_bytes_total", "counter", "Data read from the cache devices.", "", {"": "l2_read_bytes"}),
    ("l2arc_written_bytes_total", "counter", "Data written to the cache devices.", "", {"": "l2_write_bytes"}),
    ("l2arc_errors_total", "counter", "Errors of the cache devices, by kind.", "kind", {"io": "l2_io_error", "checksum": "l2_cksum_bad"}),
    ("l2arc_size_bytes", "gauge", "Data in the cache devices, uncompressed.", "", {"": "l2_size"}),
    ("l2arc_allocated_bytes", "gauge", "Used part of the cache devices.", "", {"": "l2_asize"}),
    ("l2arc_header_bytes", "gauge", "Memory that the headers of the data in the cache devices use.", "", {"": "l2_hdr_size"}),
)
_ZIL: tuple[tuple[str, str, str, str, dict[str, str]], ...] = (
    ("zil_commits_total", "counter", "Commits to the intent log.", "", {"": "zil_commit_count"}),
    (
        "zil_transactions_total",
        "counter",
        "Transactions in the intent log, by where it was written.",
        "to",
        {"log": "zil_itx_metaslab_slog_count", "data": "zil_itx_metaslab_normal_count"},
    ),
    (
        "zil_written_bytes_total",
        "counter",
        "Data in the intent log, by where it was written.",
        "to",
        {"log": "zil_itx_metaslab_slog_bytes", "data": "zil_itx_metaslab_normal_bytes"},
    ),
)


def zfs_families(zfs: ZfsHealth) -> t.Iterator[Family]:
    """All metrics about ZFS. A value that is not known has no sample."""
    for rows, values in ((_ARC, zfs.arc), (_ZIL, zfs.zil)):
        for name, kind, about, label, of in rows:
            samples = [(((label, choice),) if label else (), values.get(kstat)) for choice, kstat in of.items()]
            yield family(f"cachefleet_zfs_{name}", kind, about, samples)
    pools = [sample for pool in zfs.pools for sample in states((("pool", pool.name),), "state", pool.state, _STATES)]
    yield family("cachefleet_zfs_pool_state", "gauge", "1 for the present state of the pool.", pools)
    tops = [(_vdev(pool.name, vdev.name), word, vdev) for pool, word, vdev in zfs.vdevs(LOGS, CACHE)]
    known = {labels for labels, _word, _top in tops}
    present = [sample for labels, _word, vdev in tops for sample in states(labels, "state", vdev.state, _STATES)]
    yield family("cachefleet_zfs_vdev_state", "gauge", "1 for the present state of a log or cache device.", present)
    for name, about in (("allocated", "Used part of a log or cache device."), ("free", "Free part of a log or cache device.")):
        rows = [(labels, getattr(space, name)) for labels, space in ((_vdev(*key), space) for key, space in zfs.space.items()) if labels in known]
        yield family(f"cachefleet_zfs_vdev_{name}_bytes", "gauge", about, rows)
    errors = [
        ((*_vdev(pool.name, leaf.name), ("kind", kind)), count)
        for pool, _word, vdev in zfs.vdevs(LOGS, CACHE)
        for leaf in vdev.leaves
        for kind, count in zip(("read", "write", "checksum"), leaf.errors)
    ]
    yield family("cachefleet_zfs_vdev_errors_total", "counter", "Errors of a log or cache device, since the pool was imported or cleared.", errors)
    info = [((*labels, ("class", word), ("redundancy", redundancy_of(vdev))), 1.0) for labels, word, vdev in tops]
    yield family("cachefleet_zfs_vdev_info", "gauge", "Class and redundancy of a log or cache device.", info)


def _vdev(pool: str, name: str) -> Labels:
    return (("pool", pool), ("vdev", name))
