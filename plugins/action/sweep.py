# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb sweep: the plan of a sweep, its state and its end, with what that needs of the host."""

from __future__ import annotations

import datetime
import math
import textwrap
import time
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.utils.vars import load_extra_vars

from ansible_collections.cachefleet.storage.plugins.action.benchmark_plan import included_suites
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.modules.sweep import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, RECOMMENDED_FOLDER
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import continuation, progress, text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.drain import WRITING_BACK, drain_text, read_drain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.journal import checked, described
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.on_host import (
    Found,
    HostSweep,
    devices_of,
    draining,
    host_sweep,
    initiator,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.order import within
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.planning import steps_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import MOST_REPEATS, Design, design_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.targets import (
    Refusal,
    caches_of,
    not_tried_again,
    orders_of,
    refusals_in,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import (
    CACHES,
    CONTROLLERS,
    LAYER_VARIABLES,
    LINKS,
    QUEUES,
    TARGETS,
    Variant,
    read_variants,
    require_options,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description import drift
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Description, tool_paths_in
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import plain_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import losses_of, read_tests
from ansible_collections.cachefleet.storage.plugins.plugin_utils._terminal import width_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import WorkloadAnswer

Results = t.Dict[str, t.Any]

#: What a sweep passes to the roles it includes. Variables of the command line have the highest precedence, and would replace all of it unseen.
SET_BY_SWEEP = (
    *LAYER_VARIABLES,
    "block_queue_exclusive",
    "block_queue_module_options",
    "fio_benchmark_only_repeat",
    "fio_benchmark_refill",
    "fio_benchmark_repeats",
    "fio_benchmark_replace",
    "fio_benchmark_state",
    "fio_benchmark_variant",
    "storage_network_aoe_devices",
    "storage_network_aoe_interfaces",
    "storage_network_aoe_options",
    "storage_network_aoe_receive_buffer",
    "storage_network_aoe_targets",
    "storage_network_links",
    "storage_network_prove",
)


#: Seconds in which the pace of a cache is measured, and seconds between two such measurements.
_DRAIN_SAMPLE, _DRAIN_PAUSE = 3, 2

#: How ``fio_runner`` fails if its guard refuses a target.
_BY_GUARD = ("refused", "device_missing")


class _HostFailed(Exception):
    """A module has failed on the host, with its answer."""

    def __init__(self, answer: Results) -> None:
        super().__init__(str(answer.get("msg", "")))
        self.answer = answer


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        # Keys of axes may be booleans, and plain keys are texts.
        plain = {**plain_of({**options, "axes": {}, "exclude": []}), "axes": _plain_axes(options["axes"]), "exclude": _plain_exclude(options["exclude"])}
        self._require_precedence(SET_BY_SWEEP)
        try:
            done: Results = getattr(self, f"_{options['operation']}")(plain)
        except _HostFailed as error:
            return {**error.answer, "failed": True, "changed": False}
        return {"changed": False, **done}

    def _ask(self, module: str, when: str = "is unreachable", **arguments: t.Any) -> Results:
        """The answer of a module on the host.

        :param when: in the message, if it is unreachable.
        :raises _HostFailed: if it failed, or the host is unreachable: in both cases the task has failed, so that the host is restored.
        """
        try:
            answer: Results = self._execute_module(module_name=f"cachefleet.storage.{module}", module_args=arguments, task_vars=self._variables)
        except AnsibleConnectionFailure as error:
            raise _HostFailed({"msg": f"This host {when}: {failure_reason({'msg': str(error)})}"}) from None
        if answer.get("failed"):
            raise _HostFailed(answer)
        return t.cast(Results, plain_of(answer))

    def _require_precedence(self, names: t.Iterable[str]) -> None:
        """:raises BadInput: for a variable of the command line that would replace what a variant, or the restored configuration, consists of."""
        given = load_extra_vars(self._loader)
        for name in names:
            if name in given:
                raise BadInput(f"{name} is set on the command line (-e), which would replace it in every step of the sweep: {_instead(name)}.")

    def _validate(self, options: Results) -> Results:
        variants = _variants(options)
        _require_numbers(options)
        if any(TARGETS in variant.variables for variant in variants):
            self._require_precedence([TARGETS])
        self._inventory()
        return {}

    def _open(self, options: Results) -> Results:
        self._validate(options)
        variants, inventory = _variants(options), self._inventory()
        found = self._ask(
            "sweep_journal",
            state="described",
            campaign=Path(options["path"]).name,
            devices=devices_of(variants, inventory),
            network=any(LINKS in variant.variables for variant in variants),
            tool_paths=tool_paths_in(inventory.get(CONTROLLERS), *(variant.variables.get(CONTROLLERS) for variant in variants)),
            folder=options["folder"],
            spool=options["spool"],
        )
        found = checked(self._host, found)
        journal = found["journal"]
        description = described(self._host, journal.get("description") or found["description"])
        given = options["measurement"].get("suites") or {}
        if not isinstance(given, dict):
            raise BadInput("fio_benchmark_suites must be a dictionary of suites.")
        options["measurement"]["suites"] = included_suites() | given
        indescribable = [variable.name for variable in description.variables if variable.notes and variable.content is None]
        notes = {variable.name: variable.notes for variable in description.variables}
        host_before = Found(description.contents(), description.controllers, found.get("paths") or {}, indescribable, notes)
        planned = host_sweep(variants, host_before, inventory, journal.get("restore"))
        campaign = Path(options["path"]) if options["path"] else None
        known = states.load(campaign, self._host) if campaign else None
        if known is not None:
            states.require_same_host(known, str(found.get("machine_id") or ""), campaign)
            continuation.require_unchanged(known, description, planned)
            continuation.require_same_variants(known, planned)
        if not journal:
            # Of a host in a sweep, its targets may be part of what a variant has made.
            planned = self._measurable(planned, variants, options)
        design = Design(options["repeats"], max(options["max_repeats"], options["repeats"]), max(len(planned.variables) - 1, 1))
        if known is not None:
            continuation.require_same_looks(known, design)
        steps, measures = steps_of(options["measurement"], variants, planned, design.last, options["settle"])
        if known is not None:
            continuation.require_same_measurements(known, measures)
        if design.is_sequential:
            # Without its libraries nothing would ever be decided.
            progress.require_libraries()
        budget = options["budget"] * 3600 if options["budget"] > 0 else None
        spent = 0.0 if known is None else known.spent
        done = [step for step in steps if known is not None and known.state_of(step.key) == states.DONE]
        finished = set(done)
        open_steps = [step for step in steps if step not in finished and step.variant not in planned.refused]
        kept, left_out = within([step for step in open_steps if step.repeat <= design.in_any_case], None if budget is None else budget - spent)
        # How many more there will be is decided by the results, and whether they fit by the time that is left then.
        kept += [step for step in open_steps if step.repeat > design.in_any_case and not left_out]
        created = str(journal.get("created") or datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
        state = known or states.HostState(self._host, str(found.get("machine_id") or ""), created, {}, {}, {})
        state.found, state.restore = description.contents(), planned.restore
        # What it was measured with stays, whatever a later run varies.
        state.variables = {**state.variables, **planned.variables}
        state.measures = {**state.measures, **measures}
        state.refused, state.order, state.left_out = dict(planned.refused), [step.key for step in steps], [step.key for step in left_out]
        state.repeats, state.most_repeats, state.skipped = design.first, design.last, {}
        # A host without a journal is in no sweep any more, whichever controller has restored it.
        due = [step for step in kept if step.variant not in state.closed]
        state.restored, state.problem = not journal and not due, ""
        if campaign and not self._task.check_mode:
            states.save(campaign, state)
        return {
            "steps": [{**vars(step), "key": step.key, "state": state.state_of(step.key)} for step in due],
            "repeats": design.last,
            "in_any_case": design.in_any_case,
            "variables": {name: {variable: one.get(variable, []) for variable in LAYER_VARIABLES} for name, one in planned.variables.items()},
            "drains": draining(planned, description.contents()),
            "targets": {one.name: one.variables.get(TARGETS, options["measurement"]["targets"]) for one in variants},
            "restore": {variable: planned.restore.get(variable, []) for variable in LAYER_VARIABLES},
            "journal": {
                "campaign": campaign.name if campaign else "",
                "host": self._host,
                "created": created,
                "description": journal.get("description") or found.get("description") or {},
                "restore": planned.restore,
            },
            "resumes": bool(journal),
            "initiator": initiator(description.contents()),
            "budget_seconds": None if budget is None else budget - spent,
            "text": text.plan_text(self._host, [*done, *due], left_out, planned.refused, known, design),
            "refused": dict(planned.refused),
        }

    def _measurable(self, planned: HostSweep, variants: t.Sequence[Variant], options: Results) -> HostSweep:
        """Without the variants whose targets the guard refuses, whatever is applied before.

        :raises Refused: if none is left.
        """
        refused: dict[str, str] = {}
        possible = [one for one in variants if one.name in planned.variables]
        for names, steps in orders_of(options["measurement"], possible):
            reasons = [one.reason for one in self._examined(options, steps, planned.variables.values()) if one.lasting]
            refused.update(dict.fromkeys(names, " ".join(reasons)) if reasons else {})
        if refused and len(refused) == len(planned.variables):
            raise Refused(f"{' '.join(dict.fromkeys(refused.values()))} Nothing was changed.", item=self._host)
        left = {name: one for name, one in planned.variables.items() if name not in refused}
        return HostSweep(left, {**planned.refused, **refused}, planned.restore)

    def _examined(self, options: Results, steps: t.Sequence[Results], of_variants: t.Iterable[Results]) -> list[Refusal]:
        """What the guard refuses of the targets of some steps."""
        if not steps:
            return []
        given = {"campaign": Path(options["path"]).name or "sweep", "host": self._host, "spool": options["spool"], "steps": steps}
        return refusals_in(self._ask("fio_runner", state="examined", caches=caches_of(of_variants), **given))

    def _show(self, options: Results) -> Results:
        more = [f"  refused: {name}: {reason}" for name, reason in options["refused"].items()]
        self._print("\n".join(["", text.joined_plans(options["texts"]) or options["text"], *more]))
        return {}

    def _print(self, lines: str) -> None:
        """Wrapped to the terminal, if it is one."""
        width = width_of(self._display, table.UNLIMITED)
        wrapped = (textwrap.fill(line, width, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False) for line in lines.split("\n"))
        self._display.display("\n".join(wrapped))

    def _note(self, options: Results) -> Results:
        campaign = Path(options["path"])
        state = _known(campaign, self._host)
        key = f"{options['variant']}/{options['repeat']}"
        reason = _unmeasured(campaign, self._host, options["variant"], options["repeat"]) if options["state"] == states.DONE else options["reason"]
        drain = self._drain(options["drain"]) if options["drain"] > 0 else None
        ended = states.FAILED if reason and options["state"] == states.DONE else options["state"]
        if ended == states.FAILED and is_refusal(options["outcome"]):
            ended = states.REFUSED
        skipped = self._skipped(options, state, reason) if ended == states.FAILED and options["error"] in _BY_GUARD else {}
        state.skipped.update(skipped)
        state.note(key, ended, reason, options["seconds"], drain)
        states.save(campaign, state)
        if drain and (warning := drain_text(drain)):
            self._print(f"{self._host}: {key} is measured, and {warning}.")
        if options["state"] != states.MEASURING:
            self._print(text.progress_text(state, key, options["left"] if (left := state.seconds_of_next()) is None else left))
        if skipped:
            self._print(text.skipped_text(skipped))
        return {"changed": True, "refused": {options["variant"]: reason} if ended == states.REFUSED else skipped}

    def _skipped(self, options: Results, state: states.HostState, reason: str) -> dict[str, str]:
        """The variants that are not tried again after the guard has refused a target, with the reason."""
        try:
            refusals = self._examined(options, options["steps"], state.variables.values())
        except _HostFailed:
            return {}
        return dict.fromkeys(not_tried_again(options["variant"], options["targets"], refusals), plain(reason, 500))

    def _drain(self, seconds: int) -> Results:
        """Wait until the caches write nothing back: what was written before must not be written back while a step is measured. Some keep a part dirty."""
        began = time.monotonic()
        while True:
            try:
                found = self._ask("block_cache_info", sample_seconds=_DRAIN_SAMPLE)
            except _HostFailed:
                # What could not be read is recorded with the step, and does not stop the sweep.
                found = {}
            drain = read_drain(found, time.monotonic() - began)
            if drain["outcome"] != WRITING_BACK or drain["seconds"] >= seconds:
                return drain
            time.sleep(_DRAIN_PAUSE)

    def _applied(self, options: Results) -> Results:
        """What the call of the cache layers did for a variant."""
        layers = options["outcome"]
        if layers.get("unreachable"):
            raise _HostFailed({"msg": f"This host became unreachable: {failure_reason(layers)}"})
        if layers.get("not_running"):
            raise Refused(f"The variant {options['variant']} is not in effect: {' '.join(layers['not_running'])}", item=options["variant"])
        # Changed by their role, after which the call finds nothing to change; so are MTUs.
        migrates = any(cache.get("migrate") for cache in options["wanted"].get(CACHES) or [])
        changes = bool(layers.get("changed") or migrates or options["network"])
        return {"started": bool((layers.get("benchmark") or {}).get("started")), "changes": changes}

    def _due(self, options: Results) -> Results:
        """What a host measures of one repeat."""
        progressed = options["progress"]
        closed = (progressed.get("closed") or {}).get(self._host) or []
        needed = float((progressed.get("needed") or {}).get(self._host) or 0)
        steps = [one for one in options["steps"] if one["repeat"] == options["repeat"] and one["variant"] not in (*options["refused"], *closed)]
        budget = options["budget_seconds"]
        # Beyond the repeats in any case, only whole ones are measured: a drift must affect all variants equally.
        fits = options["repeat"] <= options["in_any_case"] or budget is None or budget - options["seconds"] >= max(sum(one["seconds"] for one in steps), needed)
        return {"due": steps if fits else [], "closed": closed}

    def _begin(self, options: Results) -> Results:
        """Write the journal on the host, before anything is changed."""
        lost = "became unreachable before anything was changed"
        answer = self._ask("sweep_journal", lost, state="present", journal=options["journal"], folder=options["folder"])
        return {"changed": bool(answer.get("changed"))}

    def _decide(self, options: Results) -> Results:
        """Which variants are measured again, from all results of the campaign: the same whenever it is asked after so many repeats."""
        campaign, repeats = Path(options["path"]), options["repeat"]
        found, damaged = states.load_all(campaign)
        for message in damaged:
            self._display.warning(f"{message} What is decided of this host is not recorded.")
        design = design_of(found)
        repeats = min(repeats, max((state.repeats_done for state in found), default=0))
        if design is None or not repeats:
            return {"closed": {}, "needed": {}, "text": ""}
        try:
            classes = progress.read_progress(campaign, design, repeats, options["baseline"] or states.baseline_of(found))
        except StorageError as error:
            self._display.warning(f"Which variants are decided is not known, so all are measured again: {error.message}")
            return {"closed": {}, "needed": {}, "text": ""}
        of_host = {host: one.closed for one in classes for host in one.hosts}
        # The states of other hosts may be written by another controller right now.
        ours = [state for state in found if state.host in (self._variables.get("ansible_play_hosts_all") or [])]
        for state in ours:
            closed = {name: vars(one) for name, one in of_host.get(state.host, {}).items()}
            if closed != state.closed:
                state.closed = closed
                states.save(campaign, state)
        shown = text.round_text(classes, repeats)
        self._print(shown)
        needed = {state.host: state.seconds_of_next(repeats + 1) or 0.0 for state in ours}
        return {"closed": {state.host: list(state.closed) for state in ours}, "needed": needed, "text": shown}

    def _verify(self, options: Results) -> None:
        """Compare what is there now with the journal; both are descriptions of the same settings.

        :raises Refused: if they differ.
        """
        journal = checked(self._host, {"journal": options["journal"]})["journal"]
        before = described(self._host, journal.get("description"))
        paths = tool_paths_in(journal["restore"].get(CONTROLLERS))
        now = described(self._host, self._ask("cache_description_info", layers=options["layers"], all_settings=True, tool_paths=paths))
        touched = [name for name in journal["restore"] if name != QUEUES]
        differing = [name for name in drift.drift(before.contents(), now) if name in touched]
        differing = [name for name in differing if name != CACHES or _names(before) != _names(now)]
        if differing:
            raise Refused(f"{self._host} is not as the journal of the sweep describes it: {', '.join(differing)} differs.", item=self._host)

    def _restored(self, options: Results) -> Results:
        """Whether a host is as it was: then its journal is removed. A controller without the campaign has nothing to write it in."""
        if options["state"] == states.DONE:
            self._verify(options)
            self._ask("sweep_journal", state="absent", campaign=Path(options["path"]).name, folder=options["folder"])
        try:
            state = states.load(Path(options["path"]), self._host) if options["path"] and Path(options["path"]).is_dir() else None
        except StorageError as error:
            # The play goes on to report whether the host is restored, which matters more than this file.
            restored = "restored" if options["state"] == states.DONE else "not restored"
            self._display.warning(f"In the campaign it is not recorded that {self._host} is {restored}: {error.message}")
            return {}
        if state is None:
            return {}
        state.restored, state.problem = options["state"] == states.DONE, options["reason"]
        states.save(Path(options["path"]), state)
        return {"changed": True}

    def _recall(self, options: Results) -> Results:
        campaign = Path(options["path"]) if options["path"] else None
        answer = self._ask("sweep_journal", state="read", campaign=campaign.name if campaign else "", folder=options["folder"])
        found = checked(self._host, answer)
        if found["journal"]:
            # It becomes part of a path on the controller.
            component(found["journal"].get("campaign"), "campaign")
            contents = described(self._host, found["journal"].get("description") or {}).contents()
            return {"journal": found["journal"], "initiator": initiator(contents)}
        state = states.load(campaign, self._host) if campaign and campaign.is_dir() else None
        if state is None or state.restored:
            return {"journal": {}, "initiator": {}}
        states.require_same_host(state, str(found.get("machine_id") or ""), campaign)
        description = {"variables": [{"name": name, "entries": [], "value": value, "notes": []} for name, value in state.found.items()]}
        return {
            "journal": {"campaign": campaign.name, "host": self._host, "created": state.created, "description": description, "restore": state.restore},
            "initiator": initiator(state.found),
        }

    def _finish(self, options: Results) -> Results:
        campaign = Path(options["path"])
        hosts = [str(name) for name in self._variables.get("ansible_play_hosts_all") or []]
        found, messages = states.load_all(campaign)
        damaged = [message.rstrip(".") for message in messages]
        if not found:
            return {"problems": damaged, "text": "", "recommended": []}
        shown = text.end_text(found)
        files, note = self._recommend(campaign, found, options["baseline"], options["knowledge"], options["power_loss"])
        self._print("\n".join(["", shown, *(f"Recommended: {file}" for file in files), *([note] if note else []), ""]))
        return {"problems": [*text.problems_of(found, hosts), *damaged], "text": shown, "recommended": files, "changed": bool(files)}

    @staticmethod
    def _recommend(campaign: Path, found: t.Sequence[states.HostState], baseline: str, shared: str, tested: t.Sequence[str]) -> tuple[list[str], str]:
        # The libraries of the report are needed here only.
        from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.write import analysed
        from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Options
        from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import knowledge, recommend

        try:
            answer = analysed(campaign, Options(baseline=baseline), fresh=True).answer
        except StorageError as error:
            measured = any(state.state_of(key) == states.DONE for state in found for key in state.steps)
            return [], f"Nothing is recommended: {error.message if measured else 'no step was measured.'}"
        expected = baseline or states.baseline_of(found)
        if expected and answer.baseline != expected:
            # What the others keep would be that of a variant, and not of the configuration that is there.
            return [], f"Nothing is recommended: {expected} was not measured, so nothing is compared with it."
        known, notes = [], []
        if shared:
            try:
                known = knowledge.read_knowledge(Path(shared))
            except StorageError as error:
                shared, notes = "", [error.message]
        try:
            tests = read_tests(tested, "sweep_power_loss")
        except StorageError as error:
            tests = ()
            notes.append(error.message)
        source = knowledge.source_of(campaign, [state.host for state in found])

        def elsewhere(one: WorkloadAnswer) -> list[str]:
            return [*losses_of(tests, one.host_class.facts.get("drives", "").split(", ")), *knowledge.cited(known, one, source.campaign_id)]

        files, kept = recommend.write(campaign, recommend.recommendations(answer, found, campaign.name, elsewhere, notes.append))
        notes += [kept] if kept else []
        entries = knowledge.entries_of(answer, found, source)
        knowledge.write_knowledge(campaign / RECOMMENDED_FOLDER / knowledge.KNOWLEDGE_FILE, entries)
        if shared:
            try:
                knowledge.write_shared(Path(shared), knowledge.merged(known, entries))
            except StorageError as error:
                # What was measured and is recommended does not depend on it.
                notes.append(error.message)
        return files, " ".join(notes)

    def _inventory(self) -> Results:
        """The caches and controllers that the inventory defines, with their templates evaluated.

        :raises BadInput: if a template fails, or its result is no list of dictionaries.
        """
        found = {}
        for name in (CACHES, CONTROLLERS):
            if name in self._variables:
                try:
                    found[name] = plain_of(self._templar.template(self._variables[name]))
                except AnsibleError as error:
                    raise BadInput(f"{name} of the inventory could not be evaluated: {error}", item=name) from None
                require_options(name, found[name] or [], f"{name} of the inventory")
        return found


def is_refusal(layers: t.Mapping[str, t.Any]) -> bool:
    """Whether the plan of the cache layers was not accepted, and nothing was changed. Without a tool, the layers that do not need it were.

    :param layers: the last result of the module ``cache_layers`` in a step; that of a plan that was accepted has not failed.
    """
    if not layers.get("failed") or layers.get("unreachable") or layers.get("error", "timed_out") == "timed_out" or "broke_off" in layers:
        return False
    return not layers.get("changed") or bool(layers.get("left_out"))


def _plain_axes(axes: t.Any) -> t.Any:
    if not isinstance(axes, t.Mapping):
        return axes
    return {axis: {value: plain_of(part) for value, part in of.items()} if isinstance(of, t.Mapping) else of for axis, of in axes.items()}


def _plain_exclude(exclude: t.Any) -> t.Any:
    if not isinstance(exclude, (list, tuple)):
        return exclude
    return [{axis: plain_of(of) for axis, of in one.items()} if isinstance(one, t.Mapping) else one for one in exclude]


def _instead(name: str) -> str:
    """Where a variable belongs that a sweep does not accept from the command line."""
    if name in (*LAYER_VARIABLES, TARGETS):
        return "set it in the inventory or in a variant"
    return "use sweep_repeats and sweep_max_repeats" if name == "fio_benchmark_repeats" else "leave it out"


def _variants(options: t.Mapping[str, t.Any]) -> list[Variant]:
    """The variants with what was found as the first."""
    baseline = options["baseline"]
    given = read_variants(options["variants"], options["axes"], options["exclude"], baseline=baseline)
    return [*([Variant(baseline, {})] if baseline else []), *given]


def _require_numbers(options: t.Mapping[str, t.Any]) -> None:
    """:raises BadInput: for numbers that no sweep can have."""
    if options["repeats"] < 1:
        raise BadInput("sweep_repeats must be at least 1.")
    if max(options["repeats"], options["max_repeats"]) > MOST_REPEATS:
        raise BadInput(f"sweep_repeats and sweep_max_repeats must be at most {MOST_REPEATS}.")
    for name, given, unit in (("sweep_budget", options["budget"], "hours"), ("sweep_settle", options["settle"], "seconds")):
        # A negative budget is no wish for a sweep without a limit.
        if not 0 <= given < math.inf:
            raise BadInput(f"{name} must be a number of {unit}, at least 0.")


def _known(campaign: Path, host: str) -> states.HostState:
    state = states.load(campaign, host)
    if state is None:
        raise BadInput(f"{states.file_of(campaign, host)} is missing: run the sweep from its beginning, with another fio_benchmark_campaign.", item=host)
    return state


def _unmeasured(campaign: Path, host: str, variant: str, repeat: int) -> str:
    """Which cells of a step have no numbers, as a sentence; empty if all have."""
    records = [one for one in store.load_host(campaign / host, {}, []) if (one.key.variant, one.key.repeat) == (variant, repeat)]
    missing = [one for one in records if one.state not in MEASURED]
    if not records:
        return "nothing was measured"
    return f"{len(missing)} of {len(records)} cells were not measured, the first is {missing[0].key.cell}: {missing[0].reason}" if missing else ""


def _names(description: Description) -> list[tuple[str, str, str]]:
    return sorted((one["type"], one["origin"], str(one.get("mode"))) for one in description.contents().get(CACHES) or [])
