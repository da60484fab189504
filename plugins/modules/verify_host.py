#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verify_host
short_description: "Step of every role: verify that a host has not set variables of this collection"
version_added: 1.0.0
description:
  - Step of the roles. Fails if the facts of the host contain a variable of a role or playbook of this collection.
  - Ansible makes the facts in the result of any module variables of the host, which take precedence over the inventory. A host that is not trusted
    could set the command of a role by them. The facts may be those of an earlier run, from a fact cache.
  - It is also the action plugin of the modules of this collection that run on hosts. They make the same verification first, and return only what is
    documented for them, without facts and without characters that are not printable.
  - Runs on the controller only and needs no connection to a host.
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.measurement
  - cachefleet.storage._attributes.actiongroup_storage
author:
  - the cachefleet.storage authors (@cachefleet)
"""

EXAMPLES = r"""
- name: Verify that the host has not set variables of roles
  cachefleet.storage.verify_host:
"""

RETURN = r"""
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> dict[str, t.Any]:
    """There are no options."""
    return {}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    module.fail_json(msg="cachefleet.storage.verify_host works on the controller: call it in a task, where its action plugin is used.")


if __name__ == "__main__":
    main()
