# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Set the start time of the runner of a host, in the time of the host's clock."""

from __future__ import annotations

import json
import math
import shlex
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.modules.release_runner import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.clocks import Bounds, Clock, decide, question, read_answer, together
from ansible_collections.cachefleet.storage.plugins.plugin_utils._raw_shell import RawShell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import in_seconds

Results = t.Dict[str, t.Any]

#: Seconds from now at which a runner starts whose instant is past already, so that it reads its release before.
_AT_ONCE = 3.0


class ClockUnknown(StorageError):
    """The clock of a host could not be read."""

    kind = "clock_unknown"


class NotReleased(StorageError):
    """The release could not be written."""

    kind = "not_released"


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        host = plain(self._host)
        component(options["campaign"], "campaign")
        if options["segment"] < 0 or not math.isfinite(options["start"]) or not 1e9 < options["start"] < 1e11:
            raise BadInput("'segment' is a number from 0 on, and 'start' a time in seconds since 1970 by the clock of the controller.")
        if options["exchanges"] < 1:
            raise BadInput("'exchanges' is a number from 1 on.")
        if self._task.check_mode:
            return {"changed": True, "segment": options["segment"], "start": None, "clock": None, "late": None}
        return self._release(options, RawShell(self, host), host)

    def _release(self, options: t.Mapping[str, t.Any], shell: RawShell, host: str) -> Results:
        clock = self._clock(options, shell, host)
        asked = float(options["start"])
        start = max(asked, time.time() + _AT_ONCE)
        release = {
            "schema": 1,
            "segment": options["segment"],
            "start": round(start + clock.offset, 6),
            "asked": round(asked + clock.offset, 6),
            "late": round(start - asked, 3),
            "clock": clock.to_dict(),
        }
        folder = f"{options['spool'].rstrip('/')}/{options['campaign']}"
        place, draft = (shlex.quote(f"{folder}/{name}") for name in (f"release-{options['segment']}.json", f".release-{options['segment']}.json.new"))
        # A runner takes old releases away when it begins, so one that is there was given to it: it waits for a later moment of its timetable.
        # A draft that lies there is taken away first: nothing is written through a link.
        answer = shell.do(
            f"if test -e {place}; then echo released; else rm -f -- {draft} && umask 022 && printf '%s\\n' {shlex.quote(json.dumps(release))} > {draft}"
            f" && mv -f -- {draft} {place}; fi"
        )
        if answer.rc == 0 and answer.stdout.strip() == "released":
            return {"changed": False, "segment": options["segment"], "start": None, "clock": clock.to_dict(), "late": None}
        if answer.rc != 0:
            raise NotReleased(
                f"The runner of {host} could not be notified of its start, because {folder} is not writable on it: {plain(answer.stderr or answer.stdout)}."
                " It continues alone after barrier_timeout.",
                item=host,
            )
        late = start - asked
        if late > 0:
            self._display.display(f"{host}: starts {in_seconds(late, 1)} after the others, because it could not be notified in time")
        return {"changed": True, "segment": options["segment"], "start": release["start"], "clock": release["clock"], "late": round(late, 3)}

    def _clock(self, options: t.Mapping[str, t.Any], shell: RawShell, host: str) -> Clock:
        """The offset of the host's clock from that of the controller.

        :raises ClockUnknown: if it could not be read.
        """
        exchanges: list[Bounds] = []
        message = ""
        for _turn in range(options["exchanges"]):
            asked = time.time()
            answer = shell.ask_plainly(question())
            bounds = read_answer(answer.stdout, asked, time.time())
            if bounds is not None:
                exchanges.append(bounds)
            message = answer.stdout or answer.stderr
        bounds = together(exchanges)
        if bounds is None:
            raise ClockUnknown(
                f"{host} could not report its time: date +%s.%N answers '{plain(message, 80)}'. Set fio_benchmark_synchronise to false.", item=host
            )
        return decide(bounds, synchronised=options["synchronised"])
