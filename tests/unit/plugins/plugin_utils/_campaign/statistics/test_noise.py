# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import block_means, inflation, noise_of
from ansible_collections.cachefleet.storage.tests.unit.support.series import autoregressive


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_sigma_autocorrelation_and_noise_of_the_mean(rho):
    found = noise_of(autoregressive(np.random.default_rng(7), 20_000, sigma=2.0, rho=rho), 0.0)
    assert found.rho == pytest.approx(rho, abs=0.05)
    assert found.sigma == pytest.approx(2.0, rel=0.15)
    assert 0.95 <= found.long_run / (2.0 * inflation(rho)) <= 1.35


def test_steps_are_not_noise():
    noise = autoregressive(np.random.default_rng(8), 2000, sigma=1.0)
    steps = np.where(np.arange(2000) % 400 < 200, 0.0, 50.0)
    assert noise_of(noise + steps, 0.0).sigma == pytest.approx(1.0, rel=0.1)


def test_long_term_correlation_below_white_noise_is_detected():
    generator = np.random.default_rng(9)
    slow = autoregressive(generator, 5000, sigma=1.0, rho=0.9)
    found = noise_of(slow + generator.standard_normal(5000), 0.0)
    # By its neighbours alone a mean would scatter as 2 at most; it does as the root of 1 + 19.
    assert 3.0 <= found.long_run <= 7.0


def test_constant_series_has_the_minimum_noise():
    found = noise_of(np.full(100, 5.0), 0.25)
    assert (found.sigma, found.rho, found.long_run) == (0.25, 0.0, 0.25)


@pytest.mark.parametrize("count", [1800, 3600, 7200, 14_400, 172_800])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.95])
def test_noise_estimate_is_independent_of_series_length(count, rho):
    generator = np.random.default_rng(10)
    found = [noise_of(autoregressive(generator, count, sigma=2.0, rho=rho), 0.0).long_run / (2.0 * inflation(rho)) for _run in range(9)]
    assert np.median(found) == pytest.approx(1, abs=0.15)
    assert 0.6 <= min(found) <= max(found) <= 1.8


def test_scatter_of_averages_matches_their_noise_estimate():
    series = autoregressive(np.random.default_rng(11), 172_800, sigma=2.0, rho=0.9)
    found = noise_of(series, 0.0).of_means(96, 0.0)
    assert block_means(series, 96).std() == pytest.approx(found.sigma, rel=0.1)
    assert (found.long_run, found.rho) == (found.sigma, 0.0)
    assert noise_of(series, 0.0).of_means(96, 5.0).long_run == 5.0


def test_averages_omit_an_incomplete_block():
    assert block_means(np.array([1.0, 3.0, 5.0, 7.0, 100.0]), 2).tolist() == [2.0, 6.0]
