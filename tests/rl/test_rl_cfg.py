"""The learner's configuration, and configurations as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

import pytest
from point_mass import PointMassEnvCfg, PointMassRunnerCfg

from treadle.assets import ActuatorCfg
from treadle.errors import ConfigError
from treadle.registry import list_tasks, task_spec
from treadle.rl import ActorModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg
from treadle.rl.plain import from_json, to_json


def test_all_problems_are_reported_together_with_their_fields():
    cfg = OnPolicyRunnerCfg(
        num_steps_per_env=0,
        clip_actions=-1.0,
        actor=ActorModelCfg(hidden_dims=(64, 0), init_std=math.nan),
        algorithm=PPOAlgorithmCfg(gamma=1.5, learning_rate=0.0, num_mini_batches=0),
    )
    with pytest.raises(ConfigError) as caught:
        cfg.validate()
    for path in (
        "agent.num_steps_per_env is 0",
        "agent.clip_actions is -1.0",
        "agent.actor.hidden_dims is (64, 0)",
        "agent.actor.init_std is nan",
        "agent.algorithm.gamma is 1.5",
        "agent.algorithm.learning_rate is 0.0",
        "agent.algorithm.num_mini_batches is 0",
    ):
        assert path in str(caught.value)


@pytest.mark.parametrize("value", [1e30, 10**400, -(10**400), math.nan, math.inf, "x", 10**12])
def test_no_number_is_without_a_bound(value):
    """A number that no kernel or tensor can hold is said with the range, for every field."""
    root = OnPolicyRunnerCfg()
    for where, cfg in (
        ("agent", root),
        ("agent.actor", root.actor),
        ("agent.critic", root.critic),
        ("agent.algorithm", root.algorithm),
    ):
        for name, hint in vars(type(cfg)()).items():
            if type(hint) in (int, float) or name == "clip_actions":
                setattr(cfg, name, value)
                problems = list(root.problems())
                assert [p for p in problems if p.startswith(f"{where}.{name} is ") and "allowed: " in p], name
                setattr(cfg, name, hint)
    assert list(root.problems()) == []


def test_a_range_is_named():
    cfg = OnPolicyRunnerCfg(num_steps_per_env=10**11, actor=ActorModelCfg(hidden_dims=(8, 10**12)))
    cfg.algorithm.learning_rate = 1e30
    problems = list(cfg.problems())
    assert "agent.num_steps_per_env is 100000000000; allowed: 1 to 1000000" in problems
    assert "agent.actor.hidden_dims is (8, 1000000000000); allowed: one or more widths of 1 to 65536" in problems
    assert "agent.algorithm.learning_rate is 1e+30; allowed: above 0, at most 1" in problems


def test_a_stored_number_that_no_float_holds_is_an_error_with_its_field():
    with pytest.raises(ConfigError, match="maybe is 1000"):
        from_json('{"maybe": 1' + "0" * 400 + "}", Everything())


@pytest.mark.parametrize("task", list_tasks())
def test_every_tasks_learner_configuration_is_valid_and_comes_back_from_json(task):
    cfg = task_spec(task).load_agent_cfg()
    cfg.validate()
    assert from_json(to_json(cfg), type(cfg)()) == cfg


def test_the_ant_has_the_published_constants():
    cfg = task_spec("Ant-Direct").load_agent_cfg()
    assert (cfg.num_steps_per_env, cfg.max_iterations, cfg.seed, cfg.clip_actions) == (32, 1000, 42, None)
    assert cfg.init_at_random_ep_len
    for model in (cfg.actor, cfg.critic):
        assert (model.hidden_dims, model.activation, model.obs_normalization) == ((400, 200, 100), "elu", False)
    assert cfg.actor.init_std == 1.0
    assert cfg.algorithm == PPOAlgorithmCfg(
        clip_param=0.2,
        use_clipped_value_loss=True,
        gamma=0.99,
        lam=0.95,
        schedule="adaptive",
        desired_kl=0.01,
        max_grad_norm=1.0,
        num_mini_batches=4,
        num_learning_epochs=5,
        entropy_coef=0.0,
        learning_rate=5e-4,
        value_loss_coef=1.0,
    )


def test_every_field_of_the_algorithm_reaches_rsl_rl():
    import inspect

    from rsl_rl.algorithms import PPO

    ours = PPOAlgorithmCfg().to_rsl_rl()
    assert set(ours) - {"class_name"} <= set(inspect.signature(PPO.__init__).parameters)


@dataclass(kw_only=True)
class Everything:
    """One field of each kind that configurations have."""

    limits: dict[str, float] = field(default_factory=lambda: {"a": 1.0})
    vector: tuple[float, float] = (0.0, 1.0)
    names: tuple[str, ...] = ()
    groups: dict[str, ActuatorCfg] = field(default_factory=dict)
    maybe: float | None = None


def test_numbers_keep_their_type_and_infinity_survives_in_standard_json():
    cfg = Everything(
        limits={"b": math.inf}, vector=(-math.inf, 2), groups={"legs": ActuatorCfg(damping=3.0)}, maybe=1.0
    )
    text = to_json(cfg)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    json.loads(text, parse_constant=refuse)
    back = from_json(text, Everything())
    assert back == cfg
    assert isinstance(back.vector, tuple)
    assert isinstance(back.groups["legs"], ActuatorCfg)
    assert back.groups["legs"].effort_limit == math.inf


def test_a_derived_configuration_comes_back_as_its_own_class():
    cfg = PointMassEnvCfg(push=0.5)
    cfg.scene.num_envs = 3
    back = from_json(to_json(cfg), PointMassEnvCfg())
    assert back == cfg
    assert type(from_json(to_json(PointMassRunnerCfg()), PointMassRunnerCfg()).actor) is ActorModelCfg


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectr": [1, 2]}, "no field 'vectr' .*did you mean 'vector'"),
        ({"vector": [1.0]}, "vector has 1 values"),
        ({"vector": [1.0, "x"]}, r"vector\[1\] is 'x'"),
        ({"maybe": "x"}, "maybe is 'x'.*allowed: float or NoneType"),
        ({"names": 3}, "names is 3"),
    ],
)
def test_a_stored_value_that_does_not_fit_is_an_error_with_its_field(change, message):
    with pytest.raises(ConfigError, match=message):
        from_json(json.dumps(change), Everything())


def test_a_field_that_was_added_later_takes_its_default():
    assert from_json('{"maybe": 2}', Everything()) == Everything(maybe=2.0)
