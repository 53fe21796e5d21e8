#!/usr/bin/env python3
"""cleanrl_ppo.py -- runs CleanRL's ppo_continuous_action.py as it is (cleanrl 1.2.0, MIT) beside a Gymnasium of today.

    pip download --no-deps --python-version 3.9 --only-binary :all: cleanrl==1.2.0; unzip cleanrl-1.2.0-*.whl
    pip install torch gymnasium mujoco imageio
    CLEANRL=cleanrl/ppo_continuous_action.py PYTHON=python3 build/mneme sweep cleanrl_parity trust=1
    python3 tests/reference/cleanrl_ppo.py cleanrl/ppo_continuous_action.py --env-id Pendulum-v1 --seed 1 --total-timesteps 100000 ...

The file's text is not changed; what it imports is: distutils and tensorboard, which need not be there, are stand-ins; SyncVectorEnv resets in the
same step and gives final_info as a list, as in Gymnasium 0.28, for which the file was written.
Observations and rewards are normalised for all environments together, as ours are and as Gymnasium's vector wrappers have it: where an episode is cut
off, the discounted return that rewards are divided by begins again; the wrappers of one environment, which the file names, continue it.
The last line is the mean return of the last 100 episodes, and of all: [-151.2, -420.5]."""
import sys
import types

import gymnasium as gym
import numpy as np
from gymnasium.wrappers.utils import RunningMeanStd


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
    """Observations are normalised by the statistics of all environments; Gymnasium's vector wrapper would, but does not reset in the same step."""

    def __init__(self, makers):
        super().__init__(makers, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
        self.statistics = RunningMeanStd(shape=self.single_observation_space.shape)

    def normalised(self, observations):
        self.statistics.update(observations)
        scaled = (observations - self.statistics.mean) / np.sqrt(self.statistics.var + 1e-8)
        return given["TransformObservation"](scaled).astype(np.float32)

    def reset(self, **more):
        observations, info = super().reset(**more)
        return self.normalised(observations), info

    def step(self, actions):
        observations, rewards, terminated, truncated, info = super().step(actions)
        if "final_info" in info:
            episode = info["final_info"]["episode"]
            info["final_info"] = [{"episode": {key: episode[key][i] for key in "rl"}} if over else None for i, over in enumerate(terminated | truncated)]
        return self.normalised(observations), rewards, terminated, truncated, info


given = {}                          # what the file gives to the wrappers of one environment that all together stand in for, by name


def passes(name):
    def wrapper(env, function=None, **more):
        given[name] = function or more
        return env

    setattr(gym.wrappers, name, wrapper)


def together(makers):
    envs = Sync(makers)
    envs = gym.wrappers.vector.NormalizeReward(envs, **given["NormalizeReward"])
    return gym.wrappers.vector.TransformReward(envs, given["TransformReward"])


def main():
    import torch
    for name in ("NormalizeObservation", "TransformObservation", "NormalizeReward", "TransformReward"):
        passes(name)
    torch.set_num_threads(1)
    stand_in("distutils")
    stand_in("distutils.util", strtobool=lambda text: text.lower() in ("1", "true", "yes"))
    stand_in("torch.utils.tensorboard", SummaryWriter=Quiet)
    gym.vector.SyncVectorEnv = together
    del sys.argv[0]
    with open(sys.argv[0]) as f:
        exec(compile(f.read(), sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0]})
    returns = Quiet.returns
    print([float(np.mean(returns[-100:])), float(np.mean(returns))])


if __name__ == "__main__":
    main()
