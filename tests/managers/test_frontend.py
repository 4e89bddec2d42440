"""One configuration, two frontends."""

from __future__ import annotations

import copy

import pytest
import torch
import warp as wp
from support.cartpole_terms import ROBOT, cart, make_cartpole, policy, ramp, run, without_twin

from treadle.assets import ArticulationState
from treadle.errors import ConfigError, UnknownNameError
from treadle.managers import (
    ManagerTermBase,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    find_twin,
    warp_twin,
)
from treadle.managers.frontend import MissingTwinsError, adapt_to_warp, missing_twins
from treadle.registry import task_spec


def foreign(env) -> torch.Tensor:
    """A term of somebody else."""
    return env.scene["robot"].data.torch.joint_pos[:, 1]


def test_adapting_is_idempotent():
    cfg = task_spec("Cartpole").load_env_cfg()
    adapt_to_warp(cfg)
    once = {name: term.twin for name, term in cfg.rewards.items()}
    assert all(twin is not None for twin in once.values())
    adapt_to_warp(cfg)
    assert {name: term.twin for name, term in cfg.rewards.items()} == once


def test_all_missing_twins_are_reported_together_with_their_paths():
    cfg = task_spec("Cartpole").load_env_cfg()
    cfg.rewards["bad"] = RewardTermCfg(func=without_twin)
    cfg.observations["policy"].terms["also"] = ObservationTermCfg(func=without_twin, params={"scale": 2.0})
    cfg.terminations["third"] = TerminationTermCfg(func=lambda env: env.buffers.torch.terminated)
    with pytest.raises(MissingTwinsError) as error:
        adapt_to_warp(cfg)
    for path in ("rewards.bad", "observations.policy.terms.also", "terminations.third"):
        assert path in str(error.value)
    assert len(missing_twins(cfg)) == 3


def test_a_twin_can_be_attached_to_a_function_of_somebody_else():
    assert find_twin(foreign) is None

    @warp_twin(f"{__name__}:foreign", extra=lambda env, params: {"joint_pos": env.robot.data.joint_pos})
    def _(env: int, joint_pos: __import__("warp").array2d[float]) -> float:
        return joint_pos[env, 1]

    assert find_twin(foreign) is not None
    env = make_cartpole(rewards={"foreign": RewardTermCfg(func=foreign)})
    env.reset()
    reward = env.step(torch.zeros(5, 1))[1]
    torch.testing.assert_close(reward, foreign(env) * env.step_dt)


def test_a_parameter_that_the_twin_does_not_take_is_said():
    cfg = task_spec("Cartpole").load_env_cfg()
    cfg.rewards["cart"] = RewardTermCfg(func=cart, params={"asset_cfg": SceneEntityCfg(joint_names="slider_to_cart")})
    with pytest.raises(
        MissingTwinsError, match=r"rewards\.cart\.params\['asset_cfg'\]\.joint_names is 'slider_to_cart'"
    ):
        adapt_to_warp(cfg)


class decayed(ManagerTermBase):
    """A class whose Warp form takes neither its parameter nor its reset."""

    def __call__(self, env, std: float = 1.0) -> torch.Tensor:
        """Return the parameter."""
        return torch.full((env.num_envs,), std)

    def reset(self, env_mask):
        """Restart."""


class consuming(decayed):
    """A class that makes its parameter into an attribute."""

    consumes = ("std",)


@warp_twin(decayed)
def _(env: int) -> float:
    return 1.0


def no_reset(env: int):
    pass


@warp_twin(consuming, reset=no_reset)
def _(env: int) -> float:
    return 1.0


def test_a_class_hides_neither_parameters_nor_its_reset():
    cfg = task_spec("Cartpole").load_env_cfg()
    cfg.rewards = {"a": RewardTermCfg(func=decayed, params={"std": 5.0}), "b": RewardTermCfg(func=consuming)}
    problem = missing_twins(cfg)
    assert set(problem) == {"rewards.a"}
    assert "rewards.a.params['std'] is 5.0, which the Warp form does not take" in problem["rewards.a"]
    assert "rewards.a: decayed has a reset, and its Warp form none" in problem["rewards.a"]
    with pytest.raises(ConfigError, match=r"rewards\.a\.params\['std'\]"):
        make_cartpole(rewards=cfg.rewards)
    make_cartpole(rewards={"b": cfg.rewards["b"]}).close()


def made(factor: float):
    """Return a term and its Warp form, which differ from call to call."""

    def term(env) -> torch.Tensor:
        return torch.full((env.num_envs,), factor)

    @warp_twin(term)
    def _(env: int) -> float:
        return wp.static(factor)

    return term


def test_functions_made_in_functions_have_warp_forms_of_their_own():
    one, two, three = made(1.0), made(2.0), lambda env: torch.full((env.num_envs,), 3.0)

    @warp_twin(three)
    def _(env: int) -> float:
        return 3.0

    assert len({find_twin(one), find_twin(two), find_twin(three)}) == 3
    terms = {name: RewardTermCfg(func=func) for name, func in (("a", one), ("b", two), ("c", three))}
    env = make_cartpole(rewards=terms)
    env.step(torch.zeros(5, 1))
    values = env.buffers.torch.reward_terms[0] / env.step_dt
    torch.testing.assert_close(values, torch.tensor([1.0, 2.0, 3.0]))
    env.close()
    with pytest.raises(
        ConfigError, match=r"made.<locals>.term may be .* several functions; allowed: the function itself"
    ):
        warp_twin(f"{__name__}:made.<locals>.term")


@pytest.mark.parametrize("name", ["my term", "a-b", "1st", "lambda", "a.b"])
def test_names_of_terms_are_names(name):
    with pytest.raises(ConfigError, match=rf"rewards has the name '{name}'; allowed: letters, digits and _"):
        make_cartpole(rewards={name: RewardTermCfg(func=cart)})
    with pytest.raises(ConfigError, match=rf"observations\.policy\.terms has the name '{name}'"):
        make_cartpole(observations=policy(**{name: ObservationTermCfg(func=ramp)}))


def test_terms_and_groups_that_are_none_are_left_out():
    groups = policy(ramp=ObservationTermCfg(func=ramp), gone=None)
    env = make_cartpole(
        observations={**groups, "critic": None}, rewards={"gone": None, "cart": RewardTermCfg(func=cart)}
    )
    assert env.observation_manager.active_terms == {"policy": ["ramp"]}
    assert env.reward_manager.active_terms == ["cart"]
    env.close()
    with pytest.raises(ConfigError, match=r"observations\.policy\.terms is empty"):
        make_cartpole(observations=policy(gone=None))


class pair(ManagerTermBase):
    """A class whose buffer has the name that the kernel might give to what it returns."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.value = wp.full(env.num_envs, 2.0, dtype=float, device=env.device)

    def __call__(self, env) -> torch.Tensor:
        """Return the buffer twice."""
        return wp.to_torch(self.value)[:, None].repeat(1, 2)


@warp_twin(pair)
def _(env: int, value: wp.array[float]) -> wp.vec2:
    return wp.vec2(value[env], value[env])


def test_a_buffer_may_be_called_value():
    env = make_cartpole(observations=policy(a=ObservationTermCfg(func=pair)))
    assert torch.equal(env.reset()[0]["policy"], torch.full((5, 2), 2.0))
    env.close()


def test_a_term_may_ask_for_its_torch_form():
    terms = {"cart": RewardTermCfg(func=cart, twin="torch")}
    with pytest.raises(MissingTwinsError, match=r"rewards\.cart\.twin is 'torch'"):
        make_cartpole(rewards=terms)
    env = make_cartpole(rewards=terms, allow_torch_terms=True)
    assert "rewards in torch" in [stage.name for stage in env.pipeline.stages]
    env.close()


def test_torch_terms_between_graphs():
    terms = {
        "fast": RewardTermCfg(func=cart, weight=2.0),
        "slow": RewardTermCfg(func=without_twin, weight=3.0, params={"scale": 0.5}),
    }
    mixed = make_cartpole(rewards=terms, allow_torch_terms=True)
    whole = make_cartpole(rewards=terms, frontend="torch")
    runs = [run(env, 20) for env in (mixed, whole)]
    torch.testing.assert_close(runs[0]["reward"], runs[1]["reward"])
    assert mixed.pipeline.graph_count == 2
    assert "stages in 2 graphs" in mixed.launch_report()
    assert mixed.scope.stats.fallback_reasons() == {}
    assert [s.name for s in mixed.pipeline.stages if s.break_reason] == ["rewards in torch"]


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_errors_say_who_where_and_what_is_allowed(frontend):
    wrong = {
        "a": RewardTermCfg(func=cart, params={"asset_cfg": SceneEntityCfg(joint_names="nothing.*")}),
        "b": RewardTermCfg(func=cart, params={"gian": 1.0}),
        "c": RewardTermCfg(func=cart, params={"asset_cfg": SceneEntityCfg(name="robt")}),
    }
    expected = {
        "a": r"rewards\.a\.params\['asset_cfg'\]\.joint_names: 'nothing\.\*' matches no name; allowed: slider_to_cart",
        "b": r"rewards\.b\.params\['gian'\] is no parameter of the term; allowed: gain, asset_cfg",
        "c": r"unknown entity of the scene 'robt'.*did you mean 'robot'",
    }
    for name, term in wrong.items():
        if name == "a" and frontend == "warp":
            continue  # the twin takes no selection, which is said first
        with pytest.raises((ConfigError, UnknownNameError), match=expected[name]):
            make_cartpole(frontend=frontend, rewards={name: term})


def test_a_torch_term_of_the_wrong_shape_or_type():
    def wide(env):
        return torch.zeros(env.num_envs, 2)

    def number(env):
        return 1.0

    def not_bool(env):
        return torch.zeros(env.num_envs)

    env = make_cartpole(frontend="torch", rewards={"wide": RewardTermCfg(func=wide)})
    with pytest.raises(ConfigError, match=r"rewards\.wide returned a tensor of shape \(5, 2\).*allowed: .*\(5,\)"):
        env.step(torch.zeros(5, 1))
    env = make_cartpole(frontend="torch", rewards={"number": RewardTermCfg(func=number)})
    with pytest.raises(ConfigError, match=r"rewards\.number returned a float"):
        env.step(torch.zeros(5, 1))
    env = make_cartpole(frontend="torch", terminations={"end": TerminationTermCfg(func=not_bool)})
    with pytest.raises(ConfigError, match=r"terminations\.end returned .* torch\.float32; allowed: .*torch\.bool"):
        env.step(torch.zeros(5, 1))
    with pytest.raises(ConfigError, match=r"observations\.policy\.terms\.number returned a float"):
        make_cartpole(frontend="torch", observations=policy(number=ObservationTermCfg(func=number)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_numbers_of_another_kind_are_refused(dtype):
    def term(env):
        return torch.zeros(env.num_envs, dtype=dtype)

    for fields in (
        {"rewards": {"a": RewardTermCfg(func=term)}},
        {"observations": policy(a=ObservationTermCfg(func=term))},
    ):
        env = make_cartpole(frontend="torch", **fields)
        with pytest.raises(
            ConfigError, match=rf"returned .* {dtype}; allowed: .* of a floating-point type or torch.bool"
        ):
            env.step(torch.zeros(5, 1))
        env.close()


def test_a_tensor_on_another_device_is_refused():
    def term(env):
        return torch.zeros(env.num_envs, device="meta")

    env = make_cartpole(frontend="torch", rewards={"a": RewardTermCfg(func=term)})
    with pytest.raises(ConfigError, match=r"rewards\.a returned .* on meta; allowed: cpu"):
        env.step(torch.zeros(5, 1))
    env.close()


def test_the_configuration_given_is_not_changed():
    cfg = task_spec("Cartpole").load_env_cfg()
    before = copy.deepcopy(cfg)
    make_cartpole(rewards=cfg.rewards, observations=policy(ramp=ObservationTermCfg(func=ramp)))
    assert cfg == before
    assert all(term.twin is None for term in cfg.rewards.values())


def no_such_field(env, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """A term whose Warp form reads what is not there."""
    return torch.zeros(env.num_envs)


@warp_twin(no_such_field)
def _(env: int, asset: ArticulationState) -> float:
    return asset.no_such_field[env]


def another_type(env, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """A term whose Warp form returns another type than it says."""
    return torch.zeros(env.num_envs)


@warp_twin(another_type)
def _(env: int, asset: ArticulationState) -> float:
    return asset.root_pos_w[env]


def test_a_warp_form_that_does_not_compile_is_said_when_the_environment_is_made():
    with pytest.raises(ConfigError, match=r"kernel rewards: [\s\S]*no_such_field\(env, robot\)[\s\S]*not an attribute"):
        make_cartpole(rewards={"a": RewardTermCfg(func=no_such_field)})
    with pytest.raises(ConfigError, match=r"kernel rewards: "):
        make_cartpole(rewards={"a": RewardTermCfg(func=another_type)})


def power(env, exponent: int, gain: float = 1.0, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """A power of the position of the first joint."""
    return gain * env.scene["robot"].data.torch.joint_pos[:, 0] ** exponent


@warp_twin(power)
def _(env: int, asset: ArticulationState, exponent: int, gain: float) -> float:
    result = float(1.0)
    for _i in range(exponent):
        result = result * asset.joint_pos[env, 0]
    return gain * result


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_both_frontends_hold_parameters_to_the_same_types(frontend):
    wrong = {
        "exponent": (2.5, r"is 2\.5; allowed: a whole number"),
        "gain": ("a", r"is 'a'; allowed: a number"),
    }
    for name, (value, message) in wrong.items():
        params = {"exponent": 2} | {name: value}
        with pytest.raises(ConfigError, match=rf"rewards\.a\.params\['{name}'\] {message}"):
            make_cartpole(frontend=frontend, rewards={"a": RewardTermCfg(func=power, params=params)})
    env = make_cartpole(frontend=frontend, rewards={"a": RewardTermCfg(func=power, params={"exponent": 2})})
    cfg = env.reward_manager.get_term_cfg("a")
    cfg.params["gain"] = float("nan")
    with pytest.raises(ConfigError, match=r"\['gain'\] is nan; allowed: a number"):
        env.reward_manager.set_term_cfg("a", cfg)
    env.reset()
    env.step(torch.zeros(5, 1))


def test_a_range_has_its_lower_end_first():
    cfg = task_spec("Cartpole").load_env_cfg()
    cfg.events["reset_cart_position"].params["position_range"] = (1.0, -1.0)
    cfg.terminations["cart_out_of_bounds"].params["bounds"] = (float("nan"), 1.0)
    with pytest.raises(ConfigError, match=r"position_range'\] is \(1\.0, -1\.0\)") as error:
        cfg.validate()
    assert "bounds'] is (nan, 1.0); allowed: two numbers, the lower end first" in str(error.value)
