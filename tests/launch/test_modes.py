"""Where modes and contracts come from."""

from __future__ import annotations

import pytest

from treadle.errors import UnknownNameError
from treadle.launch import LaunchCache, LaunchContract, LaunchMode, LaunchScope, resolve_contract, resolve_mode


@pytest.fixture
def no_variables(monkeypatch):
    monkeypatch.delenv("TREADLE_LAUNCH_MODE", raising=False)
    monkeypatch.delenv("TREADLE_LAUNCH_CONTRACT", raising=False)


def test_the_suite_runs_with_the_debug_contract():
    assert resolve_contract() is LaunchContract.DEBUG


def test_defaults(no_variables):
    assert resolve_mode() is LaunchMode.AUTO
    assert resolve_contract() is LaunchContract.CHECKED


@pytest.mark.parametrize("mode", LaunchMode)
def test_modes_by_name(no_variables, monkeypatch, mode):
    assert resolve_mode(mode) is resolve_mode(mode.value) is mode
    monkeypatch.setenv("TREADLE_LAUNCH_MODE", mode.value)
    assert resolve_mode() is mode
    assert resolve_mode("eager") is LaunchMode.EAGER
    assert LaunchScope("cpu").mode is mode


@pytest.mark.parametrize("contract", LaunchContract)
def test_contracts_by_name(no_variables, monkeypatch, contract):
    assert resolve_contract(contract) is resolve_contract(contract.value) is contract
    monkeypatch.setenv("TREADLE_LAUNCH_CONTRACT", contract.value)
    assert resolve_contract() is contract
    assert LaunchScope("cpu").contract is contract


def test_an_empty_variable_is_no_choice(monkeypatch):
    monkeypatch.setenv("TREADLE_LAUNCH_MODE", "")
    assert resolve_mode() is LaunchMode.AUTO


def test_unknown_values_list_the_allowed_ones(monkeypatch):
    with pytest.raises(UnknownNameError, match=r"unknown launch mode 'graphs' .*allowed: auto, eager, graph, replay"):
        resolve_mode("graphs")
    monkeypatch.setenv("TREADLE_LAUNCH_CONTRACT", "debgu")
    with pytest.raises(UnknownNameError, match=r"TREADLE_LAUNCH_CONTRACT .*'debug'.*checked, debug, trusted"):
        LaunchScope("cpu")


def test_they_are_fixed():
    for owner in (LaunchScope("cpu"), LaunchCache("cpu"), LaunchScope("cpu").graphs):
        with pytest.raises(AttributeError):
            owner.mode = LaunchMode.EAGER
        with pytest.raises(AttributeError):
            owner.contract = LaunchContract.TRUSTED
