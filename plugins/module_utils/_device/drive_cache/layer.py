# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``drive_write_cache``: the write caches of drives now, and after the next boot or hot-plug."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_exports import served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, is_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table, read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.above import Above, above_of, ending_flushes, ignoring_flushes
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import find_drive, names_only, own_path, unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import read_kernel
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import (
    ABSENT,
    DISABLED,
    ENABLED,
    KERNEL_WORD,
    DriveCache,
    DriveCacheSetting,
    kernel_agrees,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import PROVIDERS, DriveCacheProvider, query_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner

#: Seconds that a device may take to answer what is on its way, before it gets its table again.
_PATIENCE = 600.0


@dataclass(frozen=True)
class DriveSpec:
    """What is wanted of one drive; the options of one list entry."""

    device: str
    write_cache: str
    provider: str = "auto"
    persistent: bool = True
    allow_ignored_flushes: bool = False


@dataclass(frozen=True)
class DriveState:
    """One drive as it was found.

    :param item: the path the user gave.
    :param unit: the same text for every name of the same drive (paths of a multipath drive, namespaces of an NVMe controller).
    :param paths: kernel names of every path to the drive; the first one is ``name``.
    :param swallowed_by: what on top of the drive takes flushes and does not pass them on.
    :param above: what on top of the drive ends flushes and would pass them on if it were loaded again, what lies below first; looked at where the
        cache shall be on.
    :param keys: udev properties a line about this drive may be keyed on.
    :param boot_rule: the present lines about this drive in the rules file, ``None`` if there are none.
    :param boot_rules: the line for each wanted state; empty if there cannot be one, for the reason in ``no_rule``.
    """

    item: str
    name: str
    node: str
    unit: str
    paths: tuple[str, ...]
    stable_path: str | None
    provider: str
    drive: str
    kernel: str | None
    changeable: bool = True
    swallowed_by: tuple[str, ...] = ()
    above: tuple[Above, ...] = ()
    keys: tuple[udev_rule.RuleKey, ...] = ()
    boot_rule: str | None = None
    boot_rules: t.Mapping[str, str] = field(default_factory=dict)
    no_rule: str | None = None


class DriveWriteCacheLayer(Layer[t.Sequence[DriveState], t.Sequence[DriveSpec]]):
    """Drive write caches of one host.

    :param drives: the drives to look at. Others are left in peace: asking a sleeping drive wakes it up.
    """

    name = "drive_write_cache"

    def __init__(self, runner: Runner, drives: t.Sequence[DriveSpec], root: Path = Path("/")) -> None:
        self.runner = runner
        self.drives = list(drives)
        self.root = root
        self._commands: dict[str, Completed] = {}

    def read(self) -> t.Sequence[DriveState]:
        """The drives of the list, in its order.

        :raises DeviceMissing: for a path that is not there.
        :raises BadInput: for what is no drive, or no drive of the provider.
        :raises StorageError: for a drive that does not answer, or a missing tool.
        """
        if not self.drives:
            return []
        devices = read_devices(self.runner, self.root)
        found = [find_drive(devices, wish.device) for wish in self.drives]
        caches = self._read_caches([paths[0] for paths in found])
        rules = udev_rule.read_rules(self.root)
        exports = served_devices(devices, self.root)
        above = [ending_flushes(devices, paths, exports) if wish.write_cache == ENABLED else [] for wish, paths in zip(self.drives, found)]
        tables = parse_dm_table(self.runner.run(["dmsetup", "table"]).stdout) if any(above) else {}
        states = [self._state(wish, paths, caches[paths[0].name], devices, rules, exports) for wish, paths in zip(self.drives, found)]
        return [replace(state, above=tuple(above_of(device, tables) for device in ending)) for state, ending in zip(states, above)]

    def _read_caches(self, drives: t.Sequence[BlockDevice]) -> dict[str, DriveCache]:
        providers = {drive.name: wish.provider for wish, drive in zip(self.drives, drives) if wish.provider != "auto"}
        states = query_drives(self.runner, list({drive.name: drive for drive in drives}.values()), self.root, providers)
        caches: dict[str, DriveCache] = {}
        for wish, drive in zip(self.drives, drives):
            state = states[drive.name]
            if isinstance(state, StorageError):
                state.item = wish.device
                raise state
            caches[drive.name] = state
        return caches

    def _state(self, wish: DriveSpec, paths: t.Sequence[BlockDevice], cache: DriveCache, devices: Devices, rules: str, exports: t.Container[str]) -> DriveState:
        drive = paths[0]
        unit = unit_of(devices, drive)
        keys = tuple(key for key in udev_rule.keys_of(drive.properties) if names_only(devices, unit, key))
        boot_rules: dict[str, str] = {}
        no_rule = None
        try:
            others = [other.properties for other in devices if other.kind == "disk" and unit_of(devices, other) != unit]
            key = udev_rule.choose_key(drive.properties, others, wish.device)
            provider = PROVIDERS[cache.provider](self.runner, self.root)
            boot_rules = {wanted: provider.boot_rule(key, DriveCacheSetting(drive.name, drive.path, wanted, wish.device)) for wanted in (ENABLED, DISABLED)}
        except StorageError as error:
            no_rule = error.message
        kernel = {word for path in paths for word in (read_kernel(path.name, self.root) or "").split(", ") if word}
        return DriveState(
            item=wish.device,
            name=drive.name,
            node=drive.path,
            unit=unit,
            paths=tuple(path.name for path in paths),
            stable_path=own_path(devices, drive),
            provider=cache.provider,
            drive=cache.drive,
            kernel=", ".join(sorted(kernel)) or None,
            changeable=cache.changeable,
            swallowed_by=ignoring_flushes(devices, paths, exports),
            keys=keys,
            boot_rule="\n".join(udev_rule.lines_for(rules, keys)) or None,
            boot_rules=boot_rules,
            no_rule=no_rule,
        )

    def plan(self, present: t.Sequence[DriveState], wanted: t.Sequence[DriveSpec]) -> list[Step]:
        """Per drive: the drive itself (``write_cache``) or, if only the kernel is wrong, the kernel (``kernel_view``); then ``boot_rule``.

        :raises BadInput: for a wish that contradicts another one or cannot be met.
        :raises Refused: for a write cache below a layer that passes no flushes on.
        """
        states = {state.item: state for state in present}
        pairs = [(states[wish.device], wish) for wish in wanted]
        _check_listed_once(pairs)
        for state, wish in pairs:
            _check(state, wish)
        steps = [step for state, wish in pairs for step in (*self._plan_live(state, wish), *self._plan_boot(state, wish))]
        return [*steps, *self._plan_above(pairs)]

    def _plan_above(self, pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> list[Step]:
        """After all drives: a device may lie on several of them, and is loaded again once."""
        steps: dict[str, Step] = {}
        for state, _wish in pairs:
            for one in state.above:
                if one.reloadable and one.name not in steps:
                    action = f"Load the table of {one.path} again, so that it passes flushes on to {state.item} ({state.name})"
                    steps[one.name] = Step(
                        layer=self.name,
                        item=state.item,
                        attribute=f"flushes.{one.path}",
                        before="ended",
                        after="passed on",
                        action=action,
                        operation="load_again",
                        arguments={"name": one.name, "path": one.path},
                    )
        return list(steps.values())

    def _plan_live(self, state: DriveState, wish: DriveSpec) -> list[Step]:
        arguments = {
            "provider": state.provider,
            "node": state.node,
            "paths": list(state.paths),
            "wanted": wish.write_cache,
            "save": wish.persistent,
        }
        if state.drive != wish.write_cache and state.drive != ABSENT:
            return [
                Step(
                    layer=self.name,
                    item=state.item,
                    attribute="write_cache",
                    before=state.drive,
                    after=wish.write_cache,
                    action=f"Switch the write cache of {state.item} ({state.name}) {'on' if wish.write_cache == ENABLED else 'off'}, provider {state.provider}",
                    operation="set_drive",
                    arguments=arguments,
                )
            ]
        if not kernel_agrees(state.provider, state.drive, state.kernel):
            return [
                Step(
                    layer=self.name,
                    item=state.item,
                    attribute="kernel_view",
                    before=state.kernel,
                    after=KERNEL_WORD[state.drive],
                    action=f"Make the kernel see that the write cache of {state.item} ({state.name}) is {state.drive}",
                    operation="align_kernel",
                    arguments=arguments,
                )
            ]
        return []

    def _plan_boot(self, state: DriveState, wish: DriveSpec) -> list[Step]:
        rule = state.boot_rules[wish.write_cache] if wish.persistent and state.drive != ABSENT else None
        if rule == state.boot_rule:
            return []
        return [
            Step(
                layer=self.name,
                item=state.item,
                attribute="boot_rule",
                before=state.boot_rule,
                after=rule,
                action=f"{'Write' if rule else 'Remove'} the udev rule for the write cache of {state.item} in /{udev_rule.RULES_FILE}",
                operation="write_rule",
                arguments={"keys": [[key.name, key.value] for key in state.keys], "line": rule},
            )
        ]

    def apply(self, step: Step) -> None:
        """Carry one step out."""
        getattr(self, f"_{step.operation}")(step)

    def _set_drive(self, step: Step) -> None:
        provider, settings = self._settings(step)
        completed = provider.set(settings[0])
        if completed is not None:
            self._commands[step.item] = completed
        self._align_kernel(step)

    def _align_kernel(self, step: Step) -> None:
        provider, settings = self._settings(step)
        for setting in settings:
            provider.align_kernel(setting)

    def _settings(self, step: Step) -> tuple[DriveCacheProvider, list[DriveCacheSetting]]:
        """One setting for each path to the drive; the drive is told over the first, the kernel looks at every one."""
        known = step.arguments
        settings = [DriveCacheSetting(path, known["node"], known["wanted"], step.item, known["save"]) for path in known["paths"]]
        return PROVIDERS[known["provider"]](self.runner, self.root), settings

    def _load_again(self, step: Step) -> None:
        exchange = Exchange(self.runner, step.arguments["name"], step.item, step.arguments["path"], patience=_PATIENCE)
        exchange.load(exchange.table())

    def _write_rule(self, step: Step) -> None:
        keys = [udev_rule.RuleKey(name, value) for name, value in step.arguments["keys"]]
        udev_rule.write_rules(udev_rule.with_line(udev_rule.read_rules(self.root), keys, step.arguments["line"]), self.root)
        self.runner.run(["udevadm", "control", "--reload"], item=step.item)

    def verify(self, present: t.Sequence[DriveState], wanted: t.Sequence[DriveSpec]) -> list[Difference]:
        """As planned again, with the command that claimed to have done it as evidence.

        :raises NotEffective: if a drive did not take what it was told.
        """
        differences = super().verify(present, wanted)
        for difference in differences:
            if difference.item in self._commands:
                raise NotEffective(
                    f"{self.name}: {difference}, although {self._commands[difference.item].command_line} "
                    f"ended with exit status {self._commands[difference.item].rc}. The drive or what stands before it ignores the setting.",
                    item=difference.item,
                    completed=self._commands[difference.item],
                    differences=[vars(one) for one in differences],
                )
        return differences

    def facts(self, present: t.Sequence[DriveState]) -> dict[str, t.Any]:
        """What the module returns about every drive of the list."""
        return {
            "drives": [
                {
                    "device": state.item,
                    "name": state.name,
                    "provider": state.provider,
                    "drive": state.drive,
                    "kernel": state.kernel,
                    "boot_rule": state.boot_rule,
                }
                for state in present
            ]
        }


def _check_listed_once(pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> None:
    seen: dict[str, DriveState] = {}
    for state, wish in pairs:
        if state.unit not in seen:
            seen[state.unit] = state
            continue
        if seen[state.unit].item == wish.device:
            raise BadInput(f"{wish.device} is listed twice: name it once.", item=wish.device)
        raise BadInput(f"{seen[state.unit].item} and {state.item} are the same drive ({state.name}): name it once.", item=wish.device)


def _check(state: DriveState, wish: DriveSpec) -> None:
    if wish.persistent and not is_stable(wish.device):
        instead = f"write {state.stable_path} instead" if state.stable_path else "it has no serial number or WWN, so write persistent: false for it"
        raise BadInput(f"{wish.device} may name another drive after the next boot: {instead}.", item=wish.device)
    if wish.write_cache == ENABLED and state.drive == ABSENT:
        raise BadInput(
            f"{wish.device} has no volatile write cache (vwc is 0), so there is nothing to enable: write write_cache: disabled, or leave it out.",
            item=wish.device,
        )
    if wish.write_cache == ENABLED and state.swallowed_by and not wish.allow_ignored_flushes:
        raise Refused(
            f"{wish.device} stays without its write cache: {' and '.join(state.swallowed_by)} passes no flushes on to it, so what an application has synced "
            "would be lost in a power cut. Set allow_ignored_flushes: true for this drive only if its cache survives a power cut.",
            item=wish.device,
        )
    kept = [one.path for one in state.above if not one.reloadable]
    if kept and not wish.allow_ignored_flushes:
        raise Refused(
            f"{wish.device} stays without its write cache: {' and '.join(kept)} was made while it was off and ends flushes until it is made again, so what an"
            " application has synced would be lost in a power cut. Switch the cache on while that is not active (lvchange -an, cryptsetup close;"
            " multipath -r for the paths of a drive), or set allow_ignored_flushes: true for this drive only if its cache survives a power cut.",
            item=wish.device,
        )
    if state.drive not in (ABSENT, wish.write_cache) and not state.changeable:
        raise BadInput(f"{wish.device}: the drive reports its write cache as {state.drive} and does not let it be changed.", item=wish.device)
    if wish.persistent and state.drive != ABSENT and not state.boot_rules:
        raise BadInput(state.no_rule or f"{wish.device} cannot have a boot rule: write persistent: false for it.", item=wish.device)
