#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collect
short_description: Bring the results of a host to the controller
version_added: 0.1.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - Fetches the archive that M(cachefleet.storage.fio) packed, compares its SHA-256, checks every file in it against the hashes
    in its C(meta.json), and puts its cells into the folder of the campaign.
  - The host drops its copy only after all of that. Until then nothing is lost, whatever fails.
  - Hosts are not trusted. No more is stored than the host announced. An archive that holds anything else than what this host was
    asked for is not taken in at all. A single cell that is damaged or exceeds a limit is rejected alone, see RV(rejected).
  - A result that is there already is never overwritten in silence. An equal one stays, one that was not V(ok) is replaced, and
    one that was V(ok) is replaced only with O(replace).
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  path:
    description: The folder of the campaign on the controller, as M(cachefleet.storage.campaign) returned it.
    type: path
    required: true
  archive:
    description: What M(cachefleet.storage.fio) returned as C(archive). If it is empty there is nothing to bring.
    type: dict
    default: {}
    suboptions:
      path:
        description: The archive on the host, below O(spool).
        type: str
      sha256:
        description: Its SHA-256 in hexadecimal digits.
        type: str
      size:
        description: Its size in bytes.
        type: int
  spool:
    description: The folder on the host in which results wait to be collected.
    type: str
    default: /var/lib/cachefleet/spool
  replace:
    description: Replace results in the state V(ok) too.
    type: bool
    default: false
  keep_on_host:
    description: Leave the copy on the host where it is.
    type: bool
    default: false
notes:
  - The archive is fetched by the connection plugin as the user of the connection, so it must be readable for that user.
    M(cachefleet.storage.fio) sees to that.
seealso:
  - module: cachefleet.storage.fio
  - module: cachefleet.storage.campaign
  - module: cachefleet.storage.report
"""

EXAMPLES = r"""
- name: Bring the results of this host
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
  description: The cells that are new, as variant/cell/repeat.
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
  description: The cells that were there already and are the same.
  type: list
  elements: str
  returned: success
rejected:
  description:
    - The cells that are damaged or exceed a limit, with the reason. The task fails; all other cells are stored.
    - They are V(failed) in reports until a whole result arrives, and stay on the host.
  type: dict
  returned: if there are any
  sample: {before/randwrite-4k/2: "fio.json.gz unpacks to more than 64 MiB"}
states:
  description: How many cells of the archive are in which state.
  type: dict
  returned: success
  sample: {ok: 4}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """The options, used by the action plugin too."""
    return {
        "path": {"type": "path", "required": True},
        "archive": {
            "type": "dict",
            "default": {},
            "options": {"path": {"type": "str"}, "sha256": {"type": "str"}, "size": {"type": "int"}},
        },
        "spool": {"type": "str", "default": "/var/lib/cachefleet/spool"},
        "replace": {"type": "bool", "default": False},
        "keep_on_host": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.collect works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
