#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_network
short_description: Manage the MTU of storage networks, at runtime and at boot, and ATA over Ethernet
version_added: 1.0.0
description:
  - Sets the MTU of interfaces, or computes it from the purpose of a network, together with that of the underlying interfaces, in an order in
    which no frame is dropped.
  - The boot configuration is changed in the network service of the interface, which is systemd-networkd, netplan, NetworkManager, ifupdown or wicked.
  - Changes of the interface that the connection of Ansible depends on are refused unless its entry allows them.
  - Before the first MTU is changed, a process is started on the host that rolls back all changes unless it is confirmed in time, over a
    new connection that carries large packets in both directions, that the host is reachable. After a lost connection, a killed module, a
    crash of the controller or a reboot, the previous state is restored, at runtime and at boot.
  - A host that is already configured as described needs one module call. The same module configures a host as an initiator or a target of ATA
    over Ethernet, since the payload of its frames depends on the MTU.
options:
  links:
    description:
      - The interfaces to set. Other interfaces are not changed, except those that underlie a listed one. An empty list changes nothing.
    type: list
    elements: dict
    default: []
    suboptions:
      interface:
        description:
          - The name of the interface, or an alternative name. Either O(links[].interface) or O(links[].mac) is required.
        type: str
      mac:
        description:
          - The MAC address of the interface, instead of its name.
        type: str
      mtu:
        description:
          - The MTU in bytes, without the Ethernet header. Either O(links[].mtu) or O(links[].purpose) is required.
        type: int
      purpose:
        description:
          - The purpose of the network. The MTU is computed from it and from O(links[].max_mtu).
          - V(aoe) uses the MTU whose frames carry whole blocks of O(links[].block_size), for example 8700 of at most 9000. A full frame with an
            MTU of 9000 carries two blocks of 4096 bytes and a partial block of 512 bytes, which block caches do not cache.
          - V(iscsi), V(nvme_tcp) and V(ceph) use TCP streams, in which a block may span packets, so the largest MTU is the best.
        type: str
        choices: [aoe, iscsi, nvme_tcp, ceph]
      max_mtu:
        description:
          - The largest MTU that every switch and every host of the network supports. The maximum of the network card is a limit too.
        type: int
        default: 9000
      block_size:
        description:
          - With V(aoe), the block size in bytes of the cache on top of the AoE devices.
        type: int
        default: 4096
      members:
        description:
          - Whether the MTU of underlying interfaces is raised too if it is smaller, such as the parent of a VLAN and the ports of a bridge. With
            V(false) the change is refused instead. The members of a bond are always changed, because the kernel sets its MTU on them.
        type: bool
        default: true
      allow_management:
        description:
          - Allow changes of an interface that the connection of Ansible to the host depends on.
        type: bool
        default: false
      persistent:
        description:
          - Whether the boot configuration is changed too. V(false) does not change it.
        type: bool
        default: true
      provider:
        description:
          - The network service that configures the interface at boot. V(auto) detects it, and fails if there is none or more than one.
          - With V(systemd_networkd) an interface that is not configured by any service gets a C(.link) file.
        type: str
        default: auto
        choices: [auto, systemd_networkd, netplan, networkmanager, ifupdown, wicked]
  aoe_initiator:
    description:
      - Configures the host as an initiator of ATA over Ethernet. If not set, the AoE driver is not changed.
    type: dict
    suboptions:
      interfaces:
        description:
          - The interfaces on which the driver discovers targets. The protocol has no authentication, so not all interfaces should be listed.
          - An empty list does not change the driver.
        type: list
        elements: str
        required: true
      dead_seconds:
        description:
          - Seconds without a response after which a target is marked down and its I/O fails. By default the driver's value is not changed.
        type: int
      max_outstanding:
        description:
          - Maximum number of outstanding frames for a target. By default the driver's value is not changed.
        type: int
      max_sectors:
        description:
          - Maximum number of 512-byte sectors in a request. V(0) sets no limit. By default the driver's value is not changed.
        type: int
      allow_unreachable:
        description:
          - Allow removing an interface over which a target in use is reached.
        type: bool
        default: false
      devices:
        description:
          - Targets that must be up, and the payload that their frames must carry.
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
              - Bytes of data in a full frame. Defaults to the largest payload that both sides support.
            type: int
  aoe_targets:
    description:
      - Targets that the host serves over ATA over Ethernet with vblade, at runtime and after every boot. Targets that are not listed are not changed.
    type: list
    elements: dict
    default: []
    suboptions:
      shelf:
        description:
          - The shelf (major) address of the target, V(0) to V(65534).
        type: int
        required: true
      slot:
        description:
          - The slot (minor) address of the target, V(0) to V(254).
        type: int
        required: true
      interface:
        description:
          - The interface on which the target is served.
        type: str
        required: true
      device:
        description:
          - The persistent path of the device to serve. Required unless the state is V(absent).
        type: str
      direct:
        description:
          - Whether requests bypass the page cache of the host (C(vblade -d)).
        type: bool
        default: true
      sync:
        description:
          - Whether a write is acknowledged only once it is on the medium (C(vblade -s)). vblade does not pass flushes to the device, so without
            this option a device with a volatile cache is refused.
        type: bool
        default: false
      read_only:
        description:
          - Whether the target is read-only.
        type: bool
        default: false
      macs:
        description:
          - MAC addresses of the initiators that may use the target. With an empty list, every host on the network may use it.
        type: list
        elements: str
        default: []
      buffers:
        description:
          - Number of frames that the socket of the target can buffer.
        type: int
        default: 16
      state:
        description:
          - Whether the target is served.
        type: str
        choices: [present, absent]
        default: present
      allow_ignored_flushes:
        description:
          - Allow serving a device even if acknowledged and flushed writes would be lost in a power failure.
        type: bool
        default: false
  aoe_receive_buffer:
    description:
      - Maximum size in bytes of the receive buffer of a target's socket (C(net.core.rmem_max)), at runtime and after every boot. By default it is
        not changed.
    type: int
  aoe_protected_drives:
    description:
      - Serial numbers, WWNs or models of drives whose cache is known to survive a power failure, or dictionaries with C(match).
    type: list
    elements: raw
    default: []
  aoe_flushed_virtual_disks:
    description:
      - The same of virtual disks of which a flush reaches media.
    type: list
    elements: str
    default: []
  direction:
    description:
      - The changes that this call applies. V(raise) and V(lower) only increase or decrease MTUs, and read nothing else. V(all) applies all
        changes.
      - The role storage_network raises MTUs on all targets before the initiators, and lowers them on the targets after the initiators.
    type: str
    default: all
    choices: [all, raise, lower]
  revert_after:
    description:
      - Seconds after which the MTUs are rolled back automatically unless the host was reached over a new connection.
    type: int
    default: 60
  transaction:
    description:
      - For internal use by the action plugin of the same name, which overwrites any value.
    type: dict
    suboptions:
      step:
        description: The step of the change that this call performs.
        type: str
        choices: [begin, prove, confirm, local]
        required: true
      token:
        description: The change that this call belongs to.
        type: str
      padding:
        description: Padding that makes the packets large.
        type: str
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
notes:
  - An action plugin of the same name calls the module, makes a new connection after an MTU was changed, and calls it again.
  - Switches must support frames of 18 bytes more than the MTU, and 4 more for each VLAN tag.
  - NetworkManager profiles are changed with C(nmcli connection modify). M(community.general.nmcli) would write its own defaults into
    a profile that it did not create.
author:
  - the cachefleet.storage authors (@cachefleet)
seealso:
  - module: community.general.nmcli
"""

EXAMPLES = r"""
- name: Set the MTU for ATA over Ethernet below a cache with blocks of 4 KiB
  cachefleet.storage.storage_network:
    links:
      - interface: eth1
        purpose: aoe
        max_mtu: 9000

- name: Set the MTU of an iSCSI VLAN on a bond, including its members
  cachefleet.storage.storage_network:
    links:
      - interface: bond0.40
        purpose: iscsi

- name: Set a smaller MTU on the interface of the Ansible connection
  cachefleet.storage.storage_network:
    links:
      - interface: eth0
        mtu: 1400
        allow_management: true
    revert_after: 120

- name: Configure an ATA over Ethernet target and its network
  cachefleet.storage.storage_network:
    links:
      - interface: eth1
        purpose: aoe
    aoe_targets:
      - shelf: 7
        slot: 1
        interface: eth1
        device: /dev/vg0/images

- name: Configure the initiator of this target
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
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  type: list
  elements: str
  returned: always
  sample: ["Raise the MTU of eth1 from 1500 to 8700"]
links:
  description: The listed interfaces and the underlying interfaces, as read after the changes, in check mode before them.
  type: list
  elements: dict
  returned: success
  contains:
    interface: {description: The name of the interface., type: str}
    mtu: {description: The present MTU., type: int}
    wanted_mtu: {description: The requested MTU., type: int}
    max_mtu: {description: The maximum MTU of the driver. V(null) if it is not reported., type: int}
    boot_mtu: {description: The MTU of the boot configuration. V(null) if it is not set., type: int}
    provider: {description: The network service that configures the interface at boot. V(null) if it was not determined., type: str}
    boot_place: {description: The file or profile in which the MTU of the boot configuration is set., type: str}
    carries_connection: {description: Whether the connection of Ansible to the host depends on the interface., type: bool}
    named: {description: Whether the interface itself is in O(links)., type: bool}
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
  description: In check mode, the kinds of changes that the host needs. V(raise) and V(lower) are for MTUs, V(other) for all other changes.
  type: list
  elements: str
  returned: success
  sample: [raise]
put_back:
  description: After a failure, the changes that were rolled back.
  type: list
  elements: str
  returned: if MTUs were rolled back
  sample: ["eth0 has its MTU of 1500"]
aoe_devices:
  description: The targets that the AoE driver has discovered.
  type: list
  elements: dict
  returned: when O(aoe_initiator) is given and O(direction) is V(all)
  contains:
    name: {description: Shelf and slot., type: str}
    device: {description: The device node., type: str}
    interfaces: {description: The interfaces over which the target is reached., type: list, elements: str}
    state: {description: The state according to the driver., type: str}
    payload: {description: Bytes of data in a full frame., type: int}
    payload_of_mtu: {description: Bytes of data that the MTU of its interfaces allows., type: int}
    mac: {description: The MAC address of the target., type: str}
    in_use: {description: Whether the device is in use on this host., type: bool}
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
  description: The state of the AoE driver and its parameters.
  type: dict
  returned: when O(aoe_initiator) is given and O(direction) is V(all)
aoe_targets:
  description: The targets of O(aoe_targets) as read after the changes, in check mode before them.
  type: list
  elements: dict
  returned: when O(aoe_targets) is given and O(direction) is V(all)
  contains:
    name: {description: The address and the interface., type: str}
    instance: {description: The instance of the unit C(vblade@)., type: str}
    device: {description: The served device., type: str}
    running: {description: Whether the target is running., type: bool}
    enabled: {description: Whether the target is started at boot., type: bool}
    direct: {description: Whether the page cache is bypassed., type: bool}
    sync: {description: Whether writes are synchronous., type: bool}
    read_only: {description: Whether the target is read-only., type: bool}
    socket: {description: Size of the socket's receive buffer in bytes as reported by the kernel., type: int}
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

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import RollbackTimer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.spec import argument_spec, read_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import StorageNetworkLayer, Transaction


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    request = module.params["transaction"] or {}
    step, token = request.get("step"), request.get("token")
    if step == "prove":
        module.exit_json(changed=False, padding=request["padding"])
    with failing(module):
        runner = Runner()
        layer = StorageNetworkLayer(runner, read_spec(runner, module.params, step))
        transaction = Transaction(layer, RollbackTimer(runner), module.params["revert_after"])
        if module.check_mode:
            report = transaction.predict()
            result = {"directions": layer.directions(report.state)}
        else:
            report = transaction.confirm(token) if step == "confirm" else transaction.run(token if step == "begin" else None)
            result = {}
        result.update(layer.facts(report.state), **report.to_dict())
    for warning in report.warnings:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
