# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operations of the layer ``lvm_cache``: what each step does to the host.

Sources: lvmcache(7), lvconvert(8), lvchange(8), and what LVM 2.03 was seen to do. Its messages and exit statuses are no
proof: ``lvconvert --uncache`` can fail with status 5 after printing that the volume is not cached. A command that failed is
forgiven only if its effect is read back, and nothing is taken away before the kernel says that no block is dirty.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import TAG
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange, cleaning, holding

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import report as lvm_report
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner

#: LVM flushes inside lvchange and lvconvert, for hours on a large cache over slow disks; FlushWatch ends one that stands still.
PATIENCE = 7 * 24 * 3600.0
#: Seconds that a device may take to answer what is on its way, before it gets another table.
EXCHANGE_PATIENCE = 600.0
#: Seconds that somebody else may keep a device suspended.
PATIENCE_WITH_OTHERS = 10


class LvmOperations:
    """One method for each operation of a step. The layer that inherits them has a runner, a root, a clock and a sleep, and reads."""

    runner: Runner
    root: Path
    clock: t.Callable[[], float]
    sleep: t.Callable[[float], None]
    read: t.Callable[[], LvmState]

    # -- devices

    def _create_physical_volume(self, step: Step) -> None:
        path = step.arguments["path"]
        finding = cache_device.examine(self.runner, path, self.root, self.sleep)
        if finding.reasons:
            raise Refused(
                f"{step.item}: {path} was empty when it was looked at and now {' and '.join(finding.reasons)}, so that it is not taken for a cache:"
                f" {finding.advice(path)}.",
                item=step.item,
            )
        # Without --yes: pvcreate asks before it wipes anything, and no answer is no.
        self._run(step, ["pvcreate", path], lambda: self._physical_volume(path) is not None)

    def _extend_volume_group(self, step: Step) -> None:
        path, vg = step.arguments["path"], step.arguments["vg"]
        self._run(step, ["vgextend", vg, path], lambda: getattr(self._physical_volume(path), "vg", None) == vg)

    def _forget_missing(self, step: Step) -> None:
        """Without ``--force`` LVM forgets only devices that hold nothing."""
        vg = step.arguments["vg"]
        self._run(step, ["vgreduce", "--removemissing", vg], lambda: not any(pv.missing and pv.vg == vg for pv in self._report().physical))

    def _release_device(self, step: Step) -> None:
        """Out of the volume group, and empty; from wherever an earlier run was cut off."""
        path, vg = step.arguments["path"], step.arguments["vg"]
        report = self._report()
        physical = self._physical_volume(path, report)
        if physical is not None and physical.vg == vg:
            if not any(volume.vg == vg and volume.segtype in ("cache-pool", "thin-pool") for volume in report.volumes):
                for spare in [volume for volume in report.volumes if volume.vg == vg and volume.name.endswith("_pmspare")]:
                    # LVM takes the spare away with the last pool, if it is not killed in between.
                    self._run(step, ["lvremove", "--yes", spare.full_name], lambda name=spare.name: self._volume(vg, name) is None)
            self._run(step, ["vgreduce", vg, path], lambda: getattr(self._physical_volume(path), "vg", vg) is None)
        if physical is not None:
            self._run(step, ["pvremove", path], lambda: self._physical_volume(path) is None)
            udev.refresh(self.runner, [path], step.item)

    # -- the fast volume

    def _create_volume(self, step: Step) -> None:
        asked = step.arguments
        vg, name = asked["vg"], asked["volume"]
        report = self._report()
        volumes = [self._known_physical_volume(step, path, report) for path in asked["paths"]]
        extents, metadata = asked["extents"], asked["metadata"]
        single_pool = asked["kind"] == "cachepool" and not asked["mirror"]
        if asked["fill"]:
            size = volumes[0].extent_size
            beside = (2 if single_pool else 1) * metadata // size + int(asked["mirror"])
            extents = min(extents, max(min(pv.free for pv in volumes) // size - beside, extents - 8))
        command = self._lvcreate(name, extents)
        if single_pool:
            command += ["--type", "cache-pool", "--poolmetadatasize", f"{metadata}b", "--chunksize", f"{asked['chunk_size']}b"]
        if asked["mirror"]:
            command += _MIRRORED
        if asked["kind"] == "writecache":
            # LVM attaches an inactive volume only, and clears what matters of it then.
            command += ["--activate", "n", "--zero", "n"]
        self._run(step, [*command, vg, *(pv.path for pv in volumes)], lambda: self._volume(vg, name) is not None)

    def _create_metadata(self, step: Step) -> None:
        asked = step.arguments
        vg, name = asked["vg"], asked["metadata_volume"]
        report = self._report()
        paths = [self._known_physical_volume(step, path, report).path for path in asked["paths"]]
        self._run(step, [*self._lvcreate(name, asked["extents"]), *_MIRRORED, vg, *paths], lambda: self._volume(vg, name) is not None)

    @staticmethod
    def _lvcreate(name: str, extents: int) -> list[str]:
        # Our own lvcreate and not lvconvert --cachedevice, which names the volume itself, tags nothing and mirrors nothing.
        return ["lvcreate", "--yes", "--addtag", TAG, "--name", name, "--extents", str(extents)]

    def _join_pool(self, step: Step) -> None:
        asked = step.arguments
        vg, name = asked["vg"], asked["volume"]
        command = ["lvconvert", "--yes", "--type", "cache-pool", "--chunksize", f"{asked['chunk_size']}b"]
        command += ["--poolmetadata", f"{vg}/{asked['metadata_volume']}", f"{vg}/{name}"]
        self._run(step, command, lambda: getattr(self._volume(vg, name), "segtype", None) == "cache-pool")

    def _remove_volume(self, step: Step) -> None:
        vg, name = step.arguments["vg"], step.arguments["remove"]
        self._run(step, ["lvremove", "--yes", f"{vg}/{name}"], lambda: self._volume(vg, name) is None)

    # -- the cache

    def _attach(self, step: Step) -> None:
        asked = step.arguments
        vg, lv, kind, fast = asked["vg"], asked["lv"], asked["kind"], f"{asked['vg']}/{asked['volume']}"
        settings = [f"{key}={value}" for key, value in asked["settings"].items()]
        if kind == "writecache":
            if getattr(self._volume(vg, asked["volume"]), "active", False):
                self._run(step, ["lvchange", "--activate", "n", fast], lambda: not getattr(self._volume(vg, asked["volume"]), "active", True))
            command = ["lvconvert", "--yes", "--type", "writecache", "--cachevol", fast]
            command += ["--cachesettings", " ".join(settings)] if settings else []
        else:
            command = ["lvconvert", "--yes", "--type", "cache"]
            command += ["--cachepool", fast] if kind == "cachepool" else ["--cachevol", fast, "--chunksize", f"{asked['chunk_size']}b"]
            # LVM does not remember the mode of a volume that was attached before: it is always said.
            command += ["--cachemode", asked["mode"]]
            for setting in settings:
                command += ["--cachesettings", setting]
        self._run(step, [*command, f"{vg}/{lv}"], lambda: self._cached(vg, lv) is not None)

    def _set_mode(self, step: Step) -> None:
        mode = step.arguments["mode"]
        stored = getattr(self._cached(step.arguments["vg"], step.arguments["lv"]), "mode", None)
        if mode == "passthrough":
            if stored == "writeback":
                self._change_mode(step, "writethrough")
            self._require_closed_cleanly(step)
        elif mode == "writethrough" and stored == "writeback":
            # LVM flushes too, and then loads a table in which every block may count as dirty: what is proven is proven before.
            self._clean(step)
        self._change_mode(step, mode)
        if mode == "passthrough":
            self._require_passthrough(step)

    def _require_passthrough(self, step: Step) -> None:
        """The kernel looks again: what was clean in the table before may count as dirty in this one. LVM has noted the mode all the same."""
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        kernel = self._kernel(vg, lv)
        if kernel is not None and kernel.mode != "passthrough" and getattr(self._cached(vg, lv), "mode", None) == "passthrough":
            self._change_mode(step, "writethrough")
            raise self._not_closed_cleanly(step, kernel.dirty)

    def _change_mode(self, step: Step, mode: str) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        command = ["lvchange", "--yes", "--cachemode", mode, f"{vg}/{lv}"]
        self._run(step, command, lambda: getattr(self._cached(vg, lv), "cache_mode", None) == mode, watch=self._watch(step))

    def _require_closed_cleanly(self, step: Step) -> None:
        """The kernel takes a table in passthrough only while no block is dirty, and every load of a table may make them all so again.

        A small cache is clean again before its status can be read: a table that cleans nothing is loaded, and LVM's own afterwards.

        :raises Refused: if blocks count as dirty in a table that was loaded just now and writes through.
        """
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        if getattr(self._kernel(vg, lv), "dirty", None):
            self._clean(step)
        exchange = self._exchange(step, dm.device_name(vg, lv))
        exchange.load(holding(exchange.table()))
        dirty = getattr(self._kernel(vg, lv), "dirty", None)
        self._run(step, ["lvchange", "--refresh", f"{vg}/{lv}"], None)
        if dirty != 0:
            raise self._not_closed_cleanly(step, dirty)

    @staticmethod
    def _not_closed_cleanly(step: Step, dirty: int | None) -> Refused:
        volume = f"{step.arguments['vg']}/{step.arguments['lv']}"
        return Refused(
            f"{step.item}: {volume} cannot be changed to mode passthrough while it is in use: the metadata of its cache was not closed cleanly when the"
            f" host went down, so that the kernel counts {dirty or 'its'} blocks as dirty after every change; nothing is lost, it writes through now:"
            f" unmount it, run lvchange -an {volume} and lvchange -ay {volume}, and run again.",
            item=step.item,
        )

    def _leave_cleaner(self, step: Step) -> None:
        """Out of the policy in which a flush that was killed left the cache.

        A table of ours goes with one that LVM loads. What LVM has noted itself stays through ``--refresh``, the same mode and the same policy,
        which all end with 0; only another mode takes it away.
        """
        vg, lv, stored = step.arguments["vg"], step.arguments["lv"], step.arguments["stored"]
        self._run(step, ["lvchange", "--refresh", f"{vg}/{lv}"], None)
        if getattr(self._kernel(vg, lv), "policy", None) != "cleaner":
            return
        if stored == "writethrough":
            self._require_closed_cleanly(step)
        self._change_mode(step, "passthrough" if stored == "writethrough" else "writethrough")
        if stored == "writethrough":
            self._require_passthrough(step)
        if stored == "passthrough":
            self._require_closed_cleanly(step)
        self._change_mode(step, stored)
        if stored == "passthrough":
            self._require_passthrough(step)

    def _set_setting(self, step: Step) -> None:
        asked = step.arguments
        vg, lv, key, value = asked["vg"], asked["lv"], asked["key"], asked["value"]

        def stored() -> bool:
            settings = getattr(self._cached(vg, lv), "settings", None) or {}
            return key not in settings if value == "default" else settings.get(key) == value

        self._run(step, ["lvchange", "--yes", "--cachesettings", f"{key}={value}", f"{vg}/{lv}"], stored)

    def _set_settings(self, step: Step) -> None:
        """Several settings of a writecache at once. LVM takes none of them away alone: all go, and the others come again."""
        asked = step.arguments
        values = {**asked["kept"], **asked["settings"]} if asked["reset"] else asked["settings"]
        if asked["reset"]:
            self._change_settings(step, {})
        if values:
            self._change_settings(step, values)

    def _set_cleaner(self, step: Step) -> None:
        self._change_settings(step, {"cleaner": str(step.arguments["cleaner"])})

    def _change_settings(self, step: Step, values: t.Mapping[str, str]) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]

        def stored() -> bool:
            found = getattr(self._cached(vg, lv), "settings", None) or {}
            return all(found.get(key) == value for key, value in values.items()) if values else not found

        text = " ".join(f"{key}={value}" for key, value in values.items())
        completed = self._run(step, ["lvchange", "--yes", "--cachesettings", text, f"{vg}/{lv}"], None)
        if completed.rc and "nrecognized writecache setting" in completed.stdout + completed.stderr:
            raise NotEffective(
                f"{step.item}: this version of LVM does not know the writecache setting {' or '.join(step.arguments.get('settings', values))};"
                " everything else is as wanted: leave it out, or use a newer lvm2.",
                item=step.item,
                completed=completed,
            )
        if completed.rc and not stored():
            raise _failed(step, completed)

    def _refresh(self, step: Step) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        self._run(step, ["lvchange", "--refresh", f"{vg}/{lv}"], lambda: getattr(self._kernel(vg, lv), "mode", None) == step.after)

    # -- flushing and taking away

    def _flush_writecache(self, step: Step) -> None:
        self._change_settings(step, {"cleaner": "1"})
        self._watch(step).until_clean(self.sleep, INTERVAL)

    def _prove_clean(self, step: Step) -> None:
        self._clean(step)

    def _clean(self, step: Step) -> None:
        """Bring a cache that is in use to where nothing is dirty in it and nothing can become so, and prove that.

        After a crash every block counts as dirty in every mode. The policy ``cleaner`` brings that to 0 and keeps it there; its table is
        loaded past LVM, which takes it away with the next one that it loads itself, and does not have it for a cachevol at all.
        """
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        kernel = self._kernel(vg, lv)
        if kernel is not None and kernel.target == "cache" and not kernel.failed and (kernel.dirty or kernel.mode == "writeback"):
            if kernel.policy != "cleaner" or kernel.mode == "writeback":
                exchange = self._exchange(step, dm.device_name(vg, lv))
                exchange.load(cleaning(exchange.table()))
            self._watch(step).until_clean(self.sleep, INTERVAL)
        self._require_clean(step)
        write_out(self.runner, step.item, f"/dev/{vg}/{lv}")
        # What was on its way when it was looked at first has arrived by now.
        self._require_clean(step)

    def _go_on(self, step: Step) -> None:
        """Let what a command left suspended go on, what lies below first: a table above is read from it."""
        for name in step.arguments["names"]:
            exchange = self._exchange(step, name)
            # Whoever suspended it may be at work still.
            for _second in range(PATIENCE_WITH_OTHERS):
                if not exchange.suspended():
                    break
                self.sleep(1)
            else:
                exchange.go_on()

    def _exchange(self, step: Step, name: str) -> Exchange:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        return Exchange(self.runner, name, step.item, f"/dev/{vg}/{lv}", patience=EXCHANGE_PATIENCE)

    def _detach(self, step: Step) -> None:
        self._require_clean(step)
        self._uncache(step)

    def _drop(self, step: Step) -> None:
        """A cache that misses its device, or has failed: LVM flushes nothing, so that it must have written through all the time."""
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        present = self.read()
        cached = present.volume(vg, lv)
        if cached is not None and cached.cached and not lvm_health.writes_through(present, cached):
            raise NotEffective(
                f"{step.item}: the cache of {vg}/{lv} is not known to have written through any more, and stays: look at dmesg and run again.", item=step.item
            )
        self._uncache(step)

    def _uncache(self, step: Step) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        command = ["lvconvert", "--yes", "--uncache", f"{vg}/{lv}"]
        self._run(step, command, lambda: self._cached(vg, lv) is None and self._volume(vg, lv) is not None, watch=self._watch(step))

    def _finish_detaching(self, step: Step) -> None:
        """LVM goes on with what was killed once the devices it left, which answer every request with an error, are out of its way."""
        vg, dead, pool = step.arguments["vg"], step.arguments["dead"], step.arguments["pool"]
        prefixes = tuple(dm.device_name(vg, name) for name in (dead, pool) if name)
        for name in dm.parse_dead(self.runner.run(["dmsetup", "table"]).stdout):
            if name.startswith(prefixes):
                self.runner.run(["dmsetup", "remove", name], ok=None, item=step.item)
        self._run(step, ["lvconvert", "--yes", "--uncache", f"{vg}/{dead}"], lambda: self._volume(vg, dead) is None)

    def _watch(self, step: Step) -> FlushWatch:
        """Looks at the kernel's figure, without taking LVM's lock."""
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        return FlushWatch(
            step.item, f"{vg}/{lv}", lambda: getattr(self._kernel(vg, lv), "dirty", None), limit=step.arguments.get("flush_timeout"), clock=self.clock
        )

    def _require_clean(self, step: Step) -> None:
        """No block may be dirty, and none may become so: the kernel says 0 while it writes through, or while a writecache takes nothing.

        A cache that has failed reports no figure at all, and LVM would skip its flush and go on: that is no proof.
        """
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        kernel = self._kernel(vg, lv)
        if kernel is not None and not kernel.failed and kernel.dirty == 0 and not kernel.errors and self._takes_nothing(kernel, vg, lv):
            return
        found = "no cache" if kernel is None else "a failed cache" if kernel.failed else f"mode {kernel.mode} with {kernel.dirty} dirty blocks"
        raise NotEffective(
            f"{step.item}: it could not be proven that the cache of {vg}/{lv} holds nothing that the origin does not have"
            f" (found {found}); the cache stays attached and nothing is lost: look at dmesg and run again.",
            item=step.item,
        )

    def _takes_nothing(self, kernel: dm.CacheStatus, vg: str, lv: str) -> bool:
        """Whether nothing can become dirty."""
        if kernel.target == "cache":
            return kernel.mode in ("writethrough", "passthrough")
        table = dm.read_tables(self.runner).get(dm.device_name(vg, lv))
        return table is not None and table.cleaner

    # -- commands and what they left behind

    def _run(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool] | None, watch: t.Callable[[], t.Any] | None = None) -> Completed:
        """Run a command of LVM; one that failed is forgiven only if what it was to do is read back as done (None: its caller looks)."""
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item, watch=watch, interval=INTERVAL)
        if completed.rc != 0:
            self._require_going_on(step)
            if took_effect is not None and not took_effect():
                raise _failed(step, completed)
        return completed

    def _require_going_on(self, step: Step) -> None:
        """LVM leaves a volume suspended whose new table the kernel refuses: every request to it would wait for ever."""
        if "lv" in step.arguments:
            exchange = self._exchange(step, dm.device_name(step.arguments["vg"], step.arguments["lv"]))
            if exchange.suspended():
                exchange.go_on(refused=True)

    def _report(self) -> lvm_report.Report:
        return lvm_facts.read_report(self.runner)

    def _volume(self, vg: str, name: str) -> lvm_report.LogicalVolume | None:
        return next((volume for volume in self._report().volumes if volume.vg == vg and volume.name == name), None)

    def _cached(self, vg: str, name: str) -> lvm_report.LogicalVolume | None:
        volume = self._volume(vg, name)
        return volume if volume is not None and volume.cached else None

    def _kernel(self, vg: str, lv: str) -> dm.CacheStatus | None:
        return dm.read_status(self.runner).get(dm.device_name(vg, lv))

    def _physical_volume(self, path: str, report: lvm_report.Report | None = None) -> lvm_report.PhysicalVolume | None:
        wanted = self._real(path)
        return next((pv for pv in (report or self._report()).physical if self._real(pv.path) == wanted), None)

    def _known_physical_volume(self, step: Step, path: str, report: lvm_report.Report) -> lvm_report.PhysicalVolume:
        physical = self._physical_volume(path, report)
        if physical is None:
            raise NotEffective(f"{step.item}: LVM does not list {path} as a physical volume after it was made one.", item=step.item)
        return physical

    def _real(self, path: str) -> str:
        return os.path.realpath(self.root / path.lstrip("/"))


# Not synchronised first: a cache reads no block of data or metadata that it has not written, and it writes to both sides; so
# nothing that is ever read can differ, and the mirror protects from the first write on instead of after hours of copying.
_MIRRORED = ["--type", "raid1", "--mirrors", "1", "--nosync"]


def _failed(step: Step, completed: Completed) -> CommandFailed:
    return CommandFailed(
        f"{step.item}: {completed.command_line} failed with exit status {completed.rc}: {completed.last_words}", item=step.item, completed=completed
    )
