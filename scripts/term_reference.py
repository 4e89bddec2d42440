"""Write ``docs/terms.md`` from the terms; with ``--check``, say if it is out of date.

Rows come from the registry of Warp forms, parameters from the signatures of the torch forms, texts from docstrings.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "terms.md"
sys.path.insert(0, str(ROOT / "src"))

import treadle.mdp.curriculums  # noqa: E402
import treadle.mdp.recorders  # noqa: E402
import treadle.registry  # noqa: E402
import treadle.tasks  # noqa: E402
from treadle.envs import ManagerBasedRLEnvCfg  # noqa: E402
from treadle.managers import SceneEntityCfg  # noqa: E402
from treadle.managers.twins import registered_twins  # noqa: E402

SECTIONS = {
    "Observations": r"treadle\.mdp\.observations\w*",
    "Rewards": r"treadle\.mdp\.rewards\w*",
    "Terminations": r"treadle\.mdp\.terminations\w*",
    "Events": r"treadle\.mdp\.events\w*",
    "Actions": r"treadle\.mdp\.actions\w*",
    "Commands": r"treadle\.mdp\.commands\w*",
}
ON_THE_HOST = {"Curriculum": treadle.mdp.curriculums, "Recorders": treadle.mdp.recorders}
"""Modules of the terms that have one form."""

NOTES = {
    "Curriculum": """They run on the host before each step, have one form, and take the mask of the environments that
were reset in the last step; what they return is logged. A `modify_fn` is a function
`f(env, env_mask, old_value, **modify_params)` that returns the new value, or `mdp.NO_CHANGE`. An `address` of
`modify_term_cfg` is `<manager>.<term>.<field>` or `observations.<group>.<term>.<field>`, and goes on into the field:
`rewards.alive.weight`, `events.push_robot.params.velocity_range`, `commands.base_velocity.ranges.lin_vel_x`,
`observations.policy.joint_pos.noise.n_max`. That of `modify_env_param` is a path of attributes, such as
`scene.robot.data.joint_effort_limits`.""",
    "Recorders": """They run on the host and write each episode to an HDF5 file, `cfg.recording.path`. A configuration
names `mdp.<name>Cfg`.""",
}
UNUSED = """No task of Treadle is made of them yet: they are a library for tasks of your own and for those to come."""

INTRO = """# Terms: observations, rewards, terminations, events, actions, commands, curriculum, recorders

Each term has a torch form, which is what a configuration names, and a Warp form for one environment beside it, which
the Warp frontend fuses with the others into one kernel. `from treadle import mdp` gives the general ones as
`mdp.<name>`; those of a task are in its module `treadle.tasks.<task>.mdp`. Thresholds, standard deviations, targets and
other real numbers may change at run time without a new capture, what is selected and counted is compiled in.

Names, parameters and formulas are those of Isaac Lab 3.0's terms of the same names, in our own code. On purpose,

- heights and walk targets are relative to the origin of each environment, so that all environments are alike;
- velocities and accelerations of bodies are those of their centres of mass;
- `joint_acc_l2` takes the change of velocity over the last physics step, and `body_lin_acc_l2` the solver's
  acceleration, which is measured only where a term asks for it;
- efforts are those of the state before the last physics step, drives included: the solver integrates these implicitly;
- `base_height_l2` knows flat ground only, and `terrain_out_of_bounds` never holds on it;
- randomizations start from the model as it was built, so that none compounds, and the solver uses them from the step
  in which they are drawn. All may be captured. Those of masses, inertias, centres of mass and armatures let the solver
  recompute its constants, about 200 launches in all environments together, at each step in mode `reset` or `interval`;
  those of drives, friction and gravity take 1 to 4;
- `randomize_rigid_body_material` sets MuJoCo's one coefficient of friction to the static one. It decides in all
  contacts of the bodies, also with the ground. Restitution is refused;
- wrenches of `apply_external_force_torque` act in the frames of the bodies, until the next reset of the environment;
- actions that a joint does not obey, such as positions for a joint without a drive, are refused.

Quaternions are (x, y, z, w). Selected joints and bodies come in the order of the model, or with `preserve_order` in
that of the expressions.

This page is generated: edit the docstrings, then run `python scripts/term_reference.py`.
"""


def find(path: str) -> Any:
    """Return a function or class by its path."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def parameters(term: Any) -> str:
    """Return the parameters of a term beyond the environment, as code."""
    if inspect.isclass(term) and "__call__" not in vars(term):
        cfg = getattr(inspect.getmodule(term), f"{term.__name__}Cfg")
        names = ", ".join(field.name for field in dataclasses.fields(cfg))
        return f"`{names}`" if names else ""
    func = term.__call__ if inspect.isclass(term) else term
    shown = []
    for name, parameter in inspect.signature(func).parameters.items():
        if name in ("self", "env", "env_mask"):
            continue
        default = parameter.default
        if isinstance(default, SceneEntityCfg):
            shown.append(f'{name}="{default.name}"')
        else:
            shown.append(name if default is inspect.Parameter.empty else f"{name}={default!r}")
    return f"`{', '.join(shown)}`" if shown else ""


def description(term: Any) -> str:
    """Return the first paragraph of a docstring."""
    text = (inspect.getdoc(term) or "").split("\n\n")[0]
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split())).replace("``", "`").replace("|", r"\|")


def table(terms: list[Any]) -> str:
    """Return a table with a row per term."""
    rows = ["| term | parameters | value |", "|---|---|---|"]
    for term in terms:
        rows.append(f"| `{term.__name__}` | {parameters(term)} | {description(term)} |")
    return "\n".join(rows)


def used_modules() -> set[str]:
    """Return the modules of the functions that the registered tasks are made of."""
    found = set()
    for task in treadle.registry.list_tasks():
        cfg = treadle.registry.task_spec(task).load_env_cfg()
        if not isinstance(cfg, ManagerBasedRLEnvCfg):
            continue
        groups = cfg.observations.values()
        managers: Any = (cfg.rewards, cfg.terminations, cfg.events, cfg.curriculum)
        for terms in (*managers, *(group.terms for group in groups if group is not None)):
            found |= {term.func.__module__ for term in terms.values() if term is not None}
    return found


def sections() -> Iterator[tuple[str, str, list[Any]]]:
    """Yield title, introduction and terms of each section."""
    for title, module in SECTIONS.items():
        yield title, "", terms_in(module)
    for title, host in ON_THE_HOST.items():
        terms = [getattr(host, name) for name in host.__all__ if not name.endswith("Cfg")]
        yield title, NOTES[title], [term for term in terms if callable(term)]
    used = used_modules()
    for package in pkgutil.iter_modules(treadle.tasks.__path__, "treadle.tasks."):
        if importlib.util.find_spec(f"{package.name}.mdp") is not None:
            importlib.import_module(f"{package.name}.mdp")
            module = re.escape(f"{package.name}.mdp") + r"\w*"
            is_used = any(re.fullmatch(module, name) for name in used)
            yield f"Terms of `{package.name}`", "" if is_used else UNUSED, terms_in(module)


def terms_in(modules: str) -> list[Any]:
    """Return the terms that have a Warp form, of the modules that a regular expression matches."""
    return [find(path) for path in registered_twins() if re.fullmatch(modules, path.partition(":")[0])]


def page() -> str:
    """Return the text of the page."""
    parts = [INTRO]
    for title, note, terms in sections():
        if terms:
            parts.append(f"## {title}\n\n" + (f"{note}\n\n" if note else "") + f"{table(terms)}\n")
    return "\n".join(parts)


def main() -> int:
    """Write or check the page."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run python scripts/term_reference.py")
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
