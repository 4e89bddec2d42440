"""Intervals and orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from treadle.bench.statistics import counterbalanced, estimate


@pytest.mark.parametrize("count", [1, 2, 7, 9])
@pytest.mark.parametrize("rounds", [2, 10, 14])
def test_each_name_stands_as_often_before_as_after_each_other(count, rounds):
    names = [f"mode {number}" for number in range(count)]
    orders = [counterbalanced(names, number) for number in range(rounds)]
    for order in orders:
        assert sorted(order) == sorted(names)
    for one, other in itertools.combinations(names, 2):
        assert sum(order.index(one) < order.index(other) for order in orders) == rounds / 2


def test_the_first_place_rotates():
    names = ["a", "b", "c"]
    assert {counterbalanced(names, number)[0] for number in range(0, 6, 2)} == set(names)


def test_an_interval_holds_the_median_and_is_reproducible():
    values = np.random.default_rng(1).lognormal(size=40)
    one, again, other = estimate(values, 3), estimate(values, 3), estimate(values, 4)
    assert one == again
    assert one != other
    assert one.min <= one.low <= one.median <= one.high <= one.max
    assert one.median == np.median(values)


def test_intervals_hold_the_true_median_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    estimates = [estimate(rng.normal(size=40), number) for number in range(200)]
    hits = sum(one.low <= 0.0 <= one.high for one in estimates)
    assert 0.9 <= hits / 200 <= 0.99


def test_numbers_are_rounded_for_the_report():
    assert estimate([1.23456] * 4).as_dict()["median"] == 1.235
    assert estimate([123456.0] * 4).as_dict()["low"] == 123500.0
