# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a power-loss test: a verdict for each host, the contradictions with the verdict on its stack, as data and as Markdown. Pure.

What comes from a host is made safe for a terminal and for Markdown.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.confidence import summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.journal import Cut, HostJournal

SCHEMA = 1
#: Counts of a verification, in the order of the table.
_COUNTS = ("acknowledged", "places", "damaged", "lost", "stale", "torn", "misplaced", "reordered", "fence_damaged")


def host_result(journal: HostJournal) -> dict[str, t.Any]:
    """The result of one host as plain data."""
    cuts = journal.verified()
    settings = journal.settings
    found = summary([plain(cut.verification.get("verdict"), 40) for cut in cuts])
    if settings.get("how") == "reset":
        found["sentence"] = re.sub(r"\bcut(s?)\b", r"reset\1", found["sentence"]) + " A reset is milder than a power cut: drives keep their power."
    stack = _stack(cuts[0] if cuts else next((cut for cut in journal.cuts if cut.stack), None))
    return {
        "host": journal.host,
        **found,
        "settings": dict(settings),
        "stack": stack,
        "contradiction": contradiction(found["verdict"], stack, settings),
        "results": [_cut(cut) for cut in cuts],
        "not_cut": [{"cut": cut.number, "reason": plain(cut.reason, 500)} for cut in journal.cuts if cut.state != "verified" and cut.reason],
    }


def is_flushed(settings: t.Mapping[str, t.Any]) -> bool:
    """Whether a write was synced before it was acknowledged."""
    return settings.get("sync") != "none" or settings.get("bulk") is True


def contradiction(verdict: str, stack: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any]) -> str:
    """One sentence if the test found what the verdict on the stack excludes; else empty."""
    flushed = is_flushed(settings)
    expected = stack.get("verdict") if flushed else {"kept": "durable", "may_be_lost": "at_risk"}.get(str(stack.get("unflushed")), "unknown")
    target = settings.get("target")
    if not flushed and not (settings.get("direct") is True and isinstance(target, dict) and target.get("device")):
        # Without a flush the page cache and the metadata of a file system are lost too, which are no part of that verdict.
        return ""
    what = "flushed writes" if flushed else "writes without a flush"
    if (expected, verdict) == ("durable", "at_risk"):
        is_file = isinstance(target, dict) and target.get("file")
        culprit = "The file system (see its mount options), or a device or layer below," if is_file else "A device or layer below"
        return f"Contradiction: cache_stack_info expects that {what} are kept, and the test lost some. {culprit} does not do what it reports."
    if (expected, verdict) == ("at_risk", "durable") and flushed:
        return (
            "Not confirmed: cache_stack_info expects that flushed writes can be lost, and no cut lost any. Either the cache is protected without being "
            "declared so (protected_drives), or more cuts are needed."
        )
    return ""


def _stack(cut: Cut | None) -> dict[str, t.Any]:
    raw = cut.stack if cut is not None else {}
    drives = raw.get("drives")
    return {
        **{key: plain(raw.get(key) or "unknown", 500) for key in ("verdict", "reason", "unflushed")},
        "drives": [
            {key: plain(drive.get(key) or "unknown") for key in ("path", "model", "firmware", "serial")}
            for drive in (drives if isinstance(drives, list) else [])
            if isinstance(drive, dict)
        ],
    }


def _cut(cut: Cut) -> dict[str, t.Any]:
    found = cut.verification
    return {
        "cut": cut.number,
        "run": cut.run,
        "verdict": plain(found.get("verdict"), 40),
        "reason": plain(found.get("reason"), 500),
        **{name: _number(found.get(name)) for name in (*_COUNTS, "first_damaged_sequence", "oldest_damage_seconds")},
    }


def _number(value: t.Any) -> float | int | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def text_of(results: t.Sequence[t.Mapping[str, t.Any]], problems: t.Mapping[str, str]) -> str:
    """The result for a terminal."""
    lines = []
    for result in results:
        lines.append(f"{result['host']}: {result['verdict']}. {result['sentence']}")
        lines += [f"  cut {one['cut']} proves nothing: {one['reason']}" for one in result["results"] if one["verdict"] == "proves_nothing"]
        lines += [f"  {result['contradiction']}"] if result["contradiction"] else []
    lines += [f"{host}: not finished: {plain(reason, 500)}" for host, reason in sorted(problems.items())]
    return "\n".join(lines)


def markdown(name: str, results: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """The result as a page."""
    parts = [f"# Power-loss test {_cell(name)}", "", "| host | verdict | cuts | lost | prove nothing | conclusion |", "|---|---|---|---|---|---|"]
    for one in results:
        parts.append(_row(one["host"], one["verdict"], one["cuts"], one["losses"], one["void"], one["sentence"]))
    for one in results:
        settings = one["settings"]
        target = settings.get("target") if isinstance(settings.get("target"), dict) else {}
        parts += ["", f"## {_cell(one['host'])}", ""]
        load = ", ".join(f"{key} {settings[key]}" for key in ("layout", "sync", "direct", "order", "depth", "block_size", "bulk", "how") if key in settings)
        parts.append(f"Target: {_cell(target.get('device') or target.get('file'))}, {_cell(load)}.")
        parts += ["", f"Stack: {_cell(one['stack']['verdict'])}. {_cell(one['stack']['reason'])}"]
        parts += ["", f"**{_cell(one['contradiction'])}**"] if one["contradiction"] else []
        if one["stack"]["drives"]:
            parts += ["", "| drive | model | firmware | serial |", "|---|---|---|---|"]
            parts += [_row(drive["path"], drive["model"], drive["firmware"], drive["serial"]) for drive in one["stack"]["drives"]]
        parts += ["", f"| cut | verdict | {' | '.join(name.replace('_', ' ') for name in _COUNTS)} | reason |", "|---" * (len(_COUNTS) + 3) + "|"]
        parts += [_row(cut["cut"], cut["verdict"], *(cut[name] for name in _COUNTS), cut["reason"]) for cut in one["results"]]
        parts += ["", *(f"- Attempt at cut {cut['cut']} was not counted: {_cell(cut['reason'])}" for cut in one["not_cut"])]
    return "\n".join(parts).rstrip() + "\n"


def _row(*values: t.Any) -> str:
    return f"| {' | '.join(_cell(value) for value in values)} |"


def _cell(value: t.Any) -> str:
    return escaped(plain("" if value is None else value, 500))
