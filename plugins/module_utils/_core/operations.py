# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations that several layers have: a command, and a configuration file."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class RunCommand(Operation):
    """Run a command that must succeed."""

    words: tuple[str, ...]

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        layer.runner.run(self.words, item=step.item)


@frozen
class WriteFile(Operation):
    """Replace a file; an empty text removes it.

    :param path: below the root, without a leading slash.
    """

    path: str
    text: str

    def carry_out(self, layer: Layer[t.Any, t.Any], _step: Step) -> None:
        replace_file(layer.root / self.path, self.text)
