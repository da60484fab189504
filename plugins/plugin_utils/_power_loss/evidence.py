# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What finished power-loss tests have shown of hosts, for the report of a campaign. The files may come from elsewhere: every text is made safe."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.result import SCHEMA, is_flushed

RESULT_FILE = "power_loss.json"
VERDICTS = ("durable", "at_risk", "unknown")


@dataclass(frozen=True)
class PowerLossResult:
    """One host in one test.

    :param load: how was written, in words.
    :param sentence: the cuts, and how many can still lose something.
    :param contradiction: with the verdict on the stack; empty if there is none.
    :param drives: below the target, as model and firmware.
    :param accuses_drives: flushed writes to a device were lost that should have been kept. Of a file, the file system may have lost them.
    """

    test: str
    host: str
    target: str
    load: str
    verdict: str
    sentence: str
    contradiction: str
    drives: tuple[tuple[str, str], ...]
    accuses_drives: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        """Of the drives, with their firmware."""
        return tuple(" ".join(words).strip() for words in self.drives)

    @property
    def contradicts(self) -> bool:
        """Whether writes were lost that should have been kept."""
        return self.contradiction.startswith("Contradiction")


def read_tests(folders: t.Iterable[str], option: str) -> tuple[PowerLossResult, ...]:
    """The results of tests, in the order of the folders.

    :param folders: each of one test, or with several tests in it.
    :param option: that names them.
    :raises BadInput: for a folder without a result.
    :raises ResultsError: for a result that cannot be read.
    """
    found: list[PowerLossResult] = []
    for folder in folders:
        for file in _files(Path(folder).expanduser(), option):
            found += _results(file)
    return tuple(found)


def of_hosts(results: t.Iterable[PowerLossResult], hosts: t.Collection[str]) -> tuple[PowerLossResult, ...]:
    """Those of these hosts, by host."""
    return tuple(sorted((one for one in results if one.host in hosts), key=lambda one: (one.host, one.test)))


def losses_of(results: t.Iterable[PowerLossResult], models: t.Collection[str]) -> list[str]:
    """What must be known of these models of drives: flushed writes to them were lost, though their stack should have kept them. As sentences."""
    return [
        f"Flushed writes were lost on {_stack_of(one)} in the power-loss test {one.test} on {one.host} ({one.sentence.rstrip('.')}), though the layers "
        "above pass flushes on: disable the write cache of these drives, or replace them, where data must survive a power failure."
        for one in results
        if one.accuses_drives and any(model in models for model, _firmware in one.drives)
    ]


def _stack_of(one: PowerLossResult) -> str:
    models = " and ".join(one.models)
    return models if len(one.models) == 1 else f"a stack of {models}, of which at least one did not keep them,"


def _files(folder: Path, option: str) -> list[Path]:
    own = folder / RESULT_FILE
    files = [own] if own.is_file() else sorted(folder.glob(f"*/{RESULT_FILE}"))
    if not files:
        begun = sorted(path.parent.name for path in folder.parent.glob(f"*/{RESULT_FILE}"))[:5]
        nearest = f" Tests in the same folder: {', '.join(begun)}." if begun else ""
        raise BadInput(f"{option}: {folder} has no {RESULT_FILE}. Give the folder of a finished power-loss test, or of several.{nearest}", item=option)
    return files


def _results(file: Path) -> list[PowerLossResult]:
    data = read_json(file)
    if data.get("schema") != SCHEMA or not isinstance(data.get("hosts"), list):
        raise ResultsError(f"{file} is not the result of a power-loss test of this version of the collection.")
    test = _text(data.get("name"), 100)
    return [_result(test, host) for host in data["hosts"] if isinstance(host, dict)]


def _result(test: str, found: t.Mapping[str, t.Any]) -> PowerLossResult:
    settings, stack = _dictionary(found, "settings"), _dictionary(found, "stack")
    target = _dictionary(settings, "target")
    load = [f"sync {_text(settings.get('sync'), 20)}", _text(settings.get("layout"), 20), f"depth {_text(settings.get('depth'), 10)}"]
    verdict = _text(found.get("verdict"), 20)
    lost = (verdict, stack.get("verdict")) == ("at_risk", "durable") and is_flushed(settings)
    raw = stack.get("drives")
    drives = [(_text(one.get("model"), 80), _text(one.get("firmware"), 20)) for one in (raw if isinstance(raw, list) else []) if _is_drive(one)]
    return PowerLossResult(
        test=test,
        host=_text(found.get("host"), 200),
        target=_text(target.get("device") or target.get("file"), 300),
        load=", ".join([*load, *(["a reset instead of a power cut"] if settings.get("how") == "reset" else [])]),
        verdict=verdict if verdict in VERDICTS else "unknown",
        sentence=_text(found.get("sentence"), 500),
        contradiction=_text(found.get("contradiction"), 500),
        drives=tuple(dict.fromkeys(drives)),
        accuses_drives=lost and bool(target.get("device")),
    )


def _text(value: t.Any, longest: int) -> str:
    return plain(value, longest) if isinstance(value, (str, int)) else ""


def _is_drive(value: t.Any) -> bool:
    return isinstance(value, dict) and bool(value.get("model"))


def _dictionary(found: t.Mapping[str, t.Any], name: str) -> t.Mapping[str, t.Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}
