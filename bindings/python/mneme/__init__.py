"""Mneme's memory environments for Python.

    import gymnasium as gym, mneme
    env = gym.make("mneme/tmaze-v0", corridor=20)
    envs = gym.make_vec("mneme/memory_maze-v0", num_envs=64)      # one engine call steps all of them

They are the very environments of Mneme (C, bit for bit): `mneme help ENV` lists an environment's settings.
"""
import gymnasium

from .agent import Agent, load
from .engine import Error, names, version
from .envs import MnemeEnv, MnemeVectorEnv

__all__ = ["Agent", "Error", "MnemeEnv", "MnemeVectorEnv", "load", "names", "register"]


def register():
    """Make every environment known to Gymnasium as "mneme/NAME-vN".  Importing mneme does so."""
    for name in names():
        if f"mneme/{name}" not in gymnasium.registry:
            gymnasium.register(id=f"mneme/{name}", entry_point=MnemeEnv, vector_entry_point=MnemeVectorEnv, kwargs={"name": name})


register()


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
