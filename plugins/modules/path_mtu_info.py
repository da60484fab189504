#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: path_mtu_info
short_description: Measure the path MTU to other hosts, and locate the limiting hop
version_added: 1.0.0
description:
  - Sends echo requests that must not be fragmented to each of O(peers). If packets of the requested size do not arrive, the largest size that
    arrives is determined by bisection.
  - Then it reports the two hops between which larger packets are dropped. A router reports this itself. A switch does not, so probes with a
    limited number of hops are sent.
  - Only the path from this host is measured. Run the module on the peer for the reverse path.
  - On layer 2, where C(ping) is not meaningful for ATA over Ethernet, C(aoe-sancheck) is used.
options:
  peers:
    description: The hosts to which the path is measured. Addresses of this host are skipped.
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: IPv4 address of the host on this network.
        type: str
        required: true
      name:
        description: The name of the host in messages.
        type: str
        default: ''
      mtu:
        description:
          - The packet size including the IP header, from V(576) to V(65535).
          - Defaults to the MTU of the sending interface.
        type: int
  interface:
    description: The interface to send from. By default it is chosen by the routes of this host.
    type: str
  timeout:
    description: Seconds to wait for a reply. The wait is shorter once the round-trip time is known.
    type: float
    default: 1
  layer2:
    description:
      - Whether C(aoe-sancheck) of the package aoetools is run too, with O(interface) if it is set. It takes some seconds and sends
        frames of all sizes to each AoE target.
    type: bool
    default: false
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
notes:
  - Needs root on the host for a raw socket, and the program C(ip).
  - A path with a smaller MTU is not a failure of this module. Check RV(ok), or use the tasks C(prove) of the role
    P(cachefleet.storage.storage_network#role).
seealso:
  - module: cachefleet.storage.storage_network
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Measure the path MTU between the storage hosts
  cachefleet.storage.path_mtu_info:
    interface: eth1
    peers:
      - {name: storage2, address: 192.168.77.2, mtu: 8700}
      - {name: storage3, address: 192.168.77.3, mtu: 8700}
  register: network

- name: Fail with the limiting hops
  ansible.builtin.assert:
    that: network.ok
    fail_msg: "{{ network.problems | join(' ') }}"

- name: Check layer 2 for ATA over Ethernet
  cachefleet.storage.path_mtu_info:
    interface: eth1
    layer2: true
"""

RETURN = r"""
ok:
  description: Whether packets of the requested size arrive at all peers, and full frames at all AoE targets.
  type: bool
  returned: success
problems:
  description: The problems with the hops between which they occur and the settings to change, one sentence each.
  type: list
  elements: str
  returned: success
  sample:
    - >-
      eth1: packets of 8700 bytes do not get to storage2 (192.168.77.2), the largest that do have 1500: larger ones vanish between eth1 and
      192.168.77.2, and no ICMP error reports it, for example where a switch port or the interface of the receiver has a smaller MTU.
paths:
  description: The path to each peer.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'From O(peers[].name), or the address.', type: str}
    address: {description: 'From O(peers[].address).', type: str}
    interface: {description: 'The sending interface; null if no interface has the source address.', type: str}
    own_address: {description: 'The source address of the packets.', type: str}
    reachable: {description: 'Whether the peer replies to small packets.', type: bool}
    wanted: {description: 'The requested packet size in bytes, including the IP header.', type: int}
    mtu: {description: 'The largest packet size that arrives, at most RV(paths[].wanted); null if the peer does not reply.', type: int}
    ok: {description: 'Whether packets of the requested size arrive.', type: bool}
    limit:
      description: Where larger packets are dropped; null if the requested size arrives.
      type: dict
      contains:
        kind: {description: 'V(interface) of this host, V(router) that reported it, or V(silent), such as a switch.', type: str}
        sender: {description: 'The last address before the limit; empty for this host.', type: str}
        receiver: {description: 'The first address behind the limit; empty if unknown.', type: str}
        mtu: {description: 'The reported MTU; null if it was not reported.', type: int}
    probes: {description: 'Number of packets sent.', type: int}
    sentences: {description: 'The entries of RV(problems) for this path.', type: list, elements: str}
layer2:
  description: The results of C(aoe-sancheck) for each AoE target.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'The target, such as V(e7.1).', type: str}
    interfaces: {description: 'The interfaces over which the target is reached.', type: list, elements: str}
    payload: {description: 'Bytes of data that arrived in one frame.', type: int}
    wanted: {description: 'Bytes of data that the MTU of the interfaces allows; null if unknown.', type: int}
    ok: {description: 'Whether frames with this payload arrive.', type: bool}
    sentences: {description: 'The entries of RV(problems) for this target.', type: list, elements: str}
interfaces:
  description: The interfaces of this host, except the loopback interface.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Name.', type: str}
    mtu: {description: 'MTU in bytes.', type: int}
    mac: {description: 'MAC address.', type: str}
    up: {description: 'Whether the interface is up.', type: bool}
    addresses: {description: 'IPv4 addresses.', type: list, elements: str}
    networks: {description: 'The networks of these addresses, such as V(192.168.77.0/24).', type: list, elements: str}
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._net.path_mtu import PEER_OPTIONS, run_module


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "dict", "default": [], "options": PEER_OPTIONS},
            "interface": {"type": "str"},
            "timeout": {"type": "float", "default": 1},
            "layer2": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    run_module(module)


if __name__ == "__main__":
    main()
