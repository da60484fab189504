# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make or remove test volumes, in two calls: the plan, with the devices claimed before anything is made on them, and the proof afterwards.

Every refusal is raised here, before anything is changed.

The steps are carried out by tasks of the role ``test_volumes`` with community.general, ansible.posix and mdadm, by their names below.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import CREATING, DONE, REMOVING, TAG, HostReader

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.report import Group, Volume
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VolumeSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import Member, VolumeState


class MeasurementFolder(t.Protocol):
    """Where measurements of this host are: beside their campaigns is the record of left devices."""

    folder: Path

    def is_free(self) -> bool:
        """Whether nothing is measured now."""

    def make(self) -> None:
        """Make a folder of our own in it, which shows that its record may be written."""


class VolumesRun:
    """The volumes of one host.

    :param spool: of measurements, whose record of left devices says which devices may be written again.
    """

    def __init__(self, runner: Runner, specs: t.Sequence[VolumeSpec], spool: MeasurementFolder, root: Path = Path("/")) -> None:
        self.runner = runner
        self.specs = specs
        self.spool = spool
        self.root = root
        self.warnings: list[str] = []

    def prepare(self, *, check_mode: bool) -> list[VolumePlan]:
        """Read, examine and plan; then claim the devices that will be changed, unless in check mode.

        :raises StorageError: if a volume cannot be made or removed, if a tool is missing or a measurement is running.
        """
        if not self.specs:
            return []
        reader, states, plans = self._planned()
        changing = [one for one in plans if one.steps]
        for one in changing:
            self._require_tools(one, check_mode=check_mode)
        if changing and not self.spool.is_free():
            raise Refused(f"{changing[0].spec.name}: a measurement is running on this host: wait for its end.", item=changing[0].spec.name)
        if changing and not check_mode:
            self.spool.make()
            for one in changing:
                self._claim(reader, one, states[one.spec.name])
        return plans

    def finish(self) -> list[VolumePlan]:
        """Read again, and record that volumes are complete and that devices are free.

        :raises NotEffective: if a volume is not as described.
        """
        reader, states, plans = self._planned()
        left = [(one.spec.name, step.action) for one in plans for step in one.steps if step.task not in ("record", "release")]
        if left:
            raise NotEffective(
                f"{left[0][0]}: the volume is not as described after all steps; still to do: {'; '.join(text for _n, text in left)}.", item=left[0][0]
            )
        for one in plans:
            if one.steps:
                self._record(reader, one.spec, states[one.spec.name])
        return plans

    def _record(self, reader: HostReader, spec: VolumeSpec, state: VolumeState) -> None:
        """What is on a new volume, and on the devices of a removed one, is left of what was free: it may be overwritten as long as it is unchanged."""
        records = reader.records(spec, DONE)
        if spec.state == "present" and state.device is not None and state.filesystem is None:
            records.leave(reader.identified(state.device, spec.path), self.root)
        for member in state.members:
            if member.facts is None:
                continue
            if spec.state == "present":
                records.begin(member.facts)
            elif not member.is_ours and not [found for found in judge(member.facts, writing=True) if found.kind != "data"]:
                records.leave(member.facts, self.root)

    def _planned(self) -> tuple[HostReader, dict[str, VolumeState], list[VolumePlan]]:
        reader = HostReader(self.runner, self.spool.folder, self.root)
        states = {spec.name: reader.read(spec) for spec in self.specs}
        return reader, states, plan(self.specs, states)

    def _claim(self, reader: HostReader, one: VolumePlan, state: VolumeState) -> None:
        """From here on what is found on the devices is of this volume, also after the run was killed."""
        creating = {"create_array", "create_group", "create_pool", "create_volume"} & set(one.tasks)
        if one.spec.state == "present" and not creating:
            return
        records = reader.records(one.spec, CREATING if creating else REMOVING)
        for member in state.members:
            if member.facts is not None:
                records.begin(member.facts)

    def _require_tools(self, one: VolumePlan, *, check_mode: bool) -> None:
        tools = ["mdadm" if one.spec.is_array else "lvm"]
        if "make_filesystem" in one.tasks:
            tools.append(f"mkfs.{one.spec.filesystem}")
        for tool in tools:
            try:
                self.runner.find(tool)
            except ToolMissing as error:
                if not check_mode:
                    raise ToolMissing(f"{one.spec.name}: {error.message}", item=one.spec.name) from None
                # A package that the role is going to install is not there yet.
                self.warnings.append(f"{one.spec.name}: {error.message}")


POOL = "pool"
#: LVM's names for the layout of each type.
_SEGMENTS = {"linear": "linear", "striped": "striped", "thin": "thin"}
#: What a cache calls the volume that it serves, below its own name.
_ORIGINS = ("corig", "wcorig")


@frozen
class Step:
    """One step of one volume. ``task`` is what the role knows it by, ``action`` a sentence in the imperative."""

    task: str
    action: str


@frozen
class VolumePlan:
    """What is done to one volume. ``labelled`` are the devices whose labels a removal has to remove."""

    spec: VolumeSpec
    steps: tuple[Step, ...] = ()
    labelled: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(step.task for step in self.steps)

    def to_dict(self) -> dict[str, t.Any]:
        """For the tasks of the role, and for its user."""
        spec = self.spec
        sizes = {"size": f"{spec.size}b" if spec.size is not None else f"{round(spec.share * 100)}%FREE"}
        options = ["--wipesignatures", "y"]
        if spec.type == "striped":
            options += ["--type", "striped", "--stripes", str(spec.stripes), "--stripesize", f"{spec.stripe_size // KIB}k"]
        return {
            "name": spec.name,
            "type": spec.type,
            "state": spec.state,
            "device": spec.path,
            "devices": list(spec.devices),
            "label": spec.label,
            "tag": TAG,
            "pool": POOL if spec.type == "thin" else None,
            "lvol_options": " ".join(options),
            **sizes,
            "chunk": spec.stripe_size // KIB or None,
            "filesystem": spec.filesystem,
            "mount": spec.mount,
            "mount_options": spec.mount_options,
            "labelled": list(self.labelled),
            "steps": list(self.tasks),
        }


def plan(specs: t.Sequence[VolumeSpec], states: t.Mapping[str, VolumeState]) -> list[VolumePlan]:
    """The plan of every volume, in the order of the list.

    :param states: by the name of the volume.
    :raises StorageError: if a volume cannot be made or removed.
    """
    _require_disjoint(specs, states)
    return [_planned(spec, states[spec.name]) for spec in specs]


def _planned(spec: VolumeSpec, state: VolumeState) -> VolumePlan:
    if spec.state == "present":
        return VolumePlan(spec, tuple(_creation(spec, state)))
    whole = state.group is not None or state.array is not None
    return VolumePlan(spec, tuple(_removal(spec, state)), tuple(member.path for member in state.members if whole or member.is_ours))


def _require_disjoint(specs: t.Sequence[VolumeSpec], states: t.Mapping[str, VolumeState]) -> None:
    owners: dict[str, str] = {}
    for spec in specs:
        names = [member.name for member in states[spec.name].members if member.name is not None]
        double = next((name for name in names if names.count(name) > 1), None)
        if double:
            raise BadInput(f"{spec.name}: two of its devices are the same device, /dev/{double}: list each once.", item=spec.name)
        for name in names if spec.state == "present" else ():
            if name in owners:
                raise BadInput(f"{spec.name} and {owners[name]} both use /dev/{name}: give each volume devices of its own.", item=spec.name)
            owners[name] = spec.name


# -- creation


def _creation(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    missing = state.group is None and state.array is None
    fresh = state.device is None
    if missing:
        for member in state.members:
            _require_free(spec, member)
    if spec.is_array:
        yield from _array(spec, state)
    else:
        yield from _group(spec, state)
    yield from _file_system(spec, state, fresh=fresh)
    yield from _mount(spec, state)
    if not missing and state.begun(CREATING):
        yield Step("record", f"Record that {spec.name} is complete")


def _require_free(spec: VolumeSpec, member: Member) -> None:
    """Only an empty device is used, or one that an unfinished run of this very volume has labelled."""
    objections = [one for one in member.objections if one.kind != "data" or not member.is_ours]
    if objections:
        reasons = "; ".join(one.text for one in objections)
        only_data = all(one.kind == "data" for one in objections)
        advice = f"if nothing on it is needed, erase it manually (wipefs --all and blkdiscard --zeroout {member.path})" if only_data else "free it first"
        raise Refused(
            f"{spec.name}: {reasons}. A test volume is only created on empty devices: choose another device, or {advice}.",
            item=spec.name,
            objections=[{"kind": one.kind, "text": one.text} for one in objections],
        )


def _array(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    array = state.array
    if array is None:
        yield Step("create_array", f"Create the array {spec.path} ({spec.type}) of {len(spec.devices)} devices")
        return
    if not array.size:
        raise Refused(
            f"{spec.name}: the array /dev/{array.name} exists and does not run: check /proc/mdstat, and if it was only partly created,"
            f" stop it (mdadm --stop /dev/{array.name}) and run this again.",
            item=spec.name,
        )
    _require_same_devices(spec, state, array.members)
    _require_equal(spec, "type", array.level, spec.type)
    if spec.type == "raid10":
        _require_equal(spec, "stripe_size", format_size(array.chunk), format_size(spec.stripe_size))


def _group(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    group = state.group
    if group is None:
        yield Step("create_group", f"Create the volume group {spec.label} on {len(spec.devices)} devices")
    else:
        _require_own_group(spec, group)
        _require_same_devices(spec, state, state.group_members)
    volume = group.volume(spec.name) if group is not None else None
    if spec.type == "thin" and (group is None or group.volume(POOL) is None):
        yield Step("create_pool", f"Create the thin pool {spec.label}/{POOL}")
    if group is None or volume is None:
        yield Step("create_volume", f"Create the volume {spec.path} ({_layout(spec)})")
    else:
        _require_layout(spec, group, volume)
        if state.device is None:
            raise Refused(f"{spec.name}: {spec.path} is not active: activate it (lvchange --activate y {spec.label}/{spec.name}).", item=spec.name)


def _layout(spec: VolumeSpec) -> str:
    return f"striped over {spec.stripes} devices, {format_size(spec.stripe_size)} each" if spec.type == "striped" else spec.type


def _require_layout(spec: VolumeSpec, group: Group, volume: Volume) -> None:
    data = volume
    if volume.segtype in ("cache", "writecache"):
        data = next((found for found in (group.volume(f"{spec.name}_{suffix}") for suffix in _ORIGINS) if found), volume)
    _require_equal(spec, "type", data.segtype, _SEGMENTS[spec.type])
    if spec.type == "striped":
        _require_equal(spec, "stripes", data.stripes, spec.stripes)
        _require_equal(spec, "stripe_size", format_size(data.stripe_size), format_size(spec.stripe_size))
    # LVM rounds up to whole extents, on every stripe.
    if spec.size is not None and not spec.size <= volume.size < spec.size + group.extent * spec.stripes:
        _require_equal(spec, "size", format_size(volume.size), format_size(spec.size))


def _require_equal(spec: VolumeSpec, attribute: str, found: t.Any, wanted: t.Any) -> None:
    if found != wanted:
        raise Refused(
            f"{spec.name}: {spec.path} exists with {attribute} {found} instead of {wanted}, and an existing volume is not changed:"
            " remove it first (state: absent), or describe it as it is.",
            item=spec.name,
        )


def _require_own_group(spec: VolumeSpec, group: Group) -> None:
    if TAG not in group.tags:
        raise Refused(f"{spec.name}: the volume group {group.name} was not created by this role (it has no tag {TAG}): choose another name.", item=spec.name)


def _require_same_devices(spec: VolumeSpec, state: VolumeState, found: t.Sequence[str]) -> None:
    """The cache of a volume may have brought further devices into its group; none may be lacking."""
    described = {member.name for member in state.members}
    cached = state.group is not None and any(volume.segtype in ("cache", "writecache") for volume in state.group.volumes)
    if not described <= set(found) or (set(found) != described and not cached):
        raise Refused(
            f"{spec.name}: {spec.label} is on other devices ({', '.join(sorted(found)) or 'none'}) than those listed"
            f" ({', '.join(sorted(name or '' for name in described))}): list its devices, or choose another name.",
            item=spec.name,
        )


def _file_system(spec: VolumeSpec, state: VolumeState, *, fresh: bool) -> t.Iterator[Step]:
    if spec.filesystem is None or state.filesystem == spec.filesystem:
        return
    step = Step("make_filesystem", f"Create a file system ({spec.filesystem}) on {spec.path}")
    if fresh:
        yield step
        return
    if state.filesystem is not None:
        _require_equal(spec, "filesystem", state.filesystem, spec.filesystem)
    # All that an unfinished run has left on the volume is of this role.
    objections = [one for one in state.objections if one.kind != "data" or not state.begun(CREATING)]
    if objections:
        reasons = "; ".join(one.text for one in objections)
        raise Refused(
            f"{spec.name}: no file system is created, because {reasons}: remove the volume first (state: absent), or leave out filesystem.", item=spec.name
        )
    yield step


def _mount(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    if spec.mount is None:
        return
    mounted = state.device is not None and spec.mount in state.device.mountpoints
    if state.fstab is not None and state.fstab[0] != spec.path:
        raise Refused(f"{spec.name}: {spec.mount} is the mount point of {state.fstab[0]} in /etc/fstab: choose another one.", item=spec.name)
    if not mounted and state.mounted_there is not None:
        raise Refused(f"{spec.name}: {state.mounted_there} is mounted on {spec.mount}: choose another mount point.", item=spec.name)
    if not mounted and not state.mount_is_empty:
        raise Refused(f"{spec.name}: the directory {spec.mount} is not empty: choose another mount point.", item=spec.name)
    if not mounted or state.fstab != (spec.path, spec.mount_options):
        yield Step("mount", f"Mount {spec.path} on {spec.mount}, also at boot")


# -- removal


def _removal(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    if state.group is not None:
        _require_own_group(spec, state.group)
        _require_same_devices(spec, state, state.group_members)
        _require_alone(spec, state.group)
    if state.array is not None:
        _require_same_devices(spec, state, state.array.members)
    _require_removable(spec, state)
    if spec.mount and (state.fstab or ("", ""))[0] == spec.path:
        yield Step("unmount", f"Unmount {spec.mount} and remove it from /etc/fstab")
    elif state.device is not None and state.device.mountpoints:
        yield Step("unmount", f"Unmount {spec.mount}")
    yield from _array_removal(spec, state) if spec.is_array else _group_removal(spec, state)
    labelled = any(member.is_ours for member in state.members)
    if state.group is not None or state.array is not None or labelled or state.begun(REMOVING) or state.begun(CREATING):
        yield Step("release", f"Record that the devices of {spec.name} are free")


def _require_alone(spec: VolumeSpec, group: Group) -> None:
    if any(volume.segtype in ("cache", "writecache") for volume in group.volumes):
        raise Refused(f"{spec.name}: {spec.path} is cached: remove its cache first (state: absent in block_cache_caches).", item=spec.name)
    foreign = [volume.name for volume in group.volumes if not volume.hidden and volume.name not in (spec.name, POOL)]
    pool = group.volume(POOL)
    if pool is not None and pool.segtype != "thin-pool":
        foreign.append(POOL)
    if foreign:
        raise Refused(
            f"{spec.name}: the volume group {group.name} contains volumes that this role did not create ({', '.join(foreign)}): remove them first.",
            item=spec.name,
        )


def _require_removable(spec: VolumeSpec, state: VolumeState) -> None:
    device = state.device
    if device is None:
        inactive = state.group is not None and state.group.volume(spec.name) is not None
        labelled = spec.is_array and (state.array is not None or any(member.is_ours for member in state.members))
        if (inactive or labelled) and not spec.allow_data_loss and not state.begun(REMOVING):
            raise Refused(f"{spec.name}: {spec.path} is not active, so its contents cannot be read: set allow_data_loss: true to remove it.", item=spec.name)
        return
    elsewhere = [point for point in device.mountpoints if point != spec.mount]
    if elsewhere:
        raise Refused(f"{spec.name}: {spec.path} is mounted on {', '.join(elsewhere)}: unmount it, or set mount to that path.", item=spec.name)
    if device.holders or device.swap:
        use = f"used by {', '.join(device.holders)}" if device.holders else "swap space in use"
        raise Refused(f"{spec.name}: {spec.path} is {use}: free it first.", item=spec.name)
    # A mounted file system is in use by its mount, and is unmounted first.
    used = [one.text for one in state.objections if one.kind != "data"] if not device.mountpoints else []
    if used:
        raise Refused(f"{spec.name}: {'; '.join(used)}. Free the volume first; no variable overrules this.", item=spec.name)
    if not spec.allow_data_loss and (device.mountpoints or state.filesystem or any(one.kind == "data" for one in state.objections)):
        raise Refused(
            f"{spec.name}: {spec.path} contains {state.filesystem or 'data'}: set allow_data_loss: true on this volume to remove it with its contents.",
            item=spec.name,
        )


def _array_removal(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    if state.array is not None:
        yield Step("stop_array", f"Stop the array {spec.path}")
    if state.array is not None or any(member.is_ours for member in state.members):
        yield Step("remove_labels", f"Remove the array labels of the devices of {spec.name}")


def _group_removal(spec: VolumeSpec, state: VolumeState) -> t.Iterator[Step]:
    group = state.group
    if group is not None:
        if group.volume(spec.name) is not None:
            yield Step("remove_volume", f"Remove the volume {spec.path}")
        if group.volume(POOL) is not None:
            yield Step("remove_pool", f"Remove the thin pool {spec.label}/{POOL}")
        yield Step("remove_group", f"Remove the volume group {spec.label}")
    if group is not None or any(member.is_ours for member in state.members):
        yield Step("remove_labels", f"Remove the LVM labels of the devices of {spec.name}")
