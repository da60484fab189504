# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the changed status prediction without modifying the target.
  diff_mode:
    description: Returns details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second run indicates no change.
"""

    ACTIONGROUP_STORAGE = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/cachefleet.storage.storage) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - cachefleet.storage.storage
"""

    # Modules that bring a host to a described state.
    LAYER = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""

    # Modules of a measurement, which write files and no settings that a diff could show.
    MEASUREMENT = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
"""

    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module does not change anything.
  diff_mode:
    support: N/A
    details: This module does not change anything.
  idempotent:
    support: full
"""
