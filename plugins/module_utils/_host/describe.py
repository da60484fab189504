# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A whole host as the variables of the roles of ``site.yml``, and the devices that could be measured."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Variable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import description as drive_description
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import description as queue_description
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import description as fio_description
from ansible_collections.cachefleet.storage.plugins.module_utils._host import describe_block_caches, describe_raid
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe import description as aoe_description
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links import description as links_description

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller

#: The roles that read the variables, in the order of ``site.yml``.
LAYERS = ("drive_write_cache", "raid_cache", "storage_network", "block_cache", "block_queue", "fio_benchmark")


@frozen
class HostDescription:
    """The variables in the order of the roles, and the controllers of the host."""

    variables: tuple[Variable, ...]
    controllers: tuple[Controller, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        """For a module's return values; of controllers only what names them and their volumes."""
        return {"variables": [one.to_dict() for one in self.variables], "controllers": [_names_of(one) for one in self.controllers]}


def _names_of(controller: Controller) -> dict[str, t.Any]:
    volumes = [{"id": volume.id, "name": volume.name, "wwn": volume.wwn} for volume in controller.volumes]
    return {"provider": controller.provider, "id": controller.id, "serial": controller.serial, "model": controller.model, "volumes": volumes}


class _Host:
    """The layers of one host, each described on its own: what cannot be read of one does not hide the others."""

    def __init__(self, runner: Runner, root: Path, every: bool, by_match: bool, tool_paths: t.Mapping[str, str] | None) -> None:
        self.runner = runner
        self.root = root
        self.every = every
        self.by_match = by_match
        self.tool_paths = tool_paths
        self.devices: Devices = read_devices(runner, root)
        self.controllers: tuple[Controller, ...] = ()

    def drive_write_cache(self) -> list[Variable]:
        return [drive_description.describe(self.runner, self.devices, self.root, by_match=self.by_match)]

    def raid_cache(self) -> list[Variable]:
        variable, self.controllers = describe_raid.describe(self.runner, self.devices, every=self.every, by_match=self.by_match, tool_paths=self.tool_paths)
        return [variable]

    def storage_network(self) -> list[Variable]:
        links = self._part(links_description.VARIABLE, lambda: [links_description.describe(self.runner, self.root, every=self.every)])
        used = self._part(aoe_description.USED_INTERFACES, lambda: aoe_description.describe_initiator(self.runner, self.root))
        return [*links, *used, *self._part(aoe_description.SERVED, lambda: aoe_description.describe_targets(self.runner, self.root))]

    def block_cache(self) -> list[Variable]:
        return [describe_block_caches.describe(self.runner, self.devices, self.root, every=self.every)]

    def block_queue(self) -> list[Variable]:
        return queue_description.describe(self.runner, self.devices, self.root, every=self.every)

    def fio_benchmark(self) -> list[Variable]:
        return [fio_description.describe(self.devices, self.runner)]

    def describe(self, layer: str) -> list[Variable]:
        return self._part(_FIRST[layer], getattr(self, layer))

    @staticmethod
    def _part(name: str, read: t.Callable[[], list[Variable]]) -> list[Variable]:
        try:
            return read()
        except StorageError as error:
            return [Variable(name, notes=(f"This layer could not be read: {error.message}",))]


#: The variable that says what could not be read of a layer.
_FIRST = {
    "drive_write_cache": drive_description.VARIABLE,
    "raid_cache": describe_raid.VARIABLE,
    "storage_network": links_description.VARIABLE,
    "block_cache": describe_block_caches.VARIABLE,
    "block_queue": queue_description.DEVICES,
    "fio_benchmark": fio_description.VARIABLE,
}


def describe(
    runner: Runner,
    root: Path = Path("/"),
    *,
    layers: t.Collection[str] = LAYERS,
    every: bool = False,
    by_match: bool = False,
    tool_paths: t.Mapping[str, str] | None = None,
) -> HostDescription:
    """The state of a host as variables.

    :param layers: those of :data:`LAYERS` that are described.
    :param every: settings that have their default are described too.
    :param by_match: drives that agree with all others of their model are described by one entry.
    :param tool_paths: of RAID tools that are not where they are searched for, by provider.
    :raises StorageError: if the block devices of the host cannot be read.
    """
    host = _Host(runner, root, every, by_match, tool_paths)
    variables = [variable for layer in LAYERS if layer in layers for variable in host.describe(layer)]
    return HostDescription(tuple(variables), host.controllers)
