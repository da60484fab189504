#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collect
short_description: "Step of the role fio_benchmark: collect the results of a host on the controller"
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Fetches the archive that M(cachefleet.storage.fio) packed, verifies its SHA-256 checksum, verifies every file in it with the checksums
    in its C(meta.json), and stores its cells in the folder of the campaign.
  - The copy on the host is only deleted after all of this was successful. Until then no result is lost if a step fails.
  - Data from hosts is not trusted. No more than the announced size is stored. An archive with other content than the cells that were planned
    for this host is rejected completely. A single cell that is damaged or exceeds a limit is rejected individually, see RV(rejected).
  - An existing result is never overwritten silently. An equal result is kept, a result that was not V(ok) is replaced, and
    a result that was V(ok) is only replaced with O(replace).
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._options.campaign_folder
  - cachefleet.storage._options.spool
options:
  archive:
    description: The return value C(archive) of M(cachefleet.storage.fio). If it is empty, there is nothing to collect.
    type: dict
    default: {}
    suboptions:
      path:
        description: The path of the archive on the host, in O(spool).
        type: str
      sha256:
        description: SHA-256 checksum of the archive in hexadecimal digits.
        type: str
      size:
        description: Size of the archive in bytes.
        type: int
  replace:
    description: Whether results in the state V(ok) are replaced too.
    type: bool
    default: false
  keep_on_host:
    description: Whether the copy on the host is kept.
    type: bool
    default: false
notes:
  - The archive is fetched by the connection plugin as the user of the connection, so it must be readable by that user.
    M(cachefleet.storage.fio) ensures this.
seealso:
  - module: cachefleet.storage.fio
  - module: cachefleet.storage.campaign
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Collect the results of this host
  cachefleet.storage.collect:
    path: "{{ campaign.path }}"
    archive: "{{ measured.archive }}"
"""

RETURN = r"""
path:
  description: The folder of this host's results on the controller.
  type: str
  returned: success
  sample: /srv/results/2026-11-21T1403Z/node1
stored:
  description: The new cells, as variant/cell/repeat.
  type: list
  elements: str
  returned: success
  sample: [before/randwrite-4k/1]
replaced:
  description: The cells that were measured again.
  type: list
  elements: str
  returned: success
unchanged:
  description: The existing cells that are the same.
  type: list
  elements: str
  returned: success
rejected:
  description:
    - The cells that are damaged or exceed a limit, with the reason. The task fails; all other cells are stored.
    - They are V(failed) in reports until an intact result is collected, and are kept on the host.
  type: dict
  returned: if cells were rejected
  sample: {before/randwrite-4k/2: "fio.json.gz unpacks to more than 64 MiB"}
states:
  description: The number of cells of the archive in each state.
  type: dict
  returned: success
  sample: {ok: 4}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import SPOOL_OPTION


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "archive": {
            "type": "dict",
            "default": {},
            "options": {"path": {"type": "str"}, "sha256": {"type": "str"}, "size": {"type": "int"}},
        },
        **SPOOL_OPTION,
        "replace": {"type": "bool", "default": False},
        "keep_on_host": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.collect works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
