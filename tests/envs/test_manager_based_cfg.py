"""Mistakes in a configuration of terms are said by their paths."""

from __future__ import annotations

import pytest

from treadle.envs import ManagerBasedRLEnvCfg
from treadle.errors import ConfigError
from treadle.managers import RewardTermCfg, SceneEntityCfg, TerminationTermCfg
from treadle.mdp import is_alive, time_out
from treadle.tasks.cartpole.manager_cfg import CartpoleEnvCfg


@pytest.mark.parametrize("kind", [CartpoleEnvCfg, ManagerBasedRLEnvCfg])
@pytest.mark.parametrize(
    ("manager", "value", "message"),
    [
        ("rewards", 3, "rewards.x is 3; allowed: a RewardTermCfg, or None"),
        ("rewards", TerminationTermCfg(func=time_out), "allowed: a RewardTermCfg, or None"),
        ("actions", "effort", "actions.x is 'effort'; allowed: an ActionTermCfg, or None"),
        ("observations", {}, "observations.x is {}; allowed: an ObservationGroupCfg, or None"),
        ("events", is_alive, "allowed: an EventTermCfg, or None"),
    ],
)
def test_a_term_of_another_type(kind, manager, value, message):
    cfg = kind()
    getattr(cfg, manager)["x"] = value
    with pytest.raises(ConfigError) as caught:
        cfg.validate()
    assert message in str(caught.value)
    assert f"{manager}['x']" not in str(caught.value)


def test_terms_that_are_no_dictionary():
    cfg = CartpoleEnvCfg()
    cfg.rewards = 3
    with pytest.raises(ConfigError, match="rewards is 3; allowed: a dictionary of terms"):
        cfg.validate()


def test_an_entity_is_named_without_a_keyword():
    assert SceneEntityCfg("feet", body_names=".*_foot") == SceneEntityCfg(name="feet", body_names=".*_foot")
    assert SceneEntityCfg() == SceneEntityCfg("robot")
    with pytest.raises(TypeError):
        SceneEntityCfg("robot", ".*")


def test_an_entity_of_another_type():
    cfg = CartpoleEnvCfg()
    cfg.rewards["x"] = RewardTermCfg(
        func=is_alive, params={"a_cfg": SceneEntityCfg(3), "b_cfg": SceneEntityCfg(joint_names=3)}
    )
    with pytest.raises(ConfigError) as caught:
        cfg.validate()
    assert "rewards.x.params['a_cfg'].name is 3; allowed: the name of an entity of the scene" in str(caught.value)
    assert "rewards.x.params['b_cfg'].joint_names is 3; allowed: a regular expression" in str(caught.value)
