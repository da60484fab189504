# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Something that is read while something else is read: a tool that takes its time costs nothing if it need not be waited for."""

from __future__ import annotations

import threading
import typing as t

Result = t.TypeVar("Result")


class Background(t.Generic[Result]):
    """Begins to call a function in a thread of its own; for reading only, since nothing orders it against what the caller does.

    :param function: called once, without arguments.
    """

    def __init__(self, function: t.Callable[[], Result]) -> None:
        self._function = function
        self._answers: list[Result] = []
        self._error: BaseException | None = None
        # As a daemon it does not keep a module alive that failed in the meantime.
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def _call(self) -> None:
        try:
            self._answers.append(self._function())
        except BaseException as error:  # noqa: BLE001 - any error is raised where the result is read
            self._error = error

    def answer(self) -> Result:
        """Wait for the function.

        :raises BaseException: what the function raised.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answers[0]
