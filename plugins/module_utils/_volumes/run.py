# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the role in two calls: the plan, with the devices claimed before anything is made on them, and the proof afterwards."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.plan import VolumePlan, plan
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import CREATING, DONE, REMOVING, HostReader

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VolumeSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import VolumeState


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
