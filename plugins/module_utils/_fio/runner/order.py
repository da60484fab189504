# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the runner of a host is to do: steps, each with the cells that start together, or a search, or rounds.

An order is what the controller sends, validated here once. Two orders are the same if they measure the same in the
same way: what of it is done already does not count.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, read_cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import DRAIN, FIXED, Pause, read_drain, read_pause
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.rounds import Rounds, read_rounds
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.search import Search, most_likely, read_search
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.warming import NONE, STEADY, read_warm, round_job, with_option
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, component

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget

ORDER_FILE = "order.json"
KINDS = ("cells", "search", "rounds")

_STEP_KEYS = frozenset({"number", "kind", "barrier", "offset", "pause", "cells", "cell", "search", "rounds", "done"})
_CELL_KEYS = frozenset({"name", "repeat", "target", "targets", "job", "done_as", "measures_garbage_collection", "decides", "warm", "drain", "expected"})
_TARGET_KEYS = frozenset({"device", "file", "directory", "allow_data_loss", "identity", "size"})
#: Keys of a cell or a step that are about progress or the report, and not about what is measured.
_NOT_MEASURED = frozenset({"done_as", "done", "decides", "expected"})
#: What a cell takes beside its job, in seconds.
_BESIDE = 1.0


@frozen
class RequestedCell:
    """One cell as requested.

    :param row: as the controller sent it, for cells that are derived from it.
    :param done_as: the measurement hash of the result that the controller has.
    :param measures_garbage_collection: its rate at the end is that of the drive's garbage collection.
    :param decides: the metrics by which it answers the question of its suite, for the report; ``None`` where not given.
    :param warm: the state that it needs its caches in, one of :data:`warming.WARM`.
    :param drain: seconds that caches may take before it to write back what is dirty; 0: it is measured as it comes.
    :param expected: seconds that it will take, if less than its job may take.
    """

    cell: Cell
    row: t.Mapping[str, t.Any]
    done_as: str | None = None
    measures_garbage_collection: bool = False
    decides: tuple[str, ...] | None = None
    warm: str = NONE
    drain: float = DRAIN
    expected: float | None = None

    @property
    def seconds(self) -> float:
        """What is known of how long it takes; a job without a limit counts as nothing."""
        known = [value for value in (self.expected, self.cell.job.longest) if value is not None]
        return min(known, default=0.0) + _BESIDE

    @property
    def may_decide(self) -> bool:
        return self.decides != ()


@frozen
class RunStep:
    """What is measured next. ``cells`` is a single one in a search; in rounds all of them are measured in each round, one after another.

    :param segment: the number of the barrier after which it runs.
    :param offset: seconds after the instant of its segment; ``None``: when the step before is done.
    :param done: of probes and rounds, the hashes of the results that the controller has, by cell name.
    """

    number: int
    kind: str
    cells: tuple[RequestedCell, ...]
    barrier: bool = False
    segment: int = 0
    offset: float | None = None
    pause: Pause | None = None
    search: Search | None = None
    rounds: Rounds | None = None
    done: t.Mapping[str, str] = field(default_factory=dict)


@frozen
class Pace:
    """How an order is carried out. Times in seconds.

    :param slack: how much longer than requested a cell may take before it is stopped.
    :param timeout: of a cell whose job has no time limit.
    :param replace: measure again what the controller has.
    :param keep_going: measure the rest when a cell is not ``ok``.
    :param accept_not_steady: without ``keep_going``, go on after a cell that is ``not_steady``.
    :param barrier_timeout: after which the runner goes on alone.
    """

    slack: float = 120.0
    timeout: float = 21600.0
    series: bool = True
    replace: bool = False
    keep_going: bool = True
    accept_not_steady: bool = True
    barrier_timeout: float = 900.0
    sample_interval: float = 5.0


@frozen
class Order:
    """Everything that one host measures in one run."""

    campaign: str
    variant: str
    host: str
    steps: tuple[RunStep, ...]
    pace: Pace
    sha256: str
    raw: t.Mapping[str, t.Any]

    @property
    def requested(self) -> tuple[RequestedCell, ...]:
        """Every cell that was named; probes and rounds are derived from these."""
        return tuple(requested for step in self.steps for requested in step.cells)

    @property
    def jobs(self) -> dict[str, t.Any]:
        """As they were sent, by the names of their cells."""
        return {requested.cell.key.cell: requested.row["job"] for requested in self.requested}

    @property
    def segments(self) -> int:
        return max((step.segment for step in self.steps), default=0) + 1


def read_order(raw: t.Mapping[str, t.Any]) -> Order:
    """Check an order.

    :param raw: ``campaign``, ``variant``, ``host``, ``steps`` and the names of :class:`Pace`.
    :raises BadInput: naming the step and the cell and what is wrong.
    """
    variant = component(raw["variant"], "variant")
    if not isinstance(raw["steps"], (list, tuple)):
        raise BadInput(f"steps must be a list of steps, not {abbreviated(raw['steps'])}.", item="steps")
    steps: list[RunStep] = []
    seen: set[CellKey] = set()
    barriers = 0
    for number, row in enumerate(raw["steps"]):
        barriers += bool(isinstance(row, dict) and row.get("barrier"))
        step = _read_step(variant, row, number, max(0, barriers - 1))
        for requested in step.cells:
            if requested.cell.key in seen:
                raise BadInput(f"The cell {requested.cell.key.cell}, repeat {requested.cell.key.repeat}, is listed twice.", item=requested.cell.key.cell)
            seen.add(requested.cell.key)
        steps.append(step)
    pace = Pace(**{name: raw[name] for name in Pace.__dataclass_fields__ if raw.get(name) is not None})
    _check_pace(pace)
    campaign, host = component(raw["campaign"], "campaign"), component(str(raw.get("host") or ""), "host")
    return Order(campaign, variant, host, tuple(steps), pace, _identity(campaign, variant, host, raw["steps"], pace.series), raw)


def _check_pace(pace: Pace) -> None:
    low = pace.sample_interval < 0.5 or pace.timeout <= 0 or pace.slack < 0 or pace.barrier_timeout < 0
    if low or not all(0 <= seconds < math.inf for seconds in (pace.sample_interval, pace.timeout, pace.slack, pace.barrier_timeout)):
        raise BadInput(
            "sample_interval must be at least 0.5 seconds, timeout must be above 0, slack and barrier_timeout must not be below 0, and all must be finite."
        )


def _identity(campaign: str, variant: str, host: str, rows: t.Sequence[t.Mapping[str, t.Any]], series: bool) -> str:
    content = {"campaign": campaign, "variant": variant, "host": host, "series": series, "steps": [_step_identity(row) for row in rows]}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _step_identity(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A step without its progress and without options that are not set."""
    kept = {key: value for key, value in row.items() if value is not None and key not in _NOT_MEASURED}
    if kept.get("cells"):
        kept["cells"] = [_cell_identity(cell) for cell in kept["cells"]]
    if kept.get("cell"):
        kept["cell"] = _cell_identity(kept["cell"])
    return kept


def _cell_identity(cell: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    kept = {key: value for key, value in cell.items() if value is not None and key not in _NOT_MEASURED}
    kept["target"] = {key: value for key, value in cell["target"].items() if value is not None}
    if cell.get("targets"):
        kept["targets"] = {name: {key: value for key, value in target.items() if value is not None} for name, target in cell["targets"].items()}
    return kept


def _read_step(variant: str, row: t.Any, number: int, segment: int) -> RunStep:
    where = f"Step {number}"
    if not isinstance(row, dict) or set(row) - _STEP_KEYS:
        unknown = sorted(map(str, set(row) - _STEP_KEYS))[:1] if isinstance(row, dict) else []
        raise BadInput(
            f"{where} must be a dictionary with {', '.join(sorted(_STEP_KEYS))}" + (f", and {abbreviated(unknown[0])} is not supported." if unknown else ".")
        )
    kind = row.get("kind") or "cells"
    if kind not in KINDS:
        raise BadInput(f"{where}: kind must be one of {', '.join(KINDS)}, not {abbreviated(kind)}.")
    other = "cell" if kind == "cells" else "cells" if kind == "search" or row.get("cell") else None
    if other and row.get(other):
        raise BadInput(f"{where}: {other} is not supported in a step of kind {kind}{'' if kind != 'rounds' else ' that has cell'}.")
    rows = row["cells"] if kind != "search" and row.get("cells") else [row["cell"]] if kind != "cells" and row.get("cell") else []
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{where} must have {'cells' if kind == 'cells' else 'cell'}.")
    requested = tuple(_read_requested(variant, one, where) for one in rows)
    if kind == "cells":
        _check_targets(requested, where)
    offset = row.get("offset")
    if offset is not None and (isinstance(offset, bool) or not isinstance(offset, (int, float)) or not 0 <= offset < math.inf):
        raise BadInput(f"{where}: offset must be a number of seconds from 0, not {abbreviated(offset)}.")
    name = requested[0].cell.key.cell
    if kind != "cells" and any(one.warm != NONE for one in requested):
        raise BadInput(f"{where}: warm is not supported in a step of kind {kind}, whose probes or rounds warm the caches themselves.", item=name)
    done = row.get("done") or {}
    if not isinstance(done, dict):
        raise BadInput(f"{where}: done must be a dictionary of measurement hashes by the names of cells.")
    step = RunStep(
        number=number,
        kind=kind,
        cells=requested,
        barrier=bool(row.get("barrier")),
        segment=segment,
        offset=offset,
        pause=read_pause(row.get("pause"), number),
        search=read_search(row.get("search"), name) if kind == "search" else None,
        rounds=_read_rounds(row.get("rounds") or {}, requested) if kind == "rounds" else None,
        done={str(key): str(value) for key, value in done.items()},
    )
    # What is refused of a derived cell is refused now.
    edges(step)
    return step


def _read_rounds(row: t.Any, requested: t.Sequence[RequestedCell]) -> Rounds:
    names = [one.cell.key.cell for one in requested]
    found = read_rounds(row, names[0])
    if (found.decided_by or len(names) > 1) and found.decided_by not in names:
        raise BadInput(
            f"{names[0]}: decided_by of rounds must be one of the cells that are measured in them, not {abbreviated(found.decided_by)}.", item=names[0]
        )
    return found


def edges(step: RunStep) -> list[RequestedCell]:
    """The outermost of the cells that are derived from the one of a search or of rounds; none of ordinary cells.

    :raises BadInput: if such a cell is invalid.
    """
    if step.search is not None:
        return [probe(step, step.search.first), probe(step, step.search.last)]
    if any(requested.warm == STEADY for requested in step.cells):
        return [warming_of(step, 1, requested, counts_late=True) for requested in step.cells]
    return [round_of(step, step.rounds.most, requested) for requested in step.cells] if step.rounds is not None else []


def _read_expected(value: t.Any, where: str) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf):
        raise BadInput(f"{where}: expected must be a number of seconds from 0, not {abbreviated(value)}.")
    return value


def _read_requested(variant: str, row: t.Any, where: str) -> RequestedCell:
    if not isinstance(row, dict) or not row.get("name") or not isinstance(row.get("target"), dict):
        raise BadInput(f"{where}: a cell must be a dictionary with name, target and job.")
    name = component(str(row["name"]), "cell")
    others = row.get("targets") or {}
    if not isinstance(others, dict) or not all(isinstance(one, dict) for one in others.values()):
        raise BadInput(f"{where}: targets of the cell {name[:60]} must be a dictionary of targets, not {abbreviated(others)}.", item=name[:60])
    unknown = sorted(map(str, (set(row) - _CELL_KEYS).union(*(set(one) - _TARGET_KEYS for one in (row["target"], *others.values())))))
    if unknown:
        raise BadInput(f"{where}: {abbreviated(unknown[0])} is not supported in the cell {name[:60]}.", item=name[:60])
    repeat = row.get("repeat") or 1
    if isinstance(repeat, bool) or not re.match(r"[0-9]{1,9}\Z", str(repeat)):
        raise BadInput(f"{where}: repeat of the cell {name[:60]} must be a whole number, not {abbreviated(repeat)}.", item=name[:60])
    decides = row.get("decides")
    if decides is not None and not (isinstance(decides, list) and all(isinstance(metric, str) for metric in decides)):
        raise BadInput(f"{where}: decides of the cell {name[:60]} must be a list of metrics, not {abbreviated(decides)}.", item=name[:60])
    targets = {str(label): _with_size_in_bytes(one, name) for label, one in others.items()}
    plain = {"name": name, "repeat": int(repeat), "target": _with_size_in_bytes(row["target"], name), "targets": targets, "job": row.get("job")}
    return RequestedCell(
        read_cell(variant, plain),
        plain,
        done_as=row.get("done_as"),
        measures_garbage_collection=bool(row.get("measures_garbage_collection")),
        decides=None if decides is None else tuple(decides),
        warm=read_warm(row.get("warm"), f"{where}, cell {name[:60]}"),
        drain=read_drain(row.get("drain"), f"{where}, cell {name[:60]}"),
        expected=_read_expected(row.get("expected"), f"{where}, cell {name[:60]}"),
    )


def _with_size_in_bytes(target: t.Mapping[str, t.Any], name: str) -> dict[str, t.Any]:
    size = target.get("size")
    return {**target, "size": None if size is None else parse_size(size, item=name)}


def _is_inside(target: GuardTarget, folder: GuardTarget) -> bool:
    return folder.kind == "directory" and target.path.startswith(f"{folder.path.rstrip('/')}/")


def _check_targets(requested: t.Sequence[RequestedCell], where: str) -> None:
    """Cells that run at once must not write where another one runs."""
    parts = [part for one in requested for part in one.cell.parts]
    for number, one in enumerate(parts):
        for other in parts[number + 1 :]:
            inside = _is_inside(one.target, other.target) or _is_inside(other.target, one.target)
            if inside:
                raise BadInput(f"{where}: {one.target.path} and {other.target.path} would be used at once, and one is in the other.", item=one.key.cell)
            if one.target.path != other.target.path:
                continue
            if one.key == other.key:
                raise BadInput(f"{where}: two targets of {one.key.cell} are {one.target.path}: leave out the target of the section.", item=one.key.cell)
            if one.job.writes or other.job.writes:
                raise BadInput(f"{where}: {one.key.cell} and {other.key.cell} would run on {one.target.path} at once, and one of them writes.")


def probe(step: RunStep, value: int) -> RequestedCell:
    """The cell of one probe of a search: an ordinary one, with its option set."""
    search = t.cast(Search, step.search)
    return _derived(step, step.cells[0], f"{search.over}-{value}", with_option(step.cells[0].row["job"], search.over, value))


def round_of(step: RunStep, number: int, requested: RequestedCell) -> RequestedCell:
    """What is measured of a cell in one round, from 1."""
    return _derived(step, requested, f"round-{number:02}", requested.row["job"])


def warming_of(step: RunStep, number: int, requested: RequestedCell, *, counts_late: bool) -> RequestedCell:
    """One round, from 1, that warms the caches for a cell; see :func:`warming.round_job`."""
    sections = requested.cell.job.sections
    runtimes = [section.asked_runtime for section in sections if section.asked_runtime is not None]
    job = round_job(requested.row["job"], max(runtimes) if len(runtimes) == len(sections) else None, counts_late=counts_late)
    return _derived(step, requested, f"warm-{number:02}", job)


def _derived(step: RunStep, requested: RequestedCell, suffix: str, job: t.Any) -> RequestedCell:
    key = requested.cell.key
    row = {**requested.row, "name": component(f"{key.cell}.{suffix}", "cell"), "job": job}
    return replace(requested, cell=read_cell(key.variant, row), row=row, done_as=step.done.get(row["name"]))


def seconds_of(step: RunStep) -> float:
    """What a step takes: what is known of its cells, and its fixed pause."""
    times = [requested.seconds for requested in step.cells]
    longest = sum(times) if step.rounds else max(times)
    count = most_likely(step.search) if step.search else (step.rounds.window + step.rounds.most) / 2 if step.rounds else 1
    pause = step.pause.seconds if step.pause and step.pause.kind == FIXED else 0.0
    return longest * count + pause


def seconds_left(order: Order) -> list[float]:
    """From the beginning of each step to the end of all; a timetable stretches what is shorter than planned."""
    starts: list[float] = []
    now, segment_at = 0.0, 0.0
    for step in order.steps:
        if step.barrier:
            segment_at = now
        if step.offset is not None:
            now = max(now, segment_at + step.offset)
        starts.append(now)
        now += seconds_of(step)
    return [now - start for start in starts]
