# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts simulators of tools on a machine, gives them controllers (of RAID) or machines (of flashcache), breaks them and mends them.

python3 -m simulators install [--root /]             every tool at its vendor's place, said to be a simulator
python3 -m simulators install --kernel               also the kernel's half of flashcache and EnhanceIO on a real machine, seen by their
                                                     tools and by what is run with the interpreter /usr/lib/cachefleet-simulators/python
python3 -m simulators add storcli "MegaRAID 9361-8i" [--option volumes=2] [--option 'os_devices=[{"path": "/dev/sda"}]']
    [--set bus=0 --set device=6]                     (values of its state that are to be others: here, where in the machine it is)
    [--set port='"/dev/virtio-ports/…"']             (behind it is the model of tests/rack/media; by default cachefleet.controller.<n>, if there is one)
python3 -m simulators add flashcache_create machine --option 'root="/tmp/root"'      (one for all tools of flashcache)
python3 -m simulators fault storcli battery_failed   (again with --end to mend it; --details JSON for a fault that has some)
python3 -m simulators clear storcli                  no controllers, no faults, no calls
python3 -m simulators calls storcli                  how the tool was called, one JSON list in a line
python3 -m simulators list                           tools, models, faults
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import typing as t
from pathlib import Path

from . import enhanceio, flashcache, model_port, simulator
from .arcconf import Arcconf
from .ssacli import SsaCli
from .storcli import PercCli, StorCli
from .storcli2 import PercCli2, StorCli2

_RAID = (StorCli, PercCli, StorCli2, PercCli2, Arcconf, SsaCli)
KINDS: dict[str, type[simulator.Simulator]] = {kind.name: kind for kind in (*_RAID, *enhanceio.KINDS, *flashcache.KINDS)}

_LAUNCHER = """#!/bin/sh
# This is NOT the vendor's {command}. It is a simulator of cachefleet.storage for tests: it speaks the language of the real tool
# and has no device behind it. See SIMULATORS.txt beside it.
exec {view}python3 -S {place}/simulators/call.py {called} "$@"
"""
#: A Python that sees the simulated kernel modules.
INTERPRETER = "usr/lib/cachefleet-simulators/python"
_INTERPRETER = """#!/bin/sh
exec {view}/usr/bin/python3 "$@"
"""
_NOTICE = """The commands in this folder that say so in their first lines are simulators of proprietary RAID tools and of
tools for SSD caches, made for the tests of the Ansible collection cachefleet.storage. They print what the real tools print
and keep a state in {states}; there is no controller and no device behind them, and nothing they say is true of this machine.
"""


def install(root: Path, *, kernel: bool = False) -> list[Path]:
    """Every simulated tool at the places where vendors install the real one; ``root`` is the machine's.

    :param kernel: whether the tools of a kernel module run where this machine seems to have it.
    :raises FileExistsError: if something that is no simulator is there already: a real tool is never replaced.
    """
    written = []
    place = Path(__file__).resolve().parent.parent
    view = f"{place}/simulators/on_machine/view.sh "
    for kind in KINDS.values():
        for name in kind.paths:
            path = root / name.lstrip("/")
            if path.exists() and b"simulator of cachefleet.storage" not in path.read_bytes()[:400]:
                raise FileExistsError(f"{path} is there and is no simulator: nothing was replaced.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_LAUNCHER.format(command=path.name, place=place, called=called(kind.name), view=view * (kernel and kind.in_view)), encoding="utf-8")
            path.chmod(0o755)
            (path.parent / "SIMULATORS.txt").write_text(_NOTICE.format(states=os.path.dirname(simulator.place(""))), encoding="utf-8")
            written.append(path)
    if kernel:
        interpreter = root / INTERPRETER
        interpreter.write_text(_INTERPRETER.format(view=view), encoding="utf-8")
        interpreter.chmod(0o755)
        written.append(interpreter)
    return written


def called(name: str) -> str:
    """The word that makes ``call.py`` this tool."""
    kind = KINDS[name]
    return f"{kind.__module__.rpartition('.')[2]}:{kind.__name__}"


def add(name: str, model: str, options: t.Mapping[str, t.Any], changes: t.Mapping[str, t.Any] | None = None) -> None:
    """One more controller (or machine) for a tool.

    :param options: what the model's function takes.
    :param changes: values of the state that are to be others, by their keys.

    :raises KeyError: if the tool does not have that model.
    """
    with simulator.opened(_state(name)) as state:
        state["controllers"].append({**KINDS[name].models[model](**options), **(changes or {})})


def set_fault(name: str, fault: str, value: t.Any) -> None:
    """Begin or (with a false value) end a fault.

    :raises KeyError: if the tool does not know that fault.
    """
    if fault not in (*simulator.PROCESS_FAULTS, *KINDS[name].faults):
        raise KeyError(fault)
    with simulator.opened(_state(name)) as state:
        model_port.set_battery(state, fault, value)
        if value:
            state["faults"][fault] = value
        else:
            state["faults"].pop(fault, None)


def clear(name: str) -> None:
    """A tool without controllers, faults and calls."""
    for file in (f"{_state(name)}.json", f"{name}.calls"):
        Path(simulator.place(file)).unlink(missing_ok=True)


def _state(name: str) -> str:
    return KINDS[name].shared_state or name


def main(words: t.Sequence[str]) -> int:
    try:
        return _control(_arguments(words))
    except KeyError as error:
        print(f"There is no {error.args[0]}: python3 -m simulators list tells models and faults.", file=sys.stderr)
    except (TypeError, ValueError, FileExistsError, ConnectionError) as error:
        print(error, file=sys.stderr)
    return 2


def _control(given: argparse.Namespace) -> int:
    if given.verb == "install":
        print("\n".join(map(str, install(given.root, kernel=given.kernel))))
    elif given.verb == "add":
        add(given.tool, given.model, dict(map(_option, given.option)), dict(map(_option, given.set)))
    elif given.verb == "fault":
        set_fault(given.tool, given.fault, None if given.end else json.loads(given.details))
    elif given.verb == "clear":
        clear(given.tool)
    elif given.verb == "calls":
        print("\n".join(json.dumps(call) for call in simulator.calls(given.tool)))
    else:
        for kind in KINDS.values():
            print(f"{kind.name}\n  models: {', '.join(kind.models)}\n  faults: {', '.join((*simulator.PROCESS_FAULTS, *kind.faults))}")
    return 0


def _arguments(words: t.Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulators", description="Simulators of RAID tools and of tools for SSD caches, for tests.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    installing = verbs.add_parser("install")
    installing.add_argument("--root", type=Path, default=Path("/"))
    installing.add_argument("--kernel", action="store_true")
    verbs.add_parser("list")
    for verb in ("add", "fault", "clear", "calls"):
        one = verbs.add_parser(verb)
        one.add_argument("tool", choices=sorted(KINDS))
        if verb == "add":
            one.add_argument("model")
            one.add_argument("--option", action="append", default=[], metavar="NAME=JSON")
            one.add_argument("--set", action="append", default=[], metavar="KEY=JSON")
        if verb == "fault":
            one.add_argument("fault")
            one.add_argument("--details", default="true", metavar="JSON")
            one.add_argument("--end", action="store_true")
    return parser.parse_args(words)


def _option(text: str) -> tuple[str, t.Any]:
    name, _equals, value = text.partition("=")
    return name, json.loads(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
