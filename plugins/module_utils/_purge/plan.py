# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be purged, and the steps of it. Pure: every refusal is raised here, before anything is erased.

A method is data: how it is called, what it needs of a drive, and the class of its operation is the same for all of them.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.output import AtaSecurity, NvmeErase
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import DONE, RUNNING, PurgeRecord
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

LAYER = "purge"

#: What each method does, as a user reads it.
METHODS = {
    "ata_secure_erase": "ATA SECURITY ERASE UNIT",
    "ata_enhanced_erase": "ATA SECURITY ERASE UNIT, enhanced",
    "nvme_format": "NVMe Format NVM with user data erase",
    "nvme_crypto_format": "NVMe Format NVM with cryptographic erase",
    "nvme_sanitize": "NVMe Sanitize, block erase",
    "nvme_crypto_sanitize": "NVMe Sanitize, cryptographic erase",
    "scsi_sanitize": "SCSI SANITIZE, block erase",
    "discard": "a discard of all blocks",
}
CHOICES = ("auto", *METHODS)


@frozen
class PurgeSpec:
    """One drive of the list, as requested."""

    device: str
    method: str = "auto"
    allow_purge: bool = False
    allow_data_loss: bool = False
    identity: str | None = None

    @property
    def target(self) -> GuardTarget:
        return GuardTarget(self.device, "device", self.allow_data_loss, self.identity, caller="The purge", verb="erase")


@frozen
class PurgeSpecs:
    """All drives. ``once``: what they are purged for; a drive that was purged for it is not purged again."""

    drives: tuple[PurgeSpec, ...] = ()
    once: str = ""

    def __bool__(self) -> bool:
        return bool(self.drives)


@frozen
class PurgeState:
    """One drive as it was found.

    :param facts: of the guard of fio; ``objections``: what it has against writing to the drive.
    :param erase: of an NVMe drive, with the path of its controller, its format and the number of its namespaces.
    """

    facts: TargetFacts
    objections: tuple[tuple[str, str], ...] = ()
    refusal: str = ""
    discards: bool = False
    security: AtaSecurity | None = None
    erase: NvmeErase | None = None
    controller: str = ""
    flbas: int = 0
    namespaces: int = 1
    record: PurgeRecord | None = None


PurgeStates = t.Mapping[str, PurgeState]


@frozen
class PurgeDrive(Operation):
    """Purge one drive by one of :data:`METHODS`."""

    method: str
    found: PurgeState = field(repr=False)

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.purge(self, step)


def read_drives(rows: t.Sequence[t.Mapping[str, t.Any]], once: str = "") -> PurgeSpecs:
    """Check what a user requested.

    :raises BadInput: naming the drive and what is wrong.
    """
    specs: dict[str, PurgeSpec] = {}
    for row in rows:
        spec = PurgeSpec(row["device"], row["method"], row["allow_purge"], row["allow_data_loss"], row["identity"] or None)
        if not spec.device.startswith("/dev/"):
            raise BadInput(f"device must be the path of a whole drive below /dev, not '{spec.device}'.", item=spec.device)
        if spec.device in specs:
            raise BadInput(f"{spec.device} is listed twice.", item=spec.device)
        specs[spec.device] = spec
    return PurgeSpecs(tuple(specs.values()), once)


def plan(state: PurgeStates, specs: PurgeSpecs) -> list[Step]:
    """One step for each drive that was not purged for this yet.

    :raises Refused: if a drive may not be purged, or cannot be.
    """
    steps = []
    devices: dict[str, str] = {}
    for spec in specs.drives:
        found = state[spec.device]
        other = devices.setdefault(found.facts.path, spec.device)
        if other != spec.device:
            raise BadInput(f"{spec.device} and {other} are the same drive: list it once.", item=spec.device)
        if is_done(found, specs.once):
            continue
        _require_permission(found, spec)
        method = _method(found, spec)
        action = f"Purge {spec.device} ({found.facts.identity or 'no serial number'}) by {METHODS[method]}: everything on it is erased"
        before = None if found.record is None else f"{found.record.state} ({found.record.method})"
        steps.append(Step(LAYER, spec.device, "purged", before, f"{DONE} ({method})", action, PurgeDrive(method, found)))
    return steps


def is_done(found: PurgeState, once: str) -> bool:
    """Whether a drive was purged for the same thing before."""
    return bool(once) and found.record is not None and found.record.once == once and found.record.state == DONE


def interrupted(found: PurgeState) -> str:
    """A sentence about a purge that was killed; nothing if none was. One that still runs holds the lock of the layer."""
    if found.record is None or found.record.state != RUNNING:
        return ""
    method = METHODS.get(found.record.method, found.record.method)
    return f"A purge of {found.record.device} by {method} has begun and not ended: it was interrupted, and the drive has to be purged again before it is used."


def _require_permission(found: PurgeState, spec: PurgeSpec) -> None:
    facts = found.facts
    if not spec.allow_purge:
        raise Refused(
            f"{spec.device} is not purged: a purge erases the whole drive, also what is hidden from the host, and cannot be stopped. "
            "Set allow_purge: true on this drive if that is intended.",
            item=spec.device,
        )
    if facts.device is None or facts.device.kind != "disk" or facts.device.parent is not None:
        raise Refused(f"{spec.device} is not a whole drive: only whole drives can be purged.", item=spec.device)
    if found.refusal:
        raise Refused(
            " ".join([found.refusal, *([interrupted(found)] if interrupted(found) else [])]),
            item=spec.device,
            objections=[{"kind": kind, "text": text} for kind, text in found.objections],
            identity=facts.identity,
        )
    if facts.identity is None:
        raise Refused(f"{spec.device} has no serial number or WWN, by which a purge could be recorded.", item=spec.device)


def _method(found: PurgeState, spec: PurgeSpec) -> str:
    method = _usual(found, spec) if spec.method == "auto" else spec.method
    require_method(found, method, spec.device)
    return method


def require_method(found: PurgeState, method: str, device: str) -> None:
    """:raises Refused: if a drive cannot be purged by a method, or if that would erase more than it."""
    family = method.split("_", 1)[0]
    reason = {"ata": _against_ata, "nvme": _against_nvme, "scsi": _against_scsi, "discard": _against_discard}[family](found, method)
    if reason:
        raise Refused(f"{device} cannot be purged by {METHODS[method]}: it {reason}.", item=device)


def _usual(found: PurgeState, spec: PurgeSpec) -> str:
    """The first method that a drive has."""
    transport = found.facts.device.transport if found.facts.device is not None else ""
    if transport == "sata":
        return "ata_secure_erase"
    if transport == "nvme":
        erase = found.erase or NvmeErase()
        return next(
            (name for name, has in (("nvme_format", erase.formats), ("nvme_sanitize", erase.sanitize_block)) if has),
            "nvme_crypto_sanitize" if erase.sanitize_crypto else "nvme_format",
        )
    if transport == "sas":
        return "scsi_sanitize"
    raise Refused(
        f"{spec.device} has no method of its own to be purged, as it is neither a SATA, SAS nor NVMe drive that the host accesses directly ({transport}): "
        "purge it with the tool of its controller, or set method: discard.",
        item=spec.device,
    )


def _against_ata(found: PurgeState, method: str) -> str:
    security = found.security
    if security is None or not security.supported:
        return "has no ATA security feature set that the host can reach (hdparm -I)"
    if method == "ata_enhanced_erase" and not security.enhanced:
        return "does not support the enhanced erase"
    ours = found.record is not None and found.record.state != DONE and found.record.method.startswith("ata_")
    if security.enabled and not ours:
        return "is protected by a password that this collection has not set; remove it first (hdparm --security-disable)"
    if security.expired:
        return "has refused too many passwords; power-cycle it first"
    if security.frozen:
        return (
            "is frozen: the firmware of the host has locked its security settings until the next power cycle. Suspend the host to memory and wake it up, or "
            "plug the drive in again while the host runs"
        )
    return ""


def _against_nvme(found: PurgeState, method: str) -> str:
    erase = found.erase
    if erase is None:
        return "is not an NVMe drive that the host accesses directly"
    abilities = {
        "nvme_format": erase.formats,
        "nvme_crypto_format": erase.formats and erase.crypto,
        "nvme_sanitize": erase.sanitize_block,
        "nvme_crypto_sanitize": erase.sanitize_crypto,
    }
    if not abilities[method]:
        return "does not support it (nvme id-ctrl: oacs, fna, sanicap)"
    if found.namespaces > 1 and (erase.all_namespaces or method.endswith("sanitize")):
        return f"has {found.namespaces} namespaces, and all of them would be erased"
    return ""


def _against_scsi(found: PurgeState, _method: str) -> str:
    device = found.facts.device
    if device is None or device.transport not in ("sas", "scsi", "fc"):
        return "is not a SCSI drive that the host accesses directly"
    return "is not an SSD, and would be overwritten for hours" if device.rotational else ""


def _against_discard(found: PurgeState, _method: str) -> str:
    return "" if found.discards else "does not support discards"
