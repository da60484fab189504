# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, NotUnderstood, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange, cleaning, with_mode

SMQ = "0 2097152 cache 253:2 253:3 253:4 128 2 metadata2 writeback smq 2 migration_threshold 2048"
CLEANER = "0 2097152 cache 253:2 253:3 253:4 128 2 metadata2 writethrough cleaner 0"
PASSTHROUGH = "0 2097152 cache 253:2 253:3 253:4 128 2 metadata2 passthrough smq 2 migration_threshold 2048"
THROUGH = PASSTHROUGH.replace("passthrough", "writethrough")


@pytest.mark.parametrize(
    ("table", "mode", "expected"),
    [
        (SMQ, "writethrough", THROUGH),
        # Metadata of the first format, and a mode that is not said: it writes back.
        ("0 8 cache 1:1 1:2 1:3 64 0 mq 0", "writethrough", "0 8 cache 1:1 1:2 1:3 64 1 writethrough mq 0"),
        ("0 8 cache 1:1 1:2 1:3 64 3 passthrough metadata2 no_discard_passdown smq 0", "writethrough",
         "0 8 cache 1:1 1:2 1:3 64 3 metadata2 no_discard_passdown writethrough smq 0"),
        ("0 8 linear 8:0 0\n8 8 linear 8:16 0", "writethrough", "0 8 linear 8:0 0\n8 8 linear 8:16 0"),
        ("0 8 writecache s 1:1 1:2 4096 0", "writethrough", "0 8 writecache s 1:1 1:2 4096 0"),
    ],
)  # fmt: skip
def test_only_the_mode_of_a_dm_cache_table_changes(table, mode, expected):
    assert with_mode(table, mode) == expected


def test_cleaner_replaces_policy_and_its_arguments():
    assert cleaning(SMQ) == CLEANER
    assert cleaning(f"{SMQ.replace('smq 2 migration_threshold 2048', 'mq 4 random_threshold 0 sequential_threshold 0')}") == CLEANER
    assert cleaning(CLEANER) == CLEANER


@pytest.mark.parametrize("table", ["0 8 cache 1:1", "0 8 cache 1:1 1:2 1:3 64 two metadata2 smq 0", "0 8 cache 1:1 1:2 1:3 64 1 metadata2"])
def test_invalid_table_is_quoted_in_error(table):
    with pytest.raises(NotUnderstood, match=f"'{table}'"):
        cleaning(table)


class Kernel:
    """One device. ``refused`` are the tables that are taken and then do not let the device go on; ``bad`` those that are not even taken."""

    def __init__(self, live, *, refused=(), bad=(), suspended=False):
        self.live, self.waiting, self.suspended = live, None, suspended
        self.refused, self.bad = refused, bad
        self.calls = []

    def run(self, argv, *, ok=(0,), **how):
        self.calls.append(list(argv[1:]))
        rc, out = getattr(self, f"_{argv[1]}")(list(argv[2:]))
        completed = Completed(tuple(argv), rc, out, "refused" if rc else "")
        if ok is not None and rc not in ok:
            raise CommandFailed(f"{' '.join(argv)} failed with exit status {rc}.", item=how.get("item"), completed=completed)
        return completed

    def _table(self, words):
        return 0, f"{self.live}\n"

    def _info(self, words):
        return 0, "Suspended\n" if self.suspended else "Active\n"

    def _clear(self, words):
        self.waiting = None
        return 0, ""

    def _reload(self, words):
        if words[2] in self.bad:
            return 1, ""
        self.waiting = words[2]
        return 0, ""

    def _resume(self, words):
        self.live, self.waiting = self.waiting or self.live, None
        self.suspended = self.live in self.refused
        return int(self.suspended), ""


def exchange(kernel):
    return Exchange(kernel, "vg-data", "images", "/dev/vg/data", patience=60)


def test_table_is_loaded():
    kernel = Kernel(SMQ)
    exchange(kernel).load(CLEANER)
    assert (kernel.live, kernel.suspended) == (CLEANER, False)


@pytest.mark.parametrize("how", [{"refused": (PASSTHROUGH,)}, {"bad": (PASSTHROUGH,)}])
def test_rejected_table_keeps_the_previous_one(how):
    kernel = Kernel(SMQ, **how)
    with pytest.raises(CommandFailed, match=r"images: .*; /dev/vg/data continues as before; see dmesg for the reason"):
        exchange(kernel).load(PASSTHROUGH)
    assert (kernel.live, kernel.waiting, kernel.suspended) == (SMQ, None, False)


def test_resume_exceeding_timeout_is_rolled_back():
    """The device was suspended by dmsetup, which was stopped before it resumed."""

    class Slow(Kernel):
        def _resume(self, words):
            if self.waiting == CLEANER:
                self.live, self.waiting, self.suspended = self.waiting, None, True
                raise TimedOut("dmsetup resume did not end within 60 seconds.", item="images")
            return super()._resume(words)

    kernel = Slow(SMQ)
    with pytest.raises(TimedOut, match=r"images: .*; /dev/vg/data continues as before"):
        exchange(kernel).load(CLEANER)
    assert (kernel.live, kernel.suspended) == (SMQ, False)


def test_udev_is_not_waited_for():
    """With a full /run its answer never comes."""
    kernel = Kernel(SMQ, refused=(PASSTHROUGH,))
    with pytest.raises(CommandFailed):
        exchange(kernel).load(PASSTHROUGH)
    resumed = [call for call in kernel.calls if call[0] == "resume"]
    assert len(resumed) == 2
    assert all("--noudevsync" in call for call in resumed)


def test_table_that_is_in_effect_after_a_failure_is_reported():
    """dmsetup was stopped after its work; what is in effect is read and not assumed."""

    class Late(Kernel):
        def _resume(self, words):
            super()._resume(words)
            raise TimedOut("dmsetup resume did not end within 60 seconds.", item="images")

    kernel = Late(SMQ)
    with pytest.raises(TimedOut, match=rf"/dev/vg/data continues with another table than before, '{CLEANER}'; see dmesg"):
        exchange(kernel).load(CLEANER)

    class Gone(Late):
        def _table(self, words):
            return (0, f"{self.live}\n") if self.live == SMQ else (1, "")

    with pytest.raises(TimedOut, match=r"which table /dev/vg/data has now cannot be read \(refused\)"):
        exchange(Gone(SMQ)).load(CLEANER)


def test_rejected_previous_table_falls_back_to_writethrough():
    kernel = Kernel(SMQ, refused=(PASSTHROUGH, SMQ))
    with pytest.raises(CommandFailed):
        exchange(kernel).load(PASSTHROUGH)
    assert (kernel.live, kernel.suspended) == (THROUGH, False)


@pytest.mark.parametrize("refused", [True, False])
def test_suspended_device_is_resumed(refused):
    kernel = Kernel(PASSTHROUGH, refused=(PASSTHROUGH,), suspended=True)
    exchange(kernel).go_on(refused=refused)
    assert (kernel.live, kernel.suspended) == (THROUGH, False)
    assert (["reload", "vg-data", "--table", PASSTHROUGH] in kernel.calls) is not refused


def test_inactive_table_is_dropped_and_never_loaded():
    kernel = Kernel(SMQ, suspended=True)
    kernel.waiting = PASSTHROUGH
    exchange(kernel).go_on()
    assert (kernel.live, kernel.suspended) == (SMQ, False)


def test_unrecoverable_table_is_reported_with_the_manual_action():
    kernel = Kernel(PASSTHROUGH, refused=(PASSTHROUGH, THROUGH), suspended=True)
    with pytest.raises(NotEffective, match=r"images: /dev/vg/data is suspended, .* give vg-data a table with dmsetup reload"):
        exchange(kernel).go_on()
