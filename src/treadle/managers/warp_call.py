"""Calling the Warp form of a term in a generated kernel: what each argument is, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from treadle.assets.names import values_by_name
from treadle.errors import ConfigError
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.params import DeviceParams
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import WarpTwin, arguments_of

__all__ = ["WarpCall", "twin_problems"]

_GIVEN = ("env", "out", "thread")
"""Arguments that the generated kernel itself provides."""


class WarpCall:
    """The arguments of a term's Warp functions, found once.

    Args:
        twin: The Warp form.
        params: Parameters of the term, resolved.
        env: The environment.
        where: Path of the term's configuration, for errors.
        device_params: Device memory for numbers.
        name: Name of the term, for names in the kernel.
        instance: The term itself where it is a class, whose attributes are arguments.
        given: Arguments, beside ``env`` and ``out``, that the kernel provides.

    Raises:
        ConfigError: An argument is nowhere to be found, or has a value of another type; or the Warp form does not take
            a parameter that is set. All are reported together.
    """

    def __init__(
        self,
        twin: WarpTwin,
        params: Mapping[str, Any],
        env: Any,
        where: str,
        device_params: DeviceParams,
        name: str,
        instance: Any = None,
        given: tuple[str, ...] = (),
    ):
        self.twin = twin
        self._params = params
        self._env = env
        self._where = where
        self._device_params = device_params
        self._name = name
        self._instance = instance
        self._given = {*_GIVEN, *given}
        self._extra = self._find_extra()
        self._values: dict[str, Any] = {}
        self._numbers: dict[str, tuple[int, Any]] = {}
        self._arrays: set[str] = set()
        problems = [*self._find_all()]
        if problems:
            raise ConfigError.from_problems(problems)

    def expression(self, builder: KernelBuilder, func: wp.Function | None = None, **given: str) -> str:
        """Return the call as text. Numbers are passed by name, and so is what follows them.

        Args:
            builder: The kernel that will hold it.
            func: Which of the twin's functions; ``None`` for the main one.
            **given: Text of arguments that the kernel provides, such as ``out``.
        """
        func = self.twin.func if func is None else func
        given = {"env": "env", **given}
        arguments: list[str] = []
        by_name = False
        for name, annotation in arguments_of(func).items():
            text = given[name] if name in given else self._text(builder, name, annotation)
            by_name = by_name or (name not in given and self._is_number(name))
            arguments.append(f"{name}={text}" if by_name else text)
        return f"{builder.function(func)}({', '.join(arguments)})"

    def set(self, name: str, value: Any) -> bool:
        """Change a parameter in device memory; return ``False`` where it is compiled in."""
        if name in self._numbers:
            start, annotation = self._numbers[name]
            self._device_params.set(start, self._as_numbers(name, value, annotation))
            return True
        current = self._values.get(name)
        if name in self._arrays and isinstance(current, wp.array):
            current.assign(self._per_joint(name, value))
            return True
        return False

    def _find_extra(self) -> dict[str, Any]:
        return {} if self.twin.extra is None else dict(self._located(self.twin.extra, self._env, self._params))

    def _located(self, find: Callable[..., Any], *args: Any) -> Any:
        """Return what a function finds; its errors say where."""
        try:
            return find(*args)
        except ConfigError as error:
            raise ConfigError(f"{self._where}: {error}") from None

    def _find_all(self) -> list[str]:
        problems: list[str] = []
        wanted: dict[str, Any] = {}
        for func in self.twin.functions().values():
            wanted |= {k: v for k, v in arguments_of(func).items() if k not in self._given}
        for name, annotation in wanted.items():
            try:
                self._find(name, annotation)
            except ConfigError as error:
                problems.append(str(error))
        form = None if self._instance is None else type(self._instance)
        return problems + twin_problems(self._params, wanted, self.twin, self._where, form)

    def _find(self, name: str, annotation: Any) -> None:
        if name in self._extra:
            self._values[name] = self._extra[name]
        elif self._instance is not None and hasattr(self._instance, name):
            self._values[name] = getattr(self._instance, name)
        elif _is_struct(annotation):
            self._values[name] = self._state_of(name, annotation)
        elif name.endswith(("joint_ids", "body_ids")):
            self._values[name] = self._ids_of(name)
        elif name not in self._params:
            raise ConfigError(
                f"{self._where}: the Warp form takes {name!r}, which is no parameter of the term; "
                f"allowed: {', '.join(self._params) or 'none'}"
            )
        elif isinstance(dtype := getattr(annotation, "dtype", None), type) and not hasattr(annotation, "_shape_"):
            self._arrays.add(name)
            values = self._per_joint(name, self._params[name])
            self._values[name] = wp.array(values, dtype=dtype, device=self._env.device)
        elif annotation in (int, bool, wp.int32, wp.bool):
            self._values[name] = self._constant(name)
        else:
            numbers = self._as_numbers(name, self._params[name], annotation)
            self._numbers[name] = self._device_params.add(numbers), annotation

    def _state_of(self, name: str, annotation: Any) -> Any:
        if annotation is self._env.state_struct:
            return self._env.state
        for suffix, find in (("_cfg", self._entity_state), ("_name", self._named_state)):
            if (value := self._params.get(f"{name}{suffix}")) is not None:
                state = self._located(find, value)
                if state._cls is not annotation:
                    raise ConfigError(
                        f"{self._where}: the Warp form takes a {annotation.key} as {name!r}, and "
                        f"{self._params[name + suffix]} gives a {state._cls.key}"
                    )
                return state
        if annotation.key == "CommandState":
            cure = f"{name}_name: give the torch form one, a name such as 'base_velocity'"
        else:
            cure = f'{name}_cfg: give the torch form one, as in {name}_cfg: SceneEntityCfg = SceneEntityCfg("robot")'
        raise ConfigError(f"{self._where}: the Warp form takes {name!r}, and there is no parameter {cure}")

    def _entity_state(self, cfg: SceneEntityCfg) -> Any:
        assert cfg.resolved is not None
        return cfg.resolved.entity.state

    def _named_state(self, name: str) -> Any:
        return self._env.command_manager.get_term(name).state

    def _ids_of(self, name: str) -> wp.array:
        prefix, kind = name.removesuffix("joint_ids"), "joint_ids"
        if name.endswith("body_ids"):
            prefix, kind = name.removesuffix("body_ids"), "body_ids"
        owner = f"{prefix or 'asset_'}cfg"
        cfg = self._params.get(owner)
        if not isinstance(cfg, SceneEntityCfg) or cfg.resolved is None:
            raise ConfigError(
                f"{self._where}: the Warp form takes {name!r}, and there is no parameter {owner!r}: give the torch "
                f'form one, as in {owner}: SceneEntityCfg = SceneEntityCfg("robot")'
            )
        return getattr(cfg.resolved, kind)

    def _constant(self, name: str) -> int | bool:
        return whole_number(self._params[name], f"{self._where}.params[{name!r}]")

    def _converted(self, name: str, value: Any) -> Any:
        convert = self.twin.converts.get(name)
        return value if convert is None else convert(value)

    def _as_numbers(self, name: str, value: Any, annotation: Any) -> Sequence[float]:
        return as_numbers(self._converted(name, value), value, annotation, f"{self._where}.params[{name!r}]")

    def _per_joint(self, name: str, value: Any) -> np.ndarray:
        value = self._converted(name, value)
        cfg = self._params.get("asset_cfg")
        joints = cfg.resolved.joint_names if isinstance(cfg, SceneEntityCfg) and cfg.resolved is not None else ()
        where = f"{self._where}.params[{name!r}]"
        if isinstance(value, Mapping):
            return np.asarray(values_by_name(value, joints, where), dtype=np.float32)
        if isinstance(value, int | float):
            return np.full(max(len(joints), 1), value, dtype=np.float32)
        return np.asarray(value)

    def _text(self, builder: KernelBuilder, name: str, annotation: Any) -> str:
        if name in self._numbers:
            start, annotation = self._numbers[name]
            array = builder.params(self._device_params)
            count = math.prod(getattr(annotation, "_shape_", (1,)))
            entries = [f"{array}[{start + i}]" for i in range(count)]
            return entries[0] if count == 1 else f"{builder.type(annotation)}({', '.join(entries)})"
        value = self._values[name]
        if isinstance(value, bool | int | float):
            return repr(value)
        if _is_struct(annotation):
            return builder.argument(self._struct_name(name, value), value)
        return builder.argument(f"{self._name}_{name}", value)

    def _is_number(self, name: str) -> bool:
        return name in self._numbers or isinstance(self._values[name], bool | int | float)

    def _struct_name(self, name: str, value: Any) -> str:
        """Return the name that the scene or the configuration gives to what a struct is the state of."""
        scene = self._env.scene
        for entity in ("robot", *scene.sensors):
            if scene[entity].state is value:
                return str(entity)
        if value is self._env.state:
            return "state"
        return str(self._params.get(f"{name}_name", f"{self._name}_{name}"))


def _is_struct(annotation: Any) -> bool:
    return hasattr(annotation, "cls") and hasattr(annotation, "vars")


def twin_problems(
    params: Mapping[str, Any], wanted: Collection[str], twin: WarpTwin, where: str, form: Any = None
) -> list[str]:
    """Return one sentence for each parameter of a term, and for its reset, that its Warp form does not take.

    Args:
        params: Parameters by name.
        wanted: Names of the arguments of the Warp form.
        twin: The Warp form.
        where: Path of the term's configuration.
        form: The torch form. A class may hand parameters over in attributes: those that it ``consumes``.
    """
    problems = []
    is_class = isinstance(form, type) and issubclass(form, ManagerTermBase)
    if is_class and form.reset is not ManagerTermBase.reset and twin.reset is None:
        problems.append(f"{where}: {form.__name__} has a reset, and its Warp form none; allowed: one with reset=")
    consumed = {*twin.consumes, *(form.consumes if is_class else ())}
    for name, value in params.items():
        if name in consumed or name in wanted:
            continue
        stem = name.removesuffix("_cfg").removesuffix("_name")
        prefix = "" if stem == "asset" else f"{stem}_"
        ids = {f"{prefix}{kind}_ids" for kind in ("joint", "body")} & set(wanted)
        if name == stem or not (stem in wanted or ids):
            problems.append(f"{where}.params[{name!r}] is {value!r}, which the Warp form does not take")
        elif isinstance(value, SceneEntityCfg):
            problems += [
                f"{where}.params[{name!r}].{kind}_names is {selected!r}, which the Warp form does not take"
                for kind in ("joint", "body")
                if (selected := getattr(value, f"{kind}_names")) is not None and f"{prefix}{kind}_ids" not in ids
            ]
    return problems


def check_parameters(twin: WarpTwin, params: Mapping[str, Any], env: Any, where: str) -> None:
    """Hold the parameters of a term to what its Warp form takes, where the torch form is used.

    Raises:
        ConfigError: A parameter is no number of the right kind, or there is no command of a name.
    """
    for name, annotation in arguments_of(twin.func).items():
        place = f"{where}.params[{name!r}]"
        if name in params and name not in twin.converts and name not in twin.consumes:
            if annotation in (int, bool, wp.int32, wp.bool):
                whole_number(params[name], place)
            elif annotation in (float, wp.float32) or hasattr(annotation, "_shape_"):
                as_numbers(params[name], params[name], annotation, place)
        elif _is_struct(annotation) and isinstance(command := params.get(f"{name}_name"), str):
            env.command_manager.get_term(command)


def whole_number(value: Any, where: str) -> int | bool:
    """Return a whole number.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(value, int):
        raise ConfigError(f"{where} is {value!r}; allowed: a whole number")
    return value


def as_numbers(converted: Any, value: Any, annotation: Any, where: str) -> Sequence[float]:
    """Return the numbers of a scalar, a vector or a matrix.

    Args:
        converted: What holds them.
        value: What the user gave, for the error.
        annotation: Warp type.
        where: Path of the parameter, for the error.

    Raises:
        ConfigError: They are too few, too many, or no numbers.
    """
    shape = getattr(annotation, "_shape_", (1,))
    try:
        numbers = np.asarray(converted, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    is_nan = converted is value and np.isnan(numbers).any()  # a conversion may mean something by it
    if len(numbers) != math.prod(shape) or is_nan:
        many = "a number" if shape == (1,) else f"{math.prod(shape)} numbers"
        raise ConfigError(f"{where} is {value!r}; allowed: {many}")
    return [float(number) for number in numbers]
