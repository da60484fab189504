# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One way for each kind of drive to read its volatile write cache and to change it.

Setting it in the kernel does not set it in the drive. ``queue/write_cache`` and ``temporary …`` in ``cache_type`` only stop the
kernel from sending flushes while the drive goes on caching, so neither is ever written here. A plain ``cache_type`` is a
MODE SELECT to the drive.

What hdparm, sdparm and nvme print of the write cache of drives.

Exit statuses of these tools are no proof of anything: every parser reads the value printed.
"""

from __future__ import annotations

import abc
import json
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import (
    cache_type_files,
    cache_type_for,
    parse_cache_type,
    read_kernel,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import (
    ABSENT,
    DISABLED,
    ENABLED,
    DriveCache,
    DriveCacheSetting,
    kernel_agrees,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, write_sysfs

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

_HDPARM_VALUE = re.compile(r"^\s*write-caching\s*=\s*(?:(?P<on>1)\s*\(on\)|(?P<off>0)\s*\(off\)|(not supported))\s*$")
_HDPARM_DEVICE = re.compile(r"^(/\S+):\s*$")
_SDPARM_DEVICE = re.compile(r"^\s+(/\S+): ")
_SDPARM_VALUE = re.compile(r"^\s*WCE\s+([01])(?:\s+\[cha: (y|n)(?:, def:\s*(\d+))?(?:, sav:\s*(\S+?))?\])?\s*$")
_NVME_VALUE = re.compile(r"get-feature:\s*(?:0x)?0*6\s[^\n]*Current value:\s*(0x[0-9a-fA-F]+|0+)(?![^\s,])")
_NVME_VERBOSE = re.compile(r"\(WCE\):\s*(Enabled|Disabled)")


def parse_hdparm(text: str) -> dict[str, str | None]:
    """``hdparm -W`` (read or set, one device or several) as ``{device: enabled, disabled or None}``.

    Each device has a section that begins with ``/dev/sda:``. ``None`` means that hdparm did not report it: it printed
    ``not supported`` (USB, virtio-scsi, RAID volumes; exit status 0 all the same) or nothing at all (NVMe, virtio-blk, md,
    dm, bcache, loop; exit status 0 too), or two values in one section, of which one belongs to a device whose heading is lost.
    Source: hdparm 9.65, function process_dev, and captured output.
    """
    found: dict[str, list[str | None]] = {}
    device = None
    for line in text.splitlines():
        head = _HDPARM_DEVICE.match(line)
        if head:
            device = head.group(1)
            found[device] = []
            continue
        value = _HDPARM_VALUE.match(line)
        if value and device is not None:
            found[device].append(ENABLED if value["on"] else DISABLED if value["off"] else None)
    return {device: values[0] if len(values) == 1 else None for device, values in found.items()}


@frozen
class CachingPage:
    """The WCE bit of the SCSI caching mode page. ``saved`` is ``None`` if the drive keeps no saved page."""

    enabled: bool
    changeable: bool = True
    default: bool | None = None
    saved: bool | None = None


def parse_sdparm(text: str) -> dict[str, CachingPage]:
    """``sdparm --get=WCE`` of one or several devices as ``{device: page}``; devices without a value are left out.

    A section begins with ``    /dev/sdb: VENDOR    MODEL``, the value is ``WCE           1  [cha: y, def:  1, sav:  1]``.
    The exit status is 5 for a drive without a saved page although the value is right. Source: sdparm(8) 1.12 and captured output.
    """
    found: dict[str, CachingPage] = {}
    twice = set()
    device = None
    for line in text.splitlines():
        head = _SDPARM_DEVICE.match(line)
        if head:
            device = head.group(1)
            continue
        value = _SDPARM_VALUE.match(line)
        if value and device is not None:
            if device in found:
                # One of them belongs to a device whose heading is lost.
                twice.add(device)
            current, changeable, default, saved = value.groups()
            found[device] = CachingPage(
                enabled=current == "1",
                changeable=changeable != "n",
                default=None if default is None else default == "1",
                saved=None if saved in (None, "n") else saved == "1",
            )
    return {device: page for device, page in found.items() if device not in twice}


def parse_nvme_controller(text: str) -> bool:
    """Whether a controller has a volatile write cache: bit 0 of ``vwc`` in ``nvme id-ctrl --output-format=json``.

    A cache that survives a power loss is not volatile, so a drive with power-loss protection may report none (NVMe base
    specification, Identify Controller). The other bits concern the flush command.

    :raises NotUnderstood: if it is not that JSON.
    """
    try:
        return bool(int(json.loads(text)["vwc"]) & 1)
    except (ValueError, KeyError, TypeError):
        raise NotUnderstood(f"The output of nvme id-ctrl has no field vwc; it begins with '{_first_line(text)}'.") from None


def parse_nvme_feature(text: str) -> bool:
    """Whether feature 6 (Volatile Write Cache) is enabled, from ``nvme get-feature``.

    ``get-feature:0x06 (Volatile Write Cache), Current value:0x00000001``; nought is printed as ``00000000``, without ``0x``
    (nvme-cli 2.3; version 1 writes ``0x6`` and fewer digits). With -H there is a second line
    ``Volatile Write Cache Enable (WCE): Enabled``.

    :raises NotUnderstood: if no current value of this feature is printed, one with reserved bits, or two that contradict each other.
    """
    value, verbose = _NVME_VALUE.search(text), _NVME_VERBOSE.search(text)
    reported: set[bool | None] = {{0: False, 1: True}.get(int(value.group(1), 16))} if value else set()
    reported |= {verbose.group(1) == "Enabled"} if verbose else set()
    if reported in ({True}, {False}):
        return True in reported
    raise NotUnderstood(f"The output of nvme get-feature holds no clear value; it begins with '{_first_line(text)}'.")


def _first_line(text: str) -> str:
    return next((line.strip()[:80] for line in text.splitlines() if line.strip()), "")


class DriveCacheProvider(abc.ABC):
    """One way to read the write cache of drives and to change it.

    ``events`` and ``kernel_pattern`` are those of its boot rule. Drives are given by kernel name and node.
    """

    name: str
    tool: str | None = None
    kernel_pattern: str
    events = "add|change"

    def __init__(self, runner: Runner, root: Path = Path("/")) -> None:
        self.runner = runner
        self.root = root

    @abc.abstractmethod
    def read(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache | StorageError]:
        """``{kernel name: state, or the error that kept it from being read}``; ``kernel`` is filled in by the caller."""

    @abc.abstractmethod
    def set(self, setting: DriveCacheSetting) -> Completed | None:
        """Set it in the drive, and return the command that did. Only reading shows whether the drive obeyed."""

    @abc.abstractmethod
    def boot_effect(self, setting: DriveCacheSetting) -> str:
        """What the udev rule of the drive does."""

    @abc.abstractmethod
    def align_kernel(self, setting: DriveCacheSetting) -> None:
        """Make the kernel read the drive again."""

    def boot_rule(self, key: udev_rule.RuleKey, setting: DriveCacheSetting) -> str:
        """The line that sets the drive whenever it appears."""
        return udev_rule.rule_line(key, self.kernel_pattern, self.events, self.boot_effect(setting))

    def prove_boot(self, setting: DriveCacheSetting) -> None:  # noqa: B027 - most rules run a program whose answer was seen when the drive was set
        """Do now what the udev rule will do, where nothing would report that it fails then.

        :raises CommandFailed: if the rule would fail.
        """

    def _state(self, drive: BlockDevice, says: str, changeable: bool = True) -> DriveCache:
        return DriveCache(name=drive.name, provider=self.name, drive=says, kernel=None, changeable=changeable)


#: What the rule of a SCSI disk writes.
_BY_RULE = "device/scsi_disk/*/cache_type"


class _ScsiDisk(DriveCacheProvider):
    """What every drive below the SCSI disk driver shares: the driver's ``cache_type`` and ``rescan``."""

    kernel_pattern = "sd*"

    def align_kernel(self, setting: DriveCacheSetting) -> None:
        if read_kernel(setting.name, self.root) == setting.kernel_word:
            return
        rescan = self.root / "sys/class/block" / setting.name / "device/rescan"
        if rescan.exists():
            write_sysfs(rescan, "1", setting.item)
        if read_kernel(setting.name, self.root) == setting.kernel_word:
            return
        # A rescan passes over a cache type that was once set with "temporary"; a plain one reaches the drive and ends that.
        for path in cache_type_files(setting.name, self.root):
            write_sysfs(path, cache_type_for(setting.value, read_attribute(path)), setting.item)

    def boot_effect(self, setting: DriveCacheSetting) -> str:
        current = next((read_attribute(path) for path in cache_type_files(setting.name, self.root)), None)
        return udev_rule.write_attribute(_BY_RULE, cache_type_for(setting.value, current))

    def prove_boot(self, setting: DriveCacheSetting) -> None:
        # Some adapters (hpsa, mpt3sas) refuse the MODE SELECT of the kernel that sdparm can send (EINVAL), and udev only logs that. Writing what
        # is there changes nothing; where the kernel's view is not that of the drive, nothing is written.
        if _BY_RULE not in self.boot_effect(setting) or read_kernel(setting.name, self.root) != setting.kernel_word:
            return
        for path in cache_type_files(setting.name, self.root):
            try:
                write_sysfs(path, cache_type_for(setting.value, read_attribute(path)), setting.item)
            except CommandFailed as error:
                raise CommandFailed(
                    f"{error.message} The boot rule would write the same and fail at every start without a report, so it was not written: set persistent:"
                    " false for this drive, and set its cache in a unit of your own at boot.",
                    item=setting.item,
                ) from None


class AtaProvider(_ScsiDisk):
    """SATA drives, by ``hdparm -W``; one command reads all of them."""

    name = "ata"
    tool = "hdparm"

    def read(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache | StorageError]:
        # The exit status is no proof: it is 0 for drives that have no such switch.
        completed = self.runner.run(["hdparm", "-W", *(drive.path for drive in drives)], ok=None)
        reported = parse_hdparm(completed.stdout)
        if len(drives) > 1 and len(reported) < len(drives):
            # hdparm stops at the first node it cannot open; the others must not suffer for it.
            return {name: state for drive in drives for name, state in self.read([drive]).items()}
        states: dict[str, DriveCache | StorageError] = {}
        for drive in drives:
            says = reported.get(drive.path)
            if says is not None:
                states[drive.name] = self._state(drive, says)
                continue
            # A section without a value is how hdparm reports no support; no section at all is an error such as a vanished node.
            error, reason = (BadInput, "it is not supported") if drive.path in reported else (NotUnderstood, completed.last_words)
            states[drive.name] = error(
                f"hdparm cannot read the write cache of {drive.path} ({reason}): "
                "it is not an ATA drive, or a controller is in between. Use the provider scsi for a SAS or USB drive, "
                "and the role raid_cache for a volume of a RAID controller.",
                item=drive.path,
                completed=completed,
            )
        return states

    def set(self, setting: DriveCacheSetting) -> Completed | None:
        return self.runner.run(["hdparm", f"-W{setting.digit}", setting.node], ok=None, item=setting.item)

    def boot_effect(self, setting: DriveCacheSetting) -> str:
        if not re.search(r"/ata\d+/", os.path.realpath(self.root / "sys/class/block" / setting.name)):
            # Behind a SAS adapter the kernel does not notice what hdparm sets in the drive; cache_type reaches both.
            return super().boot_effect(setting)
        return udev_rule.run_program(self.runner.find("hdparm"), f"-q -W{setting.digit} $devnode", setting.item)


class ScsiProvider(_ScsiDisk):
    """SAS, USB and other SCSI drives, by the WCE bit of the caching mode page."""

    name = "scsi"
    tool = "sdparm"
    # Not on "change": over two paths each MODE SELECT is announced to the other path, whose change event would send the next one.
    events = "add"

    def read(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache | StorageError]:
        # 5 is the exit status for a drive without saved pages, right value or not.
        completed = self.runner.run(["sdparm", "--get=WCE", *(drive.path for drive in drives)], ok=None)
        reported = parse_sdparm(completed.stdout)
        states: dict[str, DriveCache | StorageError] = {}
        for drive in drives:
            page = reported.get(drive.path)
            states[drive.name] = (
                self._state(drive, ENABLED if page.enabled else DISABLED, page.changeable)
                if page
                else NotUnderstood(
                    f"sdparm cannot read the WCE bit of {drive.path} ({completed.last_words}): the drive has no caching mode page.",
                    item=drive.path,
                    completed=completed,
                )
            )
        return states

    def set(self, setting: DriveCacheSetting) -> Completed | None:
        change = "--set=WCE" if setting.value == ENABLED else "--clear=WCE"
        # A drive that cannot save refuses --save as a whole (status 97) and changes nothing, so the command is repeated without.
        saved = self.runner.run(["sdparm", change, "--save", setting.node], ok=None, item=setting.item) if setting.save else None
        return saved if saved and saved.rc == 0 else self.runner.run(["sdparm", change, setting.node], ok=None, item=setting.item)


class NvmeProvider(DriveCacheProvider):
    """NVMe drives, by feature 6 of the controller."""

    name = "nvme"
    tool = "nvme"
    kernel_pattern = "nvme*"
    # The feature belongs to the controller, and a drive may refuse it for a single namespace. nvme takes the namespace of the
    # node unless another is given, and nought does not count as given (nvme-cli 2.3): only "all" does.
    # Long options only: the letter of --value changed between versions of nvme-cli.
    _feature = ("--namespace-id=0xffffffff", "--feature-id=6")

    def read(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache | StorageError]:
        states: dict[str, DriveCache | StorageError] = {}
        for drive in drives:
            try:
                states[drive.name] = self._state(drive, self._says(drive.path))
            except StorageError as error:
                states[drive.name] = error
        return states

    def _says(self, node: str) -> str:
        if not parse_nvme_controller(self.runner.run(["nvme", "id-ctrl", node, "--output-format=json"], item=node).stdout):
            return ABSENT
        return ENABLED if parse_nvme_feature(self.runner.run(["nvme", "get-feature", node, *self._feature], item=node).stdout) else DISABLED

    def set(self, setting: DriveCacheSetting) -> Completed | None:
        words = ["nvme", "set-feature", setting.node, *self._feature, f"--value={setting.digit}"]
        # Most drives answer "Feature Identifier Not Saveable" to --save and change nothing.
        saved = self.runner.run([*words, "--save"], ok=None, item=setting.item) if setting.save else None
        return saved if saved and saved.rc == 0 else self.runner.run(words, ok=None, item=setting.item)

    def boot_effect(self, setting: DriveCacheSetting) -> str:
        arguments = " ".join(("set-feature", "$devnode", *self._feature, f"--value={setting.digit}"))
        return udev_rule.run_program(self.runner.find("nvme"), arguments, setting.item)

    def align_kernel(self, setting: DriveCacheSetting) -> None:
        if kernel_agrees(self.name, setting.value, read_kernel(setting.name, self.root)):
            return
        rescan = self.root / "sys/class/block" / setting.name / "device/rescan_controller"
        if rescan.exists():
            write_sysfs(rescan, "1", setting.item)


class VirtioProvider(DriveCacheProvider):
    """virtio-blk disks, by their ``cache_type``, which is the device's own setting."""

    name = "virtio"
    kernel_pattern = "vd*"

    def read(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache | StorageError]:
        states: dict[str, DriveCache | StorageError] = {}
        for drive in drives:
            text = read_attribute(self._cache_type(drive.name))
            try:
                if text is None:
                    raise NotUnderstood(f"{drive.path} has no cache_type: this virtio device does not show its write cache.", item=drive.path)
                states[drive.name] = self._state(drive, parse_cache_type(text))
            except StorageError as error:
                states[drive.name] = error
        return states

    def set(self, setting: DriveCacheSetting) -> Completed | None:
        write_sysfs(self._cache_type(setting.name), setting.kernel_word, setting.item)
        return None

    def boot_effect(self, setting: DriveCacheSetting) -> str:
        return udev_rule.write_attribute("cache_type", setting.kernel_word)

    def align_kernel(self, setting: DriveCacheSetting) -> None:
        # Writing the device's own setting again also makes the driver renew the kernel's view.
        if read_kernel(setting.name, self.root) != setting.kernel_word:
            write_sysfs(self._cache_type(setting.name), setting.kernel_word, setting.item)

    def _cache_type(self, name: str) -> Path:
        return self.root / "sys/class/block" / name / "cache_type"


#: Every provider by the name that users write.
PROVIDERS: t.Mapping[str, type[DriveCacheProvider]] = {provider.name: provider for provider in (AtaProvider, ScsiProvider, NvmeProvider, VirtioProvider)}

_TRANSPORT_PROVIDER = {"sata": "ata", "sas": "scsi", "scsi": "scsi", "iscsi": "scsi", "fc": "scsi", "usb": "scsi", "nvme": "nvme", "virtio": "virtio"}


def choose_provider(drive: BlockDevice) -> str:
    """The provider for a drive, by how it is attached.

    :raises BadInput: for a volume of a RAID controller, and for a disk that no provider reaches.
    """
    if drive.transport == "raid":
        raise BadInput(
            f"{drive.path} belongs to the RAID controller ({drive.driver}), whose drives are not reached from here: "
            "describe them in raid_cache_controllers (role raid_cache). "
            "If the controller passes the drive through (JBOD, HBA mode), name the provider ata or scsi.",
            item=drive.path,
        )
    if drive.transport == "usb" and drive.properties.get("ID_BUS") == "ata":
        return "ata"
    provider = _TRANSPORT_PROVIDER.get(drive.transport)
    if provider is None or (provider == "virtio" and not drive.name.startswith("vd")):
        raise BadInput(f"{drive.path} ({drive.transport}, driver {drive.driver}) is of no kind whose write cache can be set.", item=drive.path)
    return provider


def read_drive_caches(
    runner: Runner, drives: t.Sequence[BlockDevice], root: Path = Path("/"), providers: t.Mapping[str, str] | None = None
) -> dict[str, DriveCache]:
    """The write caches of whole disks; a drive that cannot be read has ``drive`` ``None`` and a ``reason``, never an error.

    :param providers: ``{kernel name: provider}`` for drives for which the automatic choice is not used.
    """
    return {
        name: state if isinstance(state, DriveCache) else DriveCache(name, (providers or {}).get(name), None, read_kernel(name, root), reason=state.message)
        for name, state in query_drives(runner, drives, root, providers).items()
    }


def query_drives(
    runner: Runner, drives: t.Sequence[BlockDevice], root: Path = Path("/"), providers: t.Mapping[str, str] | None = None
) -> dict[str, DriveCache | StorageError]:
    """As :func:`read_drive_caches`, with the error in the place of a drive that cannot be read."""
    states: dict[str, DriveCache | StorageError] = {}
    groups: dict[str, list[BlockDevice]] = {}
    for drive in drives:
        try:
            groups.setdefault((providers or {}).get(drive.name) or choose_provider(drive), []).append(drive)
        except StorageError as error:
            states[drive.name] = error
    for name, group in groups.items():
        try:
            found = PROVIDERS[name](runner, root).read(group)
        except StorageError as error:  # a missing tool, or a drive that hangs, concerns every drive of the group
            found = {drive.name: error for drive in group}
        states.update(found)
    return {name: state if isinstance(state, StorageError) else _with_kernel(state, root) for name, state in states.items()}


def _with_kernel(state: DriveCache, root: Path) -> DriveCache:
    return DriveCache(state.name, state.provider, state.drive, read_kernel(state.name, root), state.changeable, state.reason)
