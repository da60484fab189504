# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Declarations of protected drives, and what vendors document."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import checked_declarations, documented_protection, fits


@pytest.mark.parametrize(
    ("text", "does"),
    [("*SSDSC2BB*", True), ("INTEL SSDSC2BB080G?", True), ("SSDSC2BB", False), ("INTEL SSDSC2BB080G4", False), ("*ssdsc2bb*", False), ("*SSDSC2BA*", False)],
)
def test_patterns_fit_models_and_other_texts_fit_nothing(text, does):
    assert fits(text, (None, "INTEL SSDSC2BB080G4 ")) is does


@pytest.mark.parametrize("text", ["*", "?*", "*SSD", "[A-Z]*"])
def test_a_pattern_of_nearly_every_drive_is_refused(text):
    with pytest.raises(BadInput, match="would declare nearly every drive"):
        checked_declarations(["INTEL SSDSC2BB080G4", text])


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_that_would_declare_drives_without_a_serial_number_is_refused(text):
    with pytest.raises(BadInput, match="An entry of the declared drives is empty"):
        checked_declarations(["INTEL SSDSC2BB080G4", text])


@pytest.mark.parametrize(
    ("model", "document"),
    [
        ("INTEL SSDSC2BB080G4", "Intel SSD DC S3500 Series Product Specification"),
        ("INTEL SSDSC2BA400G3", "Intel SSD DC S3700 Series Product Specification"),
        ("INTEL SSDSC2KG480G7", "Intel SSD DC S4500/S4600 Series Product Specification"),
        ("INTEL SSDSA2M080G2GC", None),
        ("INTEL SSDSC2KW256G8", None),
        ("Samsung SSD 870 EVO 1TB", None),
        ("", None),
        (None, None),
    ],
)
def test_documented_models(model, document):
    assert documented_protection(model) == document
