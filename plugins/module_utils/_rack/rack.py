# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rack: machines described, created, started, stopped, cut from power and removed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import pathlib
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import ssh
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.accelerator import choose_accelerator
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.disk_processes import DiskProcesses
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Disk, Machine, check_name, describe_machines, machine_from_data
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.monitor import Monitor, continue_with_room, is_out_of_space, plug, unplug
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import NotedProcess, note_process, process_of
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import exclusive, last_lines, make_folder, read_json, remove_folder, write_json
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.plan import (
    LAYER,
    CreateMachine,
    CutPower,
    DestroyMachine,
    DropDisk,
    MachineState,
    PlugDisk,
    RackSpec,
    RackState,
    RecreateRoot,
    RemoveFolder,
    ShutDown,
    StartMachine,
    UnplugDisk,
    WaitForLogin,
    names_meant,
    plan_rack,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import Boot, qemu_arguments
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.requirements import check_requirements

#: Of the rack's own notes; raised when they change their meaning.
SCHEMA = 1

#: Seconds a guest may take to shut down by itself.
SHUTDOWN_SECONDS = 90.0


class RackLayer(Layer[RackState, RackSpec]):
    """One rack on this host.

    :param name: name of the rack.
    :param places: where its files are.
    :param cache_dir: where the answer of the KVM probe is kept.
    :param image: paths of an image, as module virtual_rack_image returns them; empty where nothing is started.
    :param accelerator: ``auto``, ``kvm`` or ``tcg``.
    :param ssh_timeout: seconds a machine may take from its start to the first login.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        spec: RackSpec,
        name: str,
        places: RackPaths,
        *,
        cache_dir: pathlib.Path,
        image: t.Mapping[str, str],
        accelerator: str = "auto",
        ssh_timeout: float = 120.0,
        root: pathlib.Path = pathlib.Path("/"),
    ) -> None:
        super().__init__(runner, spec, root)
        self.rack = name
        self.places = places
        self.cache_dir = cache_dir
        self.image = image
        self.accelerator = accelerator
        self.ssh_timeout = ssh_timeout
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=16)
        self._planned: list[Step] = []
        self._pending: dict[str, concurrent.futures.Future[None]] = {}
        self._boot_seconds: dict[str, float] = {}
        self._started: set[str] = set()

    # read ---------------------------------------------------------------------------------------------------------------

    def read(self) -> RackState:
        self._finish_all()
        notes = self._notes()
        states = dict(zip(notes, self._pool.map(self._read_machine, notes, notes.values())))
        return RackState(self.places.rack.is_dir(), states)

    def _read_machine(self, name: str, note: t.Mapping[str, t.Any]) -> MachineState:
        process = process_of(note)
        running = process is not None and process.alive(self.root)
        # A busy host that needed minutes for the boot may need more than seconds for the next login.
        patience = max(15.0, note.get("boot_seconds") or 0.0)
        port = note["ssh_port"]
        answers = (
            running
            and self._needs_login(name)
            and ssh.greets(port, patience / 3)
            and ssh.logs_in(self.runner, port, self.places.key, self.places.known_hosts, patience)
        )
        paused = running and not answers and self._needs_login(name) and is_out_of_space(self.places.monitor(name), name)
        return MachineState(machine_from_data(note["description"]), note["image"]["digest"], running, answers, paused, note)

    def _needs_login(self, name: str) -> bool:
        """Whether it matters that a machine answers: not of one that is to be stopped, and a busy one would take a minute to do so."""
        meant = not self.spec.only or name in self.spec.only
        return name in self._started or (self.spec.state == "started" and meant)

    def _notes(self) -> dict[str, dict[str, t.Any]]:
        notes = read_json(self.places.state)
        if notes is None:
            return {}
        if notes.get("schema") != SCHEMA:
            raise StorageError(
                f"{self.places.state} was written by another version of this collection: end the machines by the process ids in it and remove the folder.",
                item=str(self.places.state),
            )
        return notes["machines"]

    def _write_notes(self, machines: t.Mapping[str, t.Any]) -> None:
        write_json(self.places.state, {"schema": SCHEMA, "rack": self.rack, "machines": machines})

    # plan ---------------------------------------------------------------------------------------------------------------

    def plan(self, state: RackState) -> list[Step]:
        for machine in self.spec.machines:
            self.places.check_sockets(machine)
        self._planned = plan_rack(state, self.spec)
        return list(self._planned)

    def verify(self, state: RackState) -> list[Difference]:
        if self.spec.state == "restarted":
            idle = [name for name in names_meant(state, self.spec) if not state.machines[name].answers]
            return [Difference(self.name, name, "state", "started", "stopped") for name in idle]
        return super().verify(state)

    def facts(self, state: RackState) -> dict[str, t.Any]:
        """Every machine of the rack, and its folder."""
        return {"machines": [machine_result(self.places, machine) for machine in state.machines.values()], "directory": str(self.places.rack)}

    # apply --------------------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        if self._planned:
            planned, self._planned = self._planned, []
            for sentence in check_requirements(self.runner, self.rack, self.places, self.image, planned, self._notes(), self.root):
                self.warn(sentence)
        if step.item in self._pending:
            self._pending.pop(step.item).result()
        super().apply(step)

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """Begin or do one thing; logins and shutdowns of several machines are waited for together, when the rack is read again.

        :raises StorageError: if a machine does not start, or does not end.
        """
        raise TypeError(operation)

    @carry_out.register
    def _create(self, operation: CreateMachine, _step: Step) -> None:
        machine = operation.machine
        folder = self.places.folder(machine.name)
        make_folder(folder)
        if not self.places.key.exists():
            self.runner.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"virtual rack {self.rack}", "-f", str(self.places.key)])
        if not self.places.root_disk(machine.name).exists():
            self._make_root(machine.name)
        for disk in machine.disks:
            path = self.places.disk(machine.name, disk)
            if not path.exists():
                with path.open("xb") as handle:
                    handle.truncate(disk.size)
        note = {"ssh_port": None, "host_key": pathlib.Path(self.image["host_key"]).read_text(), **self._notes().get(machine.name, {})}
        self._note(machine.name, {**note, "description": machine.as_data(), "image": dict(self.image)})

    @carry_out.register
    def _recreate_root(self, _operation: RecreateRoot, step: Step) -> None:
        self._make_root(step.item)
        host_key = pathlib.Path(self.image["host_key"]).read_text()
        self._note(step.item, {**self._notes()[step.item], "image": dict(self.image), "host_key": host_key})

    def _make_root(self, name: str) -> None:
        path = self.places.root_disk(name)
        if path.exists():
            path.unlink()
        self.runner.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", self.image["base"], str(path)])

    @carry_out.register
    def _drop_disk(self, operation: DropDisk, step: Step) -> None:
        path = self.places.folder(step.item) / operation.file
        if path.exists():
            path.unlink()

    @carry_out.register
    def _plug(self, operation: PlugDisk, step: Step) -> None:
        with Monitor(self.places.monitor(step.item), step.item) as monitor:
            plug(monitor, operation.disk, self.places.disk(step.item, operation.disk))
        self._note_disk(step.item, operation.disk)

    @carry_out.register
    def _unplug(self, operation: UnplugDisk, step: Step) -> None:
        with Monitor(self.places.monitor(step.item), step.item) as monitor:
            unplug(monitor, operation.disk)
        self._note_disk(step.item, operation.disk)

    def _note_disk(self, name: str, disk: Disk) -> None:
        note = self._notes()[name]
        disks = [dataclasses.asdict(disk) if other["name"] == disk.name else other for other in note["description"]["disks"]]
        self._note(name, {**note, "description": {**note["description"], "disks": disks}})

    @carry_out.register
    def _start(self, _operation: StartMachine, step: Step) -> None:
        name = step.item
        self._started.add(name)
        notes = self._notes()
        machine = machine_from_data(notes[name]["description"])
        image = notes[name]["image"]
        chosen = choose_accelerator(self.runner, self.accelerator, kernel=image["kernel"], initrd=image["initrd"], cache_dir=self.cache_dir)
        started = time.monotonic()
        port, disk_processes = self._launch(machine, notes, chosen)
        pid = int(self.places.pid_file(name).read_text())
        process = note_process(pid)
        if process is None:
            disk_processes.kill()
            raise self._died(name)
        running = {"process": dataclasses.asdict(process), **disk_processes.to_dict()}
        self._note(name, {**notes[name], "ssh_port": port, "accelerator": chosen, "boot_seconds": None, **running})
        self._write_known_hosts()
        self._pending[name] = self._pool.submit(self._await_login, name, port, process, started)

    def _launch(self, machine: Machine, notes: t.Mapping[str, t.Mapping[str, t.Any]], accelerator: str) -> tuple[int, DiskProcesses]:
        """Start QEMU and return the port it forwards; another process may take a free port first, so it is tried again."""
        DiskProcesses.noted(notes[machine.name]).kill()
        image = notes[machine.name]["image"]
        public_key = self.places.key.with_suffix(".pub").read_text()
        taken = {note["ssh_port"] for other, note in notes.items() if other != machine.name and note["ssh_port"]}
        who = f"{self.rack}/{machine.name}"
        for _attempt in range(5):
            port = ssh.choose_port(machine.ssh_port, notes[machine.name]["ssh_port"], who, taken)
            boot = Boot(image["kernel"], image["initrd"], accelerator, port, public_key)
            disk_processes = DiskProcesses.start(self.runner, self.places, machine)
            completed = self.runner.run(qemu_arguments(machine, self.rack, self.places, boot), ok=None, timeout=60)
            if completed.rc == 0:
                return port, disk_processes
            disk_processes.kill()
            if "host forwarding" not in completed.stderr or machine.ssh_port is not None:
                break
            taken.add(port)
        raise CommandFailed(f"{machine.name}: QEMU did not start: {completed.last_words}", item=machine.name, completed=completed)

    def _await_login(self, name: str, port: int, process: NotedProcess, started: float) -> None:
        deadline = started + self.ssh_timeout
        if ssh.wait_for_login(self.runner, port, self.places.key, self.places.known_hosts, deadline, lambda: self._goes_on(name, process)):
            self._boot_seconds[name] = round(time.monotonic() - started, 1)
            return
        if not process.alive():
            raise self._died(name)
        raise TimedOut(
            f"{name} did not answer ssh on {ssh.HOST}:{port} within {self.ssh_timeout:g} seconds. {self._console(name)}",
            item=name,
        )

    def _goes_on(self, name: str, process: NotedProcess) -> bool:
        """Whether a machine has not ended; one that is paused for lack of space is continued.

        :raises Refused: if there is no space.
        """
        alive = process.alive()
        if alive:
            continue_with_room(self.places.monitor(name), name)
        return alive

    def _died(self, name: str) -> StorageError:
        return StorageError(f"The machine {name} ended while it was starting. {self._console(name)}", item=name)

    def _console(self, name: str) -> str:
        lines = last_lines(self.places.console(name), 12).strip()
        return f"Its console ends with:\n{lines}" if lines else "It wrote nothing on its console: a busy host may need a larger ssh_timeout."

    @carry_out.register
    def _wait(self, _operation: WaitForLogin, step: Step) -> None:
        note = self._notes()[step.item]
        process = process_of(note)
        if process is None:
            raise StorageError(f"The machine {step.item} ended as soon as it was started.", item=step.item)
        self._pending[step.item] = self._pool.submit(self._await_login, step.item, note["ssh_port"], process, time.monotonic())

    @carry_out.register
    def _shut_down(self, _operation: ShutDown, step: Step) -> None:
        self._pending[step.item] = self._pool.submit(self._shut_down_and_wait, step.item)

    def _shut_down_and_wait(self, name: str) -> None:
        note = self._notes()[name]
        process = process_of(note)
        if process is not None:
            self._goes_on(name, process)
        command = ssh.ssh_arguments(note["ssh_port"], self.places.key, self.places.known_hosts, ["systemctl", "poweroff"])
        completed = None
        with contextlib.suppress(TimedOut):
            # The connection may end before the command's exit status arrives.
            completed = self.runner.run(command, ok=None, timeout=30)
        if process is not None and not process.wait(SHUTDOWN_SECONDS):
            words = f" ({completed.last_words})" if completed is not None and completed.rc else ""
            raise TimedOut(f"{name} did not shut down within {SHUTDOWN_SECONDS:g} seconds{words}: stop it with how: power_cut.", item=name, completed=completed)
        DiskProcesses.noted(note).wait(name)

    @carry_out.register
    def _cut_power(self, _operation: CutPower, step: Step) -> None:
        self._end(step.item)

    def _end(self, name: str) -> None:
        note = self._notes()[name]
        process = process_of(note)
        # QEMU first: a guest whose disk is gone before its power is would see errors that a power cut does not make.
        if process is not None and not process.kill():
            raise TimedOut(f"{name}: the process {process.pid} did not end within 10 seconds of being killed.", item=name)
        DiskProcesses.noted(note).kill()

    @carry_out.register
    def _remove(self, _operation: RemoveFolder, _step: Step) -> None:
        remove_folder(self.places.rack)

    @carry_out.register
    def _destroy(self, _operation: DestroyMachine, step: Step) -> None:
        self._end(step.item)
        remove_folder(self.places.folder(step.item))
        notes = self._notes()
        notes.pop(step.item)
        self._write_notes(notes)
        self._write_known_hosts()

    # notes --------------------------------------------------------------------------------------------------------------

    def _note(self, name: str, note: t.Mapping[str, t.Any]) -> None:
        self._write_notes({**self._notes(), name: note})

    def _write_known_hosts(self) -> None:
        host_keys = {note["ssh_port"]: note["host_key"] for note in self._notes().values() if note["ssh_port"]}
        self.places.known_hosts.write_text(ssh.known_hosts_text(host_keys))

    def _finish_all(self) -> None:
        """Let everything that runs at the same time come to its end; the first failure is reported after all have ended."""
        pending, self._pending = self._pending, {}
        concurrent.futures.wait(pending.values())
        for name, seconds in self._boot_seconds.items():
            self._note(name, {**self._notes()[name], "boot_seconds": seconds})
        self._boot_seconds.clear()
        for future in pending.values():
            future.result()


def machine_result(places: RackPaths, state: MachineState) -> dict[str, t.Any]:
    """What is returned about a machine: how to reach it and what it has."""
    name, machine, note = state.description.name, state.description, state.note
    process = process_of(note)
    return {
        "name": name,
        "state": "started" if state.running else "stopped",
        "ssh_host": ssh.HOST,
        "ssh_port": note["ssh_port"],
        "ssh_user": "root",
        "ssh_private_key_file": str(places.key),
        "ssh_common_args": " ".join(ssh.ssh_options(places.known_hosts)),
        "pid": process.pid if process is not None and state.running else None,
        "accelerator": note.get("accelerator"),
        "boot_seconds": note.get("boot_seconds"),
        "monitor": str(places.monitor(name)),
        "console": str(places.console(name)),
        "cpus": machine.cpus,
        "memory": machine.memory // MIB,
        "disks": [{**dataclasses.asdict(disk), "file": str(places.disk(name, disk))} for disk in machine.disks],
        "networks": [dataclasses.asdict(nic) for nic in machine.networks],
    }


def make_layer(runner: Runner, options: t.Mapping[str, t.Any], lock: contextlib.ExitStack, *, check_mode: bool) -> RackLayer:
    """The layer that the options of the module virtual_rack describe.

    :param lock: holds the lock of the rack until it is closed.
    :raises StorageError: if an option is invalid, or another run holds the rack for too long.
    """
    check_name(options["name"], "rack")
    cache_dir = pathlib.Path(options["cache_dir"])
    places = RackPaths(pathlib.Path(options["directory"] or cache_dir / "racks" / options["name"]))
    image = {key: value for key, value in (options["image"] or {}).items() if value is not None}
    spec = RackSpec(
        state=options["state"],
        machines=tuple(describe_machines(options["name"], options["machines"])),
        only=tuple(options["only"]),
        how=options["how"],
        recreate=options["recreate"],
        image=image.get("digest", ""),
    )
    # A lock would make the folder; nothing is made in check mode or where there is nothing to stop or to remove.
    if not check_mode and (spec.state == "started" or places.rack.is_dir()):
        lock.enter_context(exclusive(places.lock, patience=600, what=f"the rack {options['name']}"))
    return RackLayer(
        runner,
        spec,
        options["name"],
        places,
        cache_dir=cache_dir,
        image=image,
        accelerator=options["accelerator"],
        ssh_timeout=options["ssh_timeout"],
    )
