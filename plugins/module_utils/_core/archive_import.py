# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Python files in the archive that Ansible sends to a host are compiled once until it is rebooted, instead of twice in every process.

Python keeps compiled files of packages that are installed, but compiles what is in an archive anew in every process. For a host that is already
configured that is most of what a call costs. The code of each file is found by the hash of its source, so that it is never that of another version.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.util
import marshal
import os
import stat
import sys
import typing as t
import zipimport
import zlib

if t.TYPE_CHECKING:
    from types import CodeType

#: Emptied at boot; the folder of the locks.
FOLDER = "/run/cachefleet.storage"
#: Bytes, above which only the code of this process is kept.
MOST = 8 << 20
#: Bytes that udev and systemd need.
LEFT = 4 << 20
_CHECKSUM = 4


def _fix_nothing(_code: CodeType, _path: str) -> None:
    """For a Python that cannot change the path in code: it stays that of an earlier archive, and only tracebacks display it."""


try:
    from _imp import _fix_co_filename as _fix_path
except ImportError:
    _fix_path = _fix_nothing


class CodeCache:
    """The code of files by the hash of their source, in one file for each version of Python.

    :param folder: only root may write to it, otherwise nothing is read or kept: what is in it is executed.
    :param owner: who that is.
    """

    def __init__(self, folder: str = FOLDER, owner: int = 0) -> None:
        self.folder, self.owner = folder, owner
        self.path = os.path.join(folder, f"code-{importlib.util.MAGIC_NUMBER.hex()}-{sys.flags.optimize}")
        self._kept = self._read()
        self._new: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()

    def compile_with(self, compile_source: t.Callable[[str, bytes], CodeType]) -> t.Callable[[str, bytes], CodeType]:
        """A function like ``compile_source``, which compiles only what is not kept."""

        def recall(path: str, source: bytes) -> CodeType:
            key = hashlib.sha256(source).digest()
            self._used.add(key)
            if key in self._kept:
                with contextlib.suppress(ValueError, EOFError, TypeError):
                    code = t.cast("CodeType", marshal.loads(self._kept[key]))
                    _fix_path(code, path)
                    return code
            code = compile_source(path, source)
            self._new[key] = marshal.dumps(code)
            return code

        return recall

    def keep(self) -> None:
        """Write what was compiled, if anything; a host on which that is not possible is left as it is."""
        if not self._new:
            return
        codes = {**self._kept, **self._new}
        if sum(map(len, codes.values())) > MOST:
            codes = {key: code for key, code in codes.items() if key in self._used}
        data = marshal.dumps(codes)
        with contextlib.suppress(OSError):
            if not os.path.isdir(self.folder):
                os.mkdir(self.folder, 0o700)
            if not self._is_private(os.lstat(self.folder), stat.S_ISDIR):
                return
            room = os.statvfs(self.folder)
            if room.f_bavail * room.f_frsize < len(data) + LEFT:
                return
            beside = f"{self.path}.new"
            # Two calls may write at once: what is damaged has a wrong checksum.
            try:
                with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
                    file.write(_checksum(data) + data)
                os.replace(beside, self.path)
            except OSError:
                os.unlink(beside)
                raise
        self._new = {}

    def _read(self) -> dict[bytes, bytes]:
        try:
            if not self._is_private(os.lstat(self.folder), stat.S_ISDIR):
                return {}
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                if not self._is_private(os.fstat(file.fileno()), stat.S_ISREG):
                    return {}
                content = file.read()
        except OSError:
            return {}
        data = content[_CHECKSUM:]
        return t.cast("dict[bytes, bytes]", marshal.loads(data)) if _checksum(data) == content[:_CHECKSUM] else {}

    def _is_private(self, status: os.stat_result, is_kind: t.Callable[[int], bool]) -> bool:
        return is_kind(status.st_mode) and status.st_uid == self.owner and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM, "big")


def code_cache() -> CodeCache | None:
    """The cache of this host, written at the end of the process; ``None`` for a user who may not."""
    if os.geteuid() != 0:
        return None
    cache = CodeCache()
    atexit.register(cache.keep)
    return cache


def compile_once(cache_of_host: t.Callable[[], CodeCache | None] = code_cache) -> None:
    """Make the imports that follow cheap; without effect for files that are not in an archive.

    importlib calls ``get_filename`` of a zipimporter for the specification of a module, and then ``get_code`` for its code. Both
    compile the file, and nothing is imported in between. Source: Lib/zipimport.py and Lib/importlib/_bootstrap_external.py of
    CPython 3.8 to 3.13. A version without these functions is left as it is.
    """
    functions = vars(zipimport)
    of_module, compile_source = functions.get("_get_module_code"), functions.get("_compile_source")
    if not callable(of_module) or not callable(compile_source) or hasattr(of_module, "cache_info"):
        return
    cache = cache_of_host()
    if cache is not None:
        functions["_compile_source"] = cache.compile_with(compile_source)
    functions["_get_module_code"] = functools.lru_cache(maxsize=1)(of_module)
