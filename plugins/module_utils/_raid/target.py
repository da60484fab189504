# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One thing with settings: a controller, a volume or a drive, its specification, and the tool that reaches it."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import READ_AHEAD, WRITES_BACK, Controller, Drive, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider, Subject

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import Seen
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import ControllerSpec


@frozen
class SendCommand(Operation):
    """Run one setting command of a tool.

    :param provider: the name of the provider; ``tool`` is the path of its tool.
    :param words: the arguments of the tool.
    """

    provider: str
    tool: str
    words: tuple[str, ...]


@frozen
class RaidTarget:
    """One thing with settings, its specification, and the tool that reaches it.

    :param spec: the whole entry of the list that it belongs to.
    :param settings: what is specified for this thing.
    """

    seen: Seen
    spec: ControllerSpec
    subject: Subject
    settings: t.Mapping[str, t.Any]
    allowed: bool
    #: Whether it was selected by name, and not as one of all.
    named: bool

    @property
    def controller(self) -> Controller:
        return self.seen.controller

    @property
    def provider(self) -> RaidProvider:
        return self.seen.source.provider

    @property
    def controller_settings(self) -> dict[str, t.Any]:
        """What is specified for the controller itself in the same run, and whether that run switches caching on for a volume."""
        caching = any(one.settings.get("write") in WRITES_BACK or one.settings.get("read") == READ_AHEAD for one in self.spec.volumes)
        return {**self.spec.settings, "caching": caching}

    @property
    def brings_ratio(self) -> bool:
        """Whether the controller has no cache ratio yet, and the first volume that is cached in this run brings it."""
        return self.controller.cache_ratio is None and self.controller.cache.status == "not_configured" and self.controller_settings["caching"]

    def follows(self, attribute: str, value: t.Any) -> dict[str, t.Any]:
        """What else changes when an attribute is set to a value: a command can set more than one."""
        also = self.provider.side_effects(self.controller, self.subject, attribute, value, self.controller_settings)
        return {name: after for name, after in also.items() if not self.provider.agrees(self.controller, self.subject, name, after)}

    @property
    def label(self) -> str:
        if isinstance(self.subject, Volume):
            return f"volume {self.subject.name or self.subject.id} of {self.controller.label}"
        if isinstance(self.subject, Drive):
            return f"drive {self.subject.address} of {self.controller.label}"
        return self.controller.label

    @property
    def item(self) -> str:
        """The key in diffs: no two things of a host share it."""
        kind = "" if isinstance(self.subject, Controller) else f" {type(self.subject).__name__.lower()} {_id(self.subject)}"
        return f"{self.controller.provider} controller {self.controller.id}{kind}"


def _id(subject: Volume | Drive) -> str:
    return subject.id if isinstance(subject, Volume) else subject.address
