"""What happens to an observation term after it is computed: modifiers, noise, clip, scale, delay, history."""

from __future__ import annotations

from typing import Any

import warp as wp

from treadle.errors import ConfigError
from treadle.managers.cfg import ObservationTermCfg
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.modifiers import (
    BiasModifierCfg,
    ClipModifierCfg,
    DigitalFilterCfg,
    IntegratorCfg,
    ModifierCfg,
    ScaleModifierCfg,
)
from treadle.managers.noise import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseCfg,
    NoiseModelCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)

__all__ = ["ObservationPipeline"]


class ObservationPipeline:
    """Writes the operations on one term's columns into a kernel.

    Args:
        name: Name of the term.
        cfg: Its configuration, without noise where the group has no corruption.
        width: Columns of one step.
        first: First column in the group's buffer.
        steps: Steps of history, 1 for none.
        stride: Columns from one step of history to the next.
        group: The manager of the group.
    """

    def __init__(self, name: str, cfg: ObservationTermCfg, width: int, first: int, steps: int, stride: int, group: Any):
        self.name, self.width, self.first, self.steps, self.stride = name, width, first, steps, stride
        self._cfg = cfg
        self._where = f"{group.kind}.{name}"
        self._env = group.env
        self._params = group.params
        self._check()
        self._numbers = {key: group.params.add(values) for key, values in self._number_lists(cfg).items()}
        self._buffers = {key: self._zeros(columns) for key, columns in self._buffer_widths().items()}
        self._delayed_steps = wp.zeros(self._env.num_envs, dtype=int, device=self._env.device)

    def go_on_from(self, previous: ObservationPipeline) -> None:
        """Take over the state of a pipeline with the same operations on as many columns."""
        if previous.width == self.width and previous._shape_of(previous._cfg) == self._shape_of(self._cfg):
            self._buffers, self._delayed_steps = previous._buffers, previous._delayed_steps

    @property
    def newest(self) -> int:
        """First column of the newest step."""
        return self.first + (self.steps - 1) * self.stride

    def describe(self) -> str:
        """Return a line about the columns."""
        columns = (
            f"column {self.newest}" if self.width == 1 else f"columns {self.newest} to {self.newest + self.width - 1}"
        )
        return columns + (f", the newest of {self.steps} steps" if self.steps > 1 else "")

    def update(self, cfg: ObservationTermCfg) -> bool:
        """Take the numbers of another configuration; return whether something compiled in changed."""
        if self._shape_of(cfg) != self._shape_of(self._cfg):
            return True
        for key, values in self._number_lists(cfg).items():
            self._params.set(self._numbers[key], values)
        self._cfg = cfg
        return False

    def write_shift(self, builder: KernelBuilder, buffer: str) -> None:
        """Write the move of the history by one step, which makes room for the newest."""
        if self.steps > 1:
            with builder.block(f"for step in range({self.steps - 1}):"):
                with builder.block(f"for i in range({self.width}):"):
                    here = f"{self.first} + step * {self.stride} + i"
                    builder.line(f"{buffer}[env, {here}] = {buffer}[env, {here} + {self.stride}]")

    def write(self, builder: KernelBuilder, buffer: str) -> None:
        """Write all operations on the newest step, in the field's order."""
        state = builder.argument("state", self._env.state)
        if self._is_noisy or self._cfg.delay_max_lag:
            builder.line(f"rng = {state}.random_state[env]")
        self._write_bias(builder, state)
        if self._changes_values:
            with builder.block(f"for i in range({self.width}):"):
                builder.line(f"x = {buffer}[env, {self.newest} + i]")
                self._write_modifiers(builder, state)
                self._write_noise(builder)
                self._write_clip_and_scale(builder)
                builder.line(f"{buffer}[env, {self.newest} + i] = x")
        self._write_delay(builder, buffer, state)
        if self._is_noisy or self._cfg.delay_max_lag:
            builder.line(f"{state}.random_state[env] = rng")
        self._write_first_history(builder, buffer, state)

    # -- operations -------------------------------------------------------------------------------------------------

    def _write_modifiers(self, builder: KernelBuilder, state: str) -> None:
        for index, modifier in enumerate(self._cfg.modifiers):
            p = self._reader(builder, f"modifier {index}")
            if isinstance(modifier, ScaleModifierCfg):
                builder.line(f"x = x * {p(0)}")
            elif isinstance(modifier, BiasModifierCfg):
                builder.line(f"x = x + {p(0)}")
            elif isinstance(modifier, ClipModifierCfg):
                builder.line(f"x = wp.clamp(x, {p(0)}, {p(1)})")
            else:
                past = builder.argument(f"{self.name}_past_{index}", self._buffers[f"modifier {index}"])
                write = self._write_integrator if isinstance(modifier, IntegratorCfg) else self._write_filter
                write(builder, modifier, past, p, state)

    def _write_integrator(self, builder: KernelBuilder, modifier: Any, past: str, p: Any, state: str) -> None:
        """The past of a column: the integral, then the last value."""
        with builder.block(f"if {state}.reset_mask[env]:"):
            builder.line(f"{past}[env, 2 * i] = 0.0")
            builder.line(f"{past}[env, 2 * i + 1] = 0.0")
        builder.line(f"{past}[env, 2 * i] = {past}[env, 2 * i] + 0.5 * (x + {past}[env, 2 * i + 1]) * {p(0)}")
        builder.line(f"{past}[env, 2 * i + 1] = x")
        builder.line(f"x = {past}[env, 2 * i]")

    def _write_filter(self, builder: KernelBuilder, modifier: Any, past: str, p: Any, state: str) -> None:
        """The past of a column: outputs, the newest first, then inputs, the newest first."""
        outputs, inputs = len(modifier.A), len(modifier.B) - 1
        size = outputs + inputs
        if size:
            with builder.block(f"if {state}.reset_mask[env]:"):
                with builder.block(f"for k in range({size}):"):
                    builder.line(f"{past}[env, {size} * i + k] = 0.0")
        terms = [f"{p(outputs)} * x"]
        terms += [f"{p(outputs + 1 + k)} * {past}[env, {size} * i + {outputs + k}]" for k in range(inputs)]
        terms += [f"-{p(k)} * {past}[env, {size} * i + {k}]" for k in range(outputs)]
        builder.line(f"y = {' + '.join(terms)}")
        for first, count, newest in ((0, outputs, "y"), (outputs, inputs, "x")):
            for k in range(count - 1, 0, -1):
                builder.line(f"{past}[env, {size} * i + {first + k}] = {past}[env, {size} * i + {first + k - 1}]")
            if count:
                builder.line(f"{past}[env, {size} * i + {first}] = {newest}")
        builder.line("x = y")

    def _write_bias(self, builder: KernelBuilder, state: str) -> None:
        noise = self._cfg.noise
        if isinstance(noise, NoiseModelWithAdditiveBiasCfg):
            bias = builder.argument(f"{self.name}_bias", self._buffers["bias"])
            columns = self._buffers["bias"].shape[1]
            with builder.block(f"if {state}.reset_mask[env]:"):
                with builder.block(f"for i in range({columns}):"):
                    draw = _draw(noise.bias_noise_cfg, self._reader(builder, "bias"))
                    builder.line(f"{bias}[env, i] = {_apply(noise.bias_noise_cfg, '0.0', draw)}")

    def _write_noise(self, builder: KernelBuilder) -> None:
        noise = self._cfg.noise
        if noise is None:
            return
        cfg = noise.noise_cfg if isinstance(noise, NoiseModelCfg) else noise
        builder.line(f"x = {_apply(cfg, 'x', _draw(cfg, self._reader(builder, 'noise')))}")
        if isinstance(noise, NoiseModelWithAdditiveBiasCfg):
            column = "i" if self._buffers["bias"].shape[1] > 1 else "0"
            builder.line(f"x = x + {builder.argument(f'{self.name}_bias', self._buffers['bias'])}[env, {column}]")

    def _write_clip_and_scale(self, builder: KernelBuilder) -> None:
        if self._cfg.clip is not None:
            p = self._reader(builder, "clip")
            builder.line(f"x = wp.clamp(x, {p(0)}, {p(1)})")
        if isinstance(self._cfg.scale, tuple):
            builder.line(f"x = x * {builder.params(self._params)}[{self._numbers['scale']} + i]")
        elif self._cfg.scale is not None:
            builder.line(f"x = x * {self._reader(builder, 'scale')(0)}")

    def _write_delay(self, builder: KernelBuilder, buffer: str, state: str) -> None:
        lags = self._cfg.delay_max_lag
        if not lags:
            return
        ring = builder.argument(f"{self.name}_ring", self._buffers["delay"])
        count = builder.argument(f"{self.name}_delayed_steps", self._delayed_steps)
        slots = lags + 1
        with builder.block(f"if {state}.reset_mask[env]:"):
            builder.line(f"{count}[env] = 0")
        builder.line(f"lag = wp.min(wp.randi(rng, {self._cfg.delay_min_lag}, {slots}), {count}[env])")
        with builder.block(f"for i in range({self.width}):"):
            builder.line(f"{ring}[env, ({count}[env] % {slots}) * {self.width} + i] = {buffer}[env, {self.newest} + i]")
        with builder.block(f"for i in range({self.width}):"):
            slot = f"(({count}[env] - lag) % {slots}) * {self.width} + i"
            builder.line(f"{buffer}[env, {self.newest} + i] = {ring}[env, {slot}]")
        builder.line(f"{count}[env] = {count}[env] + 1")

    def _write_first_history(self, builder: KernelBuilder, buffer: str, state: str) -> None:
        if self.steps > 1:
            with builder.block(f"if {state}.reset_mask[env]:"):
                with builder.block(f"for step in range({self.steps - 1}):"):
                    with builder.block(f"for i in range({self.width}):"):
                        past = f"{self.first} + step * {self.stride} + i"
                        builder.line(f"{buffer}[env, {past}] = {buffer}[env, {self.newest} + i]")

    # -- numbers and buffers ----------------------------------------------------------------------------------------

    @property
    def _is_noisy(self) -> bool:
        return self._cfg.noise is not None

    @property
    def _changes_values(self) -> bool:
        cfg = self._cfg
        return bool(cfg.modifiers) or cfg.noise is not None or cfg.clip is not None or cfg.scale is not None

    def _reader(self, builder: KernelBuilder, key: str) -> Any:
        array, start = builder.params(self._params), self._numbers[key]
        return lambda index: f"{array}[{start + index}]"

    def _number_lists(self, cfg: ObservationTermCfg) -> dict[str, list[float]]:
        lists = {f"modifier {index}": list(modifier.numbers()) for index, modifier in enumerate(cfg.modifiers)}
        noise = cfg.noise
        if noise is not None:
            model = noise if isinstance(noise, NoiseModelCfg) else None
            lists["noise"] = list((noise.noise_cfg if model else noise).parameters.values())  # type: ignore[union-attr]
            if isinstance(noise, NoiseModelWithAdditiveBiasCfg):
                lists["bias"] = list(noise.bias_noise_cfg.parameters.values())
        if cfg.clip is not None:
            lists["clip"] = list(cfg.clip)
        if cfg.scale is not None:
            lists["scale"] = list(cfg.scale) if isinstance(cfg.scale, tuple) else [cfg.scale]
        return lists

    def _buffer_widths(self) -> dict[str, int]:
        widths = {}
        for index, modifier in enumerate(self._cfg.modifiers):
            if isinstance(modifier, IntegratorCfg):
                widths[f"modifier {index}"] = 2 * self.width
            elif isinstance(modifier, DigitalFilterCfg):
                widths[f"modifier {index}"] = max((len(modifier.A) + len(modifier.B) - 1) * self.width, 1)
        if isinstance(self._cfg.noise, NoiseModelWithAdditiveBiasCfg):
            widths["bias"] = self.width if self._cfg.noise.sample_bias_per_component else 1
        if self._cfg.delay_max_lag:
            widths["delay"] = (self._cfg.delay_max_lag + 1) * self.width
        return widths

    def _shape_of(self, cfg: ObservationTermCfg) -> tuple[Any, ...]:
        """Return all of a configuration that is compiled in."""
        noise = cfg.noise
        bias = noise.bias_noise_cfg if isinstance(noise, NoiseModelWithAdditiveBiasCfg) else None
        per_step = noise.noise_cfg if isinstance(noise, NoiseModelCfg) else noise
        return (
            tuple(_kind(modifier) for modifier in cfg.modifiers),
            tuple((type(n), n.operation) for n in (per_step, bias) if n is not None),
            type(noise),
            getattr(noise, "sample_bias_per_component", None),
            cfg.clip is None,
            len(cfg.scale) if isinstance(cfg.scale, tuple) else cfg.scale is None,
            (cfg.delay_min_lag, cfg.delay_max_lag, cfg.history_length, cfg.flatten_history_dim),
        )

    def _check(self) -> None:
        if isinstance(self._cfg.scale, tuple) and len(self._cfg.scale) != self.width:
            raise ConfigError(
                f"{self._where}.scale has {len(self._cfg.scale)} numbers; allowed: 1 or {self.width}, one per column"
            )

    def _zeros(self, columns: int) -> wp.array:
        return wp.zeros((self._env.num_envs, columns), dtype=float, device=self._env.device)


def _kind(modifier: ModifierCfg) -> tuple[Any, ...]:
    sizes = (len(modifier.A), len(modifier.B)) if isinstance(modifier, DigitalFilterCfg) else ()
    return (type(modifier), *sizes)


def _draw(cfg: NoiseCfg, p: Any) -> str:
    """Return the text of a draw from a distribution."""
    if isinstance(cfg, UniformNoiseCfg):
        return f"wp.randf(rng, {p(0)}, {p(1)})"
    if isinstance(cfg, GaussianNoiseCfg):
        return f"({p(0)} + {p(1)} * wp.randn(rng))"
    assert isinstance(cfg, ConstantNoiseCfg)
    return str(p(0))


def _apply(cfg: NoiseCfg, value: str, draw: str) -> str:
    return {"add": f"{value} + {draw}", "scale": f"{value} * {draw}", "abs": draw}[cfg.operation]
