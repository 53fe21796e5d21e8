#!/usr/bin/env python3
"""cleanrl_ppo.py -- runs CleanRL's ppo_continuous_action.py as it is (cleanrl 1.2.0, MIT) beside a Gymnasium of today.

    pip download --no-deps --python-version 3.9 --only-binary :all: cleanrl==1.2.0; unzip cleanrl-1.2.0-*.whl
    pip install torch gymnasium mujoco imageio
    CLEANRL=cleanrl/ppo_continuous_action.py PYTHON=python3 build/mneme sweep cleanrl_parity trust=1
    python3 tests/reference/cleanrl_ppo.py cleanrl/ppo_continuous_action.py --env-id Pendulum-v1 --seed 1 --total-timesteps 100000 ...

The file's text is not changed; what it imports is: distutils and tensorboard, which need not be there, are stand-ins; SyncVectorEnv resets in the
same step and gives final_info as a list, and TransformObservation takes two arguments, as in Gymnasium 0.28, for which the file was written.
All environments share one running mean and variance of observations, and one of returns, as ours do: each for itself, they learn more slowly.
The last line is the mean return of the last 100 episodes, and of all: [-151.2, -420.5]."""
import sys
import types

import gymnasium as gym
import numpy as np


class Reacher(gym.ObservationWrapper):
    """Reacher-v5 without its velocities: eight of ten numbers."""

    def __init__(self, **kwargs):
        super().__init__(gym.make("Reacher-v5", **kwargs))
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (8,), np.float64)

    def observation(self, observation):
        return np.delete(observation, [6, 7])


gym.register("MaskedReacher-v0", entry_point=Reacher)


def stand_in(name, **what):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(what)


class Quiet:
    """A writer of tensorboard that writes nothing."""
    returns = []

    def __init__(self, *_):
        pass

    def add_text(self, *_):
        pass

    def add_scalar(self, name, value, _):
        if name == "charts/episodic_return":
            self.returns.append(float(value))

    def close(self):
        pass


class Sync(gym.vector.SyncVectorEnv):
    def __init__(self, makers):
        super().__init__(makers, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)

    def step(self, actions):
        observations, rewards, terminated, truncated, info = super().step(actions)
        if "final_info" in info:
            episode = info["final_info"]["episode"]
            info["final_info"] = [{"episode": {key: episode[key][i] for key in "rl"}} if over else None for i, over in enumerate(terminated | truncated)]
        return observations, rewards, terminated, truncated, info


def share(wrapper, name, shared={}):
    """All wrappers of a class have the statistics of the first."""
    begin = wrapper.__init__

    def init(self, *given, **more):
        begin(self, *given, **more)
        setattr(self, name, shared.setdefault(name, getattr(self, name)))

    wrapper.__init__ = init


def main():
    import torch
    share(gym.wrappers.NormalizeObservation, "obs_rms")
    share(gym.wrappers.NormalizeReward, "return_rms")
    torch.set_num_threads(1)
    stand_in("distutils")
    stand_in("distutils.util", strtobool=lambda text: text.lower() in ("1", "true", "yes"))
    stand_in("torch.utils.tensorboard", SummaryWriter=Quiet)
    transform = gym.wrappers.TransformObservation
    gym.wrappers.TransformObservation = lambda env, f: transform(env, f, env.observation_space)
    gym.vector.SyncVectorEnv = Sync
    del sys.argv[0]
    with open(sys.argv[0]) as f:
        exec(compile(f.read(), sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0]})
    returns = Quiet.returns
    print([float(np.mean(returns[-100:])), float(np.mean(returns))])


if __name__ == "__main__":
    main()
