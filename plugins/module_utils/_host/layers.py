# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of one host in their order, and how each is made from its parameters. A layer is imported when it is made."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._host.cache_types import code_of, layer_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import HostRequest, Params

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import Transaction

AnyLayer = Layer[t.Any, t.Any]
DRIVES = "drive_write_cache"
NETWORK = "storage_network"
BLOCK_CACHE = "block_cache"


@frozen
class Host:
    """Where the layers are.

    :param log: takes lines of progress.
    :param sleep: waits for a number of seconds.
    """

    runner: HostRunner
    root: Path = Path("/")
    log: t.Callable[[str], None] | None = None
    sleep: t.Callable[[float], None] = time.sleep

    def wait(self, seconds: float) -> None:
        """Wait for something to change: what was read before is read again."""
        self.sleep(seconds)
        self.runner.shared.forget(remember=self.runner.shared.remembering)


@frozen
class Stage:
    """One layer at its place in the order of a host. A layer of which something is removed first has two stages.

    :param layer: the name of the layer, which is that of its module.
    :param group: the role that a call can be limited to.
    :param make: the layer over a host, made anew each time; it raises what is wrong with the parameters.
    :param paths: the devices that its parameters name.
    :param touches_raid: whether it changes volumes of RAID controllers, which are not named by paths.
    :param needs_only_presence: whether it depends on other layers only for devices that they create.
    :param takes_any_device: whether it is also about devices that no path names, but what they are.
    """

    layer: str
    group: str
    make: t.Callable[[Host], AnyLayer]
    paths: tuple[str, ...] = ()
    touches_raid: bool = False
    needs_only_presence: bool = False
    takes_any_device: bool = False

    def layer_on(self, host: Host) -> AnyLayer:
        """The layer over a host, made anew.

        :raises BadInput: for parameters that are invalid.
        :raises ToolMissing: if a tool is missing without which the layer cannot be made.
        """
        layer = self.make(host)
        layer.sleep = host.wait
        return layer


def stages_of(request: HostRequest) -> list[Stage]:
    """The layers of a host in their order.

    What is removed comes first. Then from the media up: a cache is created after the drives below it are configured. A target
    serves its caches, so they precede its network; every other host may have its devices only after its network is configured.
    ``HostPlan.in_order`` has what does not depend on the network before it.
    """
    removed = [_cache_stage(request, kind, removed=True) for kind in TYPES if kind in request.caches and request.caches[kind].removed]
    created = [_cache_stage(request, kind, removed=False) for kind in TYPES if kind in request.caches and request.caches[kind].rest]
    network = [_network_stage(request.network)] if request.network else []
    return [
        *removed,
        *_raid_stages(request, removed=True),
        *_drive_stages(request),
        *_raid_stages(request, removed=False),
        *([*created, *network] if request.serves else [*network, *created]),
        *_queue_stages(request),
    ]


def _drive_stages(request: HostRequest) -> list[Stage]:
    def make(host: Host) -> AnyLayer:
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveWriteCacheLayer
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import read_specs

        return DriveWriteCacheLayer(host.runner, read_specs(request.drives), host.root)

    if not request.drives:
        return []
    paths = tuple(drive["device"] for drive in request.drives if drive.get("device"))
    return [Stage(DRIVES, DRIVES, make, paths, takes_any_device=len(paths) < len(request.drives))]


def _raid_stages(request: HostRequest, *, removed: bool) -> list[Stage]:
    def make_policies(host: Host) -> AnyLayer:
        from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
        from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers

        return RaidCacheLayer.with_tools(host.runner, parse_controllers(request.policies, request.protected_drives))

    def make_ssd_caches(host: Host) -> AnyLayer:
        from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import RaidMaxCacheLayer
        from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import parse_controllers

        return RaidMaxCacheLayer.with_tools(host.runner, parse_controllers(ssd_caches), log=host.log)

    ssd_caches = request.removed_ssd_caches if removed else request.ssd_caches
    stages = [Stage("raid_cache", "raid_cache", make_policies, touches_raid=True)] if request.policies and not removed else []
    return [*stages, *([Stage("raid_maxcache", "raid_cache", make_ssd_caches, touches_raid=True)] if ssd_caches else [])]


def _cache_stage(request: HostRequest, kind: str, *, removed: bool) -> Stage:
    lists = request.caches[kind]
    items = lists.removed if removed else lists.rest
    tools = request.tools.get(kind, {})
    paths = tuple(path for item in items for path in (*item["cache_devices"], path_of_origin(item["origin"])))
    return Stage(kind, BLOCK_CACHE, lambda host: _make_cache_layer(host, kind, items, tools), paths)


def path_of_origin(origin: str) -> str:
    """The path of an origin, which for LVM is ``vg/lv``."""
    return origin if origin.startswith("/") else f"/dev/{origin}"


def _make_cache_layer(host: Host, kind: str, items: t.Sequence[Params], tools: Params) -> AnyLayer:
    folders = tools.get("tool_dirs") or ()
    return layer_of(
        kind,
        host.runner.with_folders(folders) if folders else host.runner,
        code_of(kind).spec.read_items(items),
        host.root,
        kernel_module=tools.get("kernel_module", ""),
        declared=tools.get("declared"),
    )


def _network_stage(network: Params) -> Stage:
    def make(host: Host) -> AnyLayer:
        from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.spec import read_spec
        from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import StorageNetworkLayer

        return StorageNetworkLayer(host.runner, read_spec(host.runner, network, None), host.root)

    return Stage(NETWORK, NETWORK, make, tuple(target["device"] for target in network["aoe_targets"] if target.get("device")))


def transaction_of(layer: AnyLayer, host: Host, revert_after: int) -> Transaction:
    """What predicts the steps of a storage network."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import RollbackTimer
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import Transaction

    return Transaction(t.cast("t.Any", layer), RollbackTimer(host.runner), revert_after, host.root)


def _queue_stages(request: HostRequest) -> list[Stage]:
    queues = request.queues

    def make(host: Host) -> AnyLayer:
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import read_module_specs
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec
        from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs

        values = queues or {}
        return BlockQueueLayer(
            host.runner, QueuesSpec(read_specs(values["devices"]), read_module_specs(values["module_options"]), values["exclusive"]), host.root
        )

    if queues is None:
        return []
    paths = tuple(entry["device"] for entry in queues["devices"] if entry.get("device"))
    matches = any(not entry.get("device") for entry in queues["devices"])
    return [Stage("block_queue", "block_queue", make, paths, needs_only_presence=True, takes_any_device=matches)]
