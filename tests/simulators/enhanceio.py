# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for ``eio_cli`` of EnhanceIO and for the part of ``sysctl`` that its driver answers.

What they print and end with is that of CLI/eio_cli and of sysctl of procps: ``enable``, ``disable``, ``notify`` and ``clean``
end with 0 whatever happened, and ``delete`` ends with 3 when it has deleted a cache but finds no udev rule to remove.
"""

from __future__ import annotations

import errno
import os
import typing as t

from .enhanceio_driver import DEGRADED, FAILED, Driver, new_state
from .on_machine import machine
from .simulator import Answer, Simulator, State

#: A folder of its own, to be named in ``tool_dirs``, as that of flashcache.
FOLDER = "/usr/lib/cachefleet-simulators/enhanceio"

MODES = {"wt": 3, "wb": 1, "ro": 2}
POLICIES = {"rand": 3, "fifo": 1, "lru": 2}
_MODE_NAMES = {3: "Write Through", 1: "Write Back", 2: "Read Only", 0: "N/A"}
_SET_SIZES = {2048: 128, 4096: 256, 8192: 512}
_FAILURE = 3
_VERBS = ("delete", "edit", "info", "clean", "create", "enable", "notify", "disable")
#: What each verb takes, and which of it must be given.
_OPTIONS = {
    "delete": ("c", "c"),
    "edit": ("cmp", "c"),
    "info": ("", ""),
    "clean": ("c", "c"),
    "create": ("dspmbc", "dsc"),
    "enable": ("dspmbc", "dsc"),
    "notify": ("sadc", "c"),
    "disable": ("c", "c"),
}
_CHOICES = {"m": tuple(MODES), "p": tuple(POLICIES), "b": ("2048", "4096", "8192")}


class EioCli(Simulator):
    """``eio_cli``. Its one controller is the driver of a host, see :func:`new_state`."""

    name = "eio_cli"
    paths = ("/sbin/eio_cli",)
    in_view = True
    faults: t.ClassVar[t.Mapping[str, str]] = {
        "write_errors": "dirty blocks cannot be written to the origin",
        "writers": "{name: blocks}: so many new blocks are written to a write-back cache in every moment",
    }
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = {"EnhanceIO": new_state}

    def __init__(self, state: State) -> None:
        super().__init__(state)
        hosts = state.get("controllers") or []
        self.driver = Driver(hosts[0]) if hosts else None
        if self.driver is not None:
            self.driver.state["faults"] = state.get("faults", {})

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        verb, options, wrong = _parsed(words)
        if wrong:
            return Answer("", 2, f"usage: eio_cli [-h] {{{','.join(_VERBS)}}} ...\neio_cli: error: {wrong}\n")
        if self.driver is None or not self.driver.load():
            if verb == "info":
                return _traceback("/proc/enhanceio/")
            return _traceback("/dev/eiodev") if verb in ("create", "enable", "disable", "notify", "edit", "delete") else Answer("")
        if self.driver.real:
            self.driver.tick()
        handler: t.Callable[[dict[str, str]], Answer] = getattr(self, f"_{verb}")
        return handler(options)

    @property
    def _host(self) -> Driver:
        if self.driver is None:
            raise ValueError("there is no simulated driver")
        return self.driver

    def _create(self, options: dict[str, str]) -> Answer:
        if not options["c"].replace("_", "a").isalnum():
            return Answer("Cache name can contain only alphanumeric characters and underscore ('_')\n", _FAILURE)
        block_size = int(options.get("b", "4096"))
        mode, policy = MODES[options.get("m", "wt")], POLICIES[options.get("p", "lru")]
        told = self._told(options["c"], options["d"], options["s"], mode, policy, block_size)
        sizes = {"set_size": _SET_SIZES[block_size], "block_size": block_size}
        failed = self._host.create(options["c"], options["d"], options["s"], mode=mode, policy=policy, **sizes)
        if failed:
            return Answer(told + "Cache creation failed (dmesg can provide you more info)\n", _FAILURE)
        return Answer(told + self._write_rule(options["c"]) + "Cache created successfully\n")

    def _enable(self, options: dict[str, str]) -> Answer:
        mode, policy = MODES[options.get("m", "wt")], POLICIES[options.get("p", "lru")]
        block_size = int(options.get("b", "4096"))
        self._host.create(options["c"], options["d"], options["s"], mode=mode, policy=policy, set_size=_SET_SIZES[block_size], persistence=1)
        return Answer("")

    def _disable(self, options: dict[str, str]) -> Answer:
        self._host.delete(options["c"])
        return Answer("")

    def _notify(self, options: dict[str, str]) -> Answer:
        if options.get("a") == "add" and "s" in options:
            self._host.give_back(options["c"], options["s"])
        return Answer("")

    def _edit(self, options: dict[str, str]) -> Answer:
        cache = self._cache(options["c"])
        if cache is None:
            return Answer("Requested cache not found\n", _FAILURE)
        mode = MODES.get(options.get("m", ""), cache["mode"])
        policy = POLICIES.get(options.get("p", ""), cache["policy"])
        if self._host.edit(options["c"], mode, policy):
            return Answer("Edit cache failed (dmesg can provide you more info)\n", _FAILURE)
        return Answer(self._write_rule(options["c"]) + "Cache edited Successfully\n")

    def _delete(self, options: dict[str, str]) -> Answer:
        name = options["c"]
        if self._cache(name) is None:
            return Answer(f"No cache exists with the name {name}\n", _FAILURE)
        if self._host.delete(name):
            return Answer("Cache deletion failed (dmesg can provide you more info)\n", _FAILURE)
        told, rule = f"Removing file/etc/udev/rules.d/94-enhanceio-{name}.rules\n", self._rule(name)
        if not rule.exists():
            missing = f"[Errno 2] No such file or directory: '/etc/udev/rules.d/94-enhanceio-{name}.rules'\n"
            return Answer(told + "Unable to delete rule file(please remove it manually)\n" + missing, _FAILURE)
        rule.unlink()
        return Answer(told + "Done removing rule file\n")

    def _clean(self, options: dict[str, str]) -> Answer:
        self._host.write_sysctl(options["c"], "do_clean", 1)
        return Answer(f"/sbin/sysctl dev.enhanceio.{options['c']}.do_clean=1\n")

    def _info(self, options: dict[str, str]) -> Answer:
        caches = self._host.state["caches"]
        if not caches:
            return Answer("No caches Found\n")
        told = [self._told(name, one["source"], one["fast"], one["mode"], one["policy"], one["block_size"]) for name, one in caches.items()]
        return Answer("".join(told) + "\nFor more information look at /proc/enhanceio/<cache_name>/config\n")

    def _cache(self, name: str) -> State | None:
        found: State | None = self._host.state["caches"].get(name)
        return found

    def _told(self, name: str, source: str, fast: str, mode: int, policy: int, block_size: int) -> str:
        policies = {number: word for word, number in POLICIES.items()}
        text = (
            f"Cache Name       : {name}\nSource Device    : {source}\nSSD Device       : {fast}\nPolicy           : {policies[policy]}\n"
            f"Mode             : {_MODE_NAMES[mode]}\nBlock Size       : {block_size}\nAssociativity    : {_SET_SIZES[block_size]}\n"
        )
        cache = self._cache(name)
        if cache is None:
            return text
        state = "degraded" if cache["flags"] & DEGRADED else "failed" if cache["flags"] & FAILED else "normal"
        return text + f"State            : {state}\n"

    def _rule(self, name: str) -> t.Any:
        return self._host.root / f"etc/udev/rules.d/94-enhanceio-{name}.rules"

    def _write_rule(self, name: str) -> str:
        cache = self._host.state["caches"][name]
        matches = [f'ENV{{ID_SERIAL}}=="{os.path.basename(path)}", ENV{{DEVTYPE}}=="disk"' for path in (cache["source"], cache["fast"])]
        mode = {number: word for word, number in MODES.items()}[cache["mode"]]
        rule = self._rule(name)
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.write_text(f"{matches[1]}\n{matches[0]}\nRUN+=eio_cli enable -m {mode} -c {name}\n")
        return "".join(match + "\n" for match in matches)


class _OfTheDriver(Simulator):
    """A command of every host as far as it has to do with the driver; the rest is left to the real one of the machine."""

    in_view = True
    shared_state = EioCli.name
    faults: t.ClassVar[t.Mapping[str, str]] = {}
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = {}


class Sysctl(_OfTheDriver):
    """``sysctl -w dev.enhanceio.NAME.KEY=VALUE`` and ``sysctl -n dev.enhanceio.NAME.KEY`` of procps 3.3.17 (Debian 11 and 12).

    It ends with 0 if the kernel refuses a value, and says so on standard error only.
    """

    name = "eio_sysctl"
    paths = (f"{FOLDER}/sysctl",)

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        key, _equals, value = words[-1].partition("=")
        parts = key.split(".")
        place = f"/proc/sys/{'/'.join(parts)}"
        driver = EioCli(self.state).driver
        if parts[:2] != ["dev", "enhanceio"] and driver is not None and driver.real:
            return machine.run(machine.SYSCTL, words, stdin)
        if words[0] == "-n":
            found = driver.read_sysctl(parts[2], parts[3]) if driver is not None and len(parts) == 4 else None
            return Answer("", 255, f"sysctl: cannot stat {place}: No such file or directory\n") if found is None else Answer(f"{found}\n")
        failed = errno.ENOENT
        if driver is not None and parts[:2] == ["dev", "enhanceio"] and len(parts) == 4 and value.lstrip("-").isdigit():
            failed = driver.write_sysctl(parts[2], parts[3], int(value))
        if failed == errno.ENOENT:
            return Answer("", 255, f"sysctl: cannot stat {place}: No such file or directory\n")
        if failed:
            return Answer("", 0, f'sysctl: setting key "{key}": {os.strerror(failed)}\n')
        if driver is not None and driver.real:
            driver.pass_time()
        return Answer(f"{key} = {value}\n")


class Modprobe(_OfTheDriver):
    """``modprobe enhanceio``."""

    name = "eio_modprobe"
    paths = (f"{FOLDER}/modprobe",)

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        driver = EioCli(self.state).driver
        if words[-1:] != ["enhanceio"] or driver is None:
            return machine.run(machine.MODPROBE, words, stdin)
        if driver.state["module"] == "absent":
            return Answer("", 1, "" if "--quiet" in words else "modprobe: FATAL: Module enhanceio not found in directory /lib/modules/simulated\n")
        if "--dry-run" not in words:
            driver.load()
        return Answer("")


class Test(_OfTheDriver):
    """``test``, which sees the files of the driver."""

    name = "eio_test"
    paths = (f"{FOLDER}/test",)

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        return machine.run(machine.TEST, words, stdin)


KINDS: tuple[type[Simulator], ...] = (EioCli, Sysctl, Modprobe, Test)


def _parsed(words: t.Sequence[str]) -> tuple[str, dict[str, str], str]:
    """Verb and options, or what argparse says of them."""
    if not words or words[0] not in _VERBS:
        given = f"invalid choice: '{words[0]}'" if words else "too few arguments"
        return "", {}, given
    verb, rest = words[0], list(words[1:])
    known, needed = _OPTIONS[verb]
    options: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        if len(word) != 2 or word[0] != "-" or word[1] not in known:
            return verb, {}, f"unrecognized arguments: {word}"
        if not rest:
            return verb, {}, f"argument {word}: expected one argument"
        options[word[1]] = rest.pop(0)
        if word[1] in _CHOICES and options[word[1]] not in _CHOICES[word[1]]:
            return verb, {}, f"argument {word}: invalid choice: '{options[word[1]]}'"
    missing = [f"-{letter}" for letter in needed if letter not in options]
    return verb, options, f"argument {missing[0]} is required" if missing else ""


def _traceback(path: str) -> Answer:
    return Answer("", 1, f"Traceback (most recent call last):\nOSError: [Errno 2] No such file or directory: '{path}'\n")
