# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is specified for all layers of one host: the lists of the module ``cache_layers``, checked with the options of each layer."""

from __future__ import annotations

import re
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.division import divide, migrates
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES, WITH_TOOLS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import unknown_key, validator_sentence, wrong_types
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._host.cache_types import code_of

Entry = t.Dict[str, t.Any]
Params = t.Mapping[str, t.Any]

#: What a call can be limited to: the names of the roles.
GROUPS = ("drive_write_cache", "raid_cache", "block_cache", "storage_network", "block_queue")
#: What a module accepts as the measurement that it starts once all layers are as specified.
MEASUREMENT = {"benchmark": {"type": "dict"}, "settle": {"type": "float", "default": 0}}
#: What a user sets: the variables of the roles, from which the options are filled.
VARIABLES = {
    "drives": "drive_write_cache_drives",
    "controllers": "raid_cache_controllers",
    "caches": "block_cache_caches",
    "queues": "block_queue_devices",
    "queue_module_options": "block_queue_module_options",
}
#: An entry of each of them.
_EXAMPLES = {
    "drives": "{device: /dev/disk/by-id/ata-SERIAL, write_cache: disabled}",
    "controllers": "{provider: storcli, volumes: [{id: 0, write: writethrough}]}",
    "caches": "{name: images, type: lvm_cache, origin: vg0/images, cache_devices: [/dev/disk/by-id/nvme-SERIAL]}",
    "queues": "{match: {rotational: true}, profile: hdd}",
    "queue_module_options": "{module: nvme, options: {io_queue_depth: 64}}",
}
#: Parameters of the network that leave nothing to do if all of them are empty.
_NETWORK = ("links", "aoe_initiator", "aoe_targets")


@frozen
class CacheLists:
    """The caches of one type: what is removed before anything else, and the rest."""

    removed: t.Sequence[Entry] = ()
    rest: t.Sequence[Entry] = ()


@frozen
class HostRequest:
    """Everything that is specified for a host, checked against the options of the module of each layer.

    :param policies: of RAID controllers; ``ssd_caches`` of the same controllers, ``removed_ssd_caches`` what is removed of them.
    :param caches: by type; only types that are in the list.
    :param tools: ``tool_dirs``, ``kernel_module`` and what is ``declared`` of drives, by type.
    :param migrating: the caches that may replace one of another type.
    :param queues: the parameters of ``block_queue``; ``network`` those of ``storage_network``. ``None`` if there is nothing to do.
    :param protected_drives: declarations of drives that keep their cache through a power cut.
    """

    drives: t.Sequence[Entry] = ()
    policies: t.Sequence[Entry] = ()
    removed_ssd_caches: t.Sequence[Entry] = ()
    ssd_caches: t.Sequence[Entry] = ()
    caches: t.Mapping[str, CacheLists] = field(default_factory=dict)
    tools: t.Mapping[str, Params] = field(default_factory=dict)
    migrating: t.Sequence[Entry] = ()
    queues: Params | None = None
    network: Params | None = None
    protected_drives: t.Sequence[str] = ()

    @property
    def serves(self) -> bool:
        """Whether the host is an AoE target: its caches then come before its network."""
        return bool(self.network and self.network["aoe_targets"])

    @property
    def attaches(self) -> bool:
        """Whether the host may get devices from its network."""
        return bool(self.network and self.network["aoe_initiator"])

    def all_caches(self) -> t.Iterator[tuple[str, Entry]]:
        """Every cache with its type."""
        for kind, lists in self.caches.items():
            yield from ((kind, item) for item in (*lists.removed, *lists.rest))


def argument_spec() -> dict[str, t.Any]:
    """The options of ``cache_layers``; entries are checked with those of the module of their layer, which is imported only if there are entries."""
    entries = {"type": "list", "elements": "dict", "default": []}
    return {
        "drives": entries,
        "controllers": entries,
        "caches": entries,
        **{kind: _tool_options(kind) for kind in WITH_TOOLS},
        **DECLARATION_OPTIONS,
        "queues": entries,
        "queue_module_options": entries,
        "queues_exclusive": {"type": "bool", "default": False},
        "network": {"type": "dict"},
        "layers": {"type": "list", "elements": "str", "choices": list(GROUPS), "default": []},
        "allow_pending": {"type": "bool", "default": True},
        "verify": {"type": "bool", "default": False},
    }


def _tool_options(kernel_module: str) -> dict[str, t.Any]:
    return {
        "type": "dict",
        "options": {"tool_dirs": {"type": "list", "elements": "path", "default": []}, "kernel_module": {"type": "str", "default": kernel_module}},
    }


def read_request(params: Params) -> HostRequest:
    """The parameters of the module ``cache_layers``; only what the lists of this host need is imported.

    :raises BadInput: naming the list and the option.
    """
    caches = _types_of(params["caches"])
    policies, removed, kept = _controllers(params["controllers"])
    return HostRequest(
        drives=_drives(params["drives"]),
        policies=policies,
        removed_ssd_caches=removed,
        ssd_caches=kept,
        caches={kind: _cache_lists(kind, caches) for kind in TYPES if any(item["type"] == kind for item in caches)},
        tools={kind: _tools(kind, params) for kind in WITH_TOOLS},
        migrating=[item for item in caches if migrates(item)],
        queues=_queues(params),
        network=_network(params["network"]),
        protected_drives=params["protected_drives"],
    )


def checked(option: str, argument_spec: Params, values: Params) -> dict[str, t.Any]:
    """Values as a module would get them: with types, defaults and aliases.

    :raises BadInput: with the reasons that a module would give.
    """
    result = ArgumentSpecValidator(dict(argument_spec)).validate(dict(values))
    if result.error_messages:
        # SSD caches of a controller are taken out of its entry before.
        more = ("maxcache",) if option == "controllers" else ()
        wrong = [_of_network(one) if option == "network" else one for one in wrong_types(argument_spec, values)]
        reasons = "; ".join(dict.fromkeys(wrong) or dict.fromkeys(unknown_key(text, more) or _in_place(text, option) for text in result.error_messages))
        raise BadInput(f"{_named(option)}: {reasons}{'' if reasons.endswith(('.', '?')) else '.'}", item=option)
    return dict(result.validated_parameters)


def _of_network(sentence: str) -> str:
    """The variables of the network are its parameters with the name of the role, but for the options of the initiator."""
    sentence = re.sub(r"for example aoe_initiator: .*", "for example storage_network_aoe_options: {dead_seconds: 60}", sentence)
    return f"storage_network_{sentence.replace('aoe_initiator', 'aoe_options', 1)}"


def _in_place(text: str, option: str) -> str:
    """A message of Ansible's validator that begins with its place; the list itself is named before it."""
    text, _separator, path = text.partition(" found in ")
    places = path.split(" -> ") if path else []
    if option == "network":
        places[:1] = [f"storage_network_{name}" for name in places[:1]]
    else:
        del places[:1]
    return ": ".join([*places, validator_sentence(text)])


def _named(option: str) -> str:
    """An option with the variable that a role fills it from."""
    name = re.split(r"[. ]", option)[0]
    return f"{option} (variable {VARIABLES[name]})" if name in VARIABLES else option


def wrong_list(params: Params) -> str:
    """Which value is of another type, as a sentence; empty if there is none. Ansible's own message names neither variable nor type."""
    for name, variable in VARIABLES.items():
        value = params.get(name) or []
        if not isinstance(value, (list, tuple)) or not all(isinstance(entry, t.Mapping) for entry in value):
            return f"{name} (variable {variable}) must be a list of dictionaries: for example {variable}: [{_EXAMPLES[name]}]."
    exclusive = {"block_queue_exclusive": params.get("queues_exclusive")}
    return "".join(f"{one}." for one in wrong_types({"block_queue_exclusive": {"type": "bool"}}, exclusive))


def _checked_list(option: str, name: str, options: Params, entries: t.Sequence[Params]) -> list[Entry]:
    spec = {name: {"type": "list", "elements": "dict", "options": options}}
    return list(checked(option, spec, {name: list(entries)})[name])


def _drives(entries: t.Sequence[Params]) -> list[Entry]:
    if not entries:
        return []
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DRIVE_OPTIONS

    return _checked_list("drives", "drives", DRIVE_OPTIONS, entries)


def _controllers(entries: t.Sequence[Params]) -> tuple[list[Entry], list[Entry], list[Entry]]:
    if not entries:
        return [], [], []
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import policies, ssd_caches
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import argument_spec

    parts = [checked("controllers", argument_spec(), {"controllers": policies(entries)})["controllers"]]
    for removed in (True, False):
        found = ssd_caches(entries, removed=removed)
        parts.append(_checked_ssd_caches(found) if found else [])
    return parts[0], parts[1], parts[2]


def _checked_ssd_caches(entries: t.Sequence[Params]) -> list[Entry]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CONTROLLER

    return _checked_list("controllers.maxcache", "controllers", CONTROLLER, entries)


def _types_of(entries: t.Sequence[Params]) -> list[Entry]:
    for entry in entries:
        if entry.get("type") not in TYPES:
            name = entry.get("name", "an entry without a name")
            raise BadInput(f"caches: the type {entry.get('type')} of {name} is not supported: set type to one of {', '.join(TYPES)}.", item=str(name))
    return [dict(entry) for entry in entries]


def _cache_lists(kind: str, caches: t.Sequence[Entry]) -> CacheLists:
    removed, rest = divide(caches, kind)
    if not any(item.get("state") != "absent" for item in rest):
        # Nothing of this type stays: what goes comes before all other layers.
        removed, rest = [*removed, *rest], []
    options = code_of(kind).spec.CACHE_OPTIONS
    return CacheLists(*(_checked_list(f"caches of type {kind}", "caches", options, items) if items else [] for items in (removed, rest)))


def _tools(kind: str, params: Params) -> Entry:
    given = params[kind] or {}
    return {
        "tool_dirs": given.get("tool_dirs") or [],
        "kernel_module": given.get("kernel_module") or kind,
        "declared": {"protected": params["protected_drives"], "flushed": params["flushed_virtual_disks"]},
    }


def _queues(params: Params) -> Params | None:
    values = {"devices": params["queues"], "module_options": params["queue_module_options"], "exclusive": params["queues_exclusive"]}
    if not any(values.values()):
        return None
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import argument_spec

    return checked("queues", argument_spec(), values)


def _network(values: Params | None) -> Params | None:
    # The role gives none for what is not set, which ansible-core before 2.19 makes an empty text.
    given = {name: value for name, value in (values or {}).items() if value not in (None, "")}
    if not any(given.get(name) for name in _NETWORK):
        return None
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.spec import argument_spec

    return checked("network", argument_spec(), given)
