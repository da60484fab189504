# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``purge``: SSDs that are brought back to the state in which they were new, before they are measured."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents, namespaces
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.output import parse_erase
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import DONE, FAILED, RUNNING, PurgeRecord, read_record, write_record
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._purge import erase
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import (
    LAYER,
    PurgeDrive,
    PurgeSpec,
    PurgeSpecs,
    PurgeState,
    PurgeStates,
    interrupted,
    plan,
    require_method,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


class PurgeLayer(Layer[PurgeStates, PurgeSpecs]):
    """Drives that are purged. Only those of the specification are read."""

    name = LAYER
    one_at_a_time = True

    def __init__(
        self,
        runner: Runner,
        spec: PurgeSpecs,
        root: Path = Path("/"),
        *,
        sleep: t.Callable[[float], None] = time.sleep,
        now: t.Callable[[], float] = time.time,
    ) -> None:
        super().__init__(runner, spec, root, sleep=sleep)
        self.now = now
        #: The devices that this run purged.
        self.purged: set[str] = set()

    # -- read and plan

    def read(self) -> PurgeStates:
        """Each drive of the list: what the guard finds, how it can be purged, and its last purge."""
        if not self.spec:
            return {}
        devices = read_devices(self.runner, self.root)
        return {spec.device: self._read_drive(devices, spec) for spec in self.spec.drives}

    def _read_drive(self, devices: Devices, spec: PurgeSpec) -> PurgeState:
        facts = examination.examine(devices, spec.target, self.runner, self.root, writing=True, pause=self.sleep)
        refusal, objections = "", ()
        try:
            judge.require(facts, writing=True)
        except Refused as error:
            refusal = error.message
            objections = tuple((one["kind"], one["text"]) for one in error.to_dict()["objections"])
        found = PurgeState(facts, objections, refusal, record=read_record(facts.identity, self.root))
        if interrupted(found):
            self.warn(interrupted(found))
        return self._with_ways(found)

    def _with_ways(self, found: PurgeState) -> PurgeState:
        """The drive with the ways in which it can be purged now."""
        device = found.facts.device
        if device is None or device.kind != "disk":
            return found
        with contextlib.suppress(OSError, ValueError):
            place = self.root / "sys/class/block" / device.name / "queue/discard_max_bytes"
            found = dataclasses.replace(found, discards=int(place.read_text()) > 0)
        if device.transport == "sata":
            return dataclasses.replace(found, security=erase.read_security(self.runner, device.path))
        controller = namespaces.controller_of(self.root, device.name) if device.transport == "nvme" else None
        return self._with_controller(found, controller) if controller else found

    def _with_controller(self, found: PurgeState, path: str) -> PurgeState:
        identified = namespaces.identify(self.runner, path)
        numbers = namespaces.read_controller(self.runner, path).namespaces
        flbas = next((one.flbas for one in numbers if one.attached), 0)
        return dataclasses.replace(found, erase=parse_erase(identified), controller=path, flbas=flbas, namespaces=len(numbers))

    def plan(self, state: PurgeStates) -> list[Step]:
        return plan(state, self.spec)

    def verify(self, state: PurgeStates) -> list[Difference]:
        """Whether what was purged is recorded as such: otherwise it would be purged again in the same campaign."""
        records = {device: state[device].record for device in self.purged}
        return [
            Difference(LAYER, device, "purged", DONE, record.state if record else None)
            for device, record in records.items()
            if record is None or record.state != DONE
        ]

    # -- apply

    def purge(self, operation: PurgeDrive, step: Step) -> None:
        """Purge a drive that is held, and read it again.

        :raises Refused: if it is in use by now, is another drive, was written to since it was examined, or cannot be purged so any more.
        """
        facts = operation.found.facts
        record = PurgeRecord(facts.identity or "", step.item, operation.method, self.spec.once, RUNNING, self.now())
        node = self.root / facts.path.lstrip("/")
        with judge.claimed(facts, self.runner, self.root, pause=self.sleep):
            judge.require_contents(examination.examined_again(facts, self.runner, self.root, None))
            # The drives before it took hours: how it is reached, and what else would be erased with it, may have changed since.
            found = self._with_ways(dataclasses.replace(operation.found, erase=None, controller="", flbas=0, namespaces=1))
            require_method(found, operation.method, step.item)
            places = contents.places_of(facts.size)
            before = self._contents(node, places)
            judge.require_unchanged(facts, self.runner, self.root)
            write_record(record, self.root)
            try:
                erase.erase(self.runner, facts.path, operation.method, found, self.sleep)
                reads = self._proven(facts.path, before, self._contents(node, places))
            except StorageError as error:
                write_record(dataclasses.replace(record, state=FAILED, finished=self.now(), message=error.message), self.root)
                raise
            write_record(dataclasses.replace(record, state=DONE, finished=self.now(), reads=reads), self.root)
        self.purged.add(step.item)
        if facts.device is not None and facts.device.partitions:
            # The kernel still has the partitions of the table that is gone.
            self.runner.run(["blockdev", "--rereadpt", facts.path], ok=None)
        if self.runner.has("udevadm"):
            self.runner.run(["udevadm", "settle"], ok=None, timeout=180)

    @staticmethod
    def _contents(node: Path, places: t.Iterable[contents.Extent]) -> dict[contents.Extent, contents.Sample]:
        # A drive that is locked since a purge was interrupted returns errors, and after its erase it has to return blocks.
        try:
            return contents.samples(node, places)
        except OSError:
            return {}

    @staticmethod
    def _proven(path: str, before: t.Mapping[contents.Extent, contents.Sample], after: t.Mapping[contents.Extent, contents.Sample]) -> str:
        """What the drive returns now, as the rest of a sentence.

        :raises NotEffective: if it cannot be read, or still returns what was on it.
        """
        if not after:
            raise NotEffective(f"{path} cannot be read after its purge.", item=path)
        left = [place for place, sample in after.items() if sample.byte is None and before.get(place) == sample]
        if left:
            raise NotEffective(
                f"{path} returns the same data as before its purge at {len(left)} of {len(after)} places, the first at byte {left[0].offset}: it did nothing.",
                item=path,
            )
        found = {sample.byte for sample in after.values()}
        content = "zeroes" if found == {0} else f"the byte {found.copy().pop():#04x}" if len(found) == 1 and None not in found else "other data than before"
        had_data = any(sample.byte is None for sample in before.values())
        return f"returns {content} at all {len(after)} places that were read" + ("" if had_data else ", where it had no data before")

    # -- after

    def facts(self, state: PurgeStates) -> dict[str, t.Any]:
        """Each drive of the list, with its last purge."""
        return {"drives": [self._described(spec, state[spec.device]) for spec in self.spec.drives]}

    @staticmethod
    def _described(spec: PurgeSpec, found: PurgeState) -> dict[str, t.Any]:
        device = found.facts.device
        return {
            "device": spec.device,
            "identity": found.facts.identity,
            "model": device.model if device is not None else None,
            "size": found.facts.size,
            "purge": found.record.to_dict() if found.record is not None else None,
        }
