# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues made of files, behind a kernel that resets, rounds and ignores as Linux 6.1 was seen to do."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Outcome, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import plan as queue_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import read_module_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

if t.TYPE_CHECKING:
    import pytest

_SCHEDULERS = ("mq-deadline", "kyber", "bfq", "none")


class FakeQueues:
    """Disks with queues; every write of the layer goes through :meth:`write` and is remembered.

    :param limits_reset: whether what limits a request sets read_ahead_kb anew, as kernels from 6.9 do.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, limits_reset: bool = False) -> None:
        self.host = FakeHost(root)
        self.root = root
        self.limits_reset = limits_reset
        self.deaf: set[str] = set()
        self.writes: list[tuple[str, str, str]] = []
        monkeypatch.setattr(queue_plan, "write_sysfs", self.write)
        self.host.write(f"lib/modules/{os.uname().release}/modules.builtin", "kernel/block/mq-deadline.ko\nkernel/drivers/md/md-mod.ko\n")
        for module in ("bfq.ko.zst", "kyber-iosched.ko.zst"):
            self.host.write(f"lib/modules/{os.uname().release}/kernel/block/{module}", "")

    def disk(self, name: str, transport: str = "sata", *, tags: int | None = 32, can_queue: int = 32, depth: int | None = None, **more: t.Any) -> Path:
        """A disk whose queue is as the kernel makes it; without ``tags`` one that passes bios on."""
        place = self.host.disk(name, transport, **more)
        rotational = bool(more.get("rotational"))
        values = {
            "scheduler": "[mq-deadline] none" if tags else "none",
            "nr_requests": "64" if tags else "128",
            "nomerges": "0",
            "read_ahead_kb": "128",
            "rq_affinity": "1",
            "max_sectors_kb": "128",
            "max_hw_sectors_kb": "128",
            "wbt_lat_usec": "75000" if rotational else "2000",
            "rotational": str(int(rotational)),
            "add_random": "1",
        }
        for key, value in values.items():
            self._file(place / "queue" / key, value)
        if tags:
            self._file(place / "mq/0/nr_tags", str(tags))
        if transport in ("sata", "sas", "raid", "usb"):
            self._file(place / "device/queue_depth", str(depth or min(can_queue, 32)))
            adapter = next(folder for folder in place.parents if folder.name.startswith("host"))
            self._file(adapter / "scsi_host" / adapter.name / "can_queue", str(can_queue))
        return place

    @staticmethod
    def _file(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def value(self, name: str, place: str) -> str:
        text = (self.root / "sys/class/block" / name / place).read_text().strip()
        return text[text.index("[") + 1 : text.index("]")] if "[" in text else text

    def write(self, path: Path, value: str, item: str) -> None:
        """What the kernel does with a value."""
        name, place = path.relative_to(self.root / "sys/class/block").parts[0], path.name
        self.writes.append((name, place, value))
        if name in self.deaf:
            return
        folder = self.root / "sys/class/block" / name
        tags = int((folder / "mq/0/nr_tags").read_text())
        if place == "scheduler":
            if value not in _SCHEDULERS:
                raise CommandFailed(f"{item}: the kernel refused '{value}' for {path}: Invalid argument.", item=item)
            if value != self.value(name, "queue/scheduler"):
                self._file(path, " ".join(f"[{one}]" if one == value else one for one in _SCHEDULERS))
                self._file(folder / "queue/nr_requests", str(tags if value == "none" else 2 * min(tags, 128)))
            return
        number = int(value)
        refused = {
            "nr_requests": number > (tags if self.value(name, "queue/scheduler") == "none" else 2048),
            "max_sectors_kb": not 4 <= number <= int(self.value(name, "queue/max_hw_sectors_kb")),
        }
        if refused.get(place):
            raise CommandFailed(f"{item}: the kernel refused '{value}' for {path}: Invalid argument.", item=item)
        if place == "wbt_lat_usec" and number == -1:
            number = 75000 if self.value(name, "queue/rotational") == "1" else 2000
        if place == "read_ahead_kb":
            number -= number % 4
        self._file(path, str(number))
        if self.limits_reset and place in ("rotational", "add_random", "max_sectors_kb"):
            self._file(folder / "queue/read_ahead_kb", "128")

    @property
    def runner(self) -> ScriptedRunner:
        return ScriptedRunner({("udevadm", "info"): self.host.udev_reply, ("udevadm", "control"): Reply()})

    def wanted(self, *entries: t.Mapping[str, t.Any], modules: t.Sequence[t.Mapping[str, t.Any]] = (), exclusive: bool = False) -> QueuesSpec:
        return QueuesSpec(read_specs(entries), read_module_specs(modules), exclusive)

    def converge(self, *entries: t.Mapping[str, t.Any], check_mode: bool = False, runner: ScriptedRunner | None = None, **more: t.Any) -> Outcome:
        wanted = self.wanted(*entries, **more)
        return converge(BlockQueueLayer(runner or self.runner, wanted, self.root), check_mode=check_mode)

    def facts(self, *entries: t.Mapping[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
        wanted = self.wanted(*entries, **more)
        layer = BlockQueueLayer(self.runner, wanted, self.root)
        return layer.facts(layer.read())

    @property
    def rules(self) -> list[str]:
        return udev_rule.rules_in(udev_rule.read_rules(self.root, queue_boot.RULES_FILE))
