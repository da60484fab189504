#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: path_mtu_info
short_description: Prove that packets of an MTU get to other hosts whole, and name the hop where they do not
version_added: 0.4.0
description:
  - Sends echo requests that must not be fragmented to each of O(peers). Where those of the wanted size do not arrive, the largest that do
    are found by bisecting.
  - Then it names the two hops between which larger packets get lost. A router says so itself. A switch says nothing, so that probes with a
    limited number of hops are sent.
  - Only the way from this host is measured. Ask the peer for the way back.
  - On layer 2, where C(ping) proves nothing about ATA over Ethernet, C(aoe-sancheck) is asked.
options:
  peers:
    description: The hosts to reach. This host's own addresses are passed over.
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: Its address of IP version 4 on that network.
        type: str
        required: true
      name:
        description: What messages call it.
        type: str
        default: ''
      mtu:
        description:
          - The size that packets shall have, IP header included, from V(576) to V(65535).
          - Without it, the MTU of the interface from which they are sent.
        type: int
  interface:
    description: The interface to send from. Without it, the routes of this host say.
    type: str
  timeout:
    description: Seconds to wait for an answer. Once a round trip is known, less is waited.
    type: float
    default: 1
  layer2:
    description:
      - Whether C(aoe-sancheck) of the package aoetools is run as well, with O(interface) if it is given. It takes some seconds and sends
        frames of every size to each AoE target.
    type: bool
    default: false
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.info_module
  - cachefleet.storage._attributes.actiongroup_storage
notes:
  - Needs root on the host, for a raw socket, and no other program than C(ip).
  - A way that carries too little is no failure of this module. Look at RV(ok), or use the tasks C(prove) of the role
    P(cachefleet.storage.storage_network#role).
seealso:
  - module: cachefleet.storage.storage_network
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Prove the MTU between the storage hosts
  cachefleet.storage.path_mtu_info:
    interface: eth1
    peers:
      - {name: storage2, address: 192.168.77.2, mtu: 8700}
      - {name: storage3, address: 192.168.77.3, mtu: 8700}
  register: network

- name: Say where it fails
  ansible.builtin.assert:
    that: network.ok
    fail_msg: "{{ network.problems | join(' ') }}"

- name: The same on layer 2, for ATA over Ethernet
  cachefleet.storage.path_mtu_info:
    interface: eth1
    layer2: true
"""

RETURN = r"""
ok:
  description: Whether packets of the wanted size get to every peer, and full frames to every AoE target.
  type: bool
  returned: success
problems:
  description: What does not work, between which hops, and what to set there, one sentence each.
  type: list
  elements: str
  returned: success
  sample:
    - >-
      eth1: packets of 8700 bytes do not get to storage2 (192.168.77.2), the largest that do have 1500: larger ones vanish between eth1 and
      192.168.77.2, and nobody says so, as where a switch port or the interface of the receiver has a smaller MTU.
paths:
  description: The way to each peer.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'From O(peers[].name), or the address.', type: str}
    address: {description: 'From O(peers[].address).', type: str}
    interface: {description: 'The interface that packets were sent from; null if its address is on none.', type: str}
    own_address: {description: 'The address that they were sent from.', type: str}
    reachable: {description: 'Whether the peer answers small packets.', type: bool}
    wanted: {description: 'The size that packets should have, in bytes, IP header included.', type: int}
    mtu: {description: 'The largest that arrives, at most RV(paths[].wanted); null if the peer does not answer.', type: int}
    ok: {description: 'Whether those of the wanted size arrive.', type: bool}
    limit:
      description: Where larger ones get lost; null if the wanted size arrives.
      type: dict
      contains:
        kind: {description: 'V(interface) of this host, V(router) that said so, or V(silent), as a switch is.', type: str}
        sender: {description: 'The address behind which it is; empty for this host.', type: str}
        receiver: {description: 'The address before which it is; empty if not known.', type: str}
        mtu: {description: 'The MTU that was said; null if nobody did.', type: int}
    probes: {description: 'How many packets were sent.', type: int}
    sentences: {description: 'Its part of RV(problems).', type: list, elements: str}
layer2:
  description: What C(aoe-sancheck) found, for each AoE target.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'The target, such as V(e7.1).', type: str}
    interfaces: {description: 'The interfaces over which it is reached.', type: list, elements: str}
    payload: {description: 'Bytes of data that got through in one frame.', type: int}
    wanted: {description: 'Bytes that the MTU of the interfaces allows; null if it is not known.', type: int}
    ok: {description: 'Whether that much gets through.', type: bool}
    sentences: {description: 'Its part of RV(problems).', type: list, elements: str}
interfaces:
  description: The interfaces of this host but the loopback.
  type: list
  elements: dict
  returned: success
  contains:
    name: {description: 'Name.', type: str}
    mtu: {description: 'MTU in bytes.', type: int}
    mac: {description: 'Hardware address.', type: str}
    up: {description: 'Whether it is switched on.', type: bool}
    addresses: {description: 'Addresses of IP version 4.', type: list, elements: str}
    networks: {description: 'The networks that these are in, such as V(192.168.77.0/24).', type: list, elements: str}
"""

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
