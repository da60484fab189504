# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``drive_write_cache``: the write caches of drives now, and after the next boot or hot-plug."""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import NO_STABLE_PATH, BlockDevice, Devices, require_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table, read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.above import Above, above_of, ending_flushes, ignoring_flushes
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.drives import drives_of, names_only, own_path, unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import (
    driver_sees_cache,
    dropping_sentence,
    drops_flushes,
    read_kernel,
    stays_written,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.match_rule import (
    Reach,
    conditions_of,
    head_of,
    place_of,
    rules_by_match,
    rules_for,
    rules_with_mark,
    with_exceptions,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import (
    ABSENT,
    DISABLED,
    ENABLED,
    KERNEL_WORD,
    VARIABLE,
    DriveCache,
    DriveCacheSetting,
    DriveSpec,
    kernel_agrees,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import PROVIDERS, DriveCacheProvider, query_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Match, Traits, choose, chosen_by, no_match_sentence, traits_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.overrides import WRITE_CACHE, Override, read_overrides
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner


def require_listed_once(pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> None:
    """:raises BadInput: for a drive that is listed twice, perhaps by two of its names."""
    seen: dict[str, DriveState] = {}
    for drive, spec in pairs:
        if drive.unit not in seen:
            seen[drive.unit] = drive
            continue
        if seen[drive.unit].item == spec.device:
            raise BadInput(f"{spec.device} is listed twice: name it once.", item=spec.device)
        raise BadInput(f"{seen[drive.unit].item} and {drive.item} are the same drive ({drive.name}): name it once.", item=spec.device)


def require_settable(drive: DriveState, spec: DriveSpec, *, covered: bool) -> None:
    """Everything that speaks against setting a drive, before anything is set.

    :param covered: whether a rule by match disables it at boot, so that it needs none of its own.
    :raises BadInput: for what cannot be met.
    :raises Refused: for a cache below which flushes end.
    """
    if spec.persistent and spec.match is None:
        require_stable(spec.device, drive.stable_path, NO_STABLE_PATH)
    if spec.write_cache == ENABLED and drive.drive == ABSENT:
        raise BadInput(
            f"{spec.device} has no volatile write cache (vwc is 0), so there is nothing to enable: set write_cache: disabled, or leave it out.",
            item=spec.device,
        )
    if spec.write_cache == ENABLED and drive.swallowed_by and not spec.allow_ignored_flushes:
        raise Refused(
            f"{spec.device} stays without its write cache: {' and '.join(drive.swallowed_by)} passes no flushes on to it, so what an application has synced "
            "would be lost in a power failure. Set allow_ignored_flushes: true for this drive only if its cache survives a power failure.",
            item=spec.device,
        )
    kept = [one.path for one in drive.above if not one.reloadable]
    if kept and not spec.allow_ignored_flushes:
        raise Refused(
            f"{spec.device} stays without its write cache: {' and '.join(kept)} was created while the cache was disabled, and drops flushes until its table is"
            " reloaded, so what an application has synced would be lost in a power failure. Enable the cache while that is not active (lvchange -an,"
            " cryptsetup close; multipath -r for the paths of a drive), or set allow_ignored_flushes: true for this drive only if its cache"
            " survives a power failure.",
            item=spec.device,
        )
    if spec.write_cache == ENABLED and drive.dropping:
        raise Refused(dropping_sentence(spec.device, drive.dropping[0]), item=spec.device)
    if drive.drive not in (ABSENT, spec.write_cache) and not drive.changeable:
        raise BadInput(f"{spec.device}: the drive reports its write cache as {drive.drive} and does not let it be changed.", item=spec.device)
    if spec.persistent and drive.drive != ABSENT and not drive.boot_rules and not covered:
        raise BadInput(drive.no_rule or f"{spec.device} cannot have a boot rule: set persistent: false for it.", item=spec.device)


#: Seconds that a device may take to answer what is on its way, before it gets its table again.
_PATIENCE = 600.0


@frozen
class DriveState:
    """One drive as it was found.

    :param item: the path the user gave.
    :param unit: the same text for every name of the same drive (paths of a multipath drive, namespaces of an NVMe controller).
    :param paths: kernel names of every path to the drive; the first one is ``name``.
    :param swallowed_by: what on top of the drive takes flushes and does not pass them on.
    :param above: what on top of the drive ends flushes and would pass them on if it were loaded again, what lies below first; looked at where the
        cache should be on.
    :param dropping: kernel names of the paths to which the kernel sends no flush although their driver sees a cache, if only a command ends that.
    :param keys: udev properties a line about this drive may be keyed on.
    :param boot_rule: the present lines about this drive in the rules file, ``None`` if there are none.
    :param boot_rules: the line for each wanted state; empty if there cannot be one, for the reason in ``no_rule``.
    :param reach: what a rule by match sees of it; ``None`` if there cannot be one.
    :param by_match: the rules by match in the file; the same for all drives.
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
    dropping: tuple[str, ...] = ()
    keys: tuple[udev_rule.RuleKey, ...] = ()
    boot_rule: str | None = None
    boot_rules: t.Mapping[str, str] = field(default_factory=dict)
    no_rule: str | None = None
    overrides: tuple[Override, ...] = ()
    traits: Traits = field(default_factory=Traits)
    reach: Reach | None = None
    by_match: tuple[str, ...] = ()


@frozen
class AlignKernel(Operation):
    """Make the kernel see the write cache as the drive has it.

    :param settings: one for each path to the drive.
    """

    provider: str
    settings: tuple[DriveCacheSetting, ...]

    def provider_of(self, layer: Layer[t.Any, t.Any]) -> DriveCacheProvider:
        return PROVIDERS[self.provider](layer.runner, layer.root)

    def carry_out(self, layer: DriveWriteCacheLayer, step: Step) -> None:  # noqa: ARG002
        provider = self.provider_of(layer)
        for setting in self.settings:
            provider.align_kernel(setting)
            if setting.value == ENABLED and drops_flushes(setting.name, layer.root):
                raise NotEffective(dropping_sentence(setting.item, setting.name), item=setting.item)


@frozen
class SetDrive(AlignKernel):
    """Set the write cache of a drive over the first of its paths, then align the kernel on each of them."""

    def carry_out(self, layer: DriveWriteCacheLayer, step: Step) -> None:
        completed = self.provider_of(layer).set(self.settings[0])
        if completed is not None:
            layer.commands[step.item] = completed
        try:
            super().carry_out(layer, step)
        except StorageError as error:
            if self.settings[0].value == ENABLED:
                self.disabling().undo(layer, step, error, "The kernel sends no flush to a cache that it does not see")
            raise

    def disabling(self) -> SetDrive:
        return replace(self, settings=tuple(replace(one, value=DISABLED) for one in self.settings))

    def undo(self, layer: DriveWriteCacheLayer, step: Step, error: StorageError, why: str) -> None:
        """Disable a cache that was enabled just before an error, and add that to its message."""
        done = f"the write cache of {step.item} was disabled again"
        try:
            self.carry_out(layer, step)
        except StorageError as failed:
            done = f"disable the write cache of {step.item} manually, which failed here ({failed.message.rstrip('.')})"
        error.message += f" {why}: {done}."
        error.args = (error.message,)


@frozen
class ReloadTable(Operation):
    """Load the present table of a device-mapper device again.

    :param name: kernel name of the device; ``path`` is how messages name it.
    :param undo: sets the drive back that was enabled for it, if that is not possible: until then the device drops flushes.
    """

    needs_commands = ("dmsetup",)
    name: str
    path: str
    undo: SetDrive | None = None

    def carry_out(self, layer: DriveWriteCacheLayer, step: Step) -> None:
        exchange = Exchange(layer.runner, self.name, step.item, self.path, patience=_PATIENCE)
        try:
            exchange.load(exchange.table())
        except StorageError as error:
            if self.undo is not None:
                self.undo.undo(layer, step, error, f"Until it is loaded, {self.path} drops flushes")
            raise


@frozen
class WriteRule(udev_rule.WriteRule):
    """Set the udev rule of one drive, if what it will do succeeds now.

    :param proving: what the rule will do to the drive.
    """

    provider: str = ""
    proving: DriveCacheSetting | None = None

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        if self.line is not None and self.proving is not None:
            PROVIDERS[self.provider](layer.runner, layer.root).prove_boot(self.proving)
        super().carry_out(layer, step)


@frozen
class WriteMatchRules(Operation):
    """Replace the rules by match, if what they will do to the drives succeeds now.

    :param proving: what they will do to drives, with the provider of each.
    """

    needs_commands = ("udevadm",)
    lines: tuple[str, ...]
    proving: tuple[tuple[str, DriveCacheSetting], ...] = ()

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        for provider, setting in self.proving:
            PROVIDERS[provider](layer.runner, layer.root).prove_boot(setting)
        text = udev_rule.read_rules(layer.root)
        udev_rule.write_rules(udev_rule.with_lines(text, rules_by_match(text), self.lines), layer.root)
        layer.runner.run(["udevadm", "control", "--reload"], item=step.item)


@frozen
class _MatchPlan:
    """The rules by match that should be in the file; ``covered``: the units of the drives that one of them disables in place of a rule of their own."""

    lines: tuple[str, ...] = ()
    covered: frozenset[str] = frozenset()


class DriveWriteCacheLayer(Layer[t.Sequence[DriveState], t.Sequence[DriveSpec]]):
    """Drive write caches of one host. Only the drives of the specification are read: querying a sleeping drive wakes it up."""

    name = "drive_write_cache"
    plan_shows_changes = True

    def __init__(self, runner: Runner, spec: t.Sequence[DriveSpec], root: Path = Path("/")) -> None:
        super().__init__(runner, spec, root)
        self.commands: dict[str, Completed] = {}

    def read(self) -> t.Sequence[DriveState]:
        """The drives that the list names, in its order, then those that a match chooses.

        :raises DeviceMissing: for a path that is not there.
        :raises BadInput: for what is no drive, or no drive of the provider.
        :raises StorageError: for a drive that does not answer, or a missing tool.
        """
        if not self.spec:
            return []
        devices = read_devices(self.runner, self.root)
        found = drives_of(devices, self.spec, self.root)
        caches = self._read_caches([(spec, paths[0]) for spec, paths in found])
        rules = udev_rule.read_rules(self.root)
        exports = served_devices(devices, self.root)
        above = [ending_flushes(devices, paths, exports) if spec.write_cache == ENABLED else [] for spec, paths in found]
        tables = parse_dm_table(self.runner.run(["dmsetup", "table"]).stdout) if any(above) else {}
        overrides = read_overrides(self.root)
        states = [self._state(spec, paths, caches[paths[0].name], devices, rules, exports, overrides) for spec, paths in found]
        return [replace(state, above=tuple(above_of(device, tables) for device in ending)) for state, ending in zip(states, above)]

    def _read_caches(self, pairs: t.Sequence[tuple[DriveSpec, BlockDevice]]) -> dict[str, DriveCache]:
        providers = {drive.name: spec.provider for spec, drive in pairs if spec.provider != "auto"}
        states = query_drives(self.runner, list({drive.name: drive for spec, drive in pairs}.values()), self.root, providers)
        caches: dict[str, DriveCache] = {}
        for spec, drive in pairs:
            state = states[drive.name]
            if isinstance(state, StorageError):
                state.item = spec.device
                raise _with_entry(spec, state)
            caches[drive.name] = state
        return caches

    def _state(
        self,
        spec: DriveSpec,
        paths: t.Sequence[BlockDevice],
        cache: DriveCache,
        devices: Devices,
        rules: str,
        exports: t.Container[str],
        overrides: t.Sequence[Override],
    ) -> DriveState:
        drive = paths[0]
        unit = unit_of(devices, drive)
        keys = tuple(key for key in udev_rule.keys_of(drive.properties) if names_only(devices, unit, key))
        boot_rules: dict[str, str] = {}
        key = no_rule = None
        try:
            others = [other.properties for other in devices if other.kind == "disk" and unit_of(devices, other) != unit]
            key = udev_rule.choose_key(drive.properties, others, spec.device)
            provider = PROVIDERS[cache.provider](self.runner, self.root)
            boot_rules = {value: provider.boot_rule(key, DriveCacheSetting(drive.name, drive.path, value, spec.device)) for value in (ENABLED, DISABLED)}
        except StorageError as error:
            no_rule = error.message
        kernel = {word for path in paths for word in (read_kernel(path.name, self.root) or "").split(", ") if word}
        return DriveState(
            item=spec.device,
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
            dropping=tuple(path.name for path in paths if self._is_dropping(path.name, cache)),
            keys=keys,
            boot_rule="\n".join(udev_rule.lines_for(rules, keys)) or None,
            boot_rules=boot_rules,
            no_rule=no_rule,
            overrides=tuple(
                one for one in overrides if one.setting == WRITE_CACHE and one.concerns(drive.name, (drive.serial or "",), (*drive.by_id, *drive.links))
            ),
            traits=traits_of(drive, self.root),
            reach=self._reach(spec, drive, cache, key),
            by_match=tuple(rules_by_match(rules)),
        )

    def _reach(self, spec: DriveSpec, drive: BlockDevice, cache: DriveCache, key: udev_rule.RuleKey | None) -> Reach | None:
        place = place_of(drive, self.root)
        if place is None:
            return None
        provider = PROVIDERS[t.cast(str, cache.provider)](self.runner, self.root)
        try:
            effect = provider.boot_effect(DriveCacheSetting(drive.name, drive.path, DISABLED, spec.device))
        except StorageError:
            # The drive has no rule of its own either, for the reason that is in no_rule.
            return None
        head = head_of(provider.kernel_pattern, provider.events, place)
        return Reach(head, drive.properties.get("ID_MODEL") or "", drive.rotational, drive.transport, effect, key)

    def _is_dropping(self, name: str, cache: DriveCache) -> bool:
        # The NVMe driver takes every cache that is there for enabled.
        sees = cache.drive == ENABLED if cache.provider == "nvme" else driver_sees_cache(name, self.root)
        return sees and drops_flushes(name, self.root) and stays_written(self.root)

    def plan(self, state: t.Sequence[DriveState]) -> list[Step]:
        """Per drive: the drive itself (``write_cache``) or, if only the kernel is wrong, the kernel (``kernel_view``); then ``boot_rule``.

        A cache is enabled last: after its rule, which a full or read-only ``/etc`` refuses, and directly before the tables above it are loaded again.

        :raises BadInput: for a specification that contradicts another one or cannot be met.
        :raises Refused: for a write cache below a layer that passes no flushes on.
        """
        pairs = self._pairs(state)
        by_match = self._match_plan(pairs)
        for drive, spec in pairs:
            try:
                require_settable(drive, spec, covered=drive.unit in by_match.covered)
            except StorageError as error:
                raise _with_entry(spec, error) from None
        rules = self._plan_match(pairs, by_match)
        steps: list[Step] = []
        later: list[Step] = []
        loaded: set[str] = set()
        for drive, spec in pairs:
            live, boot = self._plan_live(drive, spec), self._plan_boot(drive, spec, covered=drive.unit in by_match.covered)
            if spec.write_cache == DISABLED:
                steps += live
                # A rule of the drive goes once a rule by match is there in its place.
                (later if rules else steps).extend(boot)
            else:
                # A device on several drives passes flushes on to all of them once it was loaded after the first.
                (later if rules else steps).extend([*boot, *live, *self._plan_above(drive, live, loaded)])
        return [*steps, *rules, *later]

    def _pairs(self, state: t.Sequence[DriveState]) -> list[tuple[DriveState, DriveSpec]]:
        """Each drive with the entry that decides: one that names it, or the last match.

        :raises BadInput: for a drive that is named twice.
        """
        drives = {drive.item: drive for drive in state}
        pairs = [(drives[spec.device], spec) for spec in self.spec if spec.match is None]
        require_listed_once(pairs)
        named = {drive.unit for drive, spec in pairs}
        for drive in state if len(pairs) < len(self.spec) else ():
            spec = choose(self.spec, drive.traits)
            if spec is not None and drive.unit not in named:
                named.add(drive.unit)
                pairs.append((drive, replace(spec, device=drive.item)))
        return pairs

    def _match_plan(self, pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> _MatchPlan:
        """:raises BadInput: for a drive that a rule by match would disable against its own entry, and cannot except."""
        chosen = [(drive, drive.reach, own.write_cache == DISABLED and own.persistent) for drive, own in pairs if drive.reach and drive.drive != ABSENT]
        labels: dict[str, str] = {}
        for spec in self.spec:
            if spec.match is not None and spec.write_cache == DISABLED and spec.persistent and conditions_of(spec.match) is not None:
                labels.update(dict.fromkeys(self._rules_of(spec.match, pairs), f"{VARIABLE}: {spec.label}"))
        if pairs and not any(spec.match for spec in self.spec):
            # Those of another list.
            labels = dict.fromkeys(pairs[0][0].by_match, f"/{udev_rule.RULES_FILE}")
        lines = []
        for line, label in labels.items():
            fitting = [(reach, disabled) for drive, reach, disabled in chosen if reach.fits(line)]
            lines.append(
                with_exceptions(line, [reach for reach, disabled in fitting if disabled], [reach for reach, disabled in fitting if not disabled], label)
            )
        covered = [drive.unit for drive, reach, disabled in chosen if disabled and any(reach.disabled_by(line) for line in lines)]
        return _MatchPlan(tuple(sorted(set(lines))), frozenset(covered))

    def _rules_of(self, match: Match, pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> list[str]:
        """The rules of one entry; while all of its drives are out, those that are there."""
        matched = [drive for drive, own in pairs if match.meets(drive.traits, drive.traits.rotational)]
        if matched:
            return rules_for(match, [drive.reach for drive in matched if drive.reach and drive.drive != ABSENT and drive.reach.meets(match)])
        return rules_with_mark(pairs[0][0].by_match, match) if pairs else []

    def _plan_match(self, pairs: t.Sequence[tuple[DriveState, DriveSpec]], wanted: _MatchPlan) -> list[Step]:
        before = sorted(pairs[0][0].by_match) if pairs else []
        if list(wanted.lines) == before or not pairs:
            return []
        proving = tuple((drive.provider, replace(_settings(drive, spec)[0], value=DISABLED)) for drive, spec in pairs if drive.unit in wanted.covered)
        return [
            Step(
                layer=self.name,
                item=f"/{udev_rule.RULES_FILE}",
                attribute="match_rules",
                before="\n".join(before) or None,
                after="\n".join(wanted.lines) or None,
                action=f"{'Write' if wanted.lines else 'Remove'} the udev rules that disable write caches by match in /{udev_rule.RULES_FILE}",
                operation=WriteMatchRules(wanted.lines, proving if wanted.lines else ()),
            )
        ]

    def _plan_above(self, drive: DriveState, live: t.Sequence[Step], loaded: set[str]) -> t.Iterator[Step]:
        undo = next((step.operation.disabling() for step in live if isinstance(step.operation, SetDrive)), None)
        for one in drive.above:
            if one.reloadable and one.name not in loaded:
                loaded.add(one.name)
                yield Step(
                    layer=self.name,
                    item=drive.item,
                    attribute=f"flushes.{one.path}",
                    before="ended",
                    after="passed on",
                    action=f"Load the table of {one.path} again, so that it passes flushes on to {drive.item} ({drive.name})",
                    operation=ReloadTable(one.name, one.path, undo),
                )

    def _plan_live(self, drive: DriveState, spec: DriveSpec) -> list[Step]:
        settings = _settings(drive, spec)
        if drive.drive != spec.write_cache and drive.drive != ABSENT:
            verb = "Enable" if spec.write_cache == ENABLED else "Disable"
            return [
                Step(
                    layer=self.name,
                    item=drive.item,
                    attribute="write_cache",
                    before=drive.drive,
                    after=spec.write_cache,
                    action=f"{verb} the write cache of {drive.item} ({drive.name}), provider {drive.provider}",
                    operation=SetDrive(drive.provider, settings),
                )
            ]
        if not kernel_agrees(drive.provider, drive.drive, drive.kernel):
            return [
                Step(
                    layer=self.name,
                    item=drive.item,
                    attribute="kernel_view",
                    before=drive.kernel,
                    after=KERNEL_WORD[drive.drive],
                    action=f"Set the kernel's view: the write cache of {drive.item} ({drive.name}) is {drive.drive}",
                    operation=AlignKernel(drive.provider, settings),
                )
            ]
        return []

    def _plan_boot(self, drive: DriveState, spec: DriveSpec, *, covered: bool) -> list[Step]:
        rule = drive.boot_rules[spec.write_cache] if spec.persistent and drive.drive != ABSENT and not covered else None
        if rule == drive.boot_rule:
            return []
        # What the drive has when the rule is written: a cache is disabled before that, and enabled after it.
        present = drive.drive if spec.write_cache == ENABLED and drive.drive == DISABLED else spec.write_cache
        proving = replace(_settings(drive, spec)[0], value=present)
        return [
            Step(
                layer=self.name,
                item=drive.item,
                attribute="boot_rule",
                before=drive.boot_rule,
                after=rule,
                action=f"{'Write' if rule else 'Remove'} the udev rule for the write cache of {drive.item} in /{udev_rule.RULES_FILE}",
                operation=WriteRule(drive.keys, rule, provider=drive.provider, proving=proving),
            )
        ]

    def verify(self, state: t.Sequence[DriveState]) -> list[Difference]:
        """As planned again, with the command that claimed to have done it as evidence.

        :raises NotEffective: if a drive did not take what was set.
        """
        differences = super().verify(state)
        for difference in differences:
            if difference.item in self.commands:
                raise NotEffective(
                    f"{self.name}: {difference}, although {self.commands[difference.item].command_line} "
                    f"ended with exit status {self.commands[difference.item].rc}. The drive or its controller ignores the setting.",
                    item=difference.item,
                    completed=self.commands[difference.item],
                    differences=[vars(one) for one in differences],
                )
        return differences

    def check_settled(self, state: t.Sequence[DriveState]) -> None:
        """Matches without a drive, and what services make of a drive after its rule has set it."""
        for spec in self.spec:
            if spec.match is not None and not any(spec.match.meets(drive.traits, drive.traits.rotational) for drive in state):
                self.warn(no_match_sentence(VARIABLE, spec.label))
        for drive, spec in self._pairs(state):
            for override in drive.overrides if spec.persistent else ():
                if override.value != spec.write_cache:
                    self.warn(override.sentence(spec.device, spec.write_cache))

    #: The same: a run changes nothing of it.
    check_planned = check_settled

    def facts(self, state: t.Sequence[DriveState]) -> dict[str, t.Any]:
        """What the module returns about every drive of the list."""
        return {
            "drives": [
                {
                    "device": drive.item,
                    "name": drive.name,
                    "provider": drive.provider,
                    "drive": drive.drive,
                    "kernel": drive.kernel,
                    "boot_rule": drive.boot_rule or _rule_by_match(drive),
                }
                for drive in state
            ]
        }


def _with_entry(spec: DriveSpec, error: StorageError) -> StorageError:
    return error if spec.match is None else chosen_by(error, VARIABLE, spec.label, spec.device)


def _rule_by_match(drive: DriveState) -> str | None:
    return "\n".join(line for line in drive.by_match if drive.reach and drive.reach.disabled_by(line)) or None


def _settings(drive: DriveState, spec: DriveSpec) -> tuple[DriveCacheSetting, ...]:
    return tuple(DriveCacheSetting(path, drive.node, spec.write_cache, drive.item, spec.persistent) for path in drive.paths)
