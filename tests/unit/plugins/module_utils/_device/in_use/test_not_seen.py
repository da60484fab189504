# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways of not seeing who uses a file, each built for real in a mount or PID namespace of its own: what cannot be seen is unknown.

A process has the file open, and the search must find it or say what it cannot see.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use import processes, view
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, loop_backing, unit_of

ROOT = Path("/")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts require root")

#: What a search for the users of a file finds, in a process of its own.
_SEARCH = """
import json, sys
from pathlib import Path
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
path = sys.argv[1]
found = open_files(Path("/"), {unit_of(path)}, path, unit_of(path), pause=lambda seconds: None)
print(json.dumps([[row.pid for row in found.of(unit_of(path))], list(found.unknown)]))
"""


def searched(file, **how):
    """A search for who has a file open, with its positive control."""
    return open_files(ROOT, {unit_of(file)}, str(file), unit_of(file), **how)


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "disk"
    place.write_bytes(b"x" * 8192)
    return place


@contextlib.contextmanager
def user_of(file):
    """The number of a process that has a file open for writing."""
    code = f"f = open({str(file)!r}, 'r+b'); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.communicate(b"\n")


def search(file, setup="", *unshare):
    """The processes that a search finds, and what it cannot see, after a shell has run some lines in namespaces of its own."""
    words = [
        "unshare",
        "--mount",
        *unshare,
        "sh",
        "-e",
        "-c",
        setup + '\nexec "$@"',
        "sh",
        *_PRIVILEGES.get(setup, ()),
        sys.executable,
        "-c",
        _SEARCH,
        str(file),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    completed = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


_HIDEPID = {kind: f"mount -t proc -o hidepid={kind} proc /proc" for kind in ("1", "2", "4")}
#: What runs the search without a capability.
_PRIVILEGES = dict.fromkeys(_HIDEPID.values(), ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"))

#: Setup, options of unshare, and what is said. ``{pid}`` is the process that has the file open.
_WAYS = {
    "another PID namespace": ("", ("--pid", "--fork", "--mount-proc"), "PID namespace"),
    "another PID namespace, and the /proc of the host": ("", ("--pid", "--fork"), "PID namespace"),
    "the /proc of another PID namespace": ("unshare --pid --fork mount -t proc proc /proc", (), "PID namespace"),
    "hidepid=1 without CAP_SYS_PTRACE": (_HIDEPID["1"], (), "hidepid="),
    "hidepid=2 without CAP_SYS_PTRACE": (_HIDEPID["2"], (), "hidepid="),
    "hidepid=4 without CAP_SYS_PTRACE": (_HIDEPID["4"], (), "hidepid="),
    "subset=pid": ("mount -t proc -o subset=pid proc /proc", (), "subset=pid"),
    "/proc absent": ("umount -l /proc", (), "not the proc file system"),
    "/proc empty": ("mount -t tmpfs none /proc", (), "not the proc file system"),
    "/proc is a copy": (
        "mkdir /tmp/copy.$$; cp -r /proc/self /proc/loadavg /proc/stat /proc/swaps /tmp/copy.$$ 2>/dev/null || true\n"
        "mount --bind /tmp/copy.$$ /proc; rm -rf /tmp/copy.$$ || true",
        (),
        "not the proc file system",
    ),
    "/proc is a part of it": ("mount --bind /proc/1 /proc", (), "not the proc file system"),
    "process masked": ("mount -t tmpfs none /proc/{pid}", (), "/proc/{pid} is covered"),
    "process masked by another": ("mount --bind /proc/1 /proc/{pid}", (), "/proc/{pid} is covered"),
    "descriptors masked": ("mount -t tmpfs none /proc/{pid}/fd", (), "/proc/{pid}/fd is covered"),
    "descriptors masked by those of another": ("mount --bind /proc/self/fd /proc/{pid}/fd", (), "/proc/{pid}/fd is covered"),
    "threads masked": ("mount -t tmpfs none /proc/{pid}/task", (), "/proc/{pid}/task is covered"),
    "mappings masked": ("mount --bind /dev/null /proc/{pid}/maps", (), "/proc/{pid}/maps is covered"),
    "mount table masked": (
        "cat /proc/self/mountinfo > /tmp/mounts.$$\nmount -t tmpfs none /proc/{pid}/fd\nmount --bind /tmp/mounts.$$ /proc/$$/mountinfo\nrm /tmp/mounts.$$",
        (),
        "/proc/{pid}/fd is covered",
    ),
    "swap masked": ("mount --bind /dev/null /proc/swaps", (), "/proc/swaps is covered"),
    "number of tasks masked": ("mount --bind /dev/null /proc/loadavg", (), "/proc/loadavg is covered"),
    "/sys absent": ("umount -l /sys", (), "/sys is not the sysfs"),
    "/sys empty": ("mount -t tmpfs none /sys", (), "/sys is not the sysfs"),
    "block devices masked": ("mount -t tmpfs none /sys/class/block", (), "is covered"),
    "modules masked": ("mount -t tmpfs none /sys/module", (), "/sys/module is covered"),
}


@needs_root
@pytest.mark.parametrize("way", _WAYS)
def test_way_of_not_seeing_is_unknown(file, way):
    setup, unshare, words = _WAYS[way]
    with user_of(file) as pid:
        found, unknown = search(file, setup.replace("{pid}", str(pid)), *unshare)
    assert any(words.replace("{pid}", str(pid)) in text for text in unknown), (found, unknown)


@needs_root
@pytest.mark.parametrize(
    "setup", ["", "mount -t proc proc /proc", "mount -t tmpfs none /sys/firmware; mount --bind /dev/null /proc/kallsyms", "mount --bind /proc /proc"]
)
def test_user_is_found_where_nothing_is_hidden(file, setup):
    """What container engines cover and nothing here reads hides nothing."""
    with user_of(file) as pid:
        assert search(file, setup) == [[pid], []]


@needs_root
@pytest.mark.parametrize("kind", ["1", "2"])
def test_hidepid_hides_nothing_from_root(file, kind):
    with user_of(file) as pid:
        assert search(file, f"{_HIDEPID[kind]} ") == [[pid], []]


def test_hidden_tasks_are_missed_by_their_number(monkeypatch):
    """Whatever hides a process, the kernel counts its tasks. It has many here: others start and end meanwhile, which the count allows for."""
    assert list(view._missing_tasks(Path("/proc"))) == []
    threads = "import threading, time; [threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(200)]"
    with subprocess.Popen([sys.executable, "-c", f"{threads}; print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        really = os.listdir
        monkeypatch.setattr(os, "listdir", lambda path=".": [name for name in really(path) if name != str(process.pid)])
        missing = list(view._missing_tasks(Path("/proc")))
        process.communicate(b"\n")
    assert [text.split(" ", 1)[1] for text in missing] == [f"tasks that the kernel has are not shown in /proc: {way_to_see()}"]


@pytest.mark.parametrize(("user", "advice", "other"), [(0, "outside of containers", "become"), (1000, "as root (become: true)", "containers")])
def test_root_is_not_told_to_become_root(monkeypatch, user, advice, other):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert advice in way_to_see() and other not in way_to_see()


# -- the control


def test_control_is_found_and_is_no_user(file):
    found = searched(file)
    assert (found.of(unit_of(file)), found.unknown) == ((), ())


@pytest.mark.parametrize("blind", ["list", "descriptors"])
def test_search_that_does_not_find_its_control_is_unknown(file, monkeypatch, blind):
    if blind == "list":
        monkeypatch.setattr(processes, "processes", lambda root: [])
    else:
        really = os.listdir
        monkeypatch.setattr(os, "listdir", lambda path: [] if str(path).endswith("/fd") else really(path))
    (text,) = searched(file).unknown
    assert "the search for its users did not find process" in text


def test_control_of_another_file_is_unknown(file, tmp_path):
    other = tmp_path / "other"
    other.touch()
    (text,) = open_files(ROOT, {unit_of(file)}, str(other), unit_of(file)).unknown
    assert "leads to something else" in text


def test_control_that_cannot_be_made_is_unknown(file, monkeypatch):
    (text,) = open_files(ROOT, {unit_of(file)}, str(file) + ".gone", unit_of(file)).unknown
    assert "cannot be opened as the control" in text

    def failing():
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", failing)
    (text,) = searched(file).unknown
    assert "no process could be started" in text


def test_control_ends_with_the_search_and_runs_no_handler_of_its_parent(file):
    calls = []
    before = signal.signal(signal.SIGUSR1, lambda *_signal: calls.append(os.getpid()))
    try:
        with processes.running(ROOT, str(file), unit_of(file)) as one:
            os.kill(one.pid, signal.SIGUSR1)
            assert os.readlink(f"/proc/{one.pid}/exe") == os.readlink("/proc/self/exe")
            assert unit_of(file) in {unit_of(f"/proc/{one.pid}/fd/{name}") for name in os.listdir(f"/proc/{one.pid}/fd")}
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)
    assert calls == []


# -- users without a descriptor


def held_by_the_kernel(program):
    """A process that runs a program until its standard input ends, and has printed something when it is ready."""
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


#: Every other test that examines this host meanwhile meets what is in flight: only make test-long has these, which also attacks a machine so.
_LONG = pytest.mark.skipif(not os.environ.get("CACHEFLEET_LONG"), reason="other tests that examine this host would be refused meanwhile")

_SEND = """
import array, os, socket, sys
{sockets}
f = os.open({path!r}, os.O_RDWR)
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))])
os.close(f)
print(1, flush=True)
input()
"""
_SOCKETS = {
    "stream": "one, other = socket.socketpair()",
    "datagrams": "one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "not accepted": "a = socket.socket(socket.AF_UNIX); a.bind(chr(0) + str(os.getpid())); a.listen(); "
    "one = socket.socket(socket.AF_UNIX); one.connect(chr(0) + str(os.getpid()))",
}


@_LONG
@pytest.mark.parametrize("kind", _SOCKETS)
def test_descriptor_in_flight_is_unknown(file, kind):
    with held_by_the_kernel(_SEND.format(sockets=_SOCKETS[kind], path=str(file))) as process:
        process.stdout.readline()
        paused = []
        found = searched(file, pause=paused.append)
        process.communicate(b"\n")
    assert found.of(unit_of(file)) == ()
    (text,) = found.unknown
    assert f"({process.pid}) has been sent a file descriptor" in text
    assert len(paused) == 1


@_LONG
def test_descriptor_that_is_received_between_two_readings_is_none_in_flight(file):
    with held_by_the_kernel(_SEND.format(sockets=_SOCKETS["stream"], path=os.devnull)) as process:
        process.stdout.readline()
        found = searched(file, pause=lambda seconds: process.communicate(b"\n"))
    assert found.unknown == ()


@_LONG
def test_sockets_without_descriptors_in_flight_are_nothing(file):
    one, other = socket.socketpair()
    with one, other:
        one.sendmsg([b"x"])
        assert searched(file).unknown == ()
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno()]))])
        # The control has the sockets of this process too.
        assert searched(file, pause=lambda seconds: None).unknown


_RING = """
import array, ctypes, os
call = ctypes.CDLL(None, use_errno=True).syscall
ring = call(425, 4, ctypes.create_string_buffer(120))
f = os.open({path!r}, os.O_RDWR)
done = call(427, ring, 2, (ctypes.c_int * 1)(f), 1)
os.close(f)
{more}
print(ring if done == 0 else -1, flush=True)
input()
"""


@pytest.mark.skipif(ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) < 0, reason="this kernel does not allow io_uring")
@pytest.mark.parametrize("more", ["", "os.rename({path!r}, {path!r} + '.moved')", "os.unlink({path!r})"])
def test_file_that_only_a_ring_has_is_in_use_or_unknown(file, more):
    with held_by_the_kernel(_RING.format(path=str(file), more=more.format(path=str(file)))) as process:
        assert int(process.stdout.readline()) >= 0
        other = file.with_name("disk.moved") if "rename" in more else file
        other.touch()
        found = open_files(ROOT, {unit_of(other)}, str(other), unit_of(other))
        process.communicate(b"\n")
    assert [one.pid for one in found.of(unit_of(other))] == [process.pid] or any("io_uring" in text for text in found.unknown)


def test_mapping_of_a_device_by_a_node_elsewhere_is_found(tmp_path):
    loop = _loop(tmp_path)
    try:
        number = os.stat(loop).st_rdev
        program = (
            f"import mmap, os; os.mknod({str(tmp_path / 'node')!r}, 0o60600, {number}); f = os.open({str(tmp_path / 'node')!r}, os.O_RDWR);"
            f" m = mmap.mmap(f, 4096); os.close(f); os.unlink({str(tmp_path / 'node')!r}); print(1, flush=True); input()"
        )
        with held_by_the_kernel(program) as process:
            assert process.stdout.readline()
            found = open_files(ROOT, {Unit("block", number)}, loop, Unit("block", number))
            process.communicate(b"\n")
        assert [(one.pid, one.writing) for one in found.of(Unit("block", number))] == [(process.pid, True)]
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)


def _loop(folder):
    """A loop device on a new file, where this machine has them."""
    image = folder / "image"
    with open(image, "wb") as stream:
        stream.truncate(1024**2)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    return made.stdout.strip()


# -- errors


@pytest.mark.parametrize("error", [5, 13, 20, 24])
def test_error_of_a_process_that_has_not_ended_is_unknown(file, monkeypatch, error):
    really = os.listdir
    with user_of(file) as pid:

        def failing(path="."):
            if str(path) == f"/proc/{pid}/fd":
                raise OSError(error, os.strerror(error), str(path))
            return really(path)

        monkeypatch.setattr(os, "listdir", failing)
        found = searched(file)
    if error == 13:
        assert found.unreadable >= 1
    else:
        assert any(f"({pid}) has open cannot be read ({os.strerror(error)}" in text for text in found.unknown)


@pytest.mark.parametrize(("gone", "unknown"), [(True, False), (False, True)])
def test_process_that_shows_nothing_has_ended_only_if_the_kernel_says_so(file, monkeypatch, gone, unknown):
    with user_of(file) as pid:
        really, kill = os.listdir, os.kill

        def missing(path="."):
            if str(path) == f"/proc/{pid}/fd":
                raise FileNotFoundError(2, os.strerror(2), str(path))
            return really(path)

        def ended(number, sent):
            if gone and number == pid and sent == 0:
                raise ProcessLookupError(3, os.strerror(3))
            return kill(number, sent)

        monkeypatch.setattr(os, "listdir", missing)
        monkeypatch.setattr(os, "kill", ended)
        found = searched(file)
    assert any(f"({pid})" in text for text in found.unknown) is unknown


# -- loop devices


@needs_root
@pytest.mark.parametrize("node", ["no node", "the node of another device"])
def test_loop_device_without_its_node_is_asked_by_its_number(tmp_path, node):
    loop = _loop(tmp_path)
    try:
        make = "" if node == "no node" else f"mknod /dev/{Path(loop).name} b 7 {(int(loop[9:]) + 1) % 8}"
        setup = f"mount -t tmpfs none /dev\nmknod /dev/null c 1 3\n{make}\nmv {tmp_path}/image {tmp_path}/moved"
        code = (
            "import sys; from pathlib import Path; from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import loop_backing\n"
            "one = loop_backing(Path('/'), sys.argv[1]); print(one.unit.inode if one.unit else one.problem)"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        words = ["unshare", "--mount", "sh", "-e", "-c", setup + '\nexec "$@"', "sh", sys.executable, "-c", code, Path(loop).name]
        answer = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
        assert answer.stdout.strip() == str((tmp_path / "moved").stat().st_ino), answer.stderr
        without = [*words[:7], "setpriv", "--bounding-set", "-mknod", "--inh-caps", "-mknod", *words[7:]]
        os.rename(tmp_path / "moved", tmp_path / "image")
        answer = subprocess.run(without, capture_output=True, text=True, check=False, env=environment)
        assert f"what {loop} lies on ({tmp_path}/moved) cannot be determined (Operation not permitted)" in answer.stdout, answer.stderr
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)


def test_loop_device_on_a_path_that_leads_nowhere_is_unknown(tmp_path):
    place = tmp_path / "sys/class/block/loop0/loop/backing_file"
    place.parent.mkdir(parents=True)
    place.write_text("/images/gone\n")
    assert "what /dev/loop0 lies on (/images/gone) cannot be determined" in loop_backing(tmp_path, "loop0").problem
