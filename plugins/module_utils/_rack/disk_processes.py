# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The processes with the caches of those disks of a machine that forget in a power cut, and others that serve it: started before QEMU, ended with it."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import volatile_disk
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import NotedProcess, note_process

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Machine
    from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths

#: Seconds that writing out a full cache may take after an orderly shutdown.
WRITE_OUT_SECONDS = 60.0


@frozen
class DiskProcesses:
    """Those of one machine."""

    processes: tuple[NotedProcess, ...] = ()

    @classmethod
    def start(cls, runner: Runner, places: RackPaths, machine: Machine) -> DiskProcesses:
        """Start one for every disk that needs one, and those of the description; each prints its process ID.

        :raises StorageError: if one does not start; those that did are ended.
        """
        started = cls()
        commands = [(list(command), "", f"The process {command[0]}") for command in machine.processes]
        for disk in machine.disks:
            if disk.forgets and disk.attached:
                paths = (str(places.disk(machine.name, disk)), str(places.disk_socket(machine.name, disk)))
                source = inspect.getsource(volatile_disk)
                commands.append(([sys.executable, "-", disk.volatile_cache, *paths], source, f"The process with the write cache of the disk {disk.name}"))
        try:
            for command, stdin, what in commands:
                printed = runner.run(command, stdin=stdin, item=machine.name).stdout.strip()
                process = note_process(int(printed)) if printed.isdigit() else None
                if process is None:
                    raise NotUnderstood(f"{what} of {machine.name} ended at once.", item=machine.name)
                started = cls((*started.processes, process))
        except StorageError:
            started.kill()
            raise
        return started

    @classmethod
    def noted(cls, note: t.Mapping[str, t.Any]) -> DiskProcesses:
        """Those that the note of a machine names."""
        return cls(tuple(NotedProcess(**process) for process in note.get("disk_processes", ())))

    def to_dict(self) -> dict[str, t.Any]:
        """What is noted of them."""
        return {"disk_processes": [dataclasses.asdict(process) for process in self.processes]}

    def kill(self) -> None:
        """End them at once: what they have in memory is lost."""
        for process in self.processes:
            process.kill()

    def wait(self, name: str) -> None:
        """Wait until they have written everything out, after QEMU has ended by itself.

        :raises TimedOut: if one does not come to its end.
        """
        for process in self.processes:
            if not process.wait(WRITE_OUT_SECONDS):
                raise TimedOut(f"{name}: the process {process.pid} did not write out the cache of a disk within {WRITE_OUT_SECONDS:g} seconds.", item=name)
