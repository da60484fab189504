# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Controller-side logic. Imported before any file of this folder, so that a Python that is too old is named instead of the first thing that it lacks."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):
    from ansible.errors import AnsibleError

    raise AnsibleError(
        "cachefleet.storage needs Python 3.11 or newer and ansible-core 2.16 or newer on the controller, and this Ansible runs with Python"
        f" {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}): make a virtual environment of a newer Python, for example with 'python3.11 -m venv"
        " cachefleet', and install the requirements in it, or use an execution environment (docs/distributions.md)."
    )
