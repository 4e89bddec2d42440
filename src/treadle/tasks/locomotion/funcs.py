"""Functions of the locomotion task in Warp, each for one environment. The torch forms are in :mod:`torch_env`."""

import warp as wp

from treadle.mdp.math_funcs import normalized_position, roll, wrap_to_pi, yaw

__all__ = [
    "angle_to_target",
    "ground_distance",
    "heading_projection",
    "normalized_position",
    "roll",
    "wrap_to_pi",
    "yaw",
]

wp.set_module_options({"enable_backward": False})


@wp.func
def angle_to_target(root_pos: wp.vec3, root_quat: wp.quat, target: wp.vec3) -> float:
    """Angle from the heading to the target in the ground plane, wrapped to [-pi, pi] [rad]."""
    return wrap_to_pi(wp.atan2(target[1] - root_pos[1], target[0] - root_pos[0]) - yaw(root_quat))


@wp.func
def heading_projection(root_pos: wp.vec3, root_quat: wp.quat, target: wp.vec3) -> float:
    """Cosine between the body's x axis and the direction to the target in the ground plane."""
    direction = wp.normalize(wp.vec3(target[0] - root_pos[0], target[1] - root_pos[1], 0.0))
    return wp.dot(wp.quat_rotate(root_quat, wp.vec3(1.0, 0.0, 0.0)), direction)


@wp.func
def ground_distance(root_pos: wp.vec3, target: wp.vec3) -> wp.float64:
    """Distance to the target in the ground plane [m].

    Double precision: at a kilometre, the resolution of single precision (0.06 mm) is 0.4 % of a stride at 1 m/s.
    """
    x = wp.float64(target[0]) - wp.float64(root_pos[0])
    y = wp.float64(target[1]) - wp.float64(root_pos[1])
    return wp.sqrt(x * x + y * y)
