"""Mneme's memory environments for Python.

    import gymnasium as gym, mneme
    env = gym.make("mneme/tmaze-v0", corridor=20)
    envs = gym.make_vec("mneme/memory_maze-v0", num_envs=64)      # one engine call steps all of them

They are the very environments of Mneme (C, bit for bit): `mneme help ENV` lists an environment's settings.
"""
import importlib
import sys

from .engine import Error, names, version

TYPE_CHECKING = False
if TYPE_CHECKING:                       # what editors read; it is imported at its first use, with NumPy and Gymnasium
    from .agent import Agent, load
    from .envs import MnemeEnv, MnemeVectorEnv

__all__ = ["Agent", "Error", "MnemeEnv", "MnemeVectorEnv", "load", "names", "register"]
_HOMES = {"Agent": "agent", "load": "agent", "MnemeEnv": "envs", "MnemeVectorEnv": "envs"}


def register():
    """Make every environment known to Gymnasium as "mneme/NAME-vN".  Importing mneme does so, or importing Gymnasium after it."""
    import gymnasium
    for name in names():
        if f"mneme/{name}" not in gymnasium.registry:
            gymnasium.register(id=f"mneme/{name}", entry_point="mneme.envs:MnemeEnv", vector_entry_point="mneme.envs:MnemeVectorEnv", kwargs={"name": name})


class _LaterGymnasium:
    """A finder of modules (sys.meta_path): Gymnasium as the others find it, and `register` once it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "gymnasium":
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _LaterGymnasium and hasattr(finder, "find_spec"))
        spec = next(filter(None, found), None)
        if spec and spec.loader:
            load_module = spec.loader.exec_module

            def exec_module(module):
                load_module(module)
                register()
            spec.loader.exec_module = exec_module
        return spec


if "gymnasium" in sys.modules:
    register()
else:
    sys.meta_path.insert(0, _LaterGymnasium)


def __getattr__(name):
    if name == "__version__":
        return version()
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    if name in _HOMES.values():
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
