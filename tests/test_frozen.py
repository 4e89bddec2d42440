"""Configurations that can't be changed any more."""

from __future__ import annotations

import copy

import pytest

from treadle._frozen import frozen_copy
from treadle.errors import ConfigError
from treadle.managers import RewardTermCfg, SceneEntityCfg


def test_an_object_in_two_places_of_a_configuration():
    feet = SceneEntityCfg(body_names=".*_foot")
    cfg = frozen_copy({name: RewardTermCfg(func=len, params={"asset_cfg": feet}) for name in ("first", "second")})
    assert cfg["first"].params["asset_cfg"] is cfg["second"].params["asset_cfg"]
    assert cfg["first"].params["asset_cfg"].body_names == ".*_foot"
    with pytest.raises(ConfigError, match="in use by an environment"):
        cfg["second"].params["asset_cfg"].body_names = ".*"
    thawed = copy.deepcopy(cfg)
    thawed["second"].params["asset_cfg"].body_names = ".*"
