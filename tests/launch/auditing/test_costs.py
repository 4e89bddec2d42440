"""Calibration: orders, not figures, so that a busy machine does not fail them."""

from __future__ import annotations

from treadle.launch.auditing.costs import measure_costs, measure_hook_us


def test_costs_are_in_order(device):
    costs = measure_costs(device)
    assert costs.eager_us(0, 12) > costs.replay_us(12) > 0
    assert costs.patch > 0, "a number that changes has to be written into the command"
    assert costs.replay_us(1, 1) > costs.replay_us(1) > costs.command_us(1)
    assert costs.graph is not None
    assert costs.graph + 10 * costs.graph_per_launch < 10 * costs.eager_us(1, 0)
    assert costs.eager_per_array >= 0 and costs.eager_per_scalar >= 0


def test_hooks_cost_little():
    outside, inside = measure_hook_us()
    assert 0 <= inside < 50
    assert 0 <= outside < 50
