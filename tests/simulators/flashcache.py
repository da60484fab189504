# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulators of the tools of flashcache, and of dmsetup, blockdev and modprobe as far as flashcache needs them.

They are simulators: behind them is no kernel module but :mod:`flashcache_kernel`, which keeps its devices as files below a
folder, or :mod:`on_machine.flashcache` with real device-mapper devices. Options, checks and messages are those of flashcache_create,
_load, _destroy and _setioctl as published; what dmsetup 1.02.185 prints when the kernel takes something not is as it was seen with
other targets.
"""

from __future__ import annotations

import abc
import getopt
import re
import typing as t

from . import flashcache_text as text
from .flashcache_kernel import AROUND, BACK, THROUGH, VALID, Kernel, Rejected, host
from .on_machine import machine
from .on_machine.flashcache import MachineKernel, kernel_of
from .simulator import Answer, Simulator, State

#: A folder of its own, to be named in ``tool_dirs``: a real dmsetup is never hidden from anybody else.
FOLDER = "/usr/lib/cachefleet-simulators/flashcache"

_MODES = {"back": (BACK, "WRITE_BACK"), "thru": (THROUGH, "WRITE_THROUGH"), "through": (THROUGH, "WRITE_THROUGH"), "around": (AROUND, "WRITE_AROUND")}
_SIZES = {"": 1, "k": 2, "m": 2 << 10, "g": 2 << 20, "t": 2 << 30}
_MEMORY_PER_BLOCK = 22
_OPTIONS_OF_CREATE = "[-v] [-p back|thru|around] [-w] [-b block size] [-m md block size] [-s cache size] [-a associativity] cachedev ssd_devname disk_devname"
_CREATE_USAGE = """Usage: {0} {1}
Usage : {0} Cache Mode back|thru|around is required argument
Usage : {0} Default units for -b, -m, -s are sectors, or specify in k/M/G. Default associativity is 512.
"""

#: Further columns of ``dmsetup info``: a mapping of flashcache has no UUID.
_PLAIN = {"uuid": "", "suspended": "Active", "readonly": "Writeable", "tables_loaded": "Live"}


class Ended(Exception):
    """The tool prints something on standard error and ends with 1."""


class FlashcacheTool(Simulator):
    """One command on the flashcache of the machine."""

    in_view: t.ClassVar[bool] = True
    shared_state: t.ClassVar[str] = "flashcache"
    faults: t.ClassVar[t.Mapping[str, str]] = {
        "busy": "the kernel says of every device that it is busy",
        "disk_fails": "nothing that is dirty can be written to the disk",
        "metadata_fails": "the metadata cannot be written when a cache is removed, which leaves it unstable",
        "writers": "{name: blocks}: so many blocks are written to a cache in every tick",
        "first_block": "text that a cache that keeps no metadata has as its first block: a copy of the beginning of its disk",
        "deaf": "the command ends with status 0 and has done nothing",
        "silent": "the command does its work and ends with status 1 and no word",
    }
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = {"machine": host}

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.out: list[str] = []

    @property
    def kernel(self) -> Kernel:
        return kernel_of(self.state["controllers"][0], self.state.get("faults", {}))

    @property
    def command(self) -> str:
        """The name by which it was called, which is in its messages."""
        return self.name

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        if not self.state["controllers"]:
            return Answer("", 1, "The simulator has no machine yet: python3 -m simulators add flashcache_create machine --option 'root=\"/tmp/root\"'\n")
        if self.state.get("faults", {}).get("deaf") == self.name:
            return Answer("")
        kernel = self.kernel
        kernel.tick()
        try:
            passed = self.pass_on(kernel, words, stdin) if isinstance(kernel, MachineKernel) else None
            if passed is not None:
                return passed
            done = self.run(kernel, list(words), stdin)
        except (Ended, getopt.GetoptError) as ended:
            return Answer("".join(self.out), 1, str(ended))
        finally:
            kernel.settle()
        if self.state.get("faults", {}).get("silent") == self.name:
            return Answer("", 1)
        return Answer("".join(self.out), 0, done or "")

    def pass_on(self, kernel: Kernel, words: t.Sequence[str], stdin: str) -> Answer | None:
        """On a real machine: what its own command says, if the question is not about flashcache."""
        return None

    @abc.abstractmethod
    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        """Do it; what is said on standard error.

        :raises Ended: with what is said on standard error before it ends with 1.
        """

    def load_module(self, kernel: Kernel) -> None:
        if kernel.host["module"] == "missing":
            raise Ended("modprobe: FATAL: Module flashcache not found.\nCould not load Flashcache Module\n")
        kernel.load()

    def require_device(self, kernel: Kernel, path: str, words: str) -> None:
        if not kernel.node(path).exists():
            raise Ended(words.format(path))

    def construct(self, kernel: Kernel, name: str, words: str) -> None:
        """``echo words | dmsetup create name``, as every tool of flashcache does it."""
        _start, sectors, _target, *rest = words.split()
        try:
            kernel.construct(name, int(sectors), rest)
        except Rejected as rejected:
            raise Ended(f"{_complaint(rejected, name)}echo {words} | dmsetup create {name} failed\n") from None


class FlashcacheCreate(FlashcacheTool):
    """flashcache_create."""

    name: t.ClassVar[str] = "flashcache_create"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/flashcache_create",)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        usage = _CREATE_USAGE.format(self.command, _OPTIONS_OF_CREATE)
        try:
            options, rest = getopt.getopt(words, "fs:b:d:m:va:p:w")
        except getopt.GetoptError:
            raise Ended(usage) from None
        given = dict(options)
        if given.get("-p") not in _MODES or len(rest) < 3:
            raise Ended(usage)
        mode, mode_word = _MODES[given["-p"]]
        name, ssd, disk = rest[:3]
        block, metadata = self._block(given.get("-b", "")) or 8, self._block(given.get("-m", "")) or 8
        size, disk_associativity = self._size(given.get("-s", "0")), self._block(given.get("-d", "0"))
        associativity = int(re.match(r"\d*", given.get("-a", "512")).group() or 0)  # type: ignore[union-attr]
        self.out.append(f"cachedev {name}, ssd_devname {ssd}, disk_devname {disk} cache mode {mode_word}\n")
        of_metadata = f"md_block_size {metadata}, " if mode == BACK else ""
        self.out.append(f"block_size {block}, {of_metadata}cache_size {size}\n")
        self.require_device(kernel, ssd, "Failed to open {}\n")
        if int.from_bytes(kernel.cached_head(ssd)[16:20], "little") in VALID:
            again = f"{self.command}: Use flashcache_destroy first and then create again {ssd}\n"
            raise Ended(f"{self.command}: Valid Flashcache already exists on {ssd}\n{again}")
        self.require_device(kernel, disk, self.command + ": Failed to open {}\n")
        self._check(kernel, ssd, disk, size=size, block=block, metadata=metadata)
        force = "-f" in given
        self._warn_of_memory(kernel, (size or kernel.sectors(ssd)) // block, force, stdin)
        if disk_associativity > associativity:
            raise Ended(f"{self.command}: Invalid Disk Associativity {disk_associativity}\n")
        if size > kernel.sectors(disk) and not force:
            self._ask(f"Size of cache volume ({ssd}) is larger than disk volume ({disk})\n", stdin)
        self.load_module(kernel)
        numbers = f"{block} {size} {associativity} {disk_associativity} {int('-w' in given)} {metadata}"
        self.construct(kernel, name, f"0 {kernel.sectors(disk)} flashcache {disk} {ssd} {name} {mode} 2 {numbers}")
        return None

    def _check(self, kernel: Kernel, ssd: str, disk: str, *, size: int, block: int, metadata: int) -> None:
        sector = kernel.sector_size(ssd)
        if metadata * 512 < sector:
            what = f"SSD device ({ssd}) sector size ({sector}) cannot be larger than metadata block size ({metadata * 512})"
            raise Ended(f"{self.command}: {what} !\n")
        if size > kernel.sectors(ssd):
            raise Ended(f"{self.command}: Cache size is larger than ssd size {size}/{kernel.sectors(ssd)}\n")

    def _warn_of_memory(self, kernel: Kernel, blocks: int, force: bool, stdin: str) -> None:
        needed, memory = blocks * _MEMORY_PER_BLOCK, kernel.host["memory"]
        self.out.append(f"Flashcache metadata will use {needed >> 20}MB of your {memory >> 20}MB main memory\n")
        if not force and needed > memory * 25 // 100:
            high = "Proportion of main memory needed for flashcache metadata is high.\n"
            self._ask(f"{high}You can reduce this with a smaller cache or a larger blocksize.\n", stdin)

    def _ask(self, reason: str, stdin: str) -> None:
        question = f"{reason}Are you sure you want to proceed ? (y/n): "
        self.out.append("\n")
        if not stdin.startswith("y"):
            raise Ended(f"{question}Exiting FlashCache creation\n")

    def _block(self, word: str) -> int:
        number, suffix = re.fullmatch(r"(\d*)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
        if suffix not in ("", "k"):
            raise Ended(f"{self.command}: Unknown block size type {suffix[0]}\n")
        size = int(number or 0) * (2 if suffix else 1)
        if size & (size - 1):
            raise Ended(f"{self.command}: Block size must be a power of 2\n")
        return size

    def _size(self, word: str) -> int:
        number, suffix = re.fullmatch(r"(\d*)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
        if suffix not in ("", "k", "m", "M", "g", "G", "t", "T"):
            raise Ended(f"{self.command}: Unknown cache size type {suffix[0]}\n")
        return int(number or 0) * _SIZES[suffix.lower()]


class FlashcacheLoad(FlashcacheTool):
    """flashcache_load."""

    name: t.ClassVar[str] = "flashcache_load"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/flashcache_load",)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        _options, rest = getopt.getopt(words, "v")
        if not 1 <= len(rest) <= 2:
            raise Ended(f"Usage: {self.command} ssd_devname [cachedev]\n")
        ssd = rest[0]
        self.require_device(kernel, ssd, "Failed to open {}\n")
        head = kernel.cached_head(ssd)
        if int.from_bytes(head[16:20], "little") not in VALID:
            raise Ended(f"{self.command}: Invalid Flashcache superblock {ssd}\n")
        name = rest[1] if len(rest) > 1 else head[20:148].split(b"\0")[0].decode()
        disk = head[160:288].split(b"\0")[0].decode()
        self.require_device(kernel, disk, self.command + ": Failed to open {}\n")
        for what, path, recorded in (("Cache", ssd, head[152:160]), ("Disk", disk, head[288:296])):
            expected, found = int.from_bytes(recorded, "little"), kernel.sectors(path)
            if expected != found:
                raise Ended(f"{self.command}: {what} size mismatch, expect {expected}, given {found}\n")
        self.load_module(kernel)
        self.construct(kernel, name, f"0 {kernel.sectors(disk)} flashcache {disk} {ssd} {name} {BACK} 1")
        return None


class FlashcacheDestroy(FlashcacheTool):
    """flashcache_destroy."""

    name: t.ClassVar[str] = "flashcache_destroy"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/flashcache_destroy",)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        options, rest = getopt.getopt(words, "f")
        if not rest:
            raise Ended(f"Usage: {self.command} ssd_devname\n")
        ssd = rest[0]
        self.require_device(kernel, ssd, "Failed to open {}\n")
        if int.from_bytes(kernel.cached_head(ssd)[16:20], "little") not in VALID:
            raise Ended(f"{self.command}: No valid Flashcache found on {ssd}\n")
        if kernel.dirty_on(ssd) and not options:
            raise Ended(
                f"{self.command}: DIRTY BLOCKS EXIST ON {ssd}, ABORTING CACHE DESTROY\n"
                f"{self.command}: Use -f (force) to destroy cache with DIRTY blocks, BUT YOU WILL LOSE DATA GUARANTEED\n"
                f"{self.command}: To clean the DIRTY blocks, flashcache_load, then do_sync until all dirty blocks are cleaned\n"
            )
        kernel.destroy(ssd)
        return f"{self.command}: Destroying Flashcache found on {ssd}. Any data will be lost !!\n"


class FlashcacheSetioctl(FlashcacheTool):
    """flashcache_setioctl."""

    name: t.ClassVar[str] = "flashcache_setioctl"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/flashcache_setioctl",)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        usage = f"Usage: {self.command} (-c | -a | -r) (-b pid |-w pid) ssd_devname \n"
        try:
            options, rest = getopt.getopt(words, "carb:w:")
        except getopt.GetoptError:
            raise Ended(usage) from None
        action = next((option for option, _value in options if option in ("-c", "-a", "-r")), "")
        listed = next(((option, value) for option, value in options if option in ("-b", "-w")), None)
        if not action or listed is None or not rest:
            raise Ended(usage)
        if not listed[1].isdigit():
            raise Ended("Bad PID!\n")
        name = rest[0].rsplit("/", 1)[-1]
        cache = kernel.host["caches"].get(name)
        if cache is None:
            raise Ended(f"Failed to open {rest[0]}\n")
        _change_list(cache["whitelist" if listed[0] == "-w" else "blacklist"], {"-a": "add", "-r": "del", "-c": "delall"}[action], int(listed[1]))
        return None


class Dmsetup(FlashcacheTool):
    """dmsetup, of which every device is one of flashcache."""

    name: t.ClassVar[str] = "flashcache_dmsetup"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/dmsetup",)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        options, rest = getopt.gnu_getopt(words, "co:", ["target=", "retry", "columns", "noheadings", "separator=", "table="])
        verbs: dict[str, t.Callable[[Kernel, list[str], dict[str, str], str], None]] = {
            "table": self._table,
            "status": self._status,
            "ls": self._ls,
            "info": self._info,
            "remove": self._remove,
            "create": self._create,
        }
        verb = verbs.get(rest[0] if rest else "")
        if verb is None:
            raise Ended("Unknown command.\nUsage:\n\ndmsetup\n")
        verb(kernel, rest[1:], dict(options), stdin)
        return None

    def pass_on(self, kernel: Kernel, words: t.Sequence[str], stdin: str) -> Answer | None:
        caches = kernel.host["caches"]
        if any(word in caches for word in words) or "flashcache" in words or "flashcache" in stdin:
            return None
        real = machine.run(machine.DMSETUP, words, stdin)
        if not caches or words[0] not in ("table", "status", "info", "ls") or real.rc or _names_a_device(words):
            return real
        # Of every device: those of the machine, and the caches as flashcache shows them.
        others = [line for line in real.stdout.splitlines(keepends=True) if re.split(r"[:\t]", line, maxsplit=1)[0] not in caches]
        self.run(kernel, list(words), stdin)
        shown, self.out = self.out, []
        return Answer("".join([line for line in others if line != "No devices found\n"] + shown))

    def _chosen(self, kernel: Kernel, names: list[str]) -> list[State]:
        caches = kernel.host["caches"]
        for name in names:
            if name not in caches:
                raise Ended(f"Device {name} not found\nCommand failed.\n")
        return [caches[name] for name in names or sorted(caches)]

    def _print(self, kernel: Kernel, names: list[str], options: dict[str, str], show: t.Callable[[State], str]) -> None:
        caches = [] if options.get("--target", "flashcache") != "flashcache" else self._chosen(kernel, names)
        if not caches:
            self.out.append("No devices found\n")
        for cache in caches:
            # A device that is asked for by its name is not called by it.
            self.out.append(("" if names else f"{cache['name']}: ") + show(cache))

    def _table(self, kernel: Kernel, names: list[str], options: dict[str, str], _stdin: str) -> None:
        self._print(kernel, names, options, lambda cache: text.table(cache, cache["sectors"], kernel.histogram, kernel.sysctl(cache, "skip_seq_thresh_kb")))

    def _status(self, kernel: Kernel, names: list[str], options: dict[str, str], _stdin: str) -> None:
        self._print(kernel, names, options, lambda cache: text.status(cache, cache["sectors"], latencies=bool(kernel.sysctl(cache, "io_latency_hist"))))

    def _ls(self, kernel: Kernel, _names: list[str], options: dict[str, str], _stdin: str) -> None:
        self._print(kernel, [], options, lambda cache: "")
        if kernel.host["caches"]:
            self.out = [f"{name}\t(253:{cache['minor']})\n" for name, cache in sorted(kernel.host["caches"].items())]

    def _info(self, kernel: Kernel, names: list[str], options: dict[str, str], _stdin: str) -> None:
        caches = self._chosen(kernel, names)
        if "-c" not in options and "--columns" not in options:
            for cache in caches:
                facts = {"Name": cache["name"], "State": "ACTIVE", "Read Ahead": "256", "Tables present": "LIVE", "Open count": kernel.opened(cache)}
                facts.update({"Event number": 0, "Major, minor": f"253, {cache['minor']}", "Number of targets": 1})
                self.out.append("".join(f"{label + ':':<19}{value}\n" for label, value in facts.items()) + "\n")
            return
        columns = options.get("-o", "name").split(",")
        rows = [{"name": cache["name"], "open": str(kernel.opened(cache)), "major": "253", "minor": str(cache["minor"]), **_PLAIN} for cache in caches]
        self.out += [options.get("--separator", ":").join(row[column] for column in columns) + "\n" for row in rows]
        if not rows:
            self.out.append("No devices found\n")

    def _remove(self, kernel: Kernel, names: list[str], _options: dict[str, str], _stdin: str) -> None:
        for name in names:
            try:
                kernel.begin_removal(name)
            except Rejected as rejected:
                raise Ended(_complaint(rejected, name)) from None

    def _create(self, kernel: Kernel, names: list[str], options: dict[str, str], stdin: str) -> None:
        _start, sectors, target, *rest = (options.get("--table") or stdin).split()
        try:
            if target != "flashcache":
                raise Rejected("reload ioctl on {name} failed: Invalid argument")
            kernel.construct(names[0], int(sectors), rest)
        except Rejected as rejected:
            raise Ended(_complaint(rejected, names[0])) from None


class Blockdev(FlashcacheTool):
    """blockdev, which drops the page cache of a device."""

    name: t.ClassVar[str] = "flashcache_blockdev"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/blockdev",)

    def pass_on(self, kernel: Kernel, words: t.Sequence[str], stdin: str) -> Answer | None:
        return None if words[:1] == ["--flushbufs"] else machine.run(machine.BLOCKDEV, words, stdin)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        if words[:1] != ["--flushbufs"] or len(words) != 2:
            raise Ended(f"blockdev: Unknown command: {' '.join(words[:1])}\n")
        self.require_device(kernel, words[1], "blockdev: cannot open {}: No such file or directory\n")
        kernel.forget_pages(words[1])
        return None


class Modprobe(FlashcacheTool):
    """modprobe, which knows of one module."""

    name: t.ClassVar[str] = "flashcache_modprobe"
    paths: t.ClassVar[tuple[str, ...]] = (f"{FOLDER}/modprobe",)

    def pass_on(self, kernel: Kernel, words: t.Sequence[str], stdin: str) -> Answer | None:
        return None if "flashcache" in words else machine.run(machine.MODPROBE, words, stdin)

    def run(self, kernel: Kernel, words: list[str], stdin: str) -> str | None:
        options, rest = getopt.gnu_getopt(words, "nq", ["dry-run", "quiet"])
        quiet = {"-q", "--quiet"} & {option for option, _value in options}
        for module in rest:
            if module != "flashcache" or kernel.host["module"] == "missing":
                raise Ended("" if quiet else f"modprobe: FATAL: Module {module} not found in directory /lib/modules/simulated\n")
            if not {"-n", "--dry-run"} & {option for option, _value in options}:
                kernel.load()
        return None


KINDS: tuple[type[FlashcacheTool], ...] = (FlashcacheCreate, FlashcacheLoad, FlashcacheDestroy, FlashcacheSetioctl, Dmsetup, Blockdev, Modprobe)


def _names_a_device(words: t.Sequence[str]) -> bool:
    """Whether a question to dmsetup is about one device: a word after the verb that is no option and no value of one."""
    rest = list(words[1:])
    return any(not word.startswith("-") and before not in ("-o", "--separator", "--target") for before, word in zip(["", *rest], rest))


def _change_list(pids: list[int], action: str, pid: int) -> None:
    if action == "delall":
        pids.clear()
    elif action == "add" and pid not in pids:
        pids.append(pid)
    elif action == "del" and pid in pids:
        pids.remove(pid)


def _complaint(rejected: Rejected, name: str) -> str:
    return f"device-mapper: {str(rejected).format(name=name + ' ')}\nCommand failed.\n"
