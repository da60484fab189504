#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_network
short_description: The MTU of storage networks, now and at every boot, and ATA over Ethernet on them
version_added: 0.4.0
description:
  - Sets the MTU of interfaces, or computes it from what a network is for, together with that of the interfaces below them, in an order in
    which nothing is cut on the way.
  - The state at boot is set in what manages the interface, which is systemd-networkd, netplan, NetworkManager or ifupdown.
  - The interface that the connection of Ansible depends on is refused unless its entry allows it.
  - Before the first MTU is changed a process is started on the host that puts all of them back unless the module is told in time, over a
    new connection that carries large packets in both directions, that the host can be reached. A lost connection, a killed module, a
    controller that died and a reboot in between all end in what was there before, now and at boot.
  - A host that is as described costs one module call. The same module makes a host an initiator or a target of ATA over Ethernet, since what
    these carry depends on the MTU.
options:
  links:
    description:
      - The interfaces to set. Others are not changed, apart from those below one in the list. An empty list changes nothing.
    type: list
    elements: dict
    default: []
    suboptions:
      interface:
        description:
          - The name of the interface, or an alternative name. One of O(links[].interface) and O(links[].mac) is needed.
        type: str
      mac:
        description:
          - The hardware address of the card instead of its name.
        type: str
      mtu:
        description:
          - The MTU in bytes, without the Ethernet header. One of O(links[].mtu) and O(links[].purpose) is needed.
        type: int
      purpose:
        description:
          - What the network is for. The MTU follows from it and from O(links[].max_mtu).
          - V(aoe) takes the MTU whose frames carry whole blocks of O(links[].block_size), for example 8700 of at most 9000. A full frame of an
            MTU of 9000 carries two blocks of 4096 bytes and a stub of 512, which no block cache takes.
          - V(iscsi), V(nvme_tcp) and V(ceph) are streams of TCP, in which a block may lie across packets, so the largest MTU is the best.
        type: str
        choices: [aoe, iscsi, nvme_tcp, ceph]
      max_mtu:
        description:
          - The most that every switch and every host of the network takes. What the card takes is a limit too.
        type: int
        default: 9000
      block_size:
        description:
          - With V(aoe), the block size of the cache above, in bytes.
        type: int
        default: 4096
      members:
        description:
          - Whether interfaces below that have a smaller MTU are raised along, such as the parent of a VLAN and the ports of a bridge. V(false)
            refuses instead. The members of a bond always follow, since the kernel hands them its MTU.
        type: bool
        default: true
      allow_management:
        description:
          - Allows a change of an interface that the connection of Ansible to the host depends on.
        type: bool
        default: false
      persistent:
        description:
          - Whether the state at boot is set too. V(false) leaves it as it is.
        type: bool
        default: true
      provider:
        description:
          - What configures the interface at boot. V(auto) takes the one that does, and refuses if none or more than one does.
          - With V(systemd_networkd) an interface that nothing configures gets a C(.link) file.
        type: str
        default: auto
        choices: [auto, systemd_networkd, netplan, networkmanager, ifupdown]
  aoe_initiator:
    description:
      - Makes the host an initiator of ATA over Ethernet. Without it the AoE driver is left alone.
    type: dict
    suboptions:
      interfaces:
        description:
          - The interfaces on which the driver looks for targets. There is no authentication, so it should not be all of them.
          - An empty list leaves the driver alone.
        type: list
        elements: str
        required: true
      dead_seconds:
        description:
          - Seconds without an answer after which a target is given up and its I/O fails. Without it what the driver has.
        type: int
      max_outstanding:
        description:
          - Frames that may be on the way to a target at once. Without it what the driver has.
        type: int
      max_sectors:
        description:
          - Sectors of 512 bytes in a request at most. V(0) is no limit of its own. Without it what the driver has.
        type: int
      allow_unreachable:
        description:
          - Allows to leave out an interface over which a target in use is reached.
        type: bool
        default: false
      devices:
        description:
          - Targets that must be up, and what a frame of theirs must carry.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description:
              - The target, such as V(e7.1) for shelf 7, slot 1.
            type: str
            required: true
          payload:
            description:
              - Bytes of data in a full frame. Without it what both sides take.
            type: int
  aoe_targets:
    description:
      - What the host serves over ATA over Ethernet with vblade, now and after every boot. Targets that are not in the list are left alone.
    type: list
    elements: dict
    default: []
    suboptions:
      shelf:
        description:
          - The first part of the address of the target, V(0) to V(65534).
        type: int
        required: true
      slot:
        description:
          - The second part, V(0) to V(254).
        type: int
        required: true
      interface:
        description:
          - The interface that it is served on.
        type: str
        required: true
      device:
        description:
          - The device to serve, by a path that lasts. Required unless it shall be V(absent).
        type: str
      direct:
        description:
          - Whether requests go past the page cache of the host (C(vblade -d)).
        type: bool
        default: true
      sync:
        description:
          - Whether a write is answered when it is on the medium (C(vblade -s)). vblade passes no flush down, so without it a cache
            below that forgets in a power cut is refused.
        type: bool
        default: false
      read_only:
        description:
          - Whether writes are refused.
        type: bool
        default: false
      macs:
        description:
          - The addresses of the initiators that may use it. An empty list is everybody on the network.
        type: list
        elements: str
        default: []
      buffers:
        description:
          - Frames that may wait in the socket of the target.
        type: int
        default: 16
      state:
        description:
          - Whether it is served.
        type: str
        choices: [present, absent]
        default: present
      allow_ignored_flushes:
        description:
          - Allows to serve a device although acknowledged and flushed writes would be lost in a power cut.
        type: bool
        aliases: [allow_swallowed_flushes]
        default: false
  aoe_receive_buffer:
    description:
      - Bytes that the socket of a target may have at most (C(net.core.rmem_max)), now and after every boot. Without it what the kernel has.
    type: int
  aoe_protected_drives:
    description:
      - Serial numbers, WWNs or models of drives whose cache is known to survive a power cut.
    type: list
    elements: str
    default: []
  direction:
    description:
      - Which changes are carried out by this call. V(raise) and V(lower) are those of MTUs that get larger or smaller, and nothing else is looked
        at then; V(all) is everything.
      - The role storage_network raises the targets of all hosts before the initiators, and lowers them after.
    type: str
    default: all
    choices: [all, raise, lower]
  revert_after:
    description:
      - Seconds after which the MTUs go back by themselves unless the host was reached over a new connection.
    type: int
    default: 60
  transaction:
    description:
      - What the action plugin of this name asks the host for; it replaces whatever is written here.
    type: dict
    suboptions:
      step:
        description: Which part of a change this call is.
        type: str
        choices: [begin, prove, confirm, local]
        required: true
      token:
        description: Which change it belongs to.
        type: str
      padding:
        description: Data that only has to get through.
        type: str
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - An action plugin of the same name calls the module, makes a new connection after an MTU was changed, and calls it again.
  - A switch must take 18 bytes more than the MTU, and 4 more for each VLAN tag.
  - The profile of NetworkManager is changed with C(nmcli connection modify). M(community.general.nmcli) would write its own defaults into
    a profile that it did not make.
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: community.general.nmcli
"""

EXAMPLES = r"""
- name: A network for ATA over Ethernet below a cache with blocks of 4 KiB
  cachefleet.storage.storage_network:
    links:
      - interface: eth1
        purpose: aoe
        max_mtu: 9000

- name: A VLAN for iSCSI on a bond, whose members follow
  cachefleet.storage.storage_network:
    links:
      - interface: bond0.40
        purpose: iscsi

- name: Smaller packets on the interface that Ansible comes over
  cachefleet.storage.storage_network:
    links:
      - interface: eth0
        mtu: 1400
        allow_management: true
    revert_after: 120

- name: A target of ATA over Ethernet, and the network that it is on
  cachefleet.storage.storage_network:
    links:
      - interface: eth1
        purpose: aoe
    aoe_targets:
      - shelf: 7
        slot: 1
        interface: eth1
        device: /dev/vg0/images

- name: Its initiator
  cachefleet.storage.storage_network:
    links:
      - interface: eth1
        purpose: aoe
    aoe_initiator:
      interfaces: [eth1]
      devices:
        - name: e7.1
          payload: 8192
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: ["Raise the MTU of eth1 from 1500 to 8700"]
links:
  description: The interfaces of the list, and those below them that follow, as they are left. In check mode as they were found.
  type: list
  elements: dict
  returned: success
  contains:
    interface: {description: The name., type: str}
    mtu: {description: The MTU that it has., type: int}
    wanted_mtu: {description: The MTU that it shall have., type: int}
    max_mtu: {description: The most that its driver takes. V(null) if it does not say., type: int}
    boot_mtu: {description: The MTU that is set for the next boot. V(null) if none is., type: int}
    provider: {description: What configures it at boot. V(null) if that was not looked for., type: str}
    boot_place: {description: The file or profile in which the MTU for the next boot is set., type: str}
    carries_connection: {description: Whether the connection of Ansible to the host depends on it., type: bool}
    named: {description: Whether it is in the list itself., type: bool}
  sample:
    - interface: eth1
      mtu: 8700
      wanted_mtu: 8700
      max_mtu: 65535
      boot_mtu: 8700
      provider: systemd_networkd
      boot_place: /etc/systemd/network/20-storage.network.d/50-cachefleet-mtu.conf
      carries_connection: false
      named: true
directions:
  description: In check mode, what the host needs. V(raise) and V(lower) are MTUs, V(other) is everything else.
  type: list
  elements: str
  returned: success
  sample: [raise]
put_back:
  description: After a failure, what was put back.
  type: list
  elements: str
  returned: when MTUs went back to what they were
  sample: ["eth0 has its MTU of 1500"]
aoe_devices:
  description: The targets that the AoE driver knows.
  type: list
  elements: dict
  returned: when O(aoe_initiator) is given and O(direction) is V(all)
  contains:
    name: {description: Shelf and slot., type: str}
    device: {description: The device node., type: str}
    interfaces: {description: The interfaces over which it is reached., type: list, elements: str}
    state: {description: What the driver says of it., type: str}
    payload: {description: Bytes of data in a full frame., type: int}
    payload_of_mtu: {description: Bytes that the MTU of its interfaces would carry., type: int}
    mac: {description: The address of the target., type: str}
    in_use: {description: Whether something on this host uses it., type: bool}
  sample:
    - name: e7.1
      device: /dev/etherd/e7.1
      interfaces: [eth1]
      state: up
      payload: 8192
      payload_of_mtu: 8192
      mac: "52:54:00:4d:00:02"
      in_use: true
aoe_module:
  description: The AoE driver, whether it is loaded and what it is told.
  type: dict
  returned: when O(aoe_initiator) is given and O(direction) is V(all)
aoe_targets:
  description: The targets of O(aoe_targets) as they are left; in check mode as they were found.
  type: list
  elements: dict
  returned: when O(aoe_targets) is given and O(direction) is V(all)
  contains:
    name: {description: The address and the interface., type: str}
    instance: {description: The instance of the unit C(vblade@)., type: str}
    device: {description: What it serves., type: str}
    running: {description: Whether it runs., type: bool}
    enabled: {description: Whether it starts at boot., type: bool}
    direct: {description: Whether it goes past the page cache., type: bool}
    sync: {description: Whether it writes synchronously., type: bool}
    read_only: {description: Whether it refuses writes., type: bool}
    socket: {description: Bytes of its socket as the kernel counts them., type: int}
  sample:
    - name: e7.1 on eth1
      instance: e7.1-eth1
      device: /dev/vg0/images
      running: true
      enabled: true
      direct: true
      sync: false
      read_only: false
      socket: 425984
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import AOE_INITIATOR_OPTIONS, AoeInitiatorLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import read_wanted as read_initiator
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import AOE_TARGET_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import read_wanted as read_targets
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LINK_OPTIONS, read_wanted
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import RollbackTimer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import (
    NetworkSpec,
    Part,
    StorageNetworkLayer,
    Transaction,
    later_initiator,
)

#: Seconds: less is over before a second connection is made, more is a host that is away for too long.
REVERT_AFTER = (10, 900)


def argument_spec() -> dict[str, t.Any]:
    """The options. What begins with an underscore comes from the action plugin."""
    return {
        "links": {"type": "list", "elements": "dict", "default": [], "options": LINK_OPTIONS},
        "aoe_initiator": {"type": "dict", "options": AOE_INITIATOR_OPTIONS},
        "aoe_targets": {"type": "list", "elements": "dict", "default": [], "options": AOE_TARGET_OPTIONS},
        "aoe_receive_buffer": {"type": "int"},
        "aoe_protected_drives": {"type": "list", "elements": "str", "default": []},
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


def _wish(runner: Runner, params: t.Mapping[str, t.Any], step: str | None) -> NetworkSpec:
    if not REVERT_AFTER[0] <= params["revert_after"] <= REVERT_AFTER[1]:
        raise BadInput(f"revert_after: {params['revert_after']} is no usable time: write {REVERT_AFTER[0]} to {REVERT_AFTER[1]} seconds.", item="revert_after")
    # Of one direction alone nothing but interfaces is changed.
    parts: list[Part] = [] if params["direction"] != ALL else _parts(runner, params)
    # A connection that is no connection cannot be cut.
    return NetworkSpec(read_wanted(params["links"]), parts, params["direction"], () if step == "local" else None)


def _parts(runner: Runner, params: t.Mapping[str, t.Any]) -> list[Part]:
    parts: list[Part] = []
    targets = read_targets(params["aoe_targets"], params["aoe_receive_buffer"])
    if targets.targets or targets.receive_buffer is not None:
        # It looks at the whole stack of what is served, and those are half of all imports: seconds, on a slow host that serves nothing.
        from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target import AoeTargetLayer

        layer = AoeTargetLayer(runner, targets, protected=params["aoe_protected_drives"])
        parts.append(Part(layer, targets, lambda state, mtus, untold: state.after_links(mtus, targets)))  # noqa: ARG005
    initiator = read_initiator(params["aoe_initiator"])
    if initiator is not None:
        parts.append(Part(AoeInitiatorLayer(runner, initiator), initiator, later_initiator))
    return parts


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    asked = module.params["transaction"] or {}
    step, token = asked.get("step"), asked.get("token")
    if step == "prove":
        module.exit_json(changed=False, padding=asked["padding"])
    try:
        runner = Runner()
        wish = _wish(runner, module.params, step)
        layer = StorageNetworkLayer(runner, wish)
        transaction = Transaction(layer, RollbackTimer(runner), module.params["revert_after"])
        if module.check_mode:
            report = transaction.foresee()
            result = {"directions": layer.directions(report.present, wish)}
        else:
            report = transaction.confirm(token) if step == "confirm" else transaction.run(token if step == "begin" else None)
            result = {}
        result.update(layer.facts(report.present), **report.as_result())
    except StorageError as error:
        module.fail_json(**error.as_result())
    for concern in report.concerns:
        module.warn(concern)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
