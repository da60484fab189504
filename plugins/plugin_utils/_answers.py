# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What a host answers, limited to what was asked: the one place through which all results of hosts pass.

Ansible makes ``ansible_facts`` in the result of any module variables of the host, which take precedence over the inventory (the default
of INJECT_FACTS_AS_VARS). A host could set variables of roles by it, for example a command that is run on the controller.
"""

from __future__ import annotations

import functools
import json
import re
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.json_utils import _filter_non_json_lines
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import FURTHER, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain, printable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import wrong_types
from ansible_collections.cachefleet.storage.plugins.plugin_utils._interpreter import interpreter_problem
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import limited_answer, require_short
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import OF_PLAYBOOKS, not_for_hosts

_COLLECTION = "cachefleet.storage."
_MODULES = Path(__file__).resolve().parent.parent / "modules"
_RETURN = re.compile(r'^RETURN = r?"""\n(.*?)^"""', re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^([A-Za-z_]\w*):", re.MULTILINE)

#: What Ansible itself makes of a result of a module, and what a task that failed has.
_OF_ANSIBLE = frozenset(
    {"changed", "failed", "skipped", "unreachable", "msg", "error", "exception", "diff", "invocation", "warnings", "deprecations"}
    | {"item", "cmd", "rc", "stdout", "stderr", "stdout_lines", "stderr_lines", "module_stdout", "module_stderr"}
    | {"ansible_job_id", "started", "finished", "results_file", "_ansible_suppress_tmpdir_delete"}
)
#: What the modules of Ansible return that actions of this collection call.
_OF_OTHERS: t.Mapping[str, frozenset[str]] = {"ansible.builtin.slurp": frozenset({"content", "encoding", "source"})}

#: A module that returns what another one does, too.
_AS_ANOTHER = {"cachefleet.storage.sweep_step": "cachefleet.storage.cache_layers"}

#: Names of injected variables and of dropped values that a message has.
_NAMED = 3


class StorageAction(ActionBase):
    """An action plugin that takes from a host only what its module documents, and refuses a host that has set variables of the collection."""

    #: The modules whose answer is being read; set where a module of Ansible passes on that of others (``async_status``).
    _answering: tuple[str, ...] = ()

    #: The host of the task, which another one may answer for.
    _host = ""

    #: What the module returns for its action plugin alone, which removes it from the result of the task.
    _for_action: frozenset[str] = frozenset()

    #: Whether a host that has set variables of the collection is refused: not where nothing is run or written with them.
    _refuses_injected_variables = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """:raises AnsibleActionFail: if the facts of the host contain a variable of the collection."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        self._host = str((task_vars or {}).get("inventory_hostname", ""))
        if self._refuses_injected_variables:
            refuse_injected_variables(task_vars or {})
        return result

    def validate_argument_spec(self, argument_spec: dict[str, t.Any] | None = None, *more: t.Any, **others: t.Any) -> t.Any:
        """As Ansible does it; what is wrong is said in one sentence, with the variable of the playbook that fills the option.

        :raises AnsibleActionFail: for the first wrong option.
        """
        verb = str(getattr(self._task, "action", "")).rpartition(".")[2]
        for sentence in wrong_types(argument_spec or {}, self._task.args):
            raise AnsibleActionFail(f"{_with_variable(sentence, verb)}.")
        try:
            return super().validate_argument_spec(argument_spec, *more, **others)
        except AnsibleError as error:
            raise AnsibleActionFail(_with_variable(str(error), verb)) from None

    def answer_of(self, module: str, arguments: dict[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        """The answer of a module, or of the job that runs it if the task is asynchronous. The temporary folder is removed."""
        is_job = bool(self._task.async_val and not self._connection.has_native_async)
        answer = self._execute_module(module_name=module, module_args=arguments, task_vars=task_vars, wrap_async=is_job)
        if not is_job:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return answer

    def _execute_module(self, module_name: str | None = None, *args: t.Any, **kwargs: t.Any) -> dict[str, t.Any]:
        before, self._answering = self._answering, self._answering or (module_name or self._task.action,)
        try:
            with limited_answer(self._host):
                answer: dict[str, t.Any] = super()._execute_module(module_name, *args, **kwargs)
            problem = interpreter_problem(answer, kwargs.get("task_vars") or {})
            return {"failed": True, "changed": False, "msg": problem, "rc": answer.get("rc")} if problem else answer
        except StorageError as error:
            return {"failed": True, "changed": False, **error.to_dict()}
        except AnsibleConnectionFailure as error:
            # ssh prints what the host sends before the connection is open.
            message = str(error)
            if printable(message) == message:
                raise
            raise AnsibleConnectionFailure(printable(message)) from None
        finally:
            self._answering = before

    def _parse_returned_data(self, res: dict[str, t.Any], *profile: t.Any) -> t.Any:
        """Ansible prints some of what it does not expect, and every version keeps an answer in another form: the text that it reads is limited."""
        require_short(res, self._host)
        host, expected = plain(self._task.delegate_to or self._host), self._for_action.union(*map(expected_of, self._answering))
        text, dropped = limited_to(str(res.get("stdout", "")), expected, host)
        if dropped:
            self._display.warning(f"{host}: dropped from the answer of {' and '.join(self._answering)}, which does not document it: {_some(dropped)}.")
        return super()._parse_returned_data({**res, "stdout": text, "stderr": printable(str(res.get("stderr", "")))}, *profile)


class Verb(StorageAction):
    """An action plugin that is no module: it answers on the controller, and fails with the one sentence of a :class:`StorageError`."""

    #: The options of its module.
    argument_spec: t.Callable[[], dict[str, t.Any]]

    #: The variables of the task.
    _variables: t.Mapping[str, t.Any] = {}

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        self._variables = task_vars or {}
        _result, options = self.validate_argument_spec(argument_spec=self.argument_spec())
        try:
            return self.answer(options)
        except StorageError as error:
            return {"failed": True, "changed": False, **error.to_dict()}

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        """The result of the task."""
        raise NotImplementedError


def _with_variable(sentence: str, verb: str) -> str:
    """A sentence about an option of a verb, with the variable of its playbook if it has one."""
    option = re.match(r"(?:value of )?(\w+)", sentence)
    variable = f"{verb}_{option[1]}" if option else ""
    return f"{variable}: {sentence}" if variable in OF_PLAYBOOKS else sentence


def refuse_injected_variables(variables: t.Mapping[str, t.Any]) -> None:
    """Refuse a host whose facts contain variables of the collection, also those of an earlier run that a fact cache has kept.

    :param variables: the variables of the host in a task.
    :raises AnsibleActionFail: naming them.
    """
    facts = variables.get("ansible_facts")
    names = not_for_hosts(map(str, facts)) if isinstance(facts, t.Mapping) else []
    if names:
        raise AnsibleActionFail(
            f"The facts of this host contain variables that only the inventory may set ({_some(names)}), so that nothing was done with them: examine the"
            " host, remove the module, local facts or cacheable set_fact that returns them, and clear the fact cache (meta: clear_facts)."
        )


def _some(names: t.Sequence[str]) -> str:
    return ", ".join(plain(name, 80) for name in names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def limited_to(text: str, expected: t.Container[str], host: str) -> tuple[str, list[str]]:
    """What a host answered as the result of a module, as JSON with the values that are expected and without characters that are not printable.

    :returns: also the names of the values that were dropped.
    :raises AnsibleActionFail: for an answer that no module of the collection gives.
    """
    try:
        answer = json.loads(_filter_non_json_lines(text, objects_only=True)[0])
    except ValueError:
        # Ansible reports what was printed instead of a result.
        return printable(text), []
    except RecursionError:
        raise AnsibleActionFail(f"{host} answered with values that are nested too deeply: nothing of them was used.") from None
    return json.dumps(all_printable({key: value for key, value in answer.items() if key in expected})), [key for key in answer if key not in expected]


@functools.lru_cache(maxsize=None)
def expected_of(module: str) -> frozenset[str]:
    """The names of the values that a module of the collection returns, from its documentation, and those of any result."""
    if not module.startswith(_COLLECTION):
        return _OF_ANSIBLE | _OF_OTHERS.get(module, frozenset())
    text = (_MODULES / f"{module[len(_COLLECTION) :]}.py").read_text(encoding="utf-8")
    documented = _RETURN.search(text)
    of_another = expected_of(_AS_ANOTHER[module]) if module in _AS_ANOTHER else frozenset()
    return _OF_ANSIBLE | FURTHER | of_another | frozenset(_KEY.findall(documented.group(1)) if documented else ())


def all_printable(value: t.Any) -> t.Any:
    """Values of JSON in which every text is :func:`printable`, keys included."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): all_printable(one) for key, one in value.items()}
    return [all_printable(one) for one in value] if isinstance(value, list) else value
