# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a sweep recommends: the answer of the report, with the variables of the variant, as files that the playbook site applies.

Nothing is computed here: which variant, by how much, how sure and what the others risk is what the report says.

What is known of the field and concerns a variant, beside what was measured. Pure.

Both are conclusions of published comparisons of all cache modes of RAID controllers and drives: SSDs with capacitors are usually faster with their
write cache disabled, and a drive cache that is enabled behind a controller that writes through hides where flushes end.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain as one_line
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import documented_protection
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import RECOMMENDED_FOLDER, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json, write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import design_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CONTROLLERS, DRIVES, LAYER_VARIABLES, LINKS, QUEUES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import dump
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState

    Variables = t.Mapping[str, t.Any]

_ENABLED = "enabled"


def advice_on(variant: str, swept: t.Mapping[str, Variables], models: t.Iterable[str], found: Variables) -> list[str]:
    """Sentences, none if nothing is known.

    :param variant: the one that is recommended.
    :param swept: the variables of all variants of one host, by variant.
    :param models: of its drives.
    :param found: what the host was before; what no variant sets was measured so.
    """
    sentences = []
    if variant in swept and any(_caches_behind_write_through(one) for one in _entries(swept[variant], CONTROLLERS)):
        sentences.append(
            f"{variant} enables the caches of drives behind a controller that writes through. Nothing reports whether such a controller passes flushes on: "
            "test it with the playbook power_loss, or disable these caches."
        )
    protected = sorted(model for model in models if documented_protection(model))
    if protected and not any(_disables_a_drive_cache(variables) for variables in (*swept.values(), found)):
        sentences.append(
            f"The vendor documents power-loss protection for {', '.join(protected)}: such SSDs are usually faster with their write cache disabled, "
            "which no variant of this sweep measured."
        )
    return sentences


def _entries(variables: Variables, name: str) -> list[t.Mapping[str, t.Any]]:
    return [one for one in variables.get(name) or [] if isinstance(one, dict)]


def _caches_behind_write_through(controller: t.Mapping[str, t.Any]) -> bool:
    volumes = controller.get("volumes") or []
    through = [one for one in volumes if one.get("write") == "writethrough"]
    if any(one.get("drive_cache") == _ENABLED for one in through):
        return True
    classes = controller.get("drive_cache") or {}
    drives = [one.get("write_cache") for one in controller.get("drives") or []]
    return bool(through) and (_ENABLED in (classes.get("all"), classes.get("configured")) or _ENABLED in drives)


def _disables_a_drive_cache(variables: Variables) -> bool:
    controllers = _entries(variables, CONTROLLERS)
    words = [one.get("write_cache") for one in _entries(variables, DRIVES)]
    words += [drive.get("write_cache") for one in controllers for drive in one.get("drives") or []]
    words += [volume.get("drive_cache") for one in controllers for volume in one.get("volumes") or []]
    words += [word for one in controllers for word in (one.get("drive_cache") or {}).values()]
    return "disabled" in words


#: Of a comment: a terminal or an editor that broke it would make a part of it look like variables.
_WIDTH = 80

#: In the folder of the files: their hashes, which show whether a file was edited.
_HASHES = ".written.json"

#: With more hosts than these the command that applies a file does not name them.
_MOST_LIMITED = 20


def recommendations(
    answer: Answer, states: t.Sequence[HostState], campaign: str, elsewhere: t.Callable[[WorkloadAnswer], t.Iterable[str]] = lambda _one: ()
) -> tuple[dict[str, str], list[str]]:
    """The files, by their path below the folder of recommendations, and a sentence for each class of hosts without one.

    One for each class of hosts if the variables are the same on all of its hosts, and otherwise one for each host; none has no variables.

    :param elsewhere: what other sweeps have shown for a workload, as sentences.
    """
    by_host = {state.host: state for state in states}
    design = design_of(states)
    repeats = answer_text.Repeats("sweep_repeats", design.fewest) if design else answer_text.BENCHMARK
    classes: dict[tuple[str, tuple[str, ...]], list[WorkloadAnswer]] = {}
    for one in answer.workloads:
        classes.setdefault((one.host_class.label, one.host_class.hosts), []).append(one)
    files: dict[str, str] = {}
    notes: list[str] = []
    for (label, hosts), workloads in classes.items():
        name = _free(_slug(label), files)
        chosen = list(dict.fromkeys(one.recommended or one.baseline for one in workloads))
        shown = any(one.recommended for one in workloads)
        head = [f"{'Recommended' if shown else f'Nothing is shown to be better than {workloads[0].baseline}'} for {label}, by the sweep {campaign}."]
        head += list(answer_text.sentences(workloads, 1, repeats))
        swept = [by_host[host] for host in hosts if host in by_host]
        if len(chosen) > 1:
            head.append(f"The workloads want different variants ({', '.join(chosen)}): there is a file for each of them.")
        models = workloads[0].host_class.facts.get("drives", "").split(", ")
        known = {one: _advice(one, swept, models) for one in chosen}
        head += dict.fromkeys(sentence for sentences in known.values() for sentence in sentences)
        head += dict.fromkeys(sentence for one in workloads for sentence in elsewhere(one))
        for variant in chosen:
            place = _free(f"{name}-{variant}", files) if len(chosen) > 1 else name
            about = [f"{variant}, recommended for {', '.join(_asking(workloads, variant))} of {label}.", *head] if len(chosen) > 1 else head
            made = _files_of(variant, place, about, hosts, swept)
            files.update(made)
            if not made:
                why = "changes nothing there" if any(variant in state.variables for state in swept) else "was not swept there"
                notes.append(f"There is no recommended file for {label}: {variant} {why}.")
    return files, notes


def _advice(variant: str, swept: t.Sequence[HostState], models: t.Sequence[str]) -> list[str]:
    """What concerns any of the hosts, once."""
    return list(dict.fromkeys(sentence for state in swept for sentence in advice_on(variant, state.variables, models, state.found)))


def _asking(workloads: t.Sequence[WorkloadAnswer], variant: str) -> list[str]:
    return [answer_text.workload_name(one) for one in workloads if (one.recommended or one.baseline) == variant]


def _files_of(variant: str, place: str, head: t.Sequence[str], hosts: t.Sequence[str], states: t.Sequence[HostState]) -> dict[str, str]:
    possible = {state.host: lasting(state.variables[variant]) for state in states if variant in state.variables and variant not in state.refused}
    variables = {host: one for host, one in possible.items() if one}
    distinct = list({dump(one): one for one in variables.values()}.values())
    without = [host for host in hosts if host not in possible]
    if len(distinct) == 1 and len(variables) == len(hosts):
        # On the command line they are set for every host, also of another class.
        only = ",".join(hosts) if len(hosts) <= _MOST_LIMITED else "HOSTS"
        command = f"ansible-playbook cachefleet.storage.site -e @FILE --limit {only}"
        return {f"{place}.yml": _text([*head, f"Variant {variant}. Apply it with: {command}"], distinct[0])}
    more = [f"Variant {variant}. There is a file for each host: copy them to host_vars, and run cachefleet.storage.site."]
    if without:
        more.append(f"There is no file for {listed(without)}: {variant} is refused there, or was not swept.")
    return {f"{place}/host_vars/{host}.yml": _text([*head, *more], one) for host, one in variables.items()}


def lasting(variables: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The variables of a variant for good: settings of drives, queues and links are set at boot too, as they are by default."""
    found = {}
    for name in LAYER_VARIABLES:
        entries = variables.get(name) or []
        if entries:
            dropped = ("persistent",) if name in (DRIVES, QUEUES, LINKS) else ()
            found[name] = [{key: value for key, value in entry.items() if key not in dropped} for entry in entries]
    return found


def _text(head: t.Sequence[str], variables: t.Mapping[str, t.Any]) -> str:
    lines = [line for sentence in head for line in textwrap.wrap(one_line(sentence, 2000), _WIDTH - 2, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(["---", *(f"# {line}" for line in lines), dump(dict(variables))])


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", label).strip("_.-")[:80] or "hosts"


def _free(name: str, files: t.Iterable[str]) -> str:
    numbers = (name if number == 1 else f"{name}_{number}" for number in range(1, 1000))
    return next(one for one in numbers if not any(path.startswith((f"{one}.yml", f"{one}/")) for path in files))


def write(campaign: Path, files: t.Mapping[str, str]) -> tuple[list[str], str]:
    """Write the files into the folder of the campaign, and remove those of an earlier end that are not recommended any more.

    :returns: their paths, and a note on files that are not removed because they were edited.
    :raises ResultsError: if they cannot be written.
    """
    folder = campaign / RECOMMENDED_FOLDER
    earlier, now = _hashes(folder), {name: _sha256(text.encode()) for name, text in files.items()}
    # Before the files: those of an end that is interrupted are known to the next one.
    _write_hashes(folder, {**earlier, **now})
    written = []
    for name, text in files.items():
        path = folder / name
        with explained(path.parent, f"writing {path.name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        written.append(str(path))
    edited = _remove(folder, {name: value for name, value in earlier.items() if name not in now})
    _write_hashes(folder, now)
    note = f"Not recommended any more, and kept because {'it was' if len(edited) == 1 else 'they were'} edited: {listed(edited)}." if edited else ""
    return written, note


def _write_hashes(folder: Path, hashes: t.Mapping[str, str]) -> None:
    with explained(folder, f"writing {_HASHES}"):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _HASHES, json.dumps(hashes, indent=2, sort_keys=True) + "\n")


def _hashes(folder: Path) -> dict[str, str]:
    """By name, of the files as the last end wrote them; empty if that is not known."""
    try:
        found = read_json(folder / _HASHES)
    except ResultsError:
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str) and ".." not in Path(name).parts and not Path(name).is_absolute()}


def _remove(folder: Path, hashes: t.Mapping[str, str]) -> list[str]:
    """Remove the files that were not edited; the paths of the others."""
    edited = []
    for name, value in hashes.items():
        try:
            if _sha256((folder / name).read_bytes()) == value:
                (folder / name).unlink()
            else:
                edited.append(str(folder / name))
        except FileNotFoundError:
            continue
        except OSError:
            edited.append(str(folder / name))
    return edited


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
