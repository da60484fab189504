#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: io_trace
short_description: Record the I/O of block devices in service
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Records the requests that applications send to block devices, so that it can be determined what an SSD cache of which size and mode would serve
    before one is bought. It works for disks, partitions, logical volumes, and devices of device-mapper, md and bcache. No device is written to.
  - Sizes, alignment, mix, rates and sequential streams are counted over all requests. For the distances between accesses to the same block requests
    are sampled by their place, so that the record has a limited size whatever the load is. Latencies of disks are those of one MiB in eight.
  - The recorder is a transient service of systemd, which is limited to half of a processor and, with the buffers of the kernel, to 64 MiB of memory.
    It uses an own instance of the tracing of the kernel, which systemd removes even if the recorder is killed. It needs neither the controller nor the
    connection that started it, and ends by itself. Requests that it could not keep up with are counted as lost.
  - Contents of requests are not recorded, only their place, size, kind and process ID.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
attributes:
  check_mode:
    details: Devices and host are verified, but nothing is started, stopped, fetched or removed.
options:
  state:
    description:
      - V(started) ensures that the trace is being recorded. Nothing is changed if it is being recorded, or was recorded and not fetched yet.
      - V(stopped) ends the recording. What was recorded is kept on the host.
      - V(packed) makes the files of a recording that has ended readable for the user of the connection, and returns their hashes.
      - V(fetched) does this, fetches them to O(results) on the controller, verifies them, and removes them from the host.
      - V(absent) ends the recording and removes what was recorded from the host.
    type: str
    choices: [started, stopped, packed, fetched, absent]
    default: started
  name:
    description: The name of the trace, letters, digits, V(.), V(_) and V(-). Several traces with different names can be recorded at the same time.
    type: str
    required: true
  devices:
    description:
      - The block devices to record, at most 64. With an empty list nothing is recorded.
      - A flush of a partition is counted as one of each recorded partition of its disk, since the kernel does not distinguish them.
    type: list
    elements: str
    default: []
  seconds:
    description: The time after which the recording ends, at most 604800 (a week).
    type: float
    default: 3600
  bytes:
    description:
      - The maximum size of the sampled requests, with an optional suffix k, M or G, from V(1M) to V(1G). A request has 32 bytes.
      - Whenever the limit is reached, the sample is halved, so that the whole time is recorded. Twice the size must be free in C(/var/lib/cachefleet).
    type: str
    default: 128M
  host:
    description: The name that this host has in the trace, usually C({{ inventory_hostname }}).
    type: str
    default: ""
  results:
    description:
      - The folder of traces on the controller. The trace of a host is the folder C(NAME/HOST) in it. Required with O(state=fetched).
      - With O(state=started) a name that is in use there is refused.
    type: path
seealso:
  - module: cachefleet.storage.fio_runner
notes:
  - The files of a recording are in C(/var/lib/cachefleet/traces/NAME) on the host until they are fetched. M(cachefleet.storage.wait_for_runner)
    waits for its end, with O(cachefleet.storage.wait_for_runner#module:spool=/var/lib/cachefleet/traces).
  - Needs root, systemd, and a kernel with C(CONFIG_BLK_DEV_IO_TRACE) that is not locked down for confidentiality.
"""

EXAMPLES = r"""
- name: Record the I/O of a volume and the disk under it for a day
  cachefleet.storage.io_trace:
    name: monday
    devices: [/dev/vg0/images, /dev/disk/by-id/ata-ST10000NM0086_ZA2A]
    seconds: 86400
    host: "{{ inventory_hostname }}"

- name: End the recording early
  cachefleet.storage.io_trace:
    name: monday
    state: stopped

- name: Fetch the trace
  cachefleet.storage.io_trace:
    name: monday
    state: fetched
    results: /srv/traces
"""

RETURN = r"""
running:
  description: Whether the recorder runs.
  returned: success
  type: bool
state:
  description: V(starting), V(measuring), V(finished), V(stopped) or V(failed); empty if there is no such trace on the host.
  returned: success
  type: str
  sample: measuring
message:
  description: The reason of the state, as a sentence; empty if all is well.
  returned: success
  type: str
  sample: The device /dev/vg0/images disappeared while it was recorded.
folder:
  description: The folder of the trace on the host.
  returned: success
  type: str
  sample: /var/lib/cachefleet/traces/monday
files:
  description: The files of the trace with their C(size) in bytes and C(sha256); empty if the recording never began.
  returned: with O(state=packed)
  type: dict
path:
  description: The folder of the trace on the controller.
  returned: with O(state=fetched)
  type: str
  sample: /srv/traces/monday/node1
"""

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once

if __name__ == "__main__":
    # The imports that follow are most of what this module costs a host.
    compile_once()

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.control import FOLDER, TraceRun


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "state": {"type": "str", "choices": ["started", "stopped", "packed", "fetched", "absent"], "default": "started"},
        "name": {"type": "str", "required": True},
        "devices": {"type": "list", "elements": "str", "default": []},
        "seconds": {"type": "float", "default": 3600},
        "bytes": {"type": "str", "default": "128M"},
        "host": {"type": "str", "default": ""},
        "results": {"type": "path"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options, check_mode = module.params, module.check_mode
    if options["state"] == "fetched":
        module.fail_json(msg="A trace is fetched by the controller: call cachefleet.storage.io_trace in a task, where its action plugin is used.")
    with failing(module):
        run = TraceRun(FOLDER, options["name"], Runner())
        if options["state"] == "started":
            result = run.start(options, check_mode=check_mode)
        else:
            result = {"stopped": run.stop, "packed": run.pack, "absent": run.remove}[options["state"]](check_mode=check_mode)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
