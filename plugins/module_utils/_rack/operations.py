# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a rack do. Each begins or does one thing; logins and shutdowns of several machines are waited for together, when the rack is read again."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import ssh
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.accelerator import choose_accelerator
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.disk_processes import DiskProcesses
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Disk, Machine, machine_from_data
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.monitor import Monitor, plug, unplug
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import note_process, process_of
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import make_folder, remove_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import Boot, qemu_arguments

#: Seconds a guest may take to shut down by itself.
SHUTDOWN_SECONDS = 90.0


@frozen
class CreateMachine(Operation):
    """Make what is missing of a machine's files, and keep its description."""

    machine: Machine

    def carry_out(self, layer: t.Any, _step: Step) -> None:
        machine = self.machine
        folder = layer.places.folder(machine.name)
        make_folder(folder)
        if not layer.places.key.exists():
            layer.runner.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"virtual rack {layer.rack}", "-f", str(layer.places.key)])
        if not layer.places.root_disk(machine.name).exists():
            _make_root(layer, machine.name)
        for disk in machine.disks:
            path = layer.places.disk(machine.name, disk)
            if not path.exists():
                with path.open("xb") as handle:
                    handle.truncate(disk.size)
        note = {"ssh_port": None, "host_key": pathlib.Path(layer.image["host_key"]).read_text(), **layer.notes().get(machine.name, {})}
        layer.note(machine.name, {**note, "description": machine.as_data(), "image": dict(layer.image)})


@frozen
class RecreateRoot(Operation):
    """Make the root disk anew from the image."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        _make_root(layer, step.item)
        host_key = pathlib.Path(layer.image["host_key"]).read_text()
        layer.note(step.item, {**layer.notes()[step.item], "image": dict(layer.image), "host_key": host_key})


@frozen
class DropDisk(Operation):
    """Remove a file, named inside the folder of the machine, that holds the blocks of a disk."""

    file: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path = layer.places.folder(step.item) / self.file
        if path.exists():
            path.unlink()


@frozen
class PlugDisk(Operation):
    """Plug a disk into a running machine."""

    disk: Disk

    def carry_out(self, layer: t.Any, step: Step) -> None:
        with Monitor(layer.places.monitor(step.item), step.item) as monitor:
            plug(monitor, self.disk, layer.places.disk(step.item, self.disk))
        _note_disk(layer, step.item, self.disk)


@frozen
class UnplugDisk(Operation):
    """Pull a disk out of a running machine."""

    disk: Disk

    def carry_out(self, layer: t.Any, step: Step) -> None:
        with Monitor(layer.places.monitor(step.item), step.item) as monitor:
            unplug(monitor, self.disk)
        _note_disk(layer, step.item, self.disk)


@frozen
class StartMachine(Operation):
    """Start a machine; its first login is waited for together with those of the others."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        name = step.item
        layer.started.add(name)
        notes = layer.notes()
        machine = machine_from_data(notes[name]["description"])
        image = notes[name]["image"]
        chosen = choose_accelerator(layer.runner, layer.accelerator, kernel=image["kernel"], initrd=image["initrd"], cache_dir=layer.cache_dir)
        started = time.monotonic()
        port, disk_processes = _launch(layer, machine, notes, chosen)
        pid = int(layer.places.pid_file(name).read_text())
        process = note_process(pid)
        if process is None:
            disk_processes.kill()
            raise layer.died(name)
        running = {"process": dataclasses.asdict(process), **disk_processes.to_dict()}
        layer.note(name, {**notes[name], "ssh_port": port, "accelerator": chosen, "boot_seconds": None, **running})
        layer.write_known_hosts()
        layer.pending[name] = layer.pool.submit(layer.await_login, name, port, process, started)


@frozen
class WaitForLogin(Operation):
    """Wait until a machine that runs answers ssh; one that is paused for lack of space is continued."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        note = layer.notes()[step.item]
        process = process_of(note)
        if process is None:
            raise StorageError(f"The machine {step.item} ended as soon as it was started.", item=step.item)
        layer.pending[step.item] = layer.pool.submit(layer.await_login, step.item, note["ssh_port"], process, time.monotonic())


@frozen
class ShutDown(Operation):
    """Have the guest shut down."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.pending[step.item] = layer.pool.submit(_shut_down_and_wait, layer, step.item)


@frozen
class CutPower(Operation):
    """End the process of a machine at once."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        _end(layer, step.item)


@frozen
class DestroyMachine(Operation):
    """End a machine at once and remove its files."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        _end(layer, step.item)
        remove_folder(layer.places.folder(step.item))
        notes = layer.notes()
        notes.pop(step.item)
        layer.write_notes(notes)
        layer.write_known_hosts()


@frozen
class RemoveFolder(Operation):
    def carry_out(self, layer: t.Any, _step: Step) -> None:
        remove_folder(layer.places.rack)


# -- parts of operations


def _make_root(layer: t.Any, name: str) -> None:
    path = layer.places.root_disk(name)
    if path.exists():
        path.unlink()
    layer.runner.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", layer.image["base"], str(path)])


def _note_disk(layer: t.Any, name: str, disk: Disk) -> None:
    note = layer.notes()[name]
    disks = [dataclasses.asdict(disk) if other["name"] == disk.name else other for other in note["description"]["disks"]]
    layer.note(name, {**note, "description": {**note["description"], "disks": disks}})


def _launch(layer: t.Any, machine: Machine, notes: t.Mapping[str, t.Mapping[str, t.Any]], accelerator: str) -> tuple[int, DiskProcesses]:
    """Start QEMU and return the port it forwards; another process may take a free port first, so it is tried again."""
    DiskProcesses.noted(notes[machine.name]).kill()
    image = notes[machine.name]["image"]
    public_key = layer.places.key.with_suffix(".pub").read_text()
    taken = {note["ssh_port"] for other, note in notes.items() if other != machine.name and note["ssh_port"]}
    who = f"{layer.rack}/{machine.name}"
    for _attempt in range(5):
        port = ssh.choose_port(machine.ssh_port, notes[machine.name]["ssh_port"], who, taken)
        boot = Boot(image["kernel"], image["initrd"], accelerator, port, public_key)
        disk_processes = DiskProcesses.start(layer.runner, layer.places, machine)
        completed = layer.runner.run(qemu_arguments(machine, layer.rack, layer.places, boot), ok=None, timeout=60)
        if completed.rc == 0:
            return port, disk_processes
        disk_processes.kill()
        if "host forwarding" not in completed.stderr or machine.ssh_port is not None:
            break
        taken.add(port)
    raise CommandFailed(f"{machine.name}: QEMU did not start: {completed.last_words}", item=machine.name, completed=completed)


def _shut_down_and_wait(layer: t.Any, name: str) -> None:
    note = layer.notes()[name]
    process = process_of(note)
    if process is not None:
        layer.goes_on(name, process)
    command = ssh.ssh_arguments(note["ssh_port"], layer.places.key, layer.places.known_hosts, ["systemctl", "poweroff"])
    completed = None
    with contextlib.suppress(TimedOut):
        # The connection may end before the command's exit status arrives.
        completed = layer.runner.run(command, ok=None, timeout=30)
    if process is not None and not process.wait(SHUTDOWN_SECONDS):
        words = f" ({completed.last_words})" if completed is not None and completed.rc else ""
        raise TimedOut(f"{name} did not shut down within {SHUTDOWN_SECONDS:g} seconds{words}: stop it with how: power_cut.", item=name, completed=completed)
    DiskProcesses.noted(note).wait(name)


def _end(layer: t.Any, name: str) -> None:
    note = layer.notes()[name]
    process = process_of(note)
    # QEMU first: a guest whose disk is gone before its power is would see errors that a power cut does not make.
    if process is not None and not process.kill():
        raise TimedOut(f"{name}: the process {process.pid} did not end within 10 seconds of being killed.", item=name)
    DiskProcesses.noted(note).kill()
