# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""RAID controllers in words that belong to no vendor.

``unknown`` is a value like any other. What a tool does not print is unknown; it is never read as off, and never as healthy.
Everything is plain data: a state can be serialised, compared and kept with results.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Traits

UNKNOWN = "unknown"

ENABLED = "enabled"
DISABLED = "disabled"
DEFAULT = "default"

NONE = "none"
READ_AHEAD = "read_ahead"
ADAPTIVE = "adaptive"

WRITETHROUGH = "writethrough"
#: Write-back only as long as the controller is protected.
WRITEBACK = "writeback"
#: Write-back whether or not the controller is protected.
WRITEBACK_ALWAYS = "writeback_always"
WRITES_BACK = frozenset({WRITEBACK, WRITEBACK_ALWAYS})

DIRECT = "direct"
CACHED = "cached"

#: Classes of drives that can have a drive cache policy of their own. ``all``: one switch for the whole controller.
DRIVE_CLASSES = ("all", "configured", "unconfigured", "hba", "jbod")
#: A value of the class ``all``: the policy of each drive counts.
PER_DRIVE = "per_drive"

HEALTHY = "healthy"
CHARGING = "charging"
LEARNING = "learning"
DEGRADED = "degraded"
FAILED = "failed"
MISSING = "missing"

CLEAN = "clean"
DIRTY = "dirty"


@frozen
class Policy:
    """What was requested, and what the controller does at this moment."""

    configured: str = UNKNOWN
    effective: str = UNKNOWN


@frozen
class Protection:
    """What keeps the controller's cache alive in a power cut.

    :param kind: ``battery``, ``capacitor`` (supercap, CacheVault, ZMM, energy pack), ``none`` (the controller has no such
        unit, by its own words) or ``unknown``.
    :param health: ``healthy``, ``charging``, ``learning`` (a learn cycle is running), ``degraded``, ``failed``, ``missing``
        (there is a place for the unit and it is empty, or the controller reports that it is not installed) or ``unknown``.
    :param charge: percent, where the tool prints it.
    :param learn_cycle: ``active``, ``requested``, ``idle`` or ``unknown``.
    :param raw: the tool's own words about the unit; they go into messages.
    """

    kind: str = UNKNOWN
    health: str = UNKNOWN
    charge: int | None = None
    learn_cycle: str = UNKNOWN
    raw: str = ""

    @property
    def protects(self) -> bool | None:
        """Whether a power cut is survived now; ``None`` if that is not known."""
        if self.health == UNKNOWN:
            return None if self.kind != NONE else False
        return self.health == HEALTHY


@frozen
class CacheModule:
    """The controller's own cache memory as a whole, where the tool reports it (SmartRAID, Smart Array).

    :param status: ``ok``, ``not_configured``, ``temporarily_disabled``, ``permanently_disabled``, ``absent`` or ``unknown``.
    :param reason: the tool's own words why it is disabled; ``note``: what it reports of a cache that is not, such as an unclean shutdown.
    :param memory: bytes; ``None`` if not reported, 0 if the controller reports none.
    """

    status: str = UNKNOWN
    reason: str = ""
    memory: int | None = None
    note: str = ""


@frozen
class VolumeMaxCache:
    """How one volume uses an SSD cache inside the controller (maxCache; CacheCade and Smart Array SSD cache as far as reported).

    :param read, write: ``enabled``/``disabled``/``unknown``; effective as the controller reports (``On``/``Off``).
    :param write_policy: ``writethrough``, ``writeback``, ``instant_writeback``, ``writeback_with_writethrough`` or ``unknown``.
    :param dirty: ``clean``, ``dirty`` or ``unknown``: whether the SSDs hold blocks that the volume lacks.
    :param cache_volume: the id of the associated cache volume, where there is one per volume (SmartRAID).
    """

    read: Policy = Policy()
    write: Policy = Policy()
    write_policy: str = UNKNOWN
    dirty: str = UNKNOWN
    cache_volume: str | None = None


@frozen
class CacheVolume:
    """A container of SSDs that caches other volumes.

    :param id: as the tool prints it (``100`` for the maxCache device of series 7 and 8).
    :param dirty: ``clean``, ``dirty`` or ``unknown``.
    :param data_volume: the id of the volume it caches, where it caches only one (SmartRAID).
    """

    id: str
    name: str | None = None
    raid_level: str = UNKNOWN
    status: str = UNKNOWN
    size: int | None = None
    dirty: str = UNKNOWN
    write: Policy = Policy()
    members: tuple[str, ...] = ()
    data_volume: str | None = None


@frozen
class MaxCache:
    """The SSD cache of a controller.

    :param generation: ``pool`` (maxCache 1 and 2), ``container`` (maxCache 3.0), ``smart`` (maxCache 4) or ``unknown``.
    :param pool: addresses of the SSDs assigned to the pool; ``assigned`` and ``limit`` are counts the tool prints, ``assigned`` is
        0 also where it reports that there is no cache volume.
    :param flush_and_fetch_rate: 0 to 1000, the priority of filling and flushing; no unit.
    :param dirty_page_threshold: percent.
    :param read_write_balance: two weights, ``(read, write)``.
    """

    generation: str = UNKNOWN
    volumes: tuple[CacheVolume, ...] = ()
    pool: tuple[str, ...] = ()
    assigned: int | None = None
    limit: int | None = None
    flush_and_fetch_rate: int | None = None
    dirty_page_threshold: int | None = None
    read_write_balance: tuple[int, int] | None = None


@frozen
class Volume:
    """A logical drive.

    :param id: as in the tool's commands.
    :param name: the name the user gave it; ``None`` if it has none.
    :param wwn: NAA or unique identifier in lower case hexadecimal without ``0x``; ``None`` if not reported.
    :param raid_level: ``0``, ``1``, ``5``, ``6``, ``10``, ``50``, ``60``, ``1E``, … or ``unknown``.
    :param status: ``optimal``, ``degraded``, ``partially_degraded``, ``failed``, ``offline``, ``rebuilding`` or the tool's word in lower case.
    :param size: bytes (what the tool prints is rounded).
    :param drive_cache: the policy for the drives of this volume: ``enabled``, ``disabled``, ``default`` or ``unknown``.
    :param members: addresses of its drives.
    :param members_untold: how many more drives it has whose addresses could not be read; no result may cover all its drives then.
    :param os_device: the path that the tool reports for the kernel, for example ``/dev/sdb``.
    :param scsi: (bus or channel, target, lun) as the tool prints or the family defines it.
    :param array: the array it lies on, where the tool has such (SmartRAID, Smart Array).
    :param acceleration: who accelerates it: ``controller_cache``, ``maxcache``, ``io_bypass`` (Smart Path, SSD I/O bypass), ``none`` or ``unknown``.
    """

    id: str
    name: str | None = None
    wwn: str | None = None
    raid_level: str = UNKNOWN
    status: str = UNKNOWN
    size: int | None = None
    read: Policy = Policy()
    write: Policy = Policy()
    io: Policy = Policy()
    drive_cache: str = UNKNOWN
    members: tuple[str, ...] = ()
    members_untold: int = 0
    os_device: str | None = None
    scsi: tuple[int, int, int] | None = None
    array: str | None = None
    acceleration: str = UNKNOWN
    maxcache: VolumeMaxCache | None = None


@frozen
class Drive:
    """A physical drive behind a controller.

    :param address: as in the tool's commands: ``0,31`` (arcconf), ``252:3`` (storcli), ``1I:1:2`` (ssacli).
    :param write_cache: ``enabled``, ``disabled`` or ``unknown``: as the drive has it now.
    :param media: ``hdd``, ``ssd`` or ``unknown``.
    :param interface: ``sata``, ``sas``, ``scsi``, ``nvme`` or ``unknown``.
    :param usage: ``configured``, ``unconfigured``, ``hba``, ``jbod``, ``spare``, ``cache`` (member of an SSD cache) or ``unknown``.
    :param state: the tool's word, in lower case.
    """

    address: str
    write_cache: str = UNKNOWN
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    wwn: str | None = None
    size: int | None = None
    media: str = UNKNOWN
    interface: str = UNKNOWN
    usage: str = UNKNOWN
    state: str = UNKNOWN
    maxcache_capable: bool | None = None

    @property
    def traits(self) -> Traits:
        """What a match finds, as far as the tool reports it."""
        rotational = {"hdd": True, "ssd": False}.get(self.media)
        models, serials, wwns = (tuple(text for text in (one,) if text) for one in (self.model, self.serial, self.wwn))
        return Traits(transport=self.interface, size=self.size, rotational=rotational, models=models, serials=serials, wwns=wwns)


@frozen
class Controller:
    """One controller as one tool reports it.

    :param id: the number the tool uses in commands; ``unknown`` if an output does not contain it.
    :param mode: ``raid``, ``mixed``, ``hba``, ``jbod`` or ``unknown``.
    :param status: ``optimal``, ``needs_attention``, ``degraded``, ``failed`` or the tool's word in lower case.
    :param driver: the kernel driver: ``megaraid_sas``, ``mpi3mr``, ``mpt3sas``, ``aacraid``, ``smartpqi``, ``hpsa`` or ``None``.
    :param pci_address: as in sysfs, ``0000:3b:00.0``; ``None`` if not reported.
    :param drive_cache: policy per class of drives (:data:`DRIVE_CLASSES`), only the classes this controller has;
        values ``enabled``, ``disabled``, ``default``, ``per_drive`` (class ``all``) or ``unknown``.
    :param cache_ratio: percent of the cache for reading; ``None`` if the controller has no such setting or no value now.
    :param no_battery_write_cache: ``enabled``, ``disabled``, or ``unknown`` if the controller has no such setting or does not report it.
    :param traits: further facts of a family that its provider needs again to determine what is possible; plain values.
    """

    provider: str
    id: str = UNKNOWN
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    driver: str | None = None
    pci_address: str | None = None
    mode: str = UNKNOWN
    status: str = UNKNOWN
    cache: CacheModule = CacheModule()
    protection: Protection = Protection()
    drive_cache: t.Mapping[str, str] = field(default_factory=dict)
    cache_ratio: int | None = None
    no_battery_write_cache: str = UNKNOWN
    volumes: tuple[Volume, ...] = ()
    drives: tuple[Drive, ...] = ()
    maxcache: MaxCache | None = None
    traits: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The controller in a message: ``controller 1 (Adaptec ASR7805Q, arcconf)``."""
        return f"controller {self.id} ({', '.join(word for word in (self.model, self.provider) if word)})"

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for results; tuples become lists."""
        return t.cast("dict[str, t.Any]", _plain(dataclasses.asdict(self)))


@frozen
class Reading:
    """What a reader made of an output.

    :param not_understood: ``line 17: 'the line'`` or a clause about the whole, for each thing that should have been understood. Labels
        that are merely unknown do not belong here (every version of a tool brings new ones) unless they are about a write cache; known
        labels with unknown values, broken structure, cut output and foreign text do.
    :param lost: controllers, volumes or drives that are there and could not be read (a damaged heading, a controller that answers
        with a failure), one clause each: settings for all of them are not possible then.
    :param lost_of: those of ``lost`` that are about one controller, by its id.
    :param complete: whether the output ends as it should; ``False`` if it is cut, or not of this tool.
    """

    controllers: tuple[Controller, ...] = ()
    not_understood: tuple[str, ...] = ()
    complete: bool = True
    lost: tuple[str, ...] = ()
    lost_of: t.Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def lost_for(self, number: str) -> tuple[str, ...]:
        """What may be missing of one controller: what is about it, or about none in particular."""
        elsewhere = {clause for other, clauses in self.lost_of.items() if other != number for clause in clauses}
        return tuple(clause for clause in self.lost if clause not in elsewhere or clause in self.lost_of.get(number, ()))


def policy(configured: str, effective: str | None = None) -> Policy:
    """A policy whose effective value is not distinguished from the configured one, unless given."""
    return Policy(configured, configured if effective is None else effective)


def writes_back(word: str) -> bool | None:
    """Whether a write policy acknowledges writes that are only in the cache; ``None`` if it is unknown."""
    return None if word == UNKNOWN else word in WRITES_BACK


def _plain(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def filled(one: t.Any, other: t.Any) -> t.Any:
    """A record whose unknown fields are taken from another record of the same thing."""
    changes = {}
    for entry in dataclasses.fields(one):
        mine, theirs = getattr(one, entry.name), getattr(other, entry.name)
        if isinstance(mine, Policy) and isinstance(theirs, Policy):
            if UNKNOWN in (mine.configured, mine.effective):
                changes[entry.name] = Policy(
                    mine.configured if mine.configured != UNKNOWN else theirs.configured, mine.effective if mine.effective != UNKNOWN else theirs.effective
                )
        elif _says_nothing(mine) and not _says_nothing(theirs):
            changes[entry.name] = theirs
    return dataclasses.replace(one, **changes) if changes else one


def _says_nothing(value: t.Any) -> bool:
    return value is None or value == UNKNOWN or value in ("", ())
