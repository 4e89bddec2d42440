"""The event that pushes bodies with a wrench, in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_data import TorchViews
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["apply_external_force_torque"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


class apply_external_force_torque(ManagerTermBase):
    """Apply a uniform force and torque to each body, in its own frame, until the next reset of the environment.

    Each physics step turns them with the body, at no launch more. Parameters: ``force_range`` of each component [N],
    ``torque_range`` of each component [N*m], about the centre of mass, and ``asset_cfg``, the bodies.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        env.physics.use_external_wrench()
        self._views = TorchViews(env.physics)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        force_range: tuple[float, float],
        torque_range: tuple[float, float],
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the wrenches of the masked environments, bool, shape (num_envs,)."""
        wrench = self._views.external_wrench
        bodies = len(asset_cfg.resolved.body_names)
        force = env.rand(3 * bodies, *force_range, mask=env_mask).view(-1, bodies, 3)
        torque = env.rand(3 * bodies, *torque_range, mask=env_mask).view(-1, bodies, 3)
        drawn = torch.cat((force, torque), dim=2)
        wrench[:, asset_cfg.body_ids] = drawn.where(env_mask[:, None, None], wrench[:, asset_cfg.body_ids])


def _wrench(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"external_wrench": env.physics.external_wrench}


@warp_twin(apply_external_force_torque, extra=_wrench)
def _(
    env: int,
    state: EnvState,
    external_wrench: wp.array2d[wp.spatial_vector],
    body_ids: wp.array[int],
    force_range: wp.vec2,
    torque_range: wp.vec2,
):
    rng = state.random_state[env]
    for i in range(body_ids.shape[0]):
        wrench = external_wrench[env, body_ids[i]]
        for axis in range(3):
            wrench[axis] = wp.randf(rng, force_range[0], force_range[1])
        external_wrench[env, body_ids[i]] = wrench
    for i in range(body_ids.shape[0]):
        wrench = external_wrench[env, body_ids[i]]
        for axis in range(3):
            wrench[3 + axis] = wp.randf(rng, torque_range[0], torque_range[1])
        external_wrench[env, body_ids[i]] = wrench
    state.random_state[env] = rng
