"""The tasks that Treadle ships. Importing this package registers them; the task modules load when a task is made."""

from treadle.registry import TaskSpec, register

__all__ = ["MANAGER_BASED"]

MANAGER_BASED = {
    "warp": "treadle.envs.manager_based_env:ManagerBasedWarpEnv",
    "torch": "treadle.envs.manager_based_env:ManagerBasedTorchEnv",
}
"""Both frontends of a task that is a configuration of terms."""
_LOCOMOTION = {
    "warp": "treadle.tasks.locomotion.warp_env:LocomotionWarpEnv",
    "torch": "treadle.tasks.locomotion.torch_env:LocomotionTorchEnv",
}

register(
    TaskSpec(
        task_id="Ant",
        description="A four-legged ant runs towards a far target, as a set of terms",
        env_cfg="treadle.tasks.ant.manager_cfg:AntEnvCfg",
        agent_cfg="treadle.tasks.ant.agents:AntPPORunnerCfg",
        frontends=MANAGER_BASED,
    )
)
register(
    TaskSpec(
        task_id="Ant-Direct",
        description="A four-legged ant runs towards a far target",
        env_cfg="treadle.tasks.ant.cfg:AntDirectEnvCfg",
        agent_cfg="treadle.tasks.ant.agents:AntDirectPPORunnerCfg",
        frontends=_LOCOMOTION,
    )
)
register(
    TaskSpec(
        task_id="Cartpole",
        description="A cart on a rail balances a pole, as a set of terms",
        env_cfg="treadle.tasks.cartpole.manager_cfg:CartpoleEnvCfg",
        agent_cfg="treadle.tasks.cartpole.agents:CartpolePPORunnerCfg",
        frontends=MANAGER_BASED,
    )
)
register(
    TaskSpec(
        task_id="Cartpole-Direct",
        description="A cart on a rail balances a pole",
        env_cfg="treadle.tasks.cartpole.cfg:CartpoleDirectEnvCfg",
        agent_cfg="treadle.tasks.cartpole.agents:CartpoleDirectPPORunnerCfg",
        frontends={
            "warp": "treadle.tasks.cartpole.warp_env:CartpoleWarpEnv",
            "torch": "treadle.tasks.cartpole.torch_env:CartpoleTorchEnv",
        },
    )
)
register(
    TaskSpec(
        task_id="Humanoid",
        description="A humanoid runs towards a far target, as a set of terms",
        env_cfg="treadle.tasks.humanoid.manager_cfg:HumanoidEnvCfg",
        agent_cfg="treadle.tasks.humanoid.agents:HumanoidPPORunnerCfg",
        frontends=MANAGER_BASED,
    )
)
register(
    TaskSpec(
        task_id="Humanoid-Direct",
        description="A humanoid runs towards a far target",
        env_cfg="treadle.tasks.humanoid.cfg:HumanoidDirectEnvCfg",
        agent_cfg="treadle.tasks.humanoid.agents:HumanoidDirectPPORunnerCfg",
        frontends=_LOCOMOTION,
    )
)
