# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every RAID tool has to answer: what is there, what cannot be done and why, which command does it, did it work.

A provider implements one command language. It decides nothing: what should change is decided by the plan, and whether it was
taken by reading back.
"""

from __future__ import annotations

import abc
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Drive, Reading, Volume

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner

#: What can have settings.
Subject = t.Union[Controller, Volume, Drive]
#: Attributes and the values that are requested for them.
Settings = t.Mapping[str, t.Any]

#: Attributes of each kind of subject and the values users may request. Controllers: ``drive_cache.<class>`` is one attribute.
VOLUME_ATTRIBUTES: t.Mapping[str, tuple[str, ...]] = {
    "io": ("direct", "cached"),
    "read": ("none", "read_ahead", "adaptive"),
    "write": ("writethrough", "writeback", "writeback_always"),
    "drive_cache": ("enabled", "disabled", "default"),
}
DRIVE_ATTRIBUTES: t.Mapping[str, tuple[str, ...]] = {"write_cache": ("enabled", "disabled")}
CONTROLLER_ATTRIBUTES: t.Mapping[str, tuple[str, ...] | None] = {
    "drive_cache.all": ("enabled", "disabled", "default", "per_drive"),
    "drive_cache.configured": ("enabled", "disabled", "default"),
    "drive_cache.unconfigured": ("enabled", "disabled", "default"),
    "drive_cache.hba": ("enabled", "disabled", "default"),
    "drive_cache.jbod": ("enabled", "disabled", "default"),
    "no_battery_write_cache": ("enabled", "disabled"),
    #: Percent for reading, 0 to 100.
    "cache_ratio": None,
}


@frozen
class Judgement:
    """How a tool answered to a command that sets something.

    :param ok: whether the tool reports success, or that it was so already.
    :param message: the tool's own reason if not; empty if it gave none.
    """

    ok: bool
    message: str = ""


class RaidProvider(abc.ABC):
    """One tool on one host.

    :param tool: its absolute path.
    """

    #: The name users write, as in ``TOOLS``.
    name: t.ClassVar[str]
    #: Seconds a command may take: controllers with many drives are slow.
    timeout: t.ClassVar[float] = 180.0
    #: The order in which attributes of one subject have to be set (one may reset or forbid another).
    order: t.ClassVar[tuple[str, ...]] = ("drive_cache.all", "no_battery_write_cache", "cache_ratio", "io", "read", "write", "drive_cache")

    def __init__(self, runner: Runner, tool: str) -> None:
        self.runner = runner
        self.tool = tool
        #: The last command, as evidence of what was read.
        self.last: Completed | None = None

    @abc.abstractmethod
    def read(self) -> Reading:
        """Every controller this tool reports, in a number of commands that does not grow with volumes or drives.

        No controller is an answer (an empty reading), not an error. A tool that hangs or cannot run raises; output that
        is cut or strange does not: it is in ``not_understood``.

        :raises StorageError: if the tool cannot be run or does not end.
        """

    @abc.abstractmethod
    def objection(self, controller: Controller, subject: Subject, settings: Settings, controller_settings: Settings) -> str | None:
        """Why these settings are not possible, with the controller's own reason, or ``None``; pure.

        A clause that can follow the name of the subject: ``cannot have io: cached, since storcli2 has no I/O policy``. Only what is
        impossible belongs here; what is dangerous is refused elsewhere.

        :param settings: all attributes requested for this subject (controller attributes if the subject is the controller).
        :param controller_settings: the settings of the controller itself in the same run: settings exclude each other. ``caching`` in it
            is true if the same run switches caching on for a volume.
        """

    def side_effects(
        self,
        controller: Controller,  # noqa: ARG002
        subject: Subject,  # noqa: ARG002
        attribute: str,  # noqa: ARG002
        value: t.Any,  # noqa: ARG002
        controller_settings: Settings,  # noqa: ARG002
    ) -> Settings:
        """Further attributes of the same subject that the command for this one sets, with their values; pure.

        A switch for reading and writing together writes back too when it is to read ahead.
        """
        return {}

    def agrees(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> bool:  # noqa: ARG002
        """Whether the *configured* value of an attribute is the requested one; pure. Default: it is equal."""
        return configured(subject, attribute) == value

    @abc.abstractmethod
    def command(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> list[str]:
        """The words after the tool's name that set one attribute; pure. Two attributes may give the same command: it is sent once."""

    @abc.abstractmethod
    def judge(self, completed: Completed) -> Judgement:
        """What the tool's answer to a setting command means; pure. Exit statuses and messages of these tools mislead each in its own way."""

    def run(self, *words: str, item: str | None = None) -> Completed:
        """Run one command; its exit status decides nothing."""
        self.last = self.runner.run([self.tool, *words], ok=None, timeout=self.timeout, item=item)
        return self.last

    def send(self, words: t.Sequence[str], item: str) -> Completed:
        """Run one setting command.

        :raises CommandFailed: with the tool's own reason.
        """
        completed = self.run(*words, item=item)
        judgement = self.judge(completed)
        if not judgement.ok:
            message = judgement.message or completed.last_words
            raise CommandFailed(f"{item}: {self.name} refused ({completed.command_line}): {message}", item=item, completed=completed)
        return completed


def configured(subject: Subject, attribute: str) -> t.Any:
    """The configured value of an attribute, whatever it belongs to; ``None`` if the subject does not have it."""
    if attribute.startswith("drive_cache.") and isinstance(subject, Controller):
        return subject.drive_cache.get(attribute.partition(".")[2])
    value = getattr(subject, attribute)
    return getattr(value, "configured", value)
