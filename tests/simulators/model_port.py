# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated tool in front of a controller that does what is set: the model of ``tests/rack/media`` behind a virtio port.

What the tool prints is read from the model in each call, and what it sets is set there; the state of the simulator keeps what the model does not have. The
volumes and drives of both are in the same order; volumes of the model that are drives without RAID (``jbod``) are only drives for the tool. Where the state of
a controller has ``passed``, the disks of the machine by drives of the model, their own setting follows.

A binding is a module with ``settings(controller)`` (what a controller's state says, in the words of the model) and ``take(controller, settings)``.
"""

from __future__ import annotations

import copy
import errno
import importlib
import json
import os
import select
import socket
import stat
import subprocess
import time
import typing as t

from .simulator import Answer, Simulator, State

#: Seconds until a port that does not answer is one without a controller. A change of a policy takes as long as the cache is written out.
PATIENCE = 60.0

#: What a fault of a tool is in the model. Of those that are the same there, the first one that a tool has is printed, unless another one was asked for.
BATTERY = {
    "battery_failed": "failed", "battery_degraded": "failed", "cable_error": "failed", "permanently_disabled": "failed",
    "battery_missing": "missing", "zmm_not_installed": "missing", "pack_missing": "missing",
    "capacitor_charging": "charging", "learn_cycle": "charging",
}  # fmt: skip
HEALTHY = "healthy"


class Lost(ConnectionError):
    """Nothing answers behind a port."""


class Busy(Exception):
    """What is to be changed is being changed."""


class Port:
    """The port of a controller: a character device, or in tests a unix-domain socket. A context manager."""

    def __init__(self, path: str) -> None:
        self._deadline = time.monotonic() + PATIENCE
        self._socket: socket.socket | None = None
        try:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.connect(path)
                self._descriptor = self._socket.fileno()
            else:
                self._descriptor = self._opened(path)
        except OSError as error:
            raise Lost(f"{path}: {error.strerror}") from None
        os.set_blocking(self._descriptor, False)
        self._received = b""

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *_details: object) -> None:
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self._descriptor)

    def ask(self, **words: t.Any) -> State:
        """Send a command and wait for its answer.

        :raises Busy: if the model is busy with another change of the same thing.
        :raises Lost: if nothing answers in time.
        :raises ValueError: if it refuses the command, with its words.
        """
        # Answers to a tool that has been killed may still come, and the beginning of what it sent may be there.
        name = f"{os.getpid()}-{time.time_ns()}"
        self._send(b"\n" + json.dumps({**words, "id": name}).encode() + b"\n")
        answer: State = {}
        while answer.get("id") != name:
            answer = json.loads(self._line())
        if answer.get("error") == "busy":
            raise Busy
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _opened(self, path: str) -> int:
        """The device, which one process at a time can have."""
        while True:
            try:
                return os.open(path, os.O_RDWR | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > self._deadline:
                    raise
            time.sleep(0.05)

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._descriptor, event)
        left = self._deadline - time.monotonic()
        events = poll.poll(left * 1000) if left > 0 else []
        if not events or not events[0][1] & event:
            raise Lost("no answer")

    def _send(self, data: bytes) -> None:
        while data:
            self._wait(select.POLLOUT)
            try:
                data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                raise Lost(error.strerror) from None

    def _line(self) -> bytes:
        while b"\n" not in self._received:
            self._wait(select.POLLIN)
            try:
                piece = os.read(self._descriptor, 65536)
            except OSError as error:
                raise Lost(error.strerror) from None
            if not piece:
                raise Lost("the other side has ended")
            self._received += piece
        line, _newline, self._received = self._received.partition(b"\n")
        return line


def answer(kind: type[Simulator], state: State, words: t.Sequence[str], stdin: str) -> Answer:
    """What a tool answers whose controllers have ports: one whose port is lost is not found, as if the card had gone from the bus."""
    binding = importlib.import_module(f".{kind.binding}", __package__)
    found = list(state["controllers"])
    while True:
        models: dict[int, State] = {}
        before: dict[int, State] = {}
        number, given = 0, Answer("")
        try:
            for number, controller in enumerate(found):
                if controller.get("port"):
                    models[number] = _read(binding, controller)
                    before[number] = copy.deepcopy(controller)
            given = kind({**state, "controllers": found, "faults": _faults(kind, state, models)}).answer(words, stdin)
            for number, model in models.items():
                _set(found[number], model, binding.settings(before[number]), binding.settings(found[number]))
            return given
        except Lost:
            _restore(found, before)
            del found[number]
        except Busy:
            _restore(found, before)
            return kind(state).busy(given)


def set_battery(state: State, fault: str, value: t.Any) -> None:
    """A fault of what protects the cache begins or ends."""
    for controller in state["controllers"] if fault in BATTERY else ():
        if controller.get("port"):
            with Port(controller["port"]) as port:
                port.ask(battery=BATTERY[fault] if value else HEALTHY)


def _read(binding: t.Any, controller: State) -> State:
    """Take what the model says into the state of a controller."""
    with Port(controller["port"]) as port:
        model = port.ask(get=True)
    model["volumes"] = {name: volume for name, volume in model["volumes"].items() if volume["level"] != "jbod"}
    for what in ("volumes", "drives"):
        if len(model[what]) != len(controller[what]):
            raise ValueError(f"The controller {model['controller']} has {len(model[what])} {what}, the one of the tool {len(controller[what])}.")
    volumes = [{**volume, "max_cache": model["max_cache"].get(name)} for name, volume in model["volumes"].items()]
    binding.take(controller, volumes, [drive["write_cache"] for drive in model["drives"].values()])
    return model


def _set(controller: State, model: State, before: State, after: State) -> None:
    """Send what differs."""
    commands: list[State] = []
    for name, old, new in zip(model["volumes"], before["volumes"], after["volumes"]):
        changed = {key: value for key, value in new.items() if old[key] != value and key != "max_cache"}
        commands += [{"volume": name, **changed}] if changed else []
        if name in model["max_cache"] and new.get("max_cache") != old.get("max_cache"):
            commands.append({"max_cache": {key: value for key, value in new["max_cache"].items() if old["max_cache"][key] != value}})
    for name, was, enabled in zip(model["drives"], before["drives"], after["drives"]):
        commands += [{"drive": name, "write_cache": enabled}] if was != enabled else []
    if commands:
        with Port(controller["port"]) as port:
            for command in commands:
                port.ask(**command)
    # A drive that the host has without RAID reports its cache to the host, and the emulated drive is not the model.
    for command in commands:
        disk = controller.get("passed", {}).get(command.get("drive"))
        if disk:
            subprocess.run(["hdparm", f"-W{int(command['write_cache'])}", disk], stdout=subprocess.DEVNULL, check=True)


def _faults(kind: type[Simulator], state: State, models: t.Mapping[int, State]) -> State:
    """The faults of a tool, those of the batteries as the models have them."""
    noted = state.get("faults", {})
    faults = {name: value for name, value in noted.items() if name not in BATTERY}
    concerned: dict[str, list[int]] = {}
    for number, model in models.items():
        if model["battery"] != HEALTHY:
            alike = [name for name, battery in BATTERY.items() if battery == model["battery"] and name in kind.faults] or ["battery_failed"]
            concerned.setdefault(next((name for name in alike if noted.get(name)), alike[0]), []).append(number)
    return {**faults, **{name: kind.fault_of(numbers) for name, numbers in concerned.items()}}


def _restore(controllers: t.Sequence[State], before: t.Mapping[int, State]) -> None:
    for number, old in before.items():
        controllers[number].clear()
        controllers[number].update(old)
