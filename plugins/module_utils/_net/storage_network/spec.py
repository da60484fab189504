# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users ask of the storage network of one host: interfaces, AoE targets and the AoE initiator."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import PROTECTED_DRIVES_OPTION
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import AOE_INITIATOR_OPTIONS, AoeInitiatorLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import read_spec as read_initiator
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import AOE_TARGET_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import read_spec as read_targets
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LINK_OPTIONS, read_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import NetworkSpec, Part, later_initiator

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Seconds: less is over before a second connection is made, more is a host that is away for too long.
REVERT_AFTER = (10, 900)


def argument_spec() -> dict[str, t.Any]:
    """The options. What begins with an underscore comes from the action plugin."""
    return {
        "links": {"type": "list", "elements": "dict", "default": [], "options": LINK_OPTIONS},
        "aoe_initiator": {"type": "dict", "options": AOE_INITIATOR_OPTIONS},
        "aoe_targets": {"type": "list", "elements": "dict", "default": [], "options": AOE_TARGET_OPTIONS},
        "aoe_receive_buffer": {"type": "int"},
        "aoe_protected_drives": PROTECTED_DRIVES_OPTION["protected_drives"],
        "aoe_flushed_virtual_disks": {"type": "list", "elements": "str", "default": []},
        "direction": {"type": "str", "default": "all", "choices": ["all", "raise", "lower"]},
        "revert_after": {"type": "int", "default": 60},
        "transaction": {
            "type": "dict",
            "options": {
                "step": {"type": "str", "choices": ["begin", "prove", "confirm", "local"], "required": True},
                "token": {"type": "str", "no_log": False},
                "padding": {"type": "str"},
            },
        },
    }


def read_spec(runner: Runner, params: t.Mapping[str, t.Any], step: str | None) -> NetworkSpec:
    if not REVERT_AFTER[0] <= params["revert_after"] <= REVERT_AFTER[1]:
        raise BadInput(f"revert_after: {params['revert_after']} is not supported: use {REVERT_AFTER[0]} to {REVERT_AFTER[1]} seconds.", item="revert_after")
    # Of one direction alone nothing but interfaces is changed.
    parts: list[Part] = [] if params["direction"] != ALL else _parts(runner, params)
    # A connection that is no connection cannot be cut.
    return NetworkSpec(read_specs(params["links"]), parts, params["direction"], () if step == "local" else None)


def _parts(runner: Runner, params: t.Mapping[str, t.Any]) -> list[Part]:
    parts: list[Part] = []
    targets = read_targets(params["aoe_targets"], params["aoe_receive_buffer"])
    if targets.targets or targets.receive_buffer is not None:
        # It reads the whole stack of what is served, and those are half of all imports: seconds, on a slow host that serves nothing.
        from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target import AoeTargetLayer

        layer = AoeTargetLayer(runner, targets, protected=params["aoe_protected_drives"], flushed=params["aoe_flushed_virtual_disks"])
        parts.append(Part(layer, lambda state, mtus, untold: state.after_links(mtus, targets), over_drives=True))  # noqa: ARG005
    initiator = read_initiator(params["aoe_initiator"])
    if initiator is not None:
        parts.append(Part(AoeInitiatorLayer(runner, initiator), later_initiator))
    return parts
