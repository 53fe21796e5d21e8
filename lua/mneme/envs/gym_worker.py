"""Steps environments of Gymnasium for Mneme (gym.lua starts it): num_envs of them in one process, which shares its arrays with Mneme.

Descriptor 3 brings requests and 4 takes answers: a byte "s" steps all environments once and is answered by "." or by "!" and a line of JSON;
a line of JSON is answered by a line.  Descriptor 5 is the shared memory.

Each episode is reset with a seed of its own, made from the run's seed, the environment's number and the episode's: an episode is then
known by its seed and its actions, so that it can be played again, whatever the environment keeps."""
import base64
import collections
import copy
import importlib
import importlib.metadata
import importlib.util
import json
import math
import mmap
import os
import pickle
import random
import signal
import sys
import time
import traceback
import types
import zlib

LEAST_COPIES = 64                                  # of environments that are kept here, or two of each
AFTER, AGREED, EPISODES = 3, 10, 20                # of the trial of copies: steps before one is made; steps in which they must agree; in as many episodes
SLOT, LOOK_NS, MOST_BLIND = 64, 150_000, 1024       # of workers.c; how long to look for a round before sleeping
HERE = sys.path.pop(0)                             # this file's folder
sys.dont_write_bytecode = True
for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "XCPU", "PWR"):     # Mneme decides; processes that an environment starts get their own
    signal.signal(getattr(signal, "SIG" + name), lambda *_: None)


class Refused(Exception):
    """What Mneme's user has to change: a message, and a hint or None."""


def tell(answer):
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(4, data):]


def mixed(*numbers):
    """A seed of 31 bits (SplitMix64 over the numbers)."""
    state = 0
    for n in numbers:
        state = (state ^ n) + 0x9E3779B97F4A7C15 & 2**64 - 1
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        state = (state ^ state >> 27) * 0x94D049BB133111EB & 2**64 - 1
        state ^= state >> 31
    return state >> 33


def import_python():
    global gym, np, gym_spaces
    try:
        import gymnasium as gym
        import numpy as np
    except ImportError as e:
        raise Refused(f"{sys.executable} has no module {e.name}", f"install it: {sys.executable} -m pip install {e.name}; "
                      "PYTHON=/path/to/python3 chooses another Python") from None
    if int(gym.__version__.split(".")[0]) < 1:
        raise Refused(f"{sys.executable} has gymnasium {gym.__version__}, expected 1.0 or later")
    sys.path.insert(0, HERE)
    import gym_spaces
    sys.path.pop(0)


# ---- environments ----

class Beside:
    """Finds the modules of a file's folder: the text that Mneme keeps, no bytecode."""

    def __init__(self, places):
        self.places = places

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self, origin=self.places[name]) if name in self.places else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        at = self.places[module.__name__]
        module.__file__ = at
        with open(at, "rb") as f:
            exec(compile(f.read(), os.path.abspath(at), "exec"), module.__dict__)


def make(o, copies=None, **more):
    """One environment: an ID of gymnasium.make, or a class of a module or of a file; a vector environment of so many copies, or of one."""
    name, kwargs = o["id"], dict(o.get("kwargs") or {}, **more)
    module, _, rest = name.rpartition(":")
    if o.get("file"):
        found = sys.modules.get("mneme_environment")
        if found is None:                               # the text that Mneme has read, no bytecode beside it
            with open(o["file"], "rb") as f:
                text = f.read()
            found = types.ModuleType("mneme_environment")
            found.__file__ = o["file"]
            sys.modules["mneme_environment"] = found
            try:
                exec(compile(text, os.path.abspath(o["file"]), "exec"), found.__dict__)
            except BaseException:
                del sys.modules["mneme_environment"]
                raise
    elif module:
        found = importlib.import_module(module)
    else:
        found = None
    limit = o.get("time_limit")
    its_class = getattr(found, rest, None)
    if isinstance(its_class, type):
        if hasattr(its_class, "possible_agents") or hasattr(its_class, "agent_iter"):
            raise Refused(f"{rest} has several agents, expected one", "a gymnasium.Env around it that plays the others, and observes and acts for one")
        if not issubclass(its_class, (gym.Env, gym.vector.VectorEnv)):
            raise Refused(f"{rest} is no gymnasium.Env", "shimmy converts environments of other interfaces")
        if issubclass(its_class, gym.vector.VectorEnv):
            return its_class(num_envs=copies or 1, **kwargs)
        if copies:
            raise Refused(f"vector={o['vector']}: {rest} is no gymnasium.vector.VectorEnv", "without vector= each environment is stepped by itself")
        env = its_class(**kwargs)
        return gym.wrappers.TimeLimit(env, limit) if limit else env

    def by_id():
        spec = gym.spec(rest)
        if copies and not spec.vector_entry_point:
            raise Refused(f"vector={o['vector']}: {rest} registers no vector of its own", "without vector= each environment is stepped by itself")
        if copies or not spec.entry_point:
            return gym.make_vec(rest, num_envs=copies or 1, vectorization_mode="vector_entry_point", **kwargs)
        return gym.make(rest, disable_env_checker=True, **kwargs, **({} if limit is None else {"max_episode_steps": limit or -1}))

    try:
        return by_id()
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound) as e:
        if module:
            raise
        register_installed()
        try:
            return by_id()
        except (gym.error.NameNotFound, gym.error.NamespaceNotFound):
            raise Refused(str(e), "gym:MODULE:ID imports the module that registers it") from None


def single(o, **more):
    """One environment that is stepped by itself: a vector environment as one copy, which is reset from outside, so that no step is lost."""
    made = make(o, **more)
    if not isinstance(made, (gym.Env, gym.vector.VectorEnv)):
        raise Refused(f"it is a {type(made).__name__}, expected a gymnasium.Env", "shimmy converts environments of other interfaces")
    if isinstance(made, gym.Env):
        return made
    mode = gym_spaces.mode_of(made)

    class One(gym.Env):
        vector, metadata, spec, render_mode = made, made.metadata, made.spec, made.render_mode
        observation_space, action_space = made.single_observation_space, made.single_action_space

        def reset(self, *, seed=None, options=None):
            observations, info = made.reset(seed=seed, options=options)
            return gym_spaces.nth(self.observation_space, observations, 0), gym_spaces.nth_info(info, 0)

        def step(self, action):
            observations, rewards, terminations, truncations, info = made.step(gym_spaces.batch_of(self.action_space, [action]))
            terminated, truncated = bool(terminations[0]), bool(truncations[0])
            if mode == "SameStep" and (terminated or truncated):
                observation, own = gym_spaces.last_of(self.observation_space, info, 0)
            else:
                observation, own = gym_spaces.nth(self.observation_space, observations, 0), gym_spaces.nth_info(info, 0)
            return observation, rewards[0], terminated, truncated, own

        def render(self):
            frames = made.render()
            return frames[0] if isinstance(frames, (list, tuple)) else frames

        def close(self):
            made.close()

    return gym.wrappers.TimeLimit(One(), o["time_limit"]) if o.get("time_limit") else One()


def register_installed():
    """What installed packages register: those that name an entry point for it, and those that are known to register when imported."""
    for point in importlib.metadata.entry_points().select(group="gymnasium.envs"):
        try:
            found = point.load()
            if callable(found):
                found()
        except Exception:
            traceback.print_exc()
    for module in ("minigrid", "ale_py", "popgym", "memory_gym", "neurogym", "shimmy"):
        try:
            if importlib.util.find_spec(module):
                importlib.import_module(module)
        except Exception:
            traceback.print_exc()


class Slot:
    """One environment, its stream of seeds and its present episode."""

    def __init__(self, env):
        self.stream, self.episode, self.actions, self.total = (0, 0), -1, [], 0.0
        self.shown = None                       # a copy that draws: [environment, stream, episode, number of actions]
        self.bind(env)

    def bind(self, env):
        self.env = env
        self.limit = 0                          # the worker counts steps itself: a step passes the outermost wrappers that do that and no more
        while type(env) is gym.wrappers.OrderEnforcing or type(env) is gym.wrappers.TimeLimit and hasattr(env, "_max_episode_steps"):
            if type(env) is gym.wrappers.TimeLimit:
                self.limit = min(self.limit or env._max_episode_steps, env._max_episode_steps)
            env = env.env
        self.step, self.inner = env.step, env

    def seed(self):
        return mixed(*self.stream, self.episode)

    def declared(self):
        """The functions of its state: get_state() and set_state(state), or those of ALE."""
        env = self.inner
        if hasattr(type(env), "get_state") and hasattr(type(env), "set_state"):
            return env.get_state, env.set_state
        return (lambda: env.clone_state(include_rng=True)), env.restore_state

    # Copies, by the state that it declares ("state"), by pickle, or by copy.deepcopy; of the first two bytes, which another process can take.
    def take(self, form):
        if form == "deepcopy":
            return copy.deepcopy(self.env)
        return pickle.dumps(self.declared()[0]() if form == "state" else self.env, 5)

    def put(self, form, data):
        if form == "state":
            self.declared()[1](pickle.loads(data))
        else:
            self.bind(pickle.loads(data) if form == "pickle" else copy.deepcopy(data))


class Worker:
    def __init__(self, o):
        self.o = o
        if o.get("modules"):
            sys.meta_path.insert(0, Beside(o["modules"]))
        self.numbers = range(o["first"], o["first"] + o["num_envs"])
        self.env = self.begin(o)
        space, actions = (self.env.single_observation_space, self.env.single_action_space) if o.get("vector") else (
            self.env.observation_space, self.env.action_space)
        self.view, self.actions = gym_spaces.View(space, o, actions), gym_spaces.Actions(actions, self.env)
        self.act = self.actions.build
        self.kept, self.copies = collections.OrderedDict(), 0         # copies of environments, by number; how many there were
        self.form = None                        # in which copies go on as the environment does: "" in none, None: not tried yet

    def begin(self, o):
        self.slots = [Slot(single(o)) for _ in self.numbers]
        return self.slots[0].env

    def describe(self):
        spec = self.env.spec
        packages = {"python": sys.version.split()[0], "gymnasium": gym.__version__, "numpy": np.__version__}
        top = type(getattr(self.env, "vector", self.env).unwrapped).__module__.split(".")[0]
        version = getattr(sys.modules.get(top), "__version__", None)
        if version and top != "gymnasium":
            packages[top] = str(version)
        limit = self.o.get("time_limit")
        if limit is None:
            limit = getattr(spec, "max_episode_steps", None) or 0
        return {"shape": list(map(int, self.view.shape)), "dtype": "u8" if self.view.dtype == np.uint8 else "f32", "codes": self.view.codes,
                "observes": self.view.observes, "arrays": self.view.arrays or [], "actions": self.actions.about, "time_limit": int(limit),
                "notes": self.view.notes, "packages": packages,
                "draws": not self.o.get("vector") and "rgb_array" in (self.env.metadata.get("render_modes") or [])}

    def share(self, bytes_, arrays, number, workers):
        memory, front = mmap.mmap(5, SLOT * workers + bytes_), SLOT * workers
        self.rounds = Rounds(memory, SLOT * number)
        n, first, size = self.o["all"], self.o["first"], int(np.prod(self.view.shape))
        own = slice(first, first + len(self.numbers))
        shapes = {"obs": ((n, size), self.view.dtype), "final_obs": ((n, size), self.view.dtype), "action": (self.actions.shape(n), self.actions.dtype),
                  "reward": ((n,), np.float32), "score": ((n,), np.float32), "ret": ((n,), np.float32), "length": ((n,), np.int32),
                  "info": ((n, len(self.o["infos"])), np.float32),
                  "terminated": ((n,), np.uint8), "truncated": ((n,), np.uint8)}
        for key, (shape, dtype) in shapes.items():
            setattr(self, key, np.ndarray(shape, dtype, memory, front + arrays[key])[own])
        self.rows, self.all_obs, self.zeros = list(self.obs), self.obs.reshape(-1), np.zeros(self.obs.size, self.obs.dtype)
        self.flags = True                       # some may be set
        self.nothing = np.zeros(len(self.numbers), np.float32)
        return {}

    def start(self, i):
        s = self.slots[i]
        s.episode, s.actions, s.total = s.episode + 1, [], 0.0
        first = s.env.reset(seed=s.seed())
        if not isinstance(first, tuple) or len(first) != 2 or not isinstance(first[1], dict):
            raise ValueError(f"reset gave {type(first).__name__}, expected an observation and a dict of infos")
        self.view.write(first[0], self.obs[i], first[1], s.env)

    def reset(self, streams):
        for i, s in enumerate(self.slots):
            if streams:
                s.stream, s.episode = tuple(streams[i]), -1
            self.start(i)
        self.view.check(self.obs, self.numbers)
        return {}

    def step(self):
        rewards, ended = [], []
        act, write, plain, array = self.act, self.view.write, self.view.plain, np.ndarray
        if self.flags:
            self.terminated[:], self.truncated[:], self.flags = 0, 0, False
        for s, row, a in zip(self.slots, self.rows, self.action.tolist()):
            observation, reward, terminated, truncated, info = s.step(act(a))
            try:
                if type(reward) is array and reward.ndim: raise TypeError          # a numpy before 2.4 takes [r] for r, and one after it does not
                reward = float(reward)
            except TypeError:
                raise ValueError(f"environment {self.numbers[len(rewards)]}: the reward is {reward!r}, expected a number") from None
            s.actions.append(a)
            s.total += reward
            rewards.append(reward)
            if terminated or truncated or len(s.actions) == s.limit:
                i = len(rewards) - 1
                self.view.write(observation, self.final_obs[i], info, s.env, True)
                self.ret[i], self.length[i], self.score[i] = s.total, len(s.actions), self.score_of(info)
                for k, name in enumerate(self.o["infos"]):
                    self.info[i, k] = self.info_of(info, name)
                ended.append(i)
                self.start(i)
                self.terminated[i], self.truncated[i], self.flags = bool(terminated), not terminated, True
            elif type(observation) is array and observation.shape == plain:
                row[:] = observation
            else:
                write(observation, row, info, s.env)
        self.reward[:] = rewards
        if ended:
            self.view.check(self.final_obs[ended], [self.numbers[i] for i in ended])
        if self.view.bounded or self.view.dtype == np.uint8 or not math.isfinite(self.all_obs.dot(self.zeros)):   # 0 times what is not finite is NaN
            self.view.check(self.obs, self.numbers)
        if not math.isfinite(self.reward.dot(self.nothing)):
            i = int(np.argmin(np.isfinite(self.reward)))
            raise ValueError(f"environment {self.numbers[i]}: the reward is {rewards[i]}")

    first_end = True

    def score_of(self, info):
        name = self.o.get("score")
        if self.first_end:
            self.first_end = False
            self.view.later.extend(f"the first episode that ended gave no info '{one}' (infos there: {', '.join(sorted(map(str, info))) or 'none'})"
                                   for one in [name] * bool(name) + self.o["infos"] if one not in info)
        value = info.get(name) if name else None
        if value is None:
            return np.nan
        value = float(value)
        if not 0 <= value <= 1:
            raise ValueError(f"score={name}: info['{name}'] is {value}, expected 0 to 1")
        return value

    @staticmethod
    def info_of(info, name):
        value = info.get(name)
        if value is None:
            return np.nan
        if not np.isscalar(value) and getattr(value, "shape", None) != () or isinstance(value, (str, bytes)):
            raise ValueError(f"infos={name}: info['{name}'] is a {type(value).__name__}, expected a number")
        return float(value)

    # An episode is known by its seed and its actions.  Where an environment can be copied, a copy stands for them.  Whether one goes on alike is
    # tried first, with environments that nobody else uses: it may lose its state without a word.
    def forms(self, _=0):
        """In which form can its environments be copied?"""
        if self.form is None:
            self.form = ""
            for form in ("state", "pickle", "deepcopy"):
                try:
                    if not self.form and self.agrees(form):
                        self.form = form
                except Exception:
                    pass
        return {"form": self.form}

    def any_action(self, draw, row):
        about = self.actions.about
        if about["kind"] == "discrete":
            return draw.choice(np.flatnonzero(row[self.view.actions]).tolist() if self.view.mask else range(len(about["names"])))
        return [draw.randrange(n) for n in about["counts"]] if about["kind"] == "multi_discrete" else [draw.gauss(0, 1) for _ in about["low"]]

    def agrees(self, form):
        """Do copies go on as the environment does, and as each other, over AGREED steps with random actions?"""
        draw, agreed, live = random.Random(1), 0, Slot(single(self.o))
        others = [Slot(single(self.o)) for _ in range(2)] if form == "state" and live.declared() else [Slot(live.env), Slot(live.env)]
        row = np.zeros(self.obs.shape[1], self.obs.dtype)

        def lived(slot, action):
            observation, reward, terminated, truncated, info = slot.step(self.act(action))
            self.view.write(observation, row, info, slot.env, bool(terminated or truncated))
            return bool(terminated or truncated), float(reward), row.tobytes()

        try:
            for episode in range(EPISODES):
                observation, info = live.env.reset(seed=mixed(1, episode))
                self.view.write(observation, row, info, live.env)
                over = False
                for _ in range(AFTER if episode == 0 else episode % (AFTER + 1)):
                    over = over or lived(live, self.any_action(draw, row))[0]
                if over:
                    continue
                data = live.take(form)
                if form == "state":                 # it is set on an episode that goes on
                    for k, slot in enumerate(others):
                        slot.env.reset(seed=mixed(2, episode, k))
                for slot in others:
                    slot.put(form, data)
                while not over and agreed < AGREED:
                    action = self.any_action(draw, row)
                    there = [lived(slot, action) for slot in others]
                    here = lived(live, action)
                    if there != [here, here]:
                        return False
                    over, agreed = here[0], agreed + 1
                if agreed == AGREED:
                    return True
            return False
        finally:
            for env in {id(slot.env): slot.env for slot in [live, *others]}.values():
                env.close()

    def copy(self, i, how):
        """A copy of environment i as it is: its number here ("near"), or bytes for another process ("apart"); nothing where it cannot be copied."""
        form = how and self.forms()["form"]
        if not form or how == "apart" and form == "deepcopy":
            return {}
        s = self.slots[i]
        try:
            data = form, s.take(form), self.obs[i].copy(), s.total
        except Exception:
            traceback.print_exc()
            return {}
        if how == "apart":
            return {"state": base64.b64encode(pickle.dumps(data, 5)).decode()}
        self.copies += 1
        self.kept[self.copies] = data
        if len(self.kept) > max(LEAST_COPIES, 2 * len(self.slots)):
            self.kept.popitem(last=False)
        return {"copy": [os.getpid(), self.copies]}

    def replay(self, slot, env, wanted):
        """Bring env, which slot's stream, episode and number of actions describe, to the wanted place: its last observation, or None: it is there."""
        observation, actions, self.told = None, wanted["actions"], {}
        if (tuple(wanted["stream"]), wanted["episode"]) != (tuple(slot.stream), slot.episode) or slot.actions != actions[:len(slot.actions)]:
            slot.stream, slot.episode, slot.actions, slot.total = tuple(wanted["stream"]), wanted["episode"], [], 0.0
            observation, self.told = env.reset(seed=slot.seed())
        for a in actions[len(slot.actions):]:
            observation, reward, terminated, truncated, self.told = slot.step(self.act(a))
            slot.actions.append(a)
            slot.total += float(reward)
            if terminated or truncated:
                slot.episode = -2                   # it is of no use
                return False
        return observation

    def restore(self, i, wanted):
        s = self.slots[i]
        at = wanted.get("copy") or [0, 0]
        kept = self.kept.get(at[1]) if at[0] == os.getpid() else None
        if kept:
            self.kept.move_to_end(at[1])
        elif wanted.get("state"):               # of this program: see gym.lua
            kept = pickle.loads(base64.b64decode(wanted["state"]))
        if kept:
            form, data, self.obs[i], s.total = kept
            s.put(form, data)
            s.stream, s.episode, s.actions = tuple(wanted["stream"]), wanted["episode"], list(wanted["actions"])
            return {}
        observation = self.replay(s, s.env, wanted)
        if observation is not None and observation is not False:
            self.view.write(observation, self.obs[i], self.told, s.env)
        if observation is False or zlib.crc32(self.obs[i].tobytes()) != wanted["seen"]:
            return {"error": "played again from its seed and actions, the episode goes otherwise: this environment is not reproducible",
                    "hint": "does it draw from another source than self.np_random, or read a clock?"}
        return {}

    def resume(self, i, wanted):
        """Restore for a training that goes on: what cannot be played again begins the next episode, and says why."""
        try:
            failed = self.restore(i, wanted).get("error")
        except Exception as e:
            failed = problem(e)["error"]
        if failed:
            s = self.slots[i]
            s.stream, s.episode = tuple(wanted["stream"]), wanted["episode"]
            self.start(i)
        return {"anew": failed} if failed else {}

    def draw(self, i):
        """Its picture, in base64; or why there is none."""
        s = self.slots[i]
        try:
            if s.shown is None:
                s.shown = Slot(single(self.o, render_mode="rgb_array"))
            same = self.replay(s.shown, s.shown.env, {"stream": s.stream, "episode": s.episode, "actions": s.actions}) is not False
            if not same:
                return {"none": "played again, the episode goes otherwise"}
            picture = gym_spaces.rendered(s.shown.env.render())
        except Exception as e:
            return {"none": str(e) if isinstance(e, Refused) else f"{type(e).__name__}: {e}"}
        return {"rows": picture.shape[0], "cols": picture.shape[1], "rgb": base64.b64encode(picture.tobytes()).decode()}


class Whole(Worker):
    """All copies as one vector environment, stepped by one call.  Where its mode is NextStep, the step after an end only resets: there the
    last observation is acted on again, and the step is told as an episode of no length, which Mneme leaves out of losses, counts and memories."""

    def begin(self, o):
        self.slots = []
        env = make(o, o["num_envs"])
        self.mode, self.stream, self.begun = gym_spaces.mode_of(env), (0, 0), 0
        self.over, self.ret_so_far, self.steps = (np.zeros(o["num_envs"], kind) for kind in (bool, float, np.int32))
        return env

    def reset(self, streams):
        if len({seed for seed, _ in streams}) > 1:
            raise Refused("vector=1: one seed for all environments, expected no list of seeds", "without vector= each has its own")
        self.stream, self.begun = streams[0] if streams else self.stream, self.begun + 1
        observations, info = self.env.reset(**({"seed": mixed(*self.stream, self.begun)} if streams else {}))
        self.over[:], self.ret_so_far[:], self.steps[:] = False, 0, 0
        for i in range(len(self.over)):
            self.write(observations, info, i, self.obs[i])
        self.view.check(self.obs, self.numbers)
        return {}

    def write(self, observations, info, i, row, over=False):
        own = gym_spaces.nth_info(info, i) if self.view.mask else {}
        self.view.write(gym_spaces.nth(self.env.single_observation_space, observations, i), row, own, None, over)

    def step(self):
        space = self.env.single_observation_space
        observations, rewards, terminations, truncations, info = self.env.step(
            gym_spaces.batch_of(self.env.single_action_space, [self.act(a) for a in self.action.tolist()]))
        lost = self.over if self.mode == "NextStep" else np.zeros(len(self.over), bool)
        terminated = np.asarray(terminations, bool) & ~lost
        truncated = np.asarray(truncations, bool) & ~lost & ~terminated
        over = terminated | truncated
        self.reward[:] = np.where(lost, 0, np.asarray(rewards, np.float32))
        self.ret_so_far += self.reward
        self.steps += ~lost
        for i in range(len(over)):
            self.write(observations, info, i, self.obs[i], over[i])
        for i in np.flatnonzero(lost):
            self.final_obs[i], self.ret[i], self.length[i], self.score[i] = self.obs[i], 0, 0, np.nan
            self.info[i] = np.nan
        for i in np.flatnonzero(over):
            if self.mode == "SameStep":
                last, own = gym_spaces.last_of(space, info, i)
                self.view.write(last, self.final_obs[i], own, None, True)
            else:
                self.final_obs[i], own = self.obs[i], gym_spaces.nth_info(info, i)
            self.ret[i], self.length[i], self.score[i] = self.ret_so_far[i], self.steps[i], self.score_of(own)
            for k, name in enumerate(self.o["infos"]):
                self.info[i, k] = self.info_of(own, name)
            self.ret_so_far[i], self.steps[i] = 0, 0
        if self.mode == "Disabled" and over.any():
            observations, info = self.env.reset(options={"reset_mask": over})
            for i in np.flatnonzero(over):
                self.write(observations, info, i, self.obs[i])
        self.over = over
        self.terminated[:], self.truncated[:] = terminated | lost, truncated
        if over.any():
            self.view.check(self.final_obs[over], [self.numbers[i] for i in np.flatnonzero(over)])
        self.view.check(self.obs, self.numbers)
        if not np.isfinite(self.reward).all():
            i = int(np.argmin(np.isfinite(self.reward)))
            raise ValueError(f"environment {self.numbers[i]}: the reward is {self.reward[i]}")

    def forms(self, _=0):
        return {"form": ""}

    def copy(self, i, how):
        return {}

    def resume(self, i, wanted):
        if i == 0:
            self.begun = wanted["episode"]
            self.reset([wanted["stream"]])
        return {"anew": "the copies of a vector cannot be played again"}

    def restore(self, i, wanted):
        return {"error": "vector=1: the copies of a vector cannot be played again one by one", "hint": "without vector= each environment is stepped by itself"}


def problem(e):
    """An exception as an answer: what it says, and where in the user's file."""
    if isinstance(e, Refused):
        return {"error": e.args[0], "hint": e.args[1] if len(e.args) > 1 else None}
    if isinstance(e, ValueError) and "unpack (expected 5" in str(e):
        return {"error": f"step gave another number of values, expected observation, reward, terminated, truncated, info ({e})",
                "hint": "an environment of gym before 0.26? shimmy converts it"}
    if isinstance(e, TypeError) and "reset()" in str(e) and "'seed'" in str(e):
        return {"error": str(e), "hint": "def reset(self, seed=None, options=None), which begins with super().reset(seed=seed)"}
    frames = [f for f in traceback.extract_tb(e.__traceback__) if os.path.dirname(f.filename) != HERE]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    traceback.print_exception(type(e), e, e.__traceback__)
    return {"error": f"{type(e).__name__}: {e}{where}"}


class Rounds:
    """The slot of this worker at the beginning of the shared memory (workers.c): the wanted round, the last one, is it asleep, does Mneme wait,
    the answer, may it look."""

    def __init__(self, memory, at):
        self.memory, self.at, self.blind, self.rest = memory, at, 0, 0
        self.round = memory[at]

    def wanted(self):
        """Look for a moment whether a round is wanted, as look() of workers.c does."""
        memory, at, round_ = self.memory, self.at, self.round
        if memory[at] != round_:
            return True
        if not memory[at + 5]:
            return False
        if self.rest > 0:
            self.rest -= 1
            return False
        start, took, found = time.perf_counter_ns(), 0, False
        while not found and took < LOOK_NS:
            os.sched_yield()
            found, took = memory[at] != round_, time.perf_counter_ns() - start
        self.blind = MOST_BLIND if took > 4 * LOOK_NS else self.blind // 2 if found else min(MOST_BLIND, 2 * self.blind or 1)
        self.rest = 0 if found and self.blind < MOST_BLIND else self.blind
        return found

    def done(self, answer):
        memory, at = self.memory, self.at
        self.round = memory[at]
        memory[at + 4] = answer
        memory[at + 1] = self.round
        if answer == 46 and memory[at + 3]:
            os.write(4, b".")

    def sleep(self):
        """The first byte of a request, or b"" where Mneme has gone; None: a round is wanted."""
        memory, at = self.memory, self.at
        memory[at + 2] = 1
        first = os.read(3, 1) if memory[at] == self.round else None
        memory[at + 2] = 0
        return first


def serve():
    worker = rounds = None
    while True:
        first = None
        if not (rounds and rounds.wanted()):
            first = rounds.sleep() if rounds else os.read(3, 1)
            if first == b"":
                return worker
            if first == b"s" and not rounds.wanted():       # of a round that is over
                continue
        if first is None or first == b"s":
            try:
                worker.step()
                rounds.done(46)
            except BaseException as e:                  # an environment may call sys.exit()
                rounds.done(33)
                tell(problem(e))
            continue
        line = bytearray(first)
        while not line.endswith(b"\n"):
            more = os.read(3, 1 << 16)
            if not more:
                return worker
            line += more
        request = json.loads(line)
        try:
            if "make" in request:
                import_python()
                worker = (Whole if request["make"].get("vector") else Worker)(request["make"])
                tell(worker.describe())
            else:
                (name, values), = request.items()
                answer = getattr(worker, name)(*values)
                rounds = worker.rounds
                answer["notes"], worker.view.later = worker.view.later, []
                tell(answer)
        except BaseException as e:
            tell(problem(e))


ended = serve()
for envs in [[ended.env]] + [[slot.env, slot.shown and slot.shown.env] for slot in ended.slots] if ended else ():
    for env in envs:
        try:
            if env is not None:
                env.close()
        except Exception:
            pass
os._exit(0)
