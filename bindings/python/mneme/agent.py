"""agent.py -- an agent of a run, step by step, by NumPy alone.

    agent = mneme.load("runs/demo")
    state = agent.initial()
    action, state = agent.act(observation, state, done=True)

`mneme export RUN to=FILE.json` writes what is computed here: the agent's step in about twenty array operations.
"""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_UNARY = {
    "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "abs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan": np.arctan,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "sign": np.sign, "log1p": np.log1p, "expm1": np.expm1,
    "sigmoid": lambda x: (0.5 * (np.tanh(0.5 * x) + 1)).astype(np.float32), "softplus": lambda x: np.logaddexp(x, np.float32(0)),
    "relu": lambda x: np.maximum(x, 0), "erf": lambda x: _erf(x),
}
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "maximum": np.maximum, "minimum": np.minimum,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "mod": np.mod,
}
_REDUCE = {"sum": np.sum, "max": np.max, "min": np.min}


def _erf(x):
    import math
    return np.array([math.erf(v) for v in np.ravel(x)], np.float32).reshape(np.shape(x))


def program():
    """The `mneme` command: $MNEME, the one of the wheel or of a checkout, or the one on the path."""
    here = Path(__file__).resolve().parent
    places = [os.environ.get("MNEME"), str(here / "program/bin/mneme"), str(here.parents[2] / "build/mneme"), shutil.which("mneme")]
    for place in places:
        if place and Path(place).exists():
            return place
    raise FileNotFoundError("the command mneme was not found: put it on PATH, or its path into the variable MNEME")


def _sizes(shape, B=1):
    """Sizes of B environments: what depends on their number stands in a list."""
    return [n[0] * B if isinstance(n, list) else n for n in shape]


def _numbers(text, shape):
    return np.frombuffer(bytes.fromhex(text), np.float32).reshape(_sizes(shape))


class Agent:
    """An agent as it acts.  `about` describes it; states are dictionaries of arrays [B,...]."""

    def __init__(self, text):
        try:
            plan = json.loads(text)
            self.about, self._nodes, self.inputs, self.outputs = plan["about"], plan["nodes"], plan["inputs"], plan["outputs"]
            self._fixed = {i: _numbers(node["data"], node["shape"]) for i, node in enumerate(self._nodes) if node["of"] in ("parameter", "constant")}
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            raise ValueError("no agent, expected what `mneme export RUN to=FILE.json` writes") from problem
        self.parameters = {node["name"]: self._fixed[i] for i, node in enumerate(self._nodes) if node["of"] == "parameter"}

    def initial(self, num_envs=1):
        """The memory before anything was seen."""
        if num_envs != int(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}, expected a whole number of at least 1")
        state = {}
        for one in self.inputs:
            if "start" in one:
                axis = next((k for k, n in enumerate(one["shape"]) if isinstance(n, list)), None)
                start = _numbers(one["start"], one["shape"])
                state[one["state"]] = start.copy() if axis is None else np.concatenate([start] * int(num_envs), axis)
        return state

    def step(self, observation, state=None, done=None, previous_action=None, previous_reward=None):
        """One step of any number of environments.

        observation [B,...] as the environment gives it (of several arrays: their row, as `about` lists them), state from `initial` or the step
        before, done [B]: 1 where this observation begins an episode (None: only where no state is given), previous_action and previous_reward
        where the agent reads them.  Returns the distribution's parameters [B,P], values [B] and the next state.
        """
        shape = self.inputs[0]["shape"]
        observation = np.asarray(observation, np.float32)
        if observation.shape[1:] != tuple(shape[1:]) or observation.shape[:1] == (0,):
            raise ValueError(f"observation is {list(observation.shape)}, expected {['B'] + shape[1:]}")
        B = observation.shape[0]
        if done is None:
            done = np.full(B, 1 if state is None else 0)
        state = self.initial(B) if state is None else state
        given = {"observation": observation, "done": done, "previous_action": previous_action, "previous_reward": previous_reward}
        values = {}
        for one in self.inputs:
            name, sizes = one.get("state", one["name"]), tuple(_sizes(one["shape"], B))
            held = state if "state" in one else given
            x = held[name] if name in held else None
            if x is None:
                raise ValueError(f"{name} is missing: this agent reads it")
            x = np.asarray(x, np.float32)
            if x.shape != sizes and not (x.ndim == 0 and len(sizes) == 1):
                raise ValueError(f"{name} is {list(x.shape)}, expected {list(sizes)}")
            values[one["node"]] = np.broadcast_to(x, sizes)
        with np.errstate(all="ignore"):
            for i, node in enumerate(self._nodes):
                if i not in values:
                    values[i] = _repeated(self._fixed[i], node["shape"], B) if i in self._fixed else self._apply(node, [values[k] for k in node["from"]], B)
        out = {one.get("state", one["name"]): values[one["node"]] for one in self.outputs}
        return out.pop("distribution"), out.pop("value"), out

    def act(self, observation, state=None, done=None, previous_action=None, previous_reward=None, rng=None):
        """The likeliest actions, or with a numpy.random.Generator drawn ones, [B] or [B,size]; and the next state."""
        p, _, state = self.step(observation, state, done, previous_action, previous_reward)
        kind, space = self.about["distribution"], self.about["action_space"]
        if kind in ("categorical", "epsilon_greedy"):
            return _choice(p, rng if kind == "categorical" else None), state
        if kind == "multi_categorical":
            parts = np.split(p, np.cumsum(space["counts"])[:-1], -1)
            return np.stack([_choice(part, rng) for part in parts], -1), state
        if kind not in ("normal", "tanh_normal"):
            raise ValueError(f"the distribution {kind} is the script's own: call step, and choose yourself")
        mean, log_std = np.split(p, 2, -1)
        x = mean if rng is None else mean + np.exp(log_std) * rng.standard_normal(mean.shape).astype(np.float32)
        low, high = (np.array([np.nan if v is None else v for v in space[k]], np.float32) for k in ("low", "high"))
        return (low + (np.tanh(x) + 1) / 2 * (high - low) if kind == "tanh_normal" else x), state

    @staticmethod
    def _apply(node, x, B):
        kind = node["of"]
        if kind == "unary":
            y = _UNARY[node["op"]](x[0])
        elif kind == "binary":
            y = _BINARY[node["op"]](x[0], x[1])
        elif kind == "where":
            y = np.where(x[0] != 0, x[1], x[2])
        elif kind == "matmul":
            y = x[0] @ (np.swapaxes(x[1], -1, -2) if node["turned"] else x[1])
        elif kind == "reduce":
            y = _REDUCE[node["op"]](x[0], axis=node["axis"], keepdims=True)
        elif kind == "reshape":
            y = x[0].reshape(_sizes(node["shape"], B))
        elif kind == "transpose":
            y = x[0].transpose(node["order"])
        elif kind == "expand":
            y = np.broadcast_to(x[0], _sizes(node["shape"], B))
        elif kind == "slice":
            y = x[0][(slice(None),) * node["axis"] + (slice(*_sizes([node["first"][0], node["past"][0]], B)),)]
        elif kind == "concat":
            y = np.concatenate(x, node["axis"])
        elif kind == "take":
            y = np.take(x[0], x[1].astype(np.int64), node["axis"])
        else:
            y = x[0]
        return y.astype(np.float32, copy=False)


def _repeated(x, shape, B):
    """What is the same for each environment."""
    if not any(isinstance(n, list) for n in shape):
        return x
    return np.tile(x.ravel(), B).reshape(_sizes(shape, B))


def _choice(logits, rng):
    if rng is not None:
        logits = logits + rng.gumbel(size=logits.shape)
    return np.argmax(logits, -1)


def load(run, **options):
    """The agent of a run's folder, or of a file that `mneme export RUN to=FILE.json` wrote; step=N, best=1: of that checkpoint."""
    if str(run).endswith(".json"):
        if options:
            raise ValueError(f"{next(iter(options))}=, expected none with a file, which holds one checkpoint's agent")
        return Agent(Path(run).read_text())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.json"
        words = [f"{key}={int(value) if isinstance(value, (bool, float)) else value}" for key, value in options.items()]
        done = subprocess.run([program(), "export", str(run), f"to={file}", *words], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return Agent(file.read_text())
