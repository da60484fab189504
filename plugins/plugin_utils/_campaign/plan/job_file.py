# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A job file of fio as the job of a cell: its sections with what is in effect in each, and everything that is refused at once.

What a job may be is decided by ``module_utils/_fio/job.py``. Here is only what a file has in addition: its form, the files that it
names, which the target of the cell takes the place of.

Source: ``__parse_jobs_ini`` in ``init.c`` of fio 3.33: a line is cut at ``;`` and ``#``, a section whose name begins with ``global``
sets options for the sections behind it, and ``include`` reads another file. ``HOWTO``: "Job file format".
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import FLAGS, LOGS, OF_PROFILES, canonical

_LARGEST = 256 * 1024
#: Refusals that are listed; of more only the number is.
_LISTED = 20
_SECTION = re.compile(r"\[(.*)\]")
_UNUSUAL = re.compile(r"[^A-Za-z0-9._ +-]")
#: What names, places and makes the files of a job, or says whether one may be written: the target and the guard do.
_OF_FILES = frozenset(
    {
        *("filename", "directory", "filename_format", "unique_filename", "opendir", "filetype"),
        *("unlink", "unlink_each_loop", "allow_file_create", "allow_mounted_write", "create_serialize", "create_on_open", "create_fsync"),
    }
)
#: What only adds files to a run, or has no effect.
_LEFT_OUT = {
    "verify_dump": "blocks that were not read back as written are not kept",
    **dict.fromkeys(OF_PROFILES, "it belongs to a profile of fio (tiobench) and has no effect in a job"),
}
_REFUSED = re.compile(r"\A.*?: the option (\S+) is refused in a job: ")


@dataclass
class _Section:
    """One section as it is written.

    :param lines: the line of the file in which each option is.
    """

    name: str
    line: int
    options: dict[str, t.Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def read_job_file(path: str, where: str) -> dict[str, t.Any]:
    """The job of a file on the controller, as :func:`job.read_job` takes it, with notes.

    :param path: relative to the directory in which Ansible was started; ``~`` is the home directory.
    :param where: what a message begins with.
    :raises BadInput: naming the lines that are wrong or refused, all of them.
    """
    try:
        content = Path(path).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{where}: the job file {path} cannot be read on the controller: {reason}.") from None
    if len(content) > _LARGEST:
        raise BadInput(f"{where}: the job file {path} is larger than 256 KiB.")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{where}: the job file {path} is not UTF-8 text.") from None
    return job_of(text, f"{where}: {path}")


def job_of(text: str, where: str) -> dict[str, t.Any]:
    """The job in the text of a job file; see :func:`read_job_file`."""
    common, sections = _parse(text, where)
    notes = [*_without_files([*common, *(section for section, _common in sections)]), *_renamed(common, [section for section, _common in sections])]
    if not sections:
        raise BadInput(f"{where}: it has no section with a job: write [name] before the options of each.")
    # Mostly there is one global section before all others.
    shared = common[0].options if len({id(one) for _section, one in sections}) == 1 and common and sections[0][1] is common[-1] else None
    rows = [{**(_others(one, own) if shared is None else {}), **own.options, "name": own.name} for own, one in sections]
    job = {"global": dict(shared or {}), "jobs": rows}
    refused = _refusals(job, [*common, *(section for section, _common in sections)], where)
    if refused:
        more = f"; and {len(refused) - _LISTED} more" if len(refused) > _LISTED else ""
        raise BadInput(f"{where}: {'; '.join(refused[:_LISTED])}{more}.")
    return {**job, "notes": notes} if notes else job


def _parse(text: str, where: str) -> tuple[list[_Section], list[tuple[_Section, _Section]]]:
    """The global sections, joined one after the other, and each other section with the global one in effect for it."""
    common = [_Section("global", 0)]
    sections: list[tuple[_Section, _Section]] = []
    current: _Section | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        words = re.split("[;#]", line, maxsplit=1)[0].strip()
        if not words:
            continue
        title = _SECTION.match(words) if words.startswith("[") else None
        if words.startswith("[") and (title is None or not title.group(1)):
            raise BadInput(f"{where}: line {number} is no section: {words[:80]}")
        if title is not None and title.group(1).startswith("global"):
            current = _Section("global", number, dict(common[-1].options), dict(common[-1].lines))
            common.append(current)
            continue
        if title is not None:
            current = _Section(title.group(1), number)
            sections.append((current, common[-1]))
            continue
        if current is None:
            raise BadInput(f"{where}: line {number} is before the first section: {words[:80]}")
        if re.match(r"include\s", words):
            raise BadInput(f"{where}: line {number} includes another file: copy its options to this place.")
        _set(current, words, number, where)
    return ([one for one in common if one.line] or common), sections


def _set(section: _Section, words: str, number: int, where: str) -> None:
    key, equals, value = (part.strip() for part in words.partition("="))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", key):
        raise BadInput(f"{where}: line {number} is no option of fio: {words[:80]}")
    for other in [one for one in section.options if canonical(one) == canonical(key)]:
        # The last one counts.
        del section.options[other]
    section.options[key] = _unquoted(value) if equals else True if canonical(key) in FLAGS or key in FLAGS or canonical(key) in LOGS else None
    section.lines[key] = number


def _others(common: _Section, own: _Section) -> dict[str, t.Any]:
    """The options of a global section that a section does not set itself, however it spells them."""
    spelled = {canonical(key) for key in own.options}
    return {key: value for key, value in common.options.items() if canonical(key) not in spelled}


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _without_files(sections: t.Sequence[_Section]) -> list[str]:
    """Take out what names files; what was taken, as a note."""
    taken: set[str] = set()
    others: set[str] = set()
    for section in sections:
        for key in [one for one in section.options if canonical(one) in _OF_FILES]:
            taken.add(key)
            del section.options[key]
        for key in [one for one in section.options if canonical(one) in _LEFT_OUT]:
            others.add(f"{key} of the job file was left out: {_LEFT_OUT[canonical(key)]}.")
            del section.options[key]
    notes = [f"{', '.join(sorted(taken))} of the job file was left out: all of its sections use the target of the cell."] if taken else []
    return [*notes, *sorted(others)]


def _renamed(common: t.Sequence[_Section], sections: t.Sequence[_Section]) -> list[str]:
    """Give each section a name that a host accepts; what was changed, as a note."""
    changed = []
    for section in common:
        # Every section has its own.
        section.options.pop("name", None)
    for section in sections:
        asked = str(section.options.pop("name", section.name))
        section.name = _plain(asked)
        if section.name != asked:
            changed.append(f"{asked} in line {section.line} is {section.name}")
    names = {section.name for section in sections}
    for section in sections:
        waits = section.options.get("wait_for")
        if isinstance(waits, str) and waits not in names:
            section.options["wait_for"] = _plain(waits)
    return [f"Sections were renamed, because of characters that a name must not have: {'; '.join(changed[:10])}."] if changed else []


def _plain(name: str) -> str:
    plain = _UNUSUAL.sub("_", name).lstrip("._ +-")[:56] or "job"
    return f"job_{plain}" if plain.lower().startswith("global") else plain


def _refusals(job: dict[str, t.Any], sections: t.Sequence[_Section], where: str) -> list[str]:
    """Everything for which the job is refused, each with its lines: what is refused is taken out, and the rest is read again."""
    rest = {"global": dict(job["global"]), "jobs": [dict(row) for row in job["jobs"]]}
    found: list[str] = []
    engine_is_refused = False
    while True:
        try:
            read_job(rest, where)
        except BadInput as error:
            option, value = (error.facts.get(fact) for fact in ("option", "value"))
            lines = sorted({section.lines[key] for section in sections for key in _held(section.options, option, value)})
            text = _REFUSED.sub(r"\1 is refused: ", error.message).replace(f"{where}: ", "").rstrip(".")
            if engine_is_refused and "does not exist for ioengine" in text:
                text = ""
            engine_is_refused = engine_is_refused or option == "ioengine"
            if text:
                found.append(f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}: {text}" if lines else text)
            parts = [rest["global"], *rest["jobs"]]
            held = [(part, key) for part in parts for key in _held(part, option, value)]
            if not held:
                return found
            for part, key in held:
                del part[key]
        else:
            return found


def _held(options: t.Mapping[str, t.Any], option: t.Any, value: t.Any) -> list[str]:
    """How some options spell one of them, where they have a value of it that is refused; with ``None`` each value is."""
    if not option:
        return []
    alike = [key for key in options if key != "name" and canonical(key) == canonical(str(option))]
    return [key for key in alike if value is None or str(options[key]).strip() == value]
