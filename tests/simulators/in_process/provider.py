# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A RAID tool in memory, for tests of what is decided above the tools. The tools themselves are simulated in ``tests/simulators``."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Drive, Policy, Protection, Reading, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import Judgement, RaidProvider
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen, Source

HEALTHY = Protection("battery", "healthy")
DEAD = Protection("battery", "failed", raw="Failed")


def volume(number: int = 0, **changes: t.Any) -> Volume:
    plain = Volume(
        id=str(number),
        name=f"volume{number}",
        wwn=f"600000000000000000000000000000{number:02d}",
        status="optimal",
        read=Policy("none", "none"),
        write=Policy("writethrough", "writethrough"),
        io=Policy("direct", "direct"),
        drive_cache="disabled",
    )
    return dataclasses.replace(plain, **changes)


def controller(number: str = "0", **changes: t.Any) -> Controller:
    plain = Controller(
        provider="storcli",
        id=number,
        model="MODEL",
        serial=f"SERIAL{number}",
        protection=HEALTHY,
        drive_cache={"jbod": "disabled"},
        no_battery_write_cache="disabled",
        cache_ratio=50,
        volumes=(volume(0), volume(1)),
        drives=(Drive("252:0", write_cache="disabled"), Drive("252:1", write_cache="disabled")),
    )
    return dataclasses.replace(plain, **changes)


class FakeTool(RaidProvider):
    """Keeps controllers in memory; ``impossible`` names settings it objects to, ``deaf`` those it acknowledges and ignores."""

    name = "storcli"
    commands = ("storcli64",)

    def __init__(self, *controllers: Controller, tool: str = "/opt/storcli64", name: str = "storcli") -> None:
        super().__init__(None, tool)
        self.name = name
        self.controllers = list(controllers)
        self.reading: dict[str, t.Any] = {}
        self.impossible: dict[tuple[str, t.Any], str] = {}
        self.deaf: set[str] = set()
        self.reads = 0
        self.sent: list[tuple[str, ...]] = []

    def read(self) -> Reading:
        self.reads += 1
        return Reading(tuple(self.controllers), **self.reading)

    def objection(self, controller, subject, settings, controller_settings):
        return next((self.impossible[pair] for pair in settings.items() if pair in self.impossible), None)

    def command(self, controller, subject, attribute, value):
        where = f"v{subject.id}" if isinstance(subject, Volume) else f"d{subject.address}" if isinstance(subject, Drive) else "c"
        return [controller.id, where, attribute, str(value)]

    def judge(self, completed):
        return Judgement(completed.rc == 0, "")

    def send(self, words, item):
        self.sent.append(tuple(words))
        number, where, attribute, value = words
        if attribute not in self.deaf:
            self.controllers = [self._changed(one, where, attribute, value) if one.id == number else one for one in self.controllers]
        return Completed((self.tool, *words), 0, "", "")

    def _changed(self, one, where, attribute, value):
        if where == "c":
            if attribute.startswith("drive_cache."):
                return dataclasses.replace(one, drive_cache={**one.drive_cache, attribute.partition(".")[2]: value})
            return dataclasses.replace(one, **{attribute: int(value) if attribute == "cache_ratio" else value})
        kind = "volumes" if where[0] == "v" else "drives"
        items = [
            self._item(item, attribute, value, one) if where[1:] in (getattr(item, "id", None), getattr(item, "address", None)) else item
            for item in getattr(one, kind)
        ]
        return dataclasses.replace(one, **{kind: tuple(items)})

    @staticmethod
    def _item(item, attribute, value, one):
        if attribute not in ("read", "write", "io"):
            return dataclasses.replace(item, **{attribute: value})
        effective = "writethrough" if value == "writeback" and not one.protection.protects else value
        return dataclasses.replace(item, **{attribute: Policy(value, effective)})

    def as_host(self) -> RaidState:
        source = Source(self, self.read())
        return RaidState((source,), tuple(Seen(one, source) for one in source.reading.controllers))
