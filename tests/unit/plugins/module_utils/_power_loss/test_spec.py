# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.messages import read_secret
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec, size_of, spec_of


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sync": "later"}, "not a supported sync"),
        ({"layout": "sideways"}, "not a supported layout"),
        ({"layout": "append"}, "needs a target with file"),
        ({"kind": "file", "layout": "rename", "sync": "fua"}, "With layout rename"),
        ({"kind": "file", "layout": "rename", "bulk": True}, "bulk load needs"),
        ({"block_size": 1000}, "multiple of 512"),
        ({"block_size": 0}, "multiple of 512"),
        ({"seconds": 0}, "seconds must be"),
        ({"seconds": float("nan")}, "seconds must be"),
        ({"depth": 33}, "depth must be"),
        ({"size": 4096}, "needs at least"),
        ({"size": 2**50}, "smaller size"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(BadInput, match=message):
        RunSpec(**{"path": "/dev/sdx", "kind": "device", "identity": "S1", "size": 2**20, **options})


def test_options_are_read_from_the_log():
    spec = RunSpec("/dev/sdx", "device", "S1", 2**20, depth=4)
    assert spec_of({"spec": spec.to_dict()}) == spec
    assert spec.extent == 2**20 + 64 * 4096


@pytest.mark.parametrize("greeting", [{}, {"spec": None}, {"spec": {"path": "/x"}}, {"spec": {"path": "/x", "surprise": 1}}])
def test_log_without_options_is_not_understood(greeting):
    with pytest.raises(NotUnderstood):
        spec_of(greeting)


def test_size_has_a_default_and_suffixes():
    assert (size_of(None), size_of("16M")) == (64 * 2**20, 2**24)
    with pytest.raises(BadInput):
        size_of("much")


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "00" * 33])
def test_secret_has_a_fixed_length_and_is_not_repeated(text):
    with pytest.raises(BadInput) as caught:
        read_secret(text)
    assert not text or len(text) < 4 or text not in caught.value.message
