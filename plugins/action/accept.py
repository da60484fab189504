# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb accept: what a host is measured with, whether that decides its requirements, and the end of an acceptance."""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ansible import context
from ansible.utils.vars import load_extra_vars

from ansible_collections.cachefleet.storage.plugins.action.benchmark_plan import included_suites
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import parse_time
from ansible_collections.cachefleet.storage.plugins.modules.accept import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import planning, requirements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.export import outcome, terminal
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import FIRST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite, read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import matches_of, with_devices
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.progress import require_libraries
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import plain_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import read_tests
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import duration

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import Judgement, Requirement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.since_birth import Change

Results = t.Dict[str, t.Any]

#: Where no target is given: every drive of the host.
_ALL_DRIVES = [{"match": {"kind": ["disk"]}}]

#: The kinds of requirements that ``cache_health_info`` answers, and what of its drives and of ``flush_check`` is kept.
_OF_HEALTH = {"survives_power_failure", "wear", "firmware", "link_speed", "drive_link_speed"}
_OF_DRIVES = ("path", "name", "media", "model", "serial", "firmware", "wear_used_percent", "link_speed")
_OF_LINKS = ("kind", "name", "speed")
_OF_CHECKS = ("state", "verdict", "reason", "device_loss", "device_loss_reason")

#: What the role passes to the benchmark. On the command line it would replace it in every round, unseen.
_SET_BY_ROLE = {f"fio_benchmark_{name}" for name in ("dry_run", "only", "only_repeat", "repeats", "replace", "state", "suite", "variant")}


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        return {"changed": False, **getattr(self, f"_{options['operation']}")(plain_of(options))}

    def _validate(self, options: Results) -> Results:
        given = load_extra_vars(self._loader)
        for name in sorted(_SET_BY_ROLE & given.keys()):
            raise BadInput(f"{name} is set on the command line (-e), which would replace it in every round: leave it out.")
        if not given.get("fio_benchmark_targets", True):
            raise BadInput("fio_benchmark_targets is an empty list on the command line (-e), which would replace the drives of every host: leave it out.")
        if not FIRST <= options["repeats_most"] <= 9999:
            raise BadInput(f"accept_repeats_most is {options['repeats_most']}: give {FIRST} to 9999.")
        _seconds(options)
        _required(options)
        # Without its libraries nothing would ever be decided.
        require_libraries()
        return {}

    def _plan(self, options: Results) -> Results:
        required = _required(options)
        targets, stack = self._targets(options)
        plan = planning.all_cells(_suite(options), _suites(options), required, targets, options["file"])
        why_not = planning.why_not(stack.get("devices"), stack.get("matched") or [], read_only=options["read_only"])
        host = planning.host_plan(self._host, required, plan, options["repeats_most"], why_not)
        host = replace(host, facts=self._facts(options, {one.kind for one in required}, host.targets.values()))
        for reason in dict.fromkeys(host.left_out.values()) if self._task.check_mode else ():
            self._display.display(f"{self._host}: {reason}.")
        if not self._task.check_mode:
            planning.save(Path(options["path"]), host)
        return {"targets": targets, "due": planning.first_round(host)}

    def _targets(self, options: Results) -> tuple[list[t.Any], Results]:
        """The targets, with the devices of the host for those that choose by ``match``, and what the host answered for these.

        :raises StorageError: for a match that is none, and what the host fails with.
        """
        targets = options["targets"] or ([] if options["file"] else _ALL_DRIVES)
        matches = matches_of(targets)
        stack = self._ask("cache_stack_info", options, matches=matches) if matches else {}
        if stack.get("failed"):
            raise CommandFailed(str(stack.get("msg") or "The host did not answer which devices it has."))
        found, empty = with_devices(targets, stack.get("matched") or [])
        for sentence in empty:
            self._display.warning(sentence)
        return found, stack

    def _facts(self, options: Results, kinds: set[str], paths: t.Iterable[str]) -> Results:
        """What requirements of these kinds need of the host; what it does not answer is not known."""
        found: Results = {}
        if kinds & _OF_HEALTH:
            health = self._ask("cache_health_info", options, verdicts="survives_power_failure" in kinds)
            verdicts = health.get("verdicts")
            found = {"drives": _kept(health.get("drives"), _OF_DRIVES), "verdicts": verdicts if isinstance(verdicts, dict) else {}}
            found["links"] = _links(_kept(health.get("links"), _OF_LINKS), options["interfaces"])
        if "flush_proved" in kinds and paths:
            # A file may not exist yet.
            places = {path if path.startswith("/dev/") else str(PurePosixPath(path).parent): path for path in paths}
            checks = _kept(self._ask("flush_check", options, devices=list(places)).get("checks"), (*_OF_CHECKS, "path"))
            found["checks"] = [{**one, "path": places[one["path"]]} for one in checks if one.get("path") in places]
        return found

    def _ask(self, module: str, options: Results, **arguments: t.Any) -> Results:
        declared = {name: options[name] for name in DECLARATION_OPTIONS}
        answer = self.answer_of(f"cachefleet.storage.{module}", {**declared, **arguments}, dict(self._variables))
        if answer.get("failed"):
            self._display.warning(f"{self._host}: {failure_reason(answer)}")
        return t.cast("Results", plain_of(answer))

    def _judge(self, options: Results) -> Results:
        """What each of some hosts measures next: the noise of one is that of its class, so that all are judged together."""
        if options["round"] > 1 and _seconds(options) - options["seconds"] < options["seconds_of_round"]:
            self._display.display(f"After {duration(options['seconds'])}, accept_budget leaves no time for another round.")
            return {"due": {}}
        campaign = Path(options["path"])
        plans = planning.load_all(campaign)
        own: dict[str, list[Judgement]] = {host: [] for host in options["hosts"]}
        for judgement in outcome.judged(campaign, plans):
            own.get(judgement.host, []).append(judgement)
        due = {one.host: planning.next_round(campaign, one, own[one.host], options["round"]) for one in plans if one.host in own}
        return {"due": {host: one for host, one in due.items() if one["only"]}}

    def _finish(self, options: Results) -> Results:
        campaign = Path(options["path"])
        found = outcome.outcome(campaign, options["hosts"], options["problems"], read_tests(options["power_loss"], "accept_power_loss"))
        lines = terminal.lines(found.judgements, found.classes, found.drives, self._command)
        self._display.display("\n".join(["", *lines, ""]))
        files, problems = outcome.write(campaign, found, options["key"])
        changes: dict[str, list[Change]] = {}
        if options["earlier"]:
            changes, damaged = outcome.since(files["certificates"], options["earlier"], options["allowed_signers"], options["identity"])
            problems += damaged
        for sentence in problems:
            self._display.warning(sentence)
        self._display.display("\n".join([*terminal.changes(changes), f"Results: {files['md'].parent}", ""]))
        return {
            "changed": True,
            "failed": False,
            "rc": terminal.exit_status(found.states.values()),
            "summary": terminal.summary(found.states),
            "states": found.states,
            "files": {name: str(path) for name, path in files.items()},
            "changes": {name: [vars(one) for one in some] for name, some in changes.items()},
        }

    def _command(self, host: str) -> str:
        return terminal.command(host, context.CLIARGS.get("inventory") or (), context.CLIARGS.get("extra_vars") or ())


def _kept(rows: t.Any, keys: t.Collection[str]) -> list[Results]:
    """Of what a host answered, some values that are no lists or dictionaries."""
    return [{key: one[key] for key in keys if isinstance(one.get(key), (str, int, float))} for one in objects(rows)]


def _links(found: list[Results], interfaces: t.Sequence[str]) -> list[Results]:
    """Those of drives, and of the interfaces that storage uses, if they are known: the speed of one that is down is not."""
    named = {one["name"]: one for one in found if one.get("kind") == "network" and "name" in one}
    chosen = [named.get(name, {"kind": "network", "name": name}) for name in interfaces or named]
    return [*chosen, *(one for one in found if one.get("kind") == "drive")]


def _suites(options: Results) -> Results:
    return {**included_suites(), **options["suites"]}


def _suite(options: Results) -> Suite:
    return read_suite(options["suite"], _suites(options))


def _required(options: Results) -> tuple[Requirement, ...]:
    return requirements.parse(options["requirements"], options["profiles"], _suite(options))


def _seconds(options: Results) -> float:
    try:
        return parse_time(options["budget"])
    except BadInput as error:
        raise BadInput(f"accept_budget: {error.message}") from None
