"""What recorder terms write, per environment and episode."""

from __future__ import annotations

import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch
from support.mdp_envs import make_ants

from treadle import mdp
from treadle.errors import ConfigError
from treadle.managers import EventTermCfg, RecordingCfg, TerminationTermCfg

RECORDERS = {
    "initial": mdp.InitialStateRecorderCfg(),
    "states": mdp.PostStepStatesRecorderCfg(),
    "actions": mdp.PreStepActionsRecorderCfg(),
    "observations": mdp.PreStepPolicyObservationsRecorderCfg(),
    "processed": mdp.PostStepProcessedActionsRecorderCfg(),
}
EVENTS = {
    "scene": EventTermCfg(func=mdp.reset_scene_to_default),
    "joints": EventTermCfg(
        func=mdp.reset_joints_by_offset, params={"position_range": (-0.2, 0.2), "velocity_range": (-0.1, 0.1)}
    ),
}
TIME_OUT = {"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)}


def make(path, frontend="warp", **recording):
    return make_ants(
        frontend,
        mode="graph",
        num_envs=3,
        events=EVENTS,
        terminations=TIME_OUT,
        recorders=RECORDERS,
        recording=RecordingCfg(path=str(path), success_term="time_out", **recording),
    )


def episodes(path) -> list[tuple[dict, dict[str, np.ndarray]]]:
    """Return attributes and arrays of each episode, in order."""
    result = []
    with h5py.File(path) as file:
        for index in range(len(file["data"])):
            group, arrays = file["data"][f"demo_{index}"], {}
            group.visititems(
                lambda name, item, arrays=arrays: arrays.update({name: item[()]}) if hasattr(item, "shape") else None
            )
            result.append((dict(group.attrs), arrays))
    return result


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_each_episode_is_written_whole(tmp_path, frontend):
    env = make(tmp_path / "file.hdf5", frontend)
    obs, _ = env.reset(seed=1)
    env.episode_length_buf = torch.tensor([0, env.max_episode_length - 3, 0])
    generator = torch.Generator().manual_seed(0)
    given, seen, joints = [], [], []
    for step in range(5):
        actions = torch.rand(3, 4, generator=generator)
        given.append(actions), seen.append(obs["policy"].clone())
        obs = env.step(actions)[0]
        joints.append(env.robot.data.joint_pos.numpy().copy())
        if step == 2:
            assert [attrs["env_id"] for attrs, _ in episodes_of_open(env)] == [1]
    env.close()
    env.close()

    found = episodes(tmp_path / "file.hdf5")
    assert [(a["env_id"], a["num_samples"], a["complete"]) for a, _ in found] == [
        (1, 3, True), (0, 5, False), (1, 2, False), (2, 5, False),
    ]  # fmt: skip
    assert [a["success"] for a, _ in found] == [True, False, False, False]
    for attrs, arrays in found:
        row, steps, first = attrs["env_id"], attrs["num_samples"], 3 if len(arrays["actions"]) == 2 else 0
        window = slice(first, first + steps)
        np.testing.assert_array_equal(arrays["actions"], torch.stack(given)[window, row].numpy())
        np.testing.assert_array_equal(arrays["obs"], torch.stack(seen)[window, row].numpy())
        np.testing.assert_allclose(arrays["processed_actions"], arrays["actions"], rtol=1e-6)
        state = arrays["states/articulation/robot/joint_position"]
        after = np.stack(joints)[window, row]
        alike = steps - 1 if attrs["complete"] else steps  # the last step's state is that before the reset
        np.testing.assert_array_equal(state[:alike], after[:alike])
        assert arrays["initial_state/articulation/robot/joint_position"].shape == (1, 8)
        start = arrays["initial_state/articulation/robot/root_pose"][0, :2]
        np.testing.assert_allclose(start, 0.0, atol=1e-6)
    assert not np.array_equal(found[0][1]["states/articulation/robot/joint_position"][-1], joints[2][1])


def episodes_of_open(env) -> list:
    """Return the attributes of what is on the disk while the file is open."""
    data = env.recorder_manager._file._data
    return [(dict(group.attrs), None) for group in data.values()]


def test_a_file_is_continued_and_may_hold_successes_only(tmp_path):
    for _ in range(2):
        env = make(tmp_path / "file.hdf5", export="succeeded")
        env.reset(seed=1)
        env.episode_length_buf = torch.tensor([0, 0, env.max_episode_length - 1])
        for _ in range(2):
            env.step(torch.zeros(3, 4))
        env.close()
    assert [(a["env_id"], a["success"]) for a, _ in episodes(tmp_path / "file.hdf5")] == [(2, True)] * 2


def test_nothing_is_lost_when_the_program_stops(tmp_path):
    program = (
        "import sys, torch; sys.path[:0] = ['tests', 'tests/mdp']\n"
        "from test_recorders import make\n"
        f"env = make({str(tmp_path / 'file.hdf5')!r})\n"
        "for _ in range(2): env.step(torch.zeros(3, 4))\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 3, done.stderr
    assert [a["num_samples"] for a, _ in episodes(tmp_path / "file.hdf5")] == [2, 2, 2]


def test_without_recorders_nothing_is_added(tmp_path):
    env = make_ants(mode="graph")
    assert not any("record" in stage.name for stage in env.pipeline.stages)
    assert env.recorder_manager.active_terms == []
    env.close()


def test_a_missing_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match=r"pip install 'treadle\[record\]'"):
        make(tmp_path / "file.hdf5")


def test_an_unknown_term_of_success_is_refused_before_a_file_is_opened(tmp_path):
    cfg = RecordingCfg(path=str(tmp_path / "file.hdf5"), success_term="goal")
    with pytest.raises(ConfigError, match=r"recording\.success_term is 'goal'; allowed: time_out, None"):
        make_ants(terminations=TIME_OUT, recorders=RECORDERS, recording=cfg)
    assert not (tmp_path / "file.hdf5").exists()
