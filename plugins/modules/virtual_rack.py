#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_rack
short_description: Create, start, stop and destroy the machines of a virtual rack
version_added: 0.1.0
description:
  - A virtual rack is a set of QEMU machines on this host with SATA, NVMe and MegaRAID disks, slow and fast ones, with and without a
    volatile write cache, joined by networks of their own.
  - It needs no privileges. Nothing on the host is changed outside O(directory) and O(cache_dir), and the guests reach nothing outside
    the rack. Each machine can be logged in to as root through a port of the host's loopback interface.
  - Several racks exist side by side. Each has a name, a folder and ports of its own.
  - Processes are known by process id and start time, and no other process is ever ended.
options:
  name:
    description: Name of the rack.
    type: str
    default: rack
  directory:
    description:
      - Folder of the rack. Everything that the rack is made of is in it, and O(state=absent) removes it.
      - By default the folder C(racks) in O(cache_dir), and in it O(name).
    type: path
  cache_dir:
    description: Folder in which the default O(directory) lies, and in which it is kept whether KVM works on this host.
    type: path
    default: ~/.cache/cachefleet
  image:
    description:
      - The image to make machines from, as returned in RV(cachefleet.storage.virtual_rack_image#module:image).
      - Required by O(state=started).
    type: dict
    suboptions:
      digest: {description: Hash of the recipe., type: str, required: true}
      base: {description: The root filesystem., type: path, required: true}
      kernel: {description: The kernel., type: path, required: true}
      initrd: {description: The initramfs., type: path, required: true}
      host_key: {description: Public ssh host key., type: path, required: true}
      directory: {description: Folder of the image., type: path}
      suite: {description: Debian release., type: str}
  machines:
    description:
      - Every machine of the rack. Used by O(state=started); the other states know the rack from its folder.
      - A machine that exists and differs from its description is shut down, changed and started again.
      - A machine that exists and is not listed is left as it is.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Host name of the machine.
        type: str
        required: true
      cpus:
        description: Number of processors.
        type: int
        default: 2
      memory:
        description: Memory with a suffix such as C(M) or C(G); a bare number is MiB.
        type: str
        default: "768"
      ssh_port:
        description: Port on the host's loopback interface. Left out, a free one is chosen and kept while it stays free.
        type: int
      disks:
        description: Disks beside the root disk, in the order in which the guest finds those of one kind.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the disk within the machine.
            type: str
            required: true
          kind:
            description:
              - V(sata_hdd) and V(sata_ssd) are disks on an AHCI controller, V(nvme) is a namespace of an NVMe drive of its own,
                V(megaraid_vd) is a volume of a MegaRAID SAS controller, V(virtio) is a paravirtual disk.
            type: str
            choices: [sata_hdd, sata_ssd, nvme, megaraid_vd, virtio]
            required: true
          size:
            description: Size with a suffix such as C(M) or C(G).
            type: str
            required: true
          iops_limit:
            description: Requests per second that the disk carries out at most; 0 for no limit. 150 is what a disk with 7200 rpm does.
            type: int
            default: 0
          volatile_cache:
            description: Whether the disk has a volatile write cache that is on after power on.
            type: bool
            default: true
          power_loss_protection:
            description:
              - Whether the drive keeps its cache through a power cut, as drives with capacitors do. Flushes cost it nothing then.
              - Its cache is the memory of the host, which outlives every power cut of the machine but not one of the host.
            type: bool
            default: false
          attached:
            description:
              - Whether the disk is plugged in. For V(nvme) this is changed while the machine runs; for the other kinds the machine is stopped for it.
            type: bool
            default: true
          serial:
            description: Serial number. By default made of the names of machine and disk.
            type: str
          model:
            description: Model. Not for V(nvme) and V(virtio).
            type: str
          firmware:
            description: Firmware revision. Not for V(nvme) and V(virtio).
            type: str
          wwn:
            description: World wide name, 16 hexadecimal digits. Not for V(nvme) and V(virtio).
            type: str
      networks:
        description: Networks of the rack, invisible to the host. The first is C(eth1) in the guest. At most two machines share one.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the network.
            type: str
            required: true
          mac:
            description: Hardware address. By default made from the names of rack, machine and network.
            type: str
          address:
            description: IPv4 address with prefix length that the guest gives the interface.
            type: str
  only:
    description: Names of the machines this call is about. Empty means all.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(started), all machines exist as described, run, and answer ssh.
      - V(stopped), no machine runs; disks stay.
      - V(restarted), every machine is stopped and started again; always a change.
      - V(absent), machines, disks and the folder of the rack are gone.
    type: str
    choices: [started, stopped, restarted, absent]
    default: started
  how:
    description: How running machines are stopped. V(power_cut) takes the power away, as a failing power supply does.
    type: str
    choices: [shutdown, power_cut]
    default: shutdown
  recreate:
    description: Allow that a root disk made from another image, or a disk with another size or no longer described, is thrown away with its contents.
    type: bool
    default: false
  accelerator:
    description:
      - V(auto) takes KVM if a guest really boots with it, which is tried once for a host, and software emulation (V(tcg)) otherwise.
    type: str
    choices: [auto, kvm, tcg]
    default: auto
  ssh_timeout:
    description: Seconds a machine may take from its start until a command can be run on it over ssh.
    type: float
    default: 120
author:
  - the cachefleet.storage authors (@cachefleet)
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: O(state=restarted) is always a change.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
"""

EXAMPLES = r"""
- name: Have an image
  cachefleet.storage.virtual_rack_image:
  register: built

- name: A machine with a slow disk, a fast one, and a controller
  cachefleet.storage.virtual_rack:
    name: demo
    image: "{{ built.image }}"
    machines:
      - name: node1
        memory: 1G
        disks:
          - {name: hdd0, kind: sata_hdd, size: 4G, iops_limit: 150}
          - {name: ssd0, kind: sata_ssd, size: 1G, serial: SSD-0001, wwn: 5000c500a1b2c3d4}
          - {name: vd0, kind: megaraid_vd, size: 1G}
        networks:
          - {name: storage, address: 192.168.77.1/24}
  register: rack

- name: Cut the power of one machine
  cachefleet.storage.virtual_rack:
    name: demo
    only: [node1]
    state: stopped
    how: power_cut

- name: Leave nothing behind
  cachefleet.storage.virtual_rack:
    name: demo
    state: absent
"""

RETURN = r"""
machines:
  description: Every machine of the rack after the call, in the order in which they were created.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Host name., type: str, sample: node1}
    state: {description: V(started) or V(stopped)., type: str}
    ssh_host: {description: Address under which the machine is reached., type: str, sample: 127.0.0.1}
    ssh_port: {description: Port under which the machine is reached., type: int}
    ssh_user: {description: User to log in as., type: str, sample: root}
    ssh_private_key_file: {description: The key that may log in., type: str}
    ssh_common_args: {description: Further options ssh needs., type: str}
    pid: {description: Process id of a running machine., type: int}
    accelerator: {description: C(kvm) or C(tcg)., type: str}
    boot_seconds: {description: Time from the last start to the first login; null if it was not waited for., type: float}
    monitor: {description: Socket of QEMU's control protocol (QMP)., type: str}
    console: {description: File with what the machine wrote on its serial console., type: str}
    cpus: {description: Number of processors., type: int}
    memory: {description: Memory in MiB., type: int}
    disks:
      description: The disks as described, complete, with the file that holds their blocks.
      type: list
      elements: dict
    networks:
      description: The network interfaces as described, complete.
      type: list
      elements: dict
directory:
  description: Folder of the rack.
  returned: success
  type: str
actions:
  description: What was done, or would be done in check mode, as sentences.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import DISK_KINDS
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.rack import run_rack

DISK_SPEC = {
    "name": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True, "choices": list(DISK_KINDS)},
    "size": {"type": "str", "required": True},
    "iops_limit": {"type": "int", "default": 0},
    "volatile_cache": {"type": "bool", "default": True},
    "power_loss_protection": {"type": "bool", "default": False},
    "attached": {"type": "bool", "default": True},
    "serial": {"type": "str"},
    "model": {"type": "str"},
    "firmware": {"type": "str"},
    "wwn": {"type": "str"},
}
NETWORK_SPEC = {"name": {"type": "str", "required": True}, "mac": {"type": "str"}, "address": {"type": "str"}}
MACHINE_SPEC = {
    "name": {"type": "str", "required": True},
    "cpus": {"type": "int", "default": 2},
    "memory": {"type": "str", "default": "768"},
    "ssh_port": {"type": "int"},
    "disks": {"type": "list", "elements": "dict", "default": [], "options": DISK_SPEC},
    "networks": {"type": "list", "elements": "dict", "default": [], "options": NETWORK_SPEC},
}
IMAGE_SPEC = {
    "digest": {"type": "str", "required": True},
    **{key: {"type": "path", "required": True} for key in ("base", "kernel", "initrd", "host_key")},
    "directory": {"type": "path"},
    "suite": {"type": "str"},
}
ARGUMENT_SPEC = {
    "name": {"type": "str", "default": "rack"},
    "directory": {"type": "path"},
    "cache_dir": {"type": "path", "default": "~/.cache/cachefleet"},
    "image": {"type": "dict", "options": IMAGE_SPEC},
    "machines": {"type": "list", "elements": "dict", "default": [], "options": MACHINE_SPEC},
    "only": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["started", "stopped", "restarted", "absent"], "default": "started"},
    "how": {"type": "str", "choices": ["shutdown", "power_cut"], "default": "shutdown"},
    "recreate": {"type": "bool", "default": False},
    "accelerator": {"type": "str", "choices": ["auto", "kvm", "tcg"], "default": "auto"},
    "ssh_timeout": {"type": "float", "default": 120.0},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, required_if=[("state", "started", ("image",))], supports_check_mode=True)
    try:
        result, warnings = run_rack(Runner(), module.params, check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.as_result())
    for warning in warnings:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
