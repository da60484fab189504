# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The name of a measurement, as it is on a host, on the controller and in every path: ``<variant>/<cell>/<repeat>``.

Names become folders on both sides, so nothing is one that could lead elsewhere.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain

#: Names beside hosts or cells that the results folder of the controller uses itself: results of these names could not be collected.
RESERVED = frozenset({"campaign.json", "plan.json", "tables", "reports"})
#: Folders beside those of the hosts: the state of a sweep, the variables that it recommends, and an acceptance. A variant or cell may have these names.
BESIDE_HOSTS = frozenset({"sweep", "recommended", "accept"})

_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_REPEAT = re.compile(r"[1-9][0-9]{0,3}\Z")


def component(text: t.Any, what: str) -> str:
    """``text`` if it may be one part of a path, on a host and on the controller.

    :param what: what the name stands for, for the message: ``host``, ``variant``…
    :raises BadInput: with the characters that are allowed.
    """
    names = RESERVED | BESIDE_HOSTS if what == "host" else RESERVED
    reserved = isinstance(text, str) and text in names
    if isinstance(text, str) and _COMPONENT.match(text) and ".." not in text and not reserved:
        return str(text)
    raise BadInput(
        f"'{plain(text, 80)}' cannot be the name of a {what}: use letters, digits, '.', '_' and '-', at most 128, beginning with a letter or digit"
        + (f", and not one of {', '.join(sorted(names))}." if reserved else ".")
        + (" Give the host another name in the inventory and its address in ansible_host." if what == "host" else ""),
        item=plain(text, 80),
    )


def repeat_number(text: t.Any) -> int:
    """The number of a repeat, 1 to 9999, from its folder name or from JSON.

    :raises BadInput: if it is none.
    """
    if not isinstance(text, bool) and isinstance(text, (int, str)) and _REPEAT.match(str(text)):
        return int(text)
    raise BadInput(f"'{plain(text, 80)}' is not the number of a repeat: 1 to 9999.")


@dataclass(frozen=True, order=True)
class CellKey:
    """One measurement of one host."""

    variant: str
    cell: str
    repeat: int

    @classmethod
    def checked(cls, variant: t.Any, cell: t.Any, repeat: t.Any) -> CellKey:
        """A key whose parts may be a path.

        :raises BadInput: naming the part that may not.
        """
        return cls(component(variant, "variant"), component(cell, "cell"), repeat_number(repeat))

    def __str__(self) -> str:
        return f"{self.variant}/{self.cell}/{self.repeat}"

    def below(self, folder: Path) -> Path:
        """The folder of this measurement in that of its host, or of its campaign in a spool."""
        return folder / self.variant / self.cell / str(self.repeat)
