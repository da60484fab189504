# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration files of the host: read whole, replaced in one step that survives a power cut."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size

if t.TYPE_CHECKING:
    from pathlib import Path

#: Bytes of a file that is read whole. The largest of real hosts have a hundredth.
LARGEST = 16 * MIB
#: Bytes that are read at once.
_PIECE = 64 * 1024
#: Bytes that must be free: udev records a few KiB of each device of an event; the locks of LVM are empty.
_RUN = {"run/udev": 256 * 1024, "run/lock": 0}


def read_file(path: Path, largest: int = LARGEST) -> str:
    """The text of a file; empty if it is not there.

    :param largest: bytes that it may have.
    :raises CommandFailed: if it is there and cannot be read, or is larger.
    """
    try:
        content = read_bytes(path, largest)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}.", item=str(path)) from None
    return content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """The content of a file; nothing is waited for if it is a pipe.

    :raises OSError: if it cannot be read.
    :raises CommandFailed: if it is larger.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe")
        content = bytearray()
        # In small pieces: files of /proc/sys refuse to be read into more memory than the kernel allocates at once (ENOMEM).
        while len(content) <= largest:
            piece = stream.read(min(_PIECE, largest + 1 - len(content)))
            if not piece:
                break
            content += piece
    if len(content) > largest:
        raise CommandFailed(f"{path} is larger than {format_size(largest)}, which no such file is: examine it.", item=str(path))
    return bytes(content)


def require_path(path: Path, option: str) -> None:
    """:raises BadInput: if the value of an option cannot be a path: it is too long, or has characters that no path has."""
    try:
        path.lstat()
        return
    except ValueError:
        reason = "it has a null character, or one that cannot be encoded"
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return
        reason = "it is too long"
    raise BadInput(f"{option} {abbreviated(str(path))} is not a path: {reason}.", item=option)


def replace_file(path: Path, text: str, mode: int = 0o644, *, durable: bool = True, makes_folder: bool = True) -> None:
    """Replace a file in one step; take it away when the text is empty.

    :param durable: whether that has to survive a power cut.
    :param makes_folder: whether its folder is made, if it is not there.
    :raises CommandFailed: if it cannot be written.
    """
    try:
        if text:
            if makes_folder:
                make_folder(path.parent)
            with replacing(path, mode, durable=durable) as stream:
                stream.write(text)
        elif os.path.lexists(path):
            path.unlink()
            sync_folder(path.parent)
    except UnicodeError:
        raise CommandFailed(f"{path} cannot be written: its text has characters that are not Unicode.", item=str(path)) from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}.", item=str(path)) from None


def exchangeable(folder: Path) -> str:
    """Why another user could put something else in the place of a folder, of one above it, or of a link on the way; empty if none can.

    Each must belong to root or to this user, and only who owns an entry may replace it: its folder is not writable by others, or is sticky
    (unlink(2), EPERM). Else root would read and write where that user chooses.

    :returns: a sentence without its end: a colon and what to do.
    """
    path = os.path.abspath(folder)
    for part in _from_the_top(path):
        for one in (part, *_from_the_top(os.path.realpath(part))):
            above = os.stat(os.path.dirname(one)).st_mode if os.path.exists(os.path.dirname(one)) else 0
            if above & stat.S_IWOTH and not above & stat.S_ISVTX:
                return f"Every user may replace the folder {one} on this host: remove write permission for others (chmod o-w) from {os.path.dirname(one)}"
            owner = os.lstat(one).st_uid if os.path.lexists(one) else 0
            if owner not in (0, os.geteuid()):
                return f"The folder {one} on this host belongs to the user with UID {owner}, who may exchange what is below it: give it to root (chown root)"
    return ""


def _from_the_top(path: str) -> list[str]:
    parts = [path]
    while parts[-1] != os.path.dirname(parts[-1]):
        parts.append(os.path.dirname(parts[-1]))
    return parts[::-1]


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that they survive a power cut.

    :raises OSError: if it cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    # Whatever the umask is: other users must not be able to add a rule or a unit.
    for folder in reversed(missing):
        folder.mkdir(mode=0o755, exist_ok=True)
    # A new folder is an entry of the one above it, and goes in a power cut with all that is in it if that was not written.
    for folder in reversed(missing):
        sync_folder(folder.parent)


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None, *, durable: bool = True) -> t.Iterator[t.TextIO]:
    """A text file that takes the place of another one when the block ends: a reader gets the old or the new content, whole. Nothing is left otherwise.

    :param mode: its permissions; by default what the umask leaves.
    :param durable: whether it has to survive a power cut.
    :raises OSError: if it cannot be written.
    """
    # A hidden name with another ending: nothing that reads the folder (udev, systemd) may take a half-written file for one of its own.
    handle, temporary = tempfile.mkstemp(prefix=".cachefleet-", suffix=".tmp", dir=str(path.parent))
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), 0o666 & ~_umask() if mode is None else mode)
            if durable:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        # Not on a file system that became read-only; why the file could not be written is what matters.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(path.parent)


def _umask() -> int:
    # It can only be read by setting it.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def require_room(root: Path) -> None:
    """Refuse to go on while ``/run`` is full or read-only: a command that waits for udev would wait for ever, and LVM would not say why it fails.

    systemd-udevd runs no program of an event that it could not record, and one of these programs ends the wait (95-dm-notify.rules).

    :raises CommandFailed: with the reason.
    """
    for name, room in _RUN.items():
        folder = root / name
        if not folder.is_dir():
            continue
        try:
            with tempfile.NamedTemporaryFile(prefix=".cachefleet-", suffix=".tmp", dir=str(folder)) as stream:
                stream.write(bytes(room))
        except OSError as error:
            needs = f"; udev needs {format_size(room)} there, else commands that wait for it do not end" if room else ""
            raise CommandFailed(f"{folder} cannot be written: {error.strerror}{needs}: check df and mount.", item=str(folder)) from None


def sync_folder(path: Path) -> None:
    """Make the entries of a folder survive a power cut.

    :raises OSError: if it cannot be opened.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError as error:
        # Some network file systems have no such request (fsync(2)).
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(folder)
