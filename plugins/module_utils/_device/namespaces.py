# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The namespaces of an NVMe drive, read and made with nvme-cli.

Sources: NVM Express base specification, Identify Controller (``oacs`` bit 3: namespace management; ``tnvmcap``, ``unvmcap`` in
bytes; ``cmic`` bit 1: several controllers) and Identify Namespace (``nsze`` in logical blocks of the format ``flbas``; ``dlfeat``
bits 0 to 2: what a deallocated block reads as); nvme-cli(1). nvme-cli prints large numbers as text since 2.0, and
lists namespaces as JSON since then only: 1.12 of Debian 11 prints ``[   0]:0x1``.
"""

from __future__ import annotations

import json
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

_MANAGEMENT = 1 << 3
_SEVERAL_CONTROLLERS = 1 << 1
_CONTROLLER = re.compile(r"^nvme\d+$")
_LISTED = re.compile(r"^\[ *\d+\]:(0x[0-9a-f]+)$", re.MULTILINE)


@frozen
class Namespace:
    """One namespace; size in bytes. ``zeroes``: whether what was discarded reads as zeroes."""

    number: int
    size: int
    block: int
    flbas: int
    attached: bool = True
    zeroes: bool = False


@frozen
class Controller:
    """An NVMe controller with all namespaces that are allocated on it; capacities in bytes.

    :param path: its character device, which is there without any namespace too.
    """

    path: str
    number: int
    capacity: int
    unallocated: int
    manages: bool
    several: bool
    namespaces: tuple[Namespace, ...] = ()


def controller_of(root: Path, name: str) -> str | None:
    """The character device of the controller of a namespace, by the kernel name of the namespace; None if it is not an NVMe drive."""
    place = Path(os.path.realpath(root / "sys/class/block" / name / "device"))
    if _CONTROLLER.match(place.name):
        return f"/dev/{place.name}"
    # With native multipathing the namespace hangs below its subsystem, and its controllers beside it.
    inside = sorted(child.name for child in place.iterdir() if _CONTROLLER.match(child.name)) if place.is_dir() else []
    return f"/dev/{inside[0]}" if len(inside) == 1 else None


def controller_named(root: Path, path: str) -> str | None:
    """The controller that a path of udev means by model and serial number, which is true also while it has no namespace.

    :param path: ``/dev/disk/by-id/nvme-MODEL_SERIAL``; links made of an EUI-64 or NGUID end with their namespace.
    """
    folder = root / "sys/class/nvme"
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        words = [read_attribute(place / name) or "" for name in ("model", "serial")]
        if all(words) and path.rsplit("/", 1)[-1] in _names(*words):
            return f"/dev/{place.name}"
    return None


def _names(model: str, serial: str) -> set[str]:
    """What udev calls a drive: blanks become underscores, and newer versions write the number of the namespace behind."""
    name = "nvme-" + re.sub(r"\s+", "_", f"{model}_{serial}")
    return {name, f"{name}_1"}


def identify(runner: Runner, path: str) -> dict[str, t.Any]:
    """Identify Controller as nvme-cli prints it.

    :raises ToolMissing: without nvme-cli.
    :raises NotUnderstood: if it printed something else.
    """
    return read_json(runner, ["nvme", "id-ctrl", path, "--output-format=json"], path)


def read_controller(runner: Runner, path: str) -> Controller:
    """One controller and its namespaces; three commands, and one more per namespace.

    :raises ToolMissing: without nvme-cli.
    :raises NotUnderstood: if it printed something else.
    """
    found = identify(runner, path)
    attached = _list(runner, path)
    allocated = _list(runner, path, "--all")
    namespaces = tuple(_read_namespace(runner, path, number, number in attached) for number in allocated)
    return Controller(
        path=path,
        number=_number(found, "cntlid"),
        capacity=_number(found, "tnvmcap"),
        unallocated=_number(found, "unvmcap"),
        manages=bool(_number(found, "oacs") & _MANAGEMENT),
        several=bool(_number(found, "cmic") & _SEVERAL_CONTROLLERS),
        namespaces=namespaces,
    )


def _read_namespace(runner: Runner, path: str, number: int, attached: bool) -> Namespace:
    # --force: list one that is allocated and not attached as well.
    found = read_json(runner, ["nvme", "id-ns", path, f"--namespace-id={number}", "--force", "--output-format=json"], path)
    return parse_namespace(found, number, attached, path)


def parse_namespace(found: t.Mapping[str, t.Any], number: int, attached: bool, path: str) -> Namespace:
    """Identify Namespace, as nvme-cli prints it.

    :raises NotUnderstood: if its format is not reported.
    """
    flbas = _number(found, "flbas")
    try:
        block = 1 << int(found["lbafs"][flbas & 0xF]["ds"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise NotUnderstood(f"{path}: nvme id-ns does not report the block size of namespace {number}.", item=path) from None
    return Namespace(number, _number(found, "nsze") * block, block, flbas & 0xF, attached, _number(found, "dlfeat") & 0b111 == 1)


def delete(runner: Runner, path: str, number: int) -> None:
    """Take a namespace away with everything in it."""
    runner.run(["nvme", "delete-ns", path, f"--namespace-id={number}"], item=path)


def create(runner: Runner, path: str, blocks: int, flbas: int) -> None:
    """A new namespace of so many logical blocks."""
    runner.run(["nvme", "create-ns", path, f"--nsze={blocks}", f"--ncap={blocks}", f"--flbas={flbas}"], item=path)


def attach(runner: Runner, path: str, number: int, controller: int) -> None:
    """Give a namespace to the host."""
    runner.run(["nvme", "attach-ns", path, f"--namespace-id={number}", f"--controllers={controller}"], item=path)
    runner.run(["nvme", "ns-rescan", path], item=path)


def read_json(runner: Runner, argv: list[str], path: str) -> dict[str, t.Any]:
    """What a command of nvme-cli prints as JSON.

    :raises NotUnderstood: if it printed something else.
    """
    text = runner.run(argv, item=path).stdout
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NotUnderstood(f"{path}: nvme {argv[1]} printed no JSON.", item=path)
    return found


def _list(runner: Runner, path: str, *option: str) -> list[int]:
    argv = ["nvme", "list-ns", path, *option]
    try:
        return _numbers(read_json(runner, [*argv, "--output-format=json"], path))
    except CommandFailed as error:
        if error.completed is None or "unrecognized option" not in error.completed.stderr:
            raise
    return [int(number, 16) for number in _LISTED.findall(runner.run(argv, item=path).stdout)]


def _numbers(found: t.Mapping[str, t.Any]) -> list[int]:
    return [int(row["nsid"]) for row in found.get("nsid_list", []) if isinstance(row, dict) and "nsid" in row]


def _number(found: t.Mapping[str, t.Any], name: str) -> int:
    try:
        return int(found.get(name) or 0)
    except (TypeError, ValueError):
        return 0
