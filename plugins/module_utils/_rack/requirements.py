# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host must have before machines are created or started: commands, the image, free ports, disk space and memory."""

from __future__ import annotations

import os
import pathlib
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.machine import available_memory
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import ssh
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.image import require_tools
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Machine, machine_from_data
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import process_of
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.operations import CreateMachine, StartMachine
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import free_bytes, require_free
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import TRANSLATION_CACHE

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths

#: Disks are sparse files: a new machine needs this much at once, and its disks' sizes only as they fill.
MACHINE_BYTES = GIB


def check_requirements(
    runner: Runner,
    rack: str,
    places: RackPaths,
    image: t.Mapping[str, str],
    steps: t.Sequence[Step],
    notes: t.Mapping[str, t.Mapping[str, t.Any]],
    root: pathlib.Path = pathlib.Path("/"),
) -> list[str]:
    """Refuse before anything is changed what could not be done to its end.

    :param rack: name of the rack.
    :param image: paths of the image that new machines are made from, as module virtual_rack_image returns them.
    :param steps: the whole plan.
    :param notes: the rack's own notes, by machine.
    :returns: warnings.
    :raises StorageError: naming what is missing: a command, a file of the image, memory, disk space.
    """
    creates = [step.operation.machine for step in steps if isinstance(step.operation, CreateMachine)]
    starts = [step.item for step in steps if isinstance(step.operation, StartMachine)]
    if not creates and not starts:
        return []
    require_tools(runner, ["qemu-system-x86_64", "qemu-img", "ssh", "ssh-keygen"])
    for needed in [image] if creates else [notes[name]["image"] for name in starts]:
        _require_image(needed)
    descriptions = {name: machine_from_data(note["description"]) for name, note in notes.items()}
    descriptions.update({machine.name: machine for machine in creates})
    _require_ports(rack, [descriptions[name] for name in starts], notes, root)
    warnings = _require_disk_space(places, creates)
    _require_memory([descriptions[name] for name in starts], root)
    return warnings


def _require_image(image: t.Mapping[str, str]) -> None:
    for key in ("digest", "base", "kernel", "initrd", "host_key"):
        value = image.get(key, "")
        if not value or (key != "digest" and not os.path.isfile(value)):
            raise StorageError(f"The {key} of the machine image is missing ({value or 'not given'}): build it with the module virtual_rack_image.", item=key)


def _require_disk_space(places: RackPaths, creates: t.Sequence[Machine]) -> list[str]:
    fresh = [machine for machine in creates if not places.root_disk(machine.name).exists()]
    if not fresh:
        return []
    require_free(places.rack, MACHINE_BYTES * len(fresh), f"creating {len(fresh)} machines")
    full, have = sum(disk.size for machine in fresh for disk in machine.disks), free_bytes(places.rack)
    if full <= have:
        return []
    return [
        f"The disks of the new machines could grow to {format_size(full)}, and {format_size(have)} are free in {places.rack}:"
        " a machine stops when its disk cannot grow."
    ]


def _require_ports(rack: str, starts: t.Sequence[Machine], notes: t.Mapping[str, t.Mapping[str, t.Any]], root: pathlib.Path) -> None:
    """A port that the user fixed must be free, unless it is this very machine that holds it until it is stopped."""
    for machine in starts:
        note = notes.get(machine.name, {})
        process = process_of(note)
        held = process is not None and process.alive(root) and note["ssh_port"] == machine.ssh_port
        if machine.ssh_port is not None and not held:
            ssh.choose_port(machine.ssh_port, None, f"{rack}/{machine.name}")


def _require_memory(starts: t.Sequence[Machine], root: pathlib.Path) -> None:
    need = sum(machine.memory + TRANSLATION_CACHE for machine in starts)
    have = available_memory(root)
    if have is not None and need > have:
        names = ", ".join(machine.name for machine in starts)
        raise Refused(f"Not enough memory: starting {names} needs {format_size(need)}, and {format_size(have)} are available.", item=starts[0].name)
