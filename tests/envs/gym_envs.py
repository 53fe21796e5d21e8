"""Environments of Gymnasium that show what came of each part: for test_gym.lua."""
import os
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Walk(gym.Env):
    """A random walk that the actions bend: ends above 3, pays its place."""
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None, scale=1.0, shows="colour"):
        self.render_mode, self.scale, self.shows = render_mode, scale, shows
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2, start=5)

    def look(self):
        return np.array([self.x, self.t], np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.normal() * self.scale, 0
        return self.look(), {}

    def step(self, action):
        assert action in (5, 6) and isinstance(action, np.int64), repr(action)
        self.t += 1
        self.x += self.np_random.normal() + (action - 5.5)
        over = abs(self.x) > 3
        return self.look(), self.x, over, self.t >= 40, {"up": self.x > 0, "far": 7.0} if over else {}

    def render(self):
        picture = np.zeros((6, 9, 3), np.uint8)
        picture[2, int(self.t) % 9] = 255
        return {"colour": picture, "grey": picture[:, :, 0], "floats": picture / 255, "none": None}[self.shows]


class Mortal(Walk):
    """Its process is killed in its step number `at`, counted over all episodes; with slow=SECONDS that of an even seed alone, while the others take that long."""
    def __init__(self, at=0, slow=0):
        super().__init__()
        self.at, self.slow, self.steps, self.first = at, slow, 0, None

    def reset(self, seed=None, options=None):
        self.first = self.first or seed
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        if self.steps == self.at and self.slow and self.first % 2:
            time.sleep(self.slow)
        elif self.steps == self.at:
            print("the last words", flush=True)
            os.kill(os.getpid(), 9)
        return super().step(action)


class Shows(gym.Env):
    """Observes values of a space that its step number decides, and pays the number that its action stands for."""
    def __init__(self, kind="box", actions="discrete"):
        self.observation_space = {
            "box": spaces.Box(-1e3, 1e3, (2, 2), np.float64),
            "ints": spaces.Box(-9, 9, (3,), np.int64),
            "discrete": spaces.Discrete(4, start=2),
            "multi": spaces.MultiDiscrete([2, 3]),
            "binary": spaces.MultiBinary(3),
            "dict": spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Box(0, 9, (2,), np.float32), "words": spaces.Text(9)}),
            "tuple": spaces.Tuple([spaces.Discrete(2), spaces.Dict({"z": spaces.MultiBinary(2)})]),
            "last": spaces.Box(0, 255, (16, 20, 3), np.uint8),
            "first": spaces.Box(0, 255, (3, 16, 20), np.uint8),
            "grey": spaces.Box(0, 255, (16, 20), np.uint8),
            "grid": spaces.Dict({"grid": spaces.Box(0, 255, (2, 2), np.uint8), "way": spaces.Discrete(4)}),
            "mixed": spaces.Dict({"eye": spaces.Box(0, 255, (16, 20, 3), np.uint8), "ways": spaces.MultiDiscrete([2, 4, 3]),
                                  "more": spaces.Box(-1, 1, (2,), np.float64), "words": spaces.Text(9)}),
            "mixed_tuple": spaces.Tuple([spaces.Discrete(4, start=2), spaces.Box(0, 255, (3, 16, 20), np.uint8)]),
            "empty": spaces.Box(-1, 1, (0,), np.float32),
            "graph": spaces.Graph(spaces.Discrete(2), spaces.Discrete(2)),
            "sequence": spaces.Dict({"s": spaces.Sequence(spaces.Discrete(2))}),
        }[kind]
        self.action_space = {
            "discrete": spaces.Discrete(3),
            "multi": spaces.MultiDiscrete([2, 3]),
            "binary": spaces.MultiBinary(2),
            "tuple": spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2, start=1)]),
            "dict": spaces.Dict({"b": spaces.Discrete(2), "a": spaces.MultiDiscrete([2, 3])}),
            "box": spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32)),
            "boxes": spaces.Dict({"go": spaces.Box(-1, 1, (1, 1), np.float64), "arm": spaces.Box(-np.inf, np.inf, (1,), np.float32)}),
            "both": spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (1,), np.float32)]),
            "ints": spaces.Box(0, 5, (2,), np.int64),
        }[actions]
        self.kind, self.actions = kind, actions

    def look(self):
        t = self.t
        return {
            "box": lambda: np.array([[t, t + 1], [t + 2, t + 3]], np.float64), "ints": lambda: np.array([t, -t, 7]),
            "discrete": lambda: 2 + t % 4, "multi": lambda: np.array([t % 2, t % 3]), "binary": lambda: np.array([t % 2, 1, 0], np.int8),
            "dict": lambda: {"b": t % 3, "a": np.array([t, t + 1], np.float32), "words": "go"},
            "tuple": lambda: (t % 2, {"z": np.array([0, 1], np.int8)}),
            "last": lambda: np.arange(960, dtype=np.int64).reshape(16, 20, 3).astype(np.uint8),
            "first": lambda: np.arange(960, dtype=np.int64).reshape(16, 20, 3).astype(np.uint8).transpose(2, 0, 1),
            "grey": lambda: np.arange(320, dtype=np.int64).reshape(16, 20).astype(np.uint8),
            "mixed": lambda: {"eye": np.arange(960, dtype=np.int64).reshape(16, 20, 3).astype(np.uint8), "ways": np.array([t % 2, 2, 0]),
                              "more": np.array([t, -t], np.float64), "words": "go"},
            "mixed_tuple": lambda: (2 + t % 4, np.arange(960, dtype=np.int64).reshape(16, 20, 3).astype(np.uint8).transpose(2, 0, 1)),
            "grid": lambda: {"grid": np.array([[1, 2], [3, t]], np.uint8), "way": t % 4},
        }[self.kind]()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def step(self, action):
        self.t += 1
        assert self.action_space.contains(action) or self.actions == "boxes", (action, self.action_space)
        if self.actions == "dict":
            action = action["b"] * 100 + action["a"][0] * 10 + action["a"][1]
        elif self.actions == "boxes":
            assert action["go"].shape == (1, 1) and action["go"].dtype == np.float64 and action["arm"].dtype == np.float32
            action = 10 * action["go"][0, 0] + action["arm"][0]
        elif self.actions != "discrete":
            action = 10 * action[0] + action[1]
        return self.look(), float(action), False, False, {}


class Ends(gym.Env):
    """Its last observation is no number; a child process and a file show what became of it."""
    observation_space, action_space = spaces.Box(-1, 1, (1,), np.float64), spaces.Box(0, 0.1, (1,), np.float64)

    def __init__(self, left="", bad=True):
        self.left, self.bad = left, bad

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        child = subprocess.Popen(["sleep", "100"])
        child.terminate()
        child.wait()
        self.t += 1
        return np.full(1, np.nan if self.bad and self.t == 2 else 0.5), 0.0, False, self.t == 2, {}

    def close(self):
        if self.left:
            with open(self.left, "w") as f:
                f.write("closed")


class Fails(gym.Env):
    """Goes wrong in step 3 as it is told."""
    observation_space, action_space = spaces.Box(-1, 1, (1,), np.float32), spaces.Discrete(2)

    def __init__(self, how="raise"):
        self.how = how
        if how == "init":
            raise ValueError("no such map")

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        x, reward = np.zeros(1, np.float32), 0.0
        if self.how == "random":
            x[0] = np.random.default_rng().random()
        elif self.t == 3:
            if self.how == "raise":
                raise KeyError("door")
            if self.how == "exit":
                sys.exit(4)
            if self.how == "die":
                print("the last words", flush=True)
                os.kill(os.getpid(), 9)
            if self.how == "hang":
                time.sleep(100)
            if self.how == "old":
                return x, reward, False, {}
            if self.how == "beyond":
                x[0] = 1.5
            if self.how == "nan":
                x[0] = np.nan
            if self.how == "reward":
                reward = float("inf")
        return x, reward, False, False, {}


class Vector(gym.vector.SyncVectorEnv):
    """Walks as one vector, which begins episodes as it is told."""
    def __init__(self, num_envs=1, mode="NextStep", task="walk"):
        make = {"walk": Walk, "mixed": lambda: Shows("mixed", "boxes"), "sometimes": lambda: gym.wrappers.TimeLimit(Shows("tuple", "multi"), 3)}[task]
        super().__init__([make] * num_envs, **({} if mode is None else {"autoreset_mode": mode}))
        if mode is None:
            self.metadata = {}


class Several:
    """What PettingZoo's have."""
    possible_agents = ["one", "other"]


class Masked(gym.Env):
    """One of three actions is refused, which an info (can), a method (may) and a part of the observation say."""
    action_space = spaces.Discrete(3)
    observation_space = spaces.Dict({"t": spaces.Box(0, 100, (1,), np.float32), "action_mask": spaces.MultiBinary(3)})

    def may(self):
        mask = np.ones(3, np.int8)
        mask[self.closed] = 0
        return mask

    def look(self):
        self.closed = int(self.np_random.integers(3))
        return {"t": np.array([self.t], np.float32), "action_mask": self.may()}, {"can": self.may()}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look()

    def step(self, action):
        assert action != self.closed, action
        self.t += 1
        observation, info = self.look()
        return observation, 1.0, False, False, info


class Odd(gym.Env):
    """What step 2 gives is not of its space."""
    action_space = spaces.Discrete(2)
    wrong = {"none": (spaces.Box(-1, 1, (2,)), None), "long": (spaces.Box(-1, 1, (2,)), np.zeros(3, np.float32)),
             "short": (spaces.Box(-1, 1, (2,)), np.zeros(1, np.float32)), "below": (spaces.Discrete(3), -1), "beyond": (spaces.Discrete(3, start=2), 5),
             "multi": (spaces.MultiDiscrete([3, 3]), np.array([0, 3])), "reward": (spaces.Discrete(2), 0), "reset": (spaces.Discrete(2), 0)}

    def __init__(self, how):
        self.how, self.observation_space = how, self.wrong[how][0]

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        first = self.observation_space.sample()
        return first if self.how == "reset" else (first, {})

    def step(self, action):
        self.t += 1
        return (self.wrong[self.how][1] if self.t == 2 else self.observation_space.sample()), np.zeros(1) if self.how == "reward" else 0.0, False, False, {}


class Free(gym.Env):
    """Begins as it likes, whatever the seed, and goes on by rules that a copy keeps ("free"), that only copy.deepcopy keeps ("deep"), or that it loses."""
    observation_space, action_space = spaces.Box(-100, 100, (1,), np.float32), spaces.Discrete(2)

    def __init__(self, how="free"):
        self.how, self.x, self.t = how, 0.0, 0

    def __deepcopy__(self, memo):
        other = type(self)(self.how)
        if self.how != "loses":
            other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self):
        return (type(self), (self.how,), self.__dict__) if self.how == "free" else (type(self), (self.how,))

    def look(self):
        return np.array([self.x], np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = np.random.default_rng().random(), 0
        return self.look(), {}

    def step(self, action):
        self.t += 1
        self.x = (3.7 * self.x + action) % 1
        return self.look(), float(self.x > 0.5), self.t == 30, False, {"success": float(self.x > 0.5)} if self.t == 30 else {}


class Declared(Free):
    """Declares its state; one that forgets part of it is found out."""
    def get_state(self):
        return (self.x, self.t) if self.how == "loses" else (0.5, self.t)

    def set_state(self, state):
        self.x, self.t = state
