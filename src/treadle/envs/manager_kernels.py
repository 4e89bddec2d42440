"""The generated kernels of a manager-based environment."""

from __future__ import annotations

from typing import Any

from treadle.envs.funcs import (
    all_finite,
    clear_episode,
    finish_observation,
    finish_reward,
    log_episode,
    publish_flags,
    publish_observation,
)
from treadle.launch import LaunchScope
from treadle.managers.env_state import BYSTANDING, STEPPING
from treadle.managers.kernel_builder import FusedKernel, KernelBuilder, load_kernels

__all__ = ["ManagerKernels"]


class ManagerKernels:
    """One kernel for each part of a step, with one thread per environment.

    Args:
        env: The environment, with its managers made.
    """

    def __init__(self, env: Any):
        self._env = env
        self.by_name: dict[str, FusedKernel] = {}
        self.build()

    def launch(self, name: str) -> None:
        """Launch a kernel."""
        self.by_name[name].launch()

    def build(self) -> list[LaunchScope]:
        """Generate all kernels. One whose text and arguments are what they were stays as it is.

        Returns:
            The owners of those that are not.
        """
        env = self._env
        new = {
            "begin step": self._begin_step().build(env.action_manager.scope, env.num_envs),
            "terminations": self._terminations().build(env.termination_manager.scope, env.num_envs),
            "rewards": self._rewards().build(env.reward_manager.scope, env.num_envs),
        }
        apply = KernelBuilder("apply_actions", "Set the targets that depend on the state before a physics step.")
        env.action_manager.write_apply(apply)
        after = self._after_reset()
        for name, builder, owner in (
            ("apply actions", apply, env.action_manager),
            ("after reset", after, env.command_manager),
        ):
            if not builder.is_empty:
                new[name] = builder.build(owner.scope, env.num_envs)
        for index, (uses_warp, names) in enumerate(env.event_manager.segments()):
            if uses_warp:
                new[f"reset {index}"] = self._reset(index, names).build(env.event_manager.scope, env.num_envs)
        for name, group in env.observation_manager.groups.items():
            new[f"observations {name}"] = self._observations(name, group).build(group.scope, env.num_envs)
        for manager in self._with_threads():
            for term in manager.threaded_terms:
                new[f"{manager.kind}.{term}"] = self._threaded(manager, term).build(manager.scope, env.num_envs)
        before = self.by_name
        kernels = {
            name: old if (old := before.get(name)) is not None and old.is_like(kernel) else kernel
            for name, kernel in new.items()
        }
        load_kernels(kernels.values(), env.device)
        self.by_name = kernels
        replaced = [kernel for name, kernel in before.items() if kernels.get(name) is not kernel]
        return list(dict.fromkeys(kernel.scope for kernel in replaced))

    def _with_threads(self) -> list[Any]:
        """Return the managers whose terms may have kernels of their own."""
        env = self._env
        return [env.termination_manager, env.reward_manager, *env.observation_manager.groups.values()]

    def _threaded(self, manager: Any, term: str) -> KernelBuilder:
        threads = manager.terms[term].threads
        b = KernelBuilder(f"{manager.variable}_{term}", f"Compute the term {term!r} with {threads} threads.", threads)
        manager.write_thread(b, term)
        return b

    def _begin_step(self) -> KernelBuilder:
        env, buffers = self._env, self._env.buffers
        b = KernelBuilder("begin_step", "Take the actions over, count the step, and process the actions.")
        state, given = b.argument("state", env.state), b.argument("action_input", buffers.action_input)
        with b.block(f"for i in range({env.num_actions}):"):
            b.line(f"{state}.previous_actions[env, i] = {state}.actions[env, i]")
            b.line(f"{state}.actions[env, i] = {given}[env, i]")
        for counter in ("episode_length", "steps_taken", "common_step"):
            b.line(f"{state}.{counter}[env] = {state}.{counter}[env] + 1")
        env.action_manager.write(b)
        return b

    def _terminations(self) -> KernelBuilder:
        env, physics = self._env, self._env.physics
        b = KernelBuilder("terminations", "Find the episodes that end, those that are not finite among them.")
        state = b.argument("state", env.state)
        bad_observation = b.argument("bad_observation", env.buffers.bad_observation)
        bad_measurement = b.argument("bad_measurement", physics.bad_measurement)
        arrays = [b.argument(name, getattr(physics, name)) for name in ("joint_q", "joint_qd", "body_parent_f")]
        finite = f"{b.function(all_finite)}(env, {state}.actions, {', '.join(arrays)})"
        b.line(f"{state}.non_finite[env] = {bad_observation}[env] or {bad_measurement}[env] or not {finite}")
        b.line(f"{bad_observation}[env] = False")
        b.line(f"{bad_measurement}[env] = False")
        env.termination_manager.write(b)
        return b

    def _rewards(self) -> KernelBuilder:
        env, buffers = self._env, self._env.buffers
        b = KernelBuilder("rewards", "Compute the reward terms, their sum, and their sums over the episode.")
        state = b.argument("state", env.state)
        env.reward_manager.write(b)
        names = ("reward_terms", "reward", "episode_sums", "non_finite_terms")
        arrays = [b.argument(name, getattr(buffers, name)) for name in names]
        flags = [f"{state}.{name}" for name in ("non_finite", "terminated", "truncated", "reset_mask")]
        b.comment("sums; an environment that is not finite gets no reward and ends")
        b.line(f"{b.function(finish_reward)}(env, {', '.join([*arrays, *flags])})")
        outputs = buffers.outputs
        results = [arrays[1], flags[1], flags[2]]
        results += [b.argument(f"{n}_output", getattr(outputs, n)) for n in ("reward", "terminated", "truncated")]
        b.line(f"{b.function(publish_flags)}(env, {state}.common_step, {', '.join(results)})")
        return b

    def _reset(self, index: int, names: list[str]) -> KernelBuilder:
        b = KernelBuilder(f"reset_{index}", "Start new episodes where one ended, and run the events that are due.")
        if index == 0:
            self._write_episode_end(b)
            self._env.event_manager.write_timers(b)
        if index == 0 or names:
            self._env.event_manager.write_terms(b, names)
        return b

    def _write_episode_end(self, b: KernelBuilder) -> None:
        env, buffers = self._env, self._env.buffers
        state = b.argument("state", env.state)
        b.line(f"{state}.moved_mask[env] = {state}.reset_mask[env]")
        sums = b.argument("episode_sums", buffers.episode_sums)
        log = b.argument("episode_log", env.episode_log.sums)
        b.comment("log the episode, unless it is cut short from outside")
        with b.block(f"if {state}.reset_mask[env] and {state}.phase[env] == {STEPPING}:"):
            flags = ", ".join(f"{state}.{n}" for n in ("truncated", "non_finite", "episode_length", "steps_taken"))
            b.line(f"{b.function(log_episode)}(env, {flags}, {sums}, {log})")
            first = env.episode_log.first_mean
            for column in range(len(env.termination_manager.active_terms)):
                held = f"wp.where({state}.termination_terms[env, {column}], wp.float64(1.0), wp.float64(0.0))"
                b.line(f"wp.atomic_add({log}, {first + column}, {held})")
            first += len(env.termination_manager.active_terms)
            for index, (name, (term, column)) in enumerate(env.command_manager.metrics.items()):
                metrics = b.argument(f"{name.split('/')[1]}_metrics", term.metrics)
                b.line(f"wp.atomic_add({log}, {first + index}, wp.float64({metrics}[env, {column}]))")
        b.comment("start anew")
        with b.block(f"if {state}.reset_mask[env]:"):
            cleared = f"{state}.episode_length, {state}.steps_taken, {sums}, {state}.actions"
            b.line(f"{b.function(clear_episode)}(env, {cleared})")
            if bodies := env.physics.external_wrench.shape[1]:
                wrench = b.argument("external_wrench", env.physics.external_wrench)
                with b.block(f"for i in range({bodies}):"):
                    b.line(f"{wrench}[env, i] = wp.spatial_vector()")
            with b.block(f"for i in range({env.num_actions}):"):
                b.line(f"{state}.previous_actions[env, i] = 0.0")

    def _after_reset(self) -> KernelBuilder:
        env = self._env
        b = KernelBuilder("after_reset", "Restart terms with a state in new episodes, and draw and update commands.")
        inner = KernelBuilder("probe", "")
        for manager in env._resettable:
            manager.write_reset(inner)
        if not inner.is_empty:
            with b.block(f"if {b.argument('state', env.state)}.reset_mask[env]:"):
                for manager in env._resettable:
                    manager.write_reset(b)
        commands = KernelBuilder("probe", "")
        env.command_manager.write(commands)
        if not commands.is_empty:
            with b.block(f"if {b.argument('state', env.state)}.phase[env] != {BYSTANDING}:"):
                env.command_manager.write(b)
        return b

    def _observations(self, name: str, group: Any) -> KernelBuilder:
        env = self._env
        text = "".join(c if c.isalnum() else "_" for c in name)
        b = KernelBuilder(f"observe_{text}", f"Compute the observation group {name!r}.")
        state = b.argument("state", env.state)
        with b.block(f"if {state}.phase[env] != {BYSTANDING}:"):
            group.write(b)
            b.comment("an observation that is not finite is zeroed, and its environment ends at the next step")
            buffer = b.argument("group", env.buffers.observations[name])
            bad = b.argument("bad_observation", env.buffers.bad_observation)
            b.line(f"{b.function(finish_observation)}(env, {buffer}, {bad})")
            output = b.argument("output", env.buffers.outputs.observations[name])
            with b.block(f"if {state}.phase[env] == {STEPPING}:"):
                b.line(f"{b.function(publish_observation)}(env, {state}.common_step, {buffer}, {output})")
        return b
