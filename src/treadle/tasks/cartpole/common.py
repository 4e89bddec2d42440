"""What both forms of the cartpole task share."""

from __future__ import annotations

from treadle.assets import Articulation
from treadle.errors import ConfigError
from treadle.tasks.cartpole.cfg import CartpoleDirectEnvCfg

__all__ = ["NUM_OBSERVATIONS", "REWARD_TERMS", "find_joints"]

REWARD_TERMS = ("alive", "terminating", "pole_pos", "cart_vel", "pole_vel")
NUM_OBSERVATIONS = 4


def find_joints(robot: Articulation, cfg: CartpoleDirectEnvCfg) -> tuple[int, int]:
    """Return the indices of the cart's and of the pole's joint.

    Raises:
        ConfigError: There is no such joint, or the cart does not take efforts.
    """
    problems = [
        f"{field} is {name!r}; allowed: {', '.join(robot.joint_names)}"
        for field, name in (("cart_joint", cfg.cart_joint), ("pole_joint", cfg.pole_joint))
        if name not in robot.joint_names
    ]
    if problems:
        raise ConfigError.from_problems(problems)
    cart, pole = robot.joint_names.index(cfg.cart_joint), robot.joint_names.index(cfg.pole_joint)
    if not robot.layout.effort_controlled[cart]:
        raise ConfigError(
            f"scene.robot.actuators: {cfg.cart_joint} is in mode 'position' or 'velocity'; allowed: 'effort'"
        )
    return cart, pole
