"""The cartpole task with two terms that have no Warp form, registered when this is imported."""

from __future__ import annotations

from dataclasses import dataclass, field

import treadle
from treadle.managers import ObservationTermCfg, RewardTermCfg
from treadle.tasks import MANAGER_BASED
from treadle.tasks.cartpole.agents import CartpolePPORunnerCfg
from treadle.tasks.cartpole.manager_cfg import CartpoleEnvCfg, _observations, _rewards

TASK = "Test-TorchTerms"


def cart_energy(env, factor=0.5):
    return factor * env.robot.data.torch.joint_vel[:, 0].square()


def sine_of_pole(env):
    return env.robot.data.torch.joint_pos[:, 1:].sin()


def observations():
    groups = _observations()
    groups["policy"].terms["pole_sine"] = ObservationTermCfg(func=sine_of_pole)
    return groups


@dataclass(kw_only=True)
class TorchTermsEnvCfg(CartpoleEnvCfg):
    observations: dict = field(default_factory=observations)
    rewards: dict = field(
        default_factory=lambda: _rewards() | {"cart_energy": RewardTermCfg(func=cart_energy, weight=-0.1)}
    )


@dataclass(kw_only=True)
class RunnerCfg(CartpolePPORunnerCfg):
    num_steps_per_env: int = 4


def register() -> None:
    treadle.register(
        treadle.TaskSpec(
            task_id=TASK,
            env_cfg=f"{__name__}:TorchTermsEnvCfg",
            agent_cfg=f"{__name__}:RunnerCfg",
            description="A term without a Warp form",
            frontends=MANAGER_BASED,
        )
    )


register()
