# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of the rollback timer: restores MTUs unless the controller confirms in time that the host can be reached.

It runs on the host by itself, without the collection, the connection or the process that started it, so it imports nothing of
the collection. ``python3 rollback_program.py FOLDER TOKEN`` waits until the deadline in ``FOLDER/journal.json`` has passed. If the
journal was removed by then, or belongs to another run, it exits. Otherwise it restores what the journal contains, records
what it did in ``FOLDER/last.json`` and ``FOLDER/log``, and removes the journal.

The journal: ``token``; ``deadline`` (seconds of CLOCK_MONOTONIC) and ``boot`` (boot_id) in which it counts; ``ip`` (path of the
command); ``live``, a list of ``{index, name, mtu, up, routes}`` in the order in which to put back; ``changes``, a list of
``{files: [{path, before, after, mode}], commands, undo}`` in the order in which they were made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
import typing as t

Journal = t.Dict[str, t.Any]

#: Seconds past the deadline after which a process that holds the lock is considered hung: nothing it does takes that long.
_PATIENCE = 90.0
_PASSES = 5
#: Characters of a journal.
_LARGEST = 16 * 1024**2
_COMMAND_LIMIT = 60.0


def read_json(path: str) -> Journal:
    """A file of JSON; empty if it is not there or was not written to its end."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.loads(stream.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and _is_journal(found) else {}


def _is_journal(found: Journal) -> bool:
    """Whether what is computed with has its types."""
    lists = all(isinstance(found.get(name, []), list) and all(isinstance(one, dict) for one in found.get(name, [])) for name in ("live", "changes"))
    return lists and isinstance(found.get("deadline", 0.0), (int, float))


def write_text(path: str, text: str, mode: int = 0o600) -> None:
    """Replace a file in one step that survives a power cut."""
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(prefix=".cachefleet-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(folder)


def remove(path: str) -> None:
    """Take a file away, so that it stays away after a power cut."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    _sync(os.path.dirname(path))


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(folder: str, patience: float = 0.0) -> t.Iterator[bool]:
    """The lock of the journal; false if it was not to be had in ``patience`` seconds."""
    handle = os.open(os.path.join(folder, "journal.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + patience
    try:
        held = False
        while not held:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except OSError:
                if time.monotonic() >= end:
                    break
                time.sleep(0.1)
        yield held
    finally:
        os.close(handle)


def boot_id() -> str:
    """What is another after every start of the host."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def put_back(folder: str, journal: Journal, reason: str) -> list[str]:
    """Undo the changes in the journal; the caller holds the lock. Nothing that fails keeps the rest from being tried.

    The journal stays if a file could not be written: it is the only record of what the file was before.

    :returns: what was done and what could not be, one sentence each.
    """
    messages: list[str] = []
    live = journal.get("live", [])
    for count in range(_PASSES):
        left = [entry for entry in live if not _link_back(journal, entry, messages)]
        if not left or count == _PASSES - 1:
            break
        time.sleep(1.0)
    undone = True
    for change in reversed(journal.get("changes", [])):
        undone = _change_back(change, messages) and undone
    note = {"token": journal.get("token"), "outcome": "put_back", "reason": reason, "said": messages, "live": live, "time": time.time()}
    with contextlib.suppress(OSError):
        write_text(os.path.join(folder, "last.json"), json.dumps(note))
    with contextlib.suppress(OSError), open(os.path.join(folder, "log"), "a", encoding="utf-8") as stream:
        stream.writelines(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n" for line in [reason, *messages])
    with contextlib.suppress(OSError):
        if undone:
            remove(os.path.join(folder, "journal.json"))
    return messages


def _link_back(journal: Journal, entry: dict[str, t.Any], messages: list[str]) -> bool:
    name = _name_of(entry)
    if name is None:
        messages.append(f"{entry['name']} no longer exists")
        return True
    for argv in _repairs(journal["ip"], name, entry):
        completed = _run(argv)
        if completed:
            messages.append(completed)
    if _read(name, "mtu") == str(entry["mtu"]):
        messages.append(f"{name} has its MTU of {entry['mtu']}")
        return True
    messages.append(f"{name} should have its MTU of {entry['mtu']} again and has {_read(name, 'mtu')}")
    return False


def _repairs(tool: str, name: str, entry: dict[str, t.Any]) -> list[list[str]]:
    commands = []
    if _read(name, "mtu") != str(entry["mtu"]):
        commands.append([tool, "link", "set", "dev", name, "mtu", str(entry["mtu"])])
    if entry.get("up") and not int(_read(name, "flags") or "0x1", 16) & 1:
        commands.append([tool, "link", "set", "dev", name, "up"])
        # The kernel drops the routes of an interface that is switched off.
        commands.extend([tool, "route", "replace", *words, "dev", name] for words in entry.get("routes", []))
    return commands


def _change_back(change: dict[str, t.Any], messages: list[str]) -> bool:
    """Whether every file is as before, or belongs to another program now."""
    undone = True
    for file in change.get("files", []):
        try:
            current = _text(file["path"])
            if current == file["before"]:
                continue
            if current != file["after"]:
                messages.append(f"{file['path']} was changed by another program meanwhile and was not restored")
            elif file["before"]:
                write_text(file["path"], file["before"], file["mode"])
                messages.append(f"{file['path']} is as before")
            else:
                remove(file["path"])
                messages.append(f"{file['path']} is gone again")
        except OSError as error:
            messages.append(f"{file['path']} could not be restored: {error.strerror}")
            undone = False
    messages.extend(message for message in (_run(argv) for argv in change.get("undo", [])) if message)
    return undone


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def _name_of(entry: dict[str, t.Any]) -> str | None:
    """An interface by its number, since it may have been renamed, or by its name, since it may have come back."""
    for name in os.listdir("/sys/class/net"):
        if _read(name, "ifindex") == str(entry["index"]):
            return name
    return entry["name"] if _read(entry["name"], "mtu") else None


def _read(name: str, attribute: str) -> str:
    try:
        with open(f"/sys/class/net/{name}/{attribute}", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def _run(argv: t.Sequence[str]) -> str:
    """Run a command; a sentence if it failed."""
    environment = {"LC_ALL": "C", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_COMMAND_LIMIT, env=environment, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{' '.join(argv)} failed: {error}"
    if done.returncode:
        return f"{' '.join(argv)} failed with exit status {done.returncode}: {done.stdout.decode(errors='replace').strip()}"
    return ""


def watch(folder: str, token: str) -> None:
    """Wait for the deadline, or for the journal to go."""
    path = os.path.join(folder, "journal.json")
    while True:
        journal = read_json(path)
        if journal.get("token") != token:
            return
        if time.monotonic() >= journal["deadline"]:
            break
        time.sleep(min(0.5, max(0.0, journal["deadline"] - time.monotonic())))
    with locked(folder, _PATIENCE):
        journal = read_json(path)
        if journal.get("token") == token:
            put_back(folder, journal, f"no confirmation was received within {journal.get('seconds')} seconds that the host can be reached")


def main() -> None:
    """``FOLDER TOKEN``."""
    folder, token = sys.argv[1:3]
    # The caller that arms it waits for this: from now on the deadline counts.
    write_text(os.path.join(folder, "watching.json"), json.dumps({"token": token, "pid": os.getpid()}))
    watch(folder, token)


if __name__ == "__main__":
    main()
