# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exchange of the table of a device-mapper device that is in use, with a way back: nothing that is mounted is ever left without a table.

``dmsetup resume`` suspends a device, gives it the table that was loaded and lets it go on, in one call of the kernel. If the targets
of the new table refuse to go on, the device stays suspended *with that table*: every request waits for ever, and to resume it again
is refused again. Only another table that the kernel takes helps (``do_resume`` of drivers/md/dm-ioctl.c, dmsetup(8)).

dmsetup does not wait for udev (``--noudevsync``): node and links are there, and with a full ``/run`` the answer of udev never comes
(systemd-udevd runs no program of an event that it cannot record), although the table is in effect.

dm-cache counts every block as dirty each time its table is loaded, as long as its metadata is open that was not closed cleanly
before (``load_mapping`` of drivers/md/dm-cache-target.c), and refuses to go on in passthrough while a block is dirty.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, NotUnderstood, StorageError

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner

_MODES = ("writethrough", "writeback", "passthrough")
_CLEANER = ("cleaner", "0")
_HOLDING = ("smq", "2", "migration_threshold", "0")
#: No snapshot is taken: freezing the file system above would only write out all of its dirty pages first.
_RESUME = ("resume", "--noudevsync", "--nolockfs")


class Exchange:
    """Tables of one device.

    :param runner: starts dmsetup.
    :param name: the device-mapper name.
    :param item: the cache, as the user named it, for messages.
    :param path: the device by its common name, for messages.
    :param patience: seconds that a suspension may take: it waits for every request that is on its way.
    """

    def __init__(self, runner: Runner, name: str, item: str, path: str, *, patience: float) -> None:
        self.runner = runner
        self.name = name
        self.item = item
        self.path = path
        self.patience = patience

    def table(self) -> str:
        """The table in effect: one line for each target."""
        return self._dmsetup("table", self.name).stdout.strip("\n")

    def suspended(self) -> bool:
        """Whether the device answers nothing."""
        completed = self.runner.run(["dmsetup", "info", "--columns", "--noheadings", "--options", "suspended", self.name], ok=None, item=self.item)
        return completed.rc == 0 and completed.stdout.strip() == "Suspended"

    def load(self, table: str) -> None:
        """Put another table in effect.

        :raises StorageError: if the kernel does not take it, or not in time. The message says which one is in effect then.
        :raises NotEffective: if that was not possible: the device is suspended.
        """
        before = self.table()
        try:
            self._dmsetup("reload", self.name, "--table", table)
            self._dmsetup(*_RESUME, self.name)
        except StorageError as error:
            # Also after a time limit: dmsetup may have been stopped between suspending and resuming.
            self._go_back(before)
            error.message = f"{self.item}: {error.message.rstrip('.')}; {self._found(before)}"
            error.args = (error.message,)
            raise

    def _found(self, before: str) -> str:
        """What is in effect after a failure, read back: a command that was stopped may have done its work."""
        completed = self.runner.run(["dmsetup", "table", self.name], ok=None, timeout=self.patience, item=self.item)
        found = completed.stdout.strip("\n")
        if completed.rc:
            return f"which table {self.path} has now cannot be read ({completed.last_words}); see dmesg for the reason."
        if found == before:
            return f"{self.path} continues as before; see dmesg for the reason."
        return f"{self.path} continues with another table than before, '{found}'; see dmesg for the reason."

    def go_on(self, *, refused: bool = False) -> None:
        """Let a device go on that a command left suspended: with the table it has, or if the kernel refuses that, with one that writes through.

        A table that waits is dropped first: to go on would put it in effect.

        :param refused: whether the kernel is known to refuse the table it has.
        :raises NotEffective: if the kernel takes neither.
        """
        table = self.table()
        self._go_back(with_mode(table, "writethrough") if refused else table)

    def _go_back(self, table: str) -> None:
        self.runner.run(["dmsetup", "clear", self.name], ok=None, item=self.item)
        if not self.suspended():
            return
        # What it has may be the table that it is not to go on with: the one that was there comes first, then a milder one.
        for candidate in dict.fromkeys((table, with_mode(table, "writethrough"))):
            self.runner.run(["dmsetup", "reload", self.name, "--table", candidate], ok=None, item=self.item)
            self.runner.run(["dmsetup", *_RESUME, self.name], ok=None, timeout=self.patience, item=self.item)
            if not self.suspended():
                return
        raise NotEffective(
            f"{self.item}: {self.path} is suspended, so that every request to it waits, and the kernel accepts neither the table it had nor one that writes"
            f" through: check dmesg, give {self.name} a table with dmsetup reload, and resume it with dmsetup resume.",
            item=self.item,
        )

    def _dmsetup(self, *words: str) -> Completed:
        return self.runner.run(["dmsetup", *words], timeout=self.patience, item=self.item)


def with_mode(table: str, mode: str) -> str:
    """The same table with its dm-cache in another mode; any other target stays as it is.

    ``start length cache metadata data origin block #features feature… policy #arguments argument…``
    (Documentation/admin-guide/device-mapper/cache.rst). Without a mode among the features dm-cache writes back.

    :raises NotUnderstood: quoting the line.
    """
    return "\n".join(_changed(line, mode, None) for line in table.splitlines())


def cleaning(table: str) -> str:
    """The same table with its dm-cache only writing back what is dirty, while it writes through.

    :raises NotUnderstood: quoting the line.
    """
    return "\n".join(_changed(line, "writethrough", _CLEANER) for line in table.splitlines())


def holding(table: str) -> str:
    """The same table with its dm-cache writing through and nothing back: what the kernel counts as dirty at the load stays so.

    Without bandwidth for migrations the policy smq never cleans (``migration_threshold`` of cache.rst, ``smq_get_background_work`` of
    drivers/md/dm-cache-policy-smq.c).

    :raises NotUnderstood: quoting the line.
    """
    return "\n".join(_changed(line, "writethrough", _HOLDING) for line in table.splitlines())


def _changed(line: str, mode: str, policy: t.Sequence[str] | None) -> str:
    words = line.split()
    if words[2:3] != ["cache"]:
        return line
    try:
        count = int(words[7])
        features, rest = words[8 : 8 + count], words[8 + count :]
        rest[1]
    except (IndexError, ValueError):
        raise NotUnderstood(f"dmsetup printed a cache table that could not be parsed: '{line[:300]}'.") from None
    features = [feature for feature in features if feature not in _MODES] + [mode]
    return " ".join([*words[:7], str(len(features)), *features, *(policy or rest)])
