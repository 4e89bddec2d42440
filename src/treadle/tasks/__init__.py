"""The tasks that Treadle ships. Importing this package registers them; the task modules load when a task is made."""

from treadle.registry import TaskSpec, register

__all__: list[str] = []

register(
    TaskSpec(
        task_id="Ant-Direct",
        description="A four-legged ant runs towards a far target",
        env_cfg="treadle.tasks.ant.cfg:AntDirectEnvCfg",
        agent_cfg="treadle.tasks.ant.agents:AntDirectPPORunnerCfg",
        frontends={
            "warp": "treadle.tasks.locomotion.warp_env:LocomotionWarpEnv",
            "torch": "treadle.tasks.locomotion.torch_env:LocomotionTorchEnv",
        },
    )
)
