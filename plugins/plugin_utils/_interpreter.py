# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Why the Python of a host ran no module: it is too old, it is not there, or it is a launcher that starts none. Pure.

Ansible reports all of them as output that is not JSON, with what the shell or Python wrote. Sources: the shims of pyenv, asdf, rbenv and mise;
exit status 126 and 127 of sh(1).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import DISTRIBUTIONS, newer_python_command
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain

_VARIABLE = "ansible_python_interpreter"
_DISCOVERED = "discovered_interpreter_python"
_LONGEST = 160

_LAUNCHER = re.compile(r"/shims/|^(?:pyenv|asdf|rbenv|mise)\b|No version is set for command|Perhaps you have to reshim|mise ERROR", re.MULTILINE)
_TOO_OLD = re.compile(r"^\s*SyntaxError: |requires a minimum of Python", re.MULTILINE)
_NOT_THERE = (126, 127)


def interpreter_problem(answer: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> str:
    """One sentence for the answer of a module that no Python has run; empty for any other.

    :param variables: of the host, for the name of its Python.
    """
    if not answer.get("failed"):
        return ""
    message, written = str(answer.get("msg", "")), f"{answer.get('module_stderr', '')}\n{answer.get('module_stdout', '')}"
    python = _python_of(answer, variables)
    if _TOO_OLD.search(message) or ("module_stderr" in answer and _TOO_OLD.search(written)):
        return (
            f"{python} on this host is too old: this collection needs Python 3.8 or newer there, and ansible-core 2.20 or newer needs 3.9. Install a newer"
            f" one and set {_VARIABLE} to it ({_examples()})."
        )
    if "module_stderr" not in answer or answer.get("rc") not in _NOT_THERE:
        return ""
    words = next((plain(line, _LONGEST) for line in written.splitlines() if line.strip()), "")
    reason = "is the launcher of a version manager and starts no Python" if _LAUNCHER.search(f"{python}\n{written}") else "cannot be started"
    return f"{python} {reason} on this host ('{words}'): set {_VARIABLE} to a Python that it has, for example /usr/bin/python3."


def _python_of(answer: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> str:
    facts = answer.get("ansible_facts"), variables.get("ansible_facts")
    found = [variables.get(_VARIABLE), *(one.get(_DISCOVERED) for one in facts if isinstance(one, t.Mapping))]
    # A template, or a way of discovery (auto), is no path.
    return next((plain(one, _LONGEST) for one in found if isinstance(one, str) and one.startswith("/")), "its Python")


def _examples() -> str:
    """What to do on the distributions that come with an older one."""
    titles: dict[tuple[str, str], list[str]] = {}
    for row in DISTRIBUTIONS:
        if row.interpreter:
            titles.setdefault((newer_python_command(row), row.interpreter), []).append(row.title)
    return "; ".join(f"{', '.join(names)}: '{command}' for {path}" for (command, path), names in titles.items())
