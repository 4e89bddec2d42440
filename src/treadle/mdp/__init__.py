"""The term library: what tasks are made of, each in torch and in Warp."""

from treadle.mdp.actions import *  # noqa: F403
from treadle.mdp.actions_binary import *  # noqa: F403
from treadle.mdp.actions_joint import *  # noqa: F403
from treadle.mdp.actions_limits import *  # noqa: F403
from treadle.mdp.commands import *  # noqa: F403
from treadle.mdp.commands_pose import *  # noqa: F403
from treadle.mdp.curriculums import *  # noqa: F403
from treadle.mdp.events import *  # noqa: F403
from treadle.mdp.events_bodies import *  # noqa: F403
from treadle.mdp.events_force import *  # noqa: F403
from treadle.mdp.events_joints import *  # noqa: F403
from treadle.mdp.events_reset import *  # noqa: F403
from treadle.mdp.events_shapes import *  # noqa: F403
from treadle.mdp.observations import *  # noqa: F403
from treadle.mdp.observations_sensors import *  # noqa: F403
from treadle.mdp.observations_task import *  # noqa: F403
from treadle.mdp.recorders import *  # noqa: F403
from treadle.mdp.rewards import *  # noqa: F403
from treadle.mdp.rewards_contact import *  # noqa: F403
from treadle.mdp.rewards_task import *  # noqa: F403
from treadle.mdp.terminations import *  # noqa: F403
from treadle.mdp.terminations_task import *  # noqa: F403
