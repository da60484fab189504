# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module ``power_loss_writer`` does for each of its states."""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import read_target
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.messages import read_secret
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec, size_of
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import Stack

_LOAD = ("layout", "sync", "direct", "order", "depth", "block_size", "bulk", "seconds")


def carry_out(options: t.Mapping[str, t.Any], folder: Path, *, check_mode: bool) -> dict[str, t.Any]:
    """The result of the module.

    :raises StorageError: what is refused, and what fails.
    """
    runner = Runner()
    background = BackgroundRun(folder, options["run"])
    done: dict[str, t.Any]
    if options["state"] == "started":
        done = _start(options, folder, background, runner, check_mode=check_mode)
    elif check_mode:
        done = {"changed": background.is_alive() or (options["state"] == "absent" and bool(background.read()))}
    elif options["state"] == "stopped":
        done = {"changed": host_writer.stop(options["run"], folder)}
    else:
        done = {"changed": host_writer.remove(options["run"], lambda: read_devices(runner), runner, folder)}
    note = background.read()
    return {
        "running": background.is_alive(),
        "state": str(note.get("state") or ""),
        "message": str(note.get("message") or ""),
        "boot_id": host_writer.boot_id(),
        **done,
    }


def _start(options: t.Mapping[str, t.Any], folder: Path, background: BackgroundRun, runner: Runner, *, check_mode: bool) -> dict[str, t.Any]:
    _require_complete(options)
    size = size_of(options["target"]["size"])
    target = read_target({**options["target"], "size": size}, "target")
    spec = RunSpec(target.path, target.kind, target.identity, size, **{name: options[name] for name in _LOAD})
    secret = read_secret(options["secret"])
    stack = read_stack(runner, protected=options["protected_drives"], flushed=options["flushed_virtual_disks"])
    if background.is_alive():
        # Its own writer has the target in use: it was examined when that was started.
        note = background.read()["spec"]
        found = dataclasses.replace(spec, path=note["path"], identity=note["identity"])
        host_writer.require_same(background, found)
        return {"changed": False, "target": {"path": found.path, "identity": found.identity}, "stack": _stack(stack, found)}
    facts = host_writer.examine(target, spec, stack.devices, runner)
    found = dataclasses.replace(spec, path=host_writer.lasting_path(facts), identity=facts.identity)
    result = {"changed": True, "target": {"path": found.path, "identity": found.identity}, "stack": _stack(stack, found)}
    if not check_mode:
        host_writer.start(found, facts, options["run"], host_writer.WitnessAddress(options["witness_address"], options["witness_port"], secret), runner, folder)
    return result


def _require_complete(options: t.Mapping[str, t.Any]) -> None:
    """:raises BadInput: if what a writer needs is null: AnsibleModule requires only that it is given."""
    for name in ("secret", "witness_address", "witness_port", "target"):
        if options[name] is None:
            raise BadInput(f"{name} must be set to start a writer.", item=name)
    if not 1 <= options["witness_port"] <= 65535:
        raise BadInput(f"witness_port must be between 1 and 65535, not {abbreviated(options['witness_port'])}.", item="witness_port")


def _stack(stack: Stack, spec: RunSpec) -> dict[str, t.Any]:
    name = host_writer.device_of(spec, stack.devices)
    if name is None:
        return {"verdict": "unknown", "reason": f"The device under {spec.path} is not known.", "unflushed": "unknown", "drives": []}
    described = stack.describe(name)
    drives = [layer for layer in described["layers"] if layer["kind"] == "disk" or not layer["below"]]
    return {
        "verdict": described["verdict"],
        "reason": described["reason"],
        "unflushed": described["unflushed"],
        "drives": [{key: layer[key] for key in ("path", "model", "firmware", "serial")} for layer in drives],
    }
