#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_rack
short_description: Create, start, stop and destroy the machines of a virtual rack
version_added: 1.0.0
description:
  - A virtual rack is a set of QEMU machines on this host with SATA, NVMe and MegaRAID disks, slow and fast ones, with and without a
    volatile write cache, connected by private networks.
  - It needs no privileges. Nothing on the host is changed outside of O(directory) and O(cache_dir), and the guests cannot access networks
    outside of the rack. Each machine accepts root logins on a port of the host's loopback interface.
  - Several racks can exist side by side. Each has its own name, folder and ports.
  - Processes are identified by process ID and start time. No other process is ever terminated.
options:
  name:
    description: Name of the rack. Racks with different names can exist side by side.
    type: str
    default: rack
  directory:
    description:
      - Folder of the rack. It contains all files of the rack, and O(state=absent) removes it.
      - Defaults to C(racks/NAME) in O(cache_dir), with O(name) as NAME.
    type: path
  cache_dir:
    description: Parent folder of the default O(directory). It also stores whether KVM works on this host.
    type: path
    default: ~/.cache/cachefleet
  image:
    description:
      - The image of the machines, as returned in RV(cachefleet.storage.virtual_rack_image#module:image).
      - Required by O(state=started).
    type: dict
    suboptions:
      digest: {description: Hash of the recipe., type: str, required: true}
      base: {description: The root filesystem., type: path, required: true}
      kernel: {description: The kernel., type: path, required: true}
      initrd: {description: The initramfs., type: path, required: true}
      host_key: {description: Public SSH host key., type: path, required: true}
      directory: {description: Folder of the image., type: path}
      suite: {description: Debian release., type: str}
  machines:
    description:
      - All machines of the rack. Used by O(state=started); the other states read the rack from its folder.
      - An existing machine that differs from its description is shut down, changed and started again.
      - An existing machine that is not listed is not changed.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Host name of the machine.
        type: str
        required: true
      cpus:
        description: Number of CPUs.
        type: int
        default: 2
      memory:
        description: Memory with a suffix such as C(M) or C(G). A number without a suffix is in MiB.
        type: str
        default: "768"
      ssh_port:
        description: Port on the host's loopback interface. By default a free port is chosen and kept while it is free.
        type: int
      disks:
        description: Disks in addition to the root disk. Disks of the same kind appear in this order in the guest.
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
              - V(sata_hdd) and V(sata_ssd) are disks on an AHCI controller, V(scsi_hdd) is a SCSI disk on a host adapter of its own (virtio-scsi),
                V(nvme) is a namespace of an NVMe drive of its own, V(megaraid_vd) is a volume of a MegaRAID SAS controller, V(virtio) is a paravirtual disk.
            type: str
            choices: [sata_hdd, sata_ssd, scsi_hdd, nvme, megaraid_vd, virtio]
            required: true
          size:
            description: Size with a suffix such as C(M) or C(G).
            type: str
            required: true
          iops_limit:
            description: Maximum number of requests per second, 0 for no limit. 150 is typical for a 7200 rpm disk.
            type: int
            default: 0
          iops_group:
            description: Disks of a machine with the same word share one O(machines[].disks[].iops_limit), as behind one controller.
            type: str
          volatile_cache:
            description:
              - The write cache of the disk.
              - V(on) is a cache that is enabled at power-on. It is in the memory of the host, so a power cut of the machine loses nothing of it.
              - V(off) is a disk whose cache is disabled at power-on.
              - V(honest), V(lies) and V(torn) lose the contents of the cache in a power cut. V(honest) writes it to the media when it is flushed.
                V(lies) acknowledges a flush without doing so. V(torn) honours flushes, and of a block that was not flushed it keeps some sectors.
              - For V(true) and V(false) see V(on) and V(off).
            type: str
            choices: ["on", "off", honest, lies, torn]
            default: "on"
          power_loss_protection:
            description:
              - Whether the cache of the drive survives a power cut, as in drives with capacitors. Flushes then take no time.
              - The cache is in the memory of the host, which survives a power cut of the machine, but not of the host.
            type: bool
            default: false
          paths:
            description:
              - Number of host adapters over which the guest sees the disk, for multipath. More than 1 needs O(machines[].disks[].kind=scsi_hdd).
              - The write cache is one setting for each path, and O(machines[].disks[].iops_limit) is not supported with several.
            type: int
            default: 1
          attached:
            description:
              - Whether the disk is plugged in. A V(nvme) disk is hot-plugged; for the other kinds the machine is stopped for the change.
            type: bool
            default: true
          serial:
            description: Serial number. Defaults to the names of machine and disk.
            type: str
          model:
            description: Model. Not supported for V(nvme) and V(virtio).
            type: str
          firmware:
            description: Firmware revision. Not supported for V(nvme) and V(virtio).
            type: str
          vendor:
            description: Vendor. Only supported for V(scsi_hdd) and V(megaraid_vd).
            type: str
          wwn:
            description: World Wide Name, 16 hexadecimal digits. Not supported for V(nvme) and V(virtio).
            type: str
          nbd:
            description: Socket on which one of O(machines[].processes) serves the blocks of the disk with the NBD protocol.
            type: path
      networks:
        description: Private networks of the rack, not visible to the host. The first is C(eth1) in the guest. At most two machines can share one.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the network.
            type: str
            required: true
          mac:
            description: MAC address. By default it is derived from the names of rack, machine and network.
            type: str
          address:
            description: IPv4 address with prefix length of the interface in the guest.
            type: str
      serial_ports:
        description: Serial ports, C(/dev/virtio-ports/NAME) in the guest, each of which is connected to a socket of one of O(machines[].processes).
        type: list
        elements: dict
        default: []
        suboptions:
          name: {description: Name of the port., type: str, required: true}
          socket: {description: Path of the socket., type: path, required: true}
      processes:
        description:
          - Commands of test equipment. Each is started before the machine, goes on in the background, and prints its process ID.
          - They are killed when the power is cut, and have to end by themselves after a shutdown.
        type: list
        elements: list
        default: []
  only:
    description: Names of the machines to manage. If empty, all machines.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(started) ensures that all machines exist as described, are running and accept SSH connections.
      - V(stopped) ensures that no machine is running. Disks are kept.
      - V(restarted) stops and starts all machines. This is always a change.
      - V(absent) removes machines, disks and the folder of the rack.
    type: str
    choices: [started, stopped, restarted, absent]
    default: started
  how:
    description: The way in which running machines are stopped. V(power_cut) cuts the power, like a failing power supply.
    type: str
    choices: [shutdown, power_cut]
    default: shutdown
  recreate:
    description: Allow deleting disks with their contents, namely a root disk of another image, or a disk with another size or that is no longer listed.
    type: bool
    default: false
  accelerator:
    description:
      - V(auto) uses KVM if a guest boots with it, which is tested once per host, and software emulation (V(tcg)) otherwise.
    type: str
    choices: [auto, kvm, tcg]
    default: auto
  ssh_timeout:
    description: Seconds from the start of a machine until a command must succeed over SSH.
    type: float
    default: 120
author:
  - the cachefleet.storage authors (@cachefleet)
attributes:
  idempotent:
    support: partial
    details: O(state=restarted) is always a change.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
"""

EXAMPLES = r"""
- name: Ensure the image is built
  cachefleet.storage.virtual_rack_image:
  register: built

- name: Start a machine with a slow disk, a fast disk and a controller
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

- name: Remove the rack
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
    ssh_host: {description: SSH address of the machine., type: str, sample: 127.0.0.1}
    ssh_port: {description: SSH port of the machine., type: int}
    ssh_user: {description: SSH user., type: str, sample: root}
    ssh_private_key_file: {description: SSH private key., type: str}
    ssh_common_args: {description: Additional SSH options., type: str}
    pid: {description: Process ID of a running machine., type: int}
    accelerator: {description: C(kvm) or C(tcg)., type: str}
    boot_seconds: {description: Seconds from the last start to the first login; null if the module did not wait for it., type: float}
    monitor: {description: Socket of the QEMU Machine Protocol (QMP)., type: str}
    console: {description: Log file of the serial console., type: str}
    cpus: {description: Number of CPUs., type: int}
    memory: {description: Memory in MiB., type: int}
    disks:
      description: The disks with all settings, and the file that contains their blocks.
      type: list
      elements: dict
    networks:
      description: The network interfaces with all settings.
      type: list
      elements: dict
directory:
  description: Folder of the rack.
  returned: success
  type: str
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  returned: success
  type: list
  elements: str
"""

import contextlib

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import CACHE_KINDS, DISK_KINDS, FORGETTING_CACHES
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.rack import make_layer

DISK_SPEC = {
    "name": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True, "choices": list(DISK_KINDS)},
    "size": {"type": "str", "required": True},
    "iops_limit": {"type": "int", "default": 0},
    "iops_group": {"type": "str"},
    "volatile_cache": {"type": "str", "choices": [*CACHE_KINDS, *FORGETTING_CACHES], "default": "on"},
    "power_loss_protection": {"type": "bool", "default": False},
    "paths": {"type": "int", "default": 1},
    "attached": {"type": "bool", "default": True},
    "serial": {"type": "str"},
    "model": {"type": "str"},
    "firmware": {"type": "str"},
    "vendor": {"type": "str"},
    "wwn": {"type": "str"},
    "nbd": {"type": "path"},
}
NETWORK_SPEC = {"name": {"type": "str", "required": True}, "mac": {"type": "str"}, "address": {"type": "str"}}
PORT_SPEC = {"name": {"type": "str", "required": True}, "socket": {"type": "path", "required": True}}
MACHINE_SPEC = {
    "name": {"type": "str", "required": True},
    "cpus": {"type": "int", "default": 2},
    "memory": {"type": "str", "default": "768"},
    "ssh_port": {"type": "int"},
    "disks": {"type": "list", "elements": "dict", "default": [], "options": DISK_SPEC},
    "networks": {"type": "list", "elements": "dict", "default": [], "options": NETWORK_SPEC},
    "serial_ports": {"type": "list", "elements": "dict", "default": [], "options": PORT_SPEC},
    "processes": {"type": "list", "elements": "list", "default": []},
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
    with contextlib.ExitStack() as lock:
        run_layer(module, lambda: make_layer(Runner(), module.params, lock, check_mode=module.check_mode))


if __name__ == "__main__":
    main()
