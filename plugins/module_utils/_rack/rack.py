# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rack: machines described, created, started, stopped, cut from power and removed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import ssh
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import check_name, describe_machines, machine_from_data
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.monitor import continue_with_room, is_out_of_space
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import NotedProcess, process_of
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import exclusive, last_lines, read_json, write_json
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.plan import LAYER, MachineState, RackSpec, RackState, names_meant, plan_rack
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.requirements import check_requirements

#: Of the rack's own notes; raised when they change their meaning.
SCHEMA = 1


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
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=16)
        self._planned: list[Step] = []
        self.pending: dict[str, concurrent.futures.Future[None]] = {}
        self._boot_seconds: dict[str, float] = {}
        self.started: set[str] = set()

    # read ---------------------------------------------------------------------------------------------------------------

    def read(self) -> RackState:
        self._finish_all()
        notes = self.notes()
        states = dict(zip(notes, self.pool.map(self._read_machine, notes, notes.values())))
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
        return name in self.started or (self.spec.state == "started" and meant)

    def notes(self) -> dict[str, dict[str, t.Any]]:
        notes = read_json(self.places.state)
        if notes is None:
            return {}
        if notes.get("schema") != SCHEMA:
            raise StorageError(
                f"{self.places.state} was written by another version of this collection: end the machines by the process ids in it and remove the folder.",
                item=str(self.places.state),
            )
        return notes["machines"]

    def write_notes(self, machines: t.Mapping[str, t.Any]) -> None:
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
            for sentence in check_requirements(self.runner, self.rack, self.places, self.image, planned, self.notes(), self.root):
                self.warn(sentence)
        if step.item in self.pending:
            self.pending.pop(step.item).result()
        super().apply(step)

    def await_login(self, name: str, port: int, process: NotedProcess, started: float) -> None:
        deadline = started + self.ssh_timeout
        if ssh.wait_for_login(self.runner, port, self.places.key, self.places.known_hosts, deadline, lambda: self.goes_on(name, process)):
            self._boot_seconds[name] = round(time.monotonic() - started, 1)
            return
        if not process.alive():
            raise self.died(name)
        raise TimedOut(
            f"{name} did not answer ssh on {ssh.HOST}:{port} within {self.ssh_timeout:g} seconds. {self._console(name)}",
            item=name,
        )

    def goes_on(self, name: str, process: NotedProcess) -> bool:
        """Whether a machine has not ended; one that is paused for lack of space is continued.

        :raises Refused: if there is no space.
        """
        alive = process.alive()
        if alive:
            continue_with_room(self.places.monitor(name), name)
        return alive

    def died(self, name: str) -> StorageError:
        return StorageError(f"The machine {name} ended while it was starting. {self._console(name)}", item=name)

    def _console(self, name: str) -> str:
        lines = last_lines(self.places.console(name), 12).strip()
        return f"Its console ends with:\n{lines}" if lines else "It wrote nothing on its console: a busy host may need a larger ssh_timeout."

    # notes ------------------------------------------------------------------------------------------------------------

    def note(self, name: str, note: t.Mapping[str, t.Any]) -> None:
        self.write_notes({**self.notes(), name: note})

    def write_known_hosts(self) -> None:
        host_keys = {note["ssh_port"]: note["host_key"] for note in self.notes().values() if note["ssh_port"]}
        self.places.known_hosts.write_text(ssh.known_hosts_text(host_keys))

    def _finish_all(self) -> None:
        """Let everything that runs at the same time come to its end; the first failure is reported after all have ended."""
        pending, self.pending = self.pending, {}
        concurrent.futures.wait(pending.values())
        for name, seconds in self._boot_seconds.items():
            self.note(name, {**self.notes()[name], "boot_seconds": seconds})
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
