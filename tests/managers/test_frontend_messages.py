"""What is said of a Warp form that does not fit its torch form."""

from __future__ import annotations

import pytest
import torch
import warp as wp
from support.cartpole_terms import make_cartpole

from treadle.assets import ArticulationState
from treadle.errors import ConfigError
from treadle.managers import CommandState, RewardTermCfg, warp_twin


def without_entity(env) -> torch.Tensor:
    return torch.zeros(env.num_envs)


@warp_twin(without_entity)
def _(env: int, asset: ArticulationState) -> float:
    return asset.joint_pos[env, 0]


def without_command(env) -> torch.Tensor:
    return torch.zeros(env.num_envs)


@warp_twin(without_command)
def _(env: int, command: CommandState) -> float:
    return command.command[env, 0]


def without_selection(env) -> torch.Tensor:
    return torch.zeros(env.num_envs)


@warp_twin(without_selection)
def _(env: int, joint_ids: wp.array[int]) -> float:
    return float(joint_ids[0])


def returns_int(env) -> torch.Tensor:
    return torch.zeros(env.num_envs)


@warp_twin(returns_int)
def _(env: int) -> int:
    return 1


def returns_undeclared(env) -> torch.Tensor:
    return torch.zeros(env.num_envs)


@warp_twin(returns_undeclared)
def _(env: int):
    return 1.0


ENTITY = 'asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")'


@pytest.mark.parametrize(
    ("func", "weight", "message"),
    [
        (without_entity, 1.0, f"there is no parameter asset_cfg: give the torch form one, as in {ENTITY}"),
        (without_command, 1.0, "there is no parameter command_name: give the torch form one"),
        (without_selection, 1.0, f"there is no parameter 'asset_cfg': give the torch form one, as in {ENTITY}"),
        (returns_int, 1.0, "the Warp form returns int; allowed: float or bool"),
        (returns_undeclared, 1.0, "the Warp form returns nothing, as it has no '-> TYPE'; allowed: float or bool"),
        (returns_int, "a", "rewards.x.weight is 'a'; allowed: a finite number"),
    ],
)
def test_the_cure_is_said(func, weight, message):
    with pytest.raises(ConfigError) as caught:
        make_cartpole(rewards={"x": RewardTermCfg(func=func, weight=weight)})
    assert message in str(caught.value)


def of_command(env, command_name: str) -> torch.Tensor:
    return env.command_manager.get_command(command_name)[:, 0]


def test_a_command_that_there_is_not_is_said_before_the_first_step():
    rewards = {"x": RewardTermCfg(func=of_command, params={"command_name": "vel"})}
    with pytest.raises(ConfigError) as caught:
        make_cartpole(frontend="torch", rewards=rewards)
    assert "rewards.x.params['command_name']: unknown term of commands 'vel'" in str(caught.value)
