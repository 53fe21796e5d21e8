"""envs.py -- environments as Gymnasium's Env and VectorEnv.  One engine call steps all environments."""
import ctypes as c
import difflib
import functools
import threading
import weakref

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from . import engine
from .engine import lib

try:
    from gymnasium.vector import AutoresetMode
except ImportError:                               # before 1.1 a vector could not say that it resets in the same step
    raise ImportError(f"mneme: gymnasium {gymnasium.__version__}, expected 1.1.0 or later: pip install 'gymnasium>=1.1'") from None

_DTYPES = {engine.F32: np.float32, engine.I32: np.int32, engine.U8: np.uint8}


def _unknown(what, name, known):
    near = difflib.get_close_matches(str(name), known, 1)
    hint = f"; did you mean '{near[0]}'?" if near else f" (known: {' '.join(known[:20])}{' ...' if len(known) > 20 else ''})"
    return engine.Error(f"unknown {what} '{name}'{hint}")


def _whole(value):
    """Is it a whole number?  True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _encoded(text, otherwise):
    """A text for the engine; what is none is an Error, which says `otherwise`."""
    try:
        if isinstance(text, str) and "\0" not in text:
            return text.encode()
    except UnicodeEncodeError:
        pass
    raise engine.Error(otherwise)


def _array(values, otherwise):
    """An array of what was given; an Error where that is none, such as lists of several lengths."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise engine.Error(otherwise) from None


def _picture_size(mode, size):
    if not (mode is None or isinstance(mode, str) and mode == "rgb_array"):
        raise engine.Error(f"render_mode={mode!r:.80}, expected None or 'rgb_array'")
    if not isinstance(size, (tuple, list)) or len(size) != 2 or not all(_whole(n) and 1 <= n <= 16384 for n in size):
        raise engine.Error(f"size={size!r:.80}, expected (width, height): two whole numbers from 1 to 16384")
    return tuple(int(n) for n in size)


def known_options(options, known=()):
    """Refuses options of reset that nothing would read."""
    if options is not None and not isinstance(options, dict):
        raise engine.Error(f"reset: options={options!r:.80}, expected None or a dict")
    for name in options or {}:
        if name not in known:
            raise _unknown("option of reset", name, list(known)) if known else engine.Error(f"reset: unknown option '{name}', expected none")


def _free(ctx, vec, drawing):
    for f, what in drawing:
        f(what)
    lib.mn_vec_free(vec)
    lib.mn_ctx_free(ctx)


def _remade(made, state):
    name, num_envs, time_limit, settings = made
    envs = _Envs(name, num_envs, time_limit, settings)
    if state is not None:
        envs.reset(0)
        for i, data in enumerate(state):
            envs.restore(i, data)
    return envs


def _alone(f):
    """Of a method: an Error while another thread is in one of the same environments, instead of waiting for it."""

    @functools.wraps(f)
    def call(self, *arguments, **named):
        envs = getattr(self, "_envs", self)
        if not envs.lock.acquire(blocking=False):
            raise engine.Error(f"{envs.name}: another thread steps it")
        try:
            return f(self, *arguments, **named)
        finally:
            envs.lock.release()

    return call


def _buffer(shape, dtype):
    """Zeros whose memory belongs to no array, so that nobody who was lent one can resize what the engine writes to."""
    n = int(np.prod(shape))
    return np.frombuffer(bytearray(max(1, n) * np.dtype(dtype).itemsize), dtype)[:n].reshape(shape)


class UnknownSetting(engine.Error, TypeError):
    """A setting that an environment has not: a TypeError, too, as of an unknown keyword, after which TorchRL's GymEnv tries without its own `frameskip`."""


class _Envs:
    """Environments in the engine that are stepped together, and the buffers that a step fills."""

    def __init__(self, name, num_envs, time_limit, settings):
        otherwise = f"environment {name!r:.80}, expected the name of one, such as 'tmaze'"
        _encoded(name, otherwise)
        name = name.split("/")[-1]
        number = lib.mn_env_find(_encoded(name, otherwise))
        if number < 0:
            raise _unknown("environment", name, [n.rsplit("-v", 1)[0] for n in engine.names()])
        if not _whole(num_envs) or not 1 <= num_envs < 2**31:
            raise engine.Error(f"{name}: num_envs={num_envs!r}, expected a whole number of at least 1")
        if time_limit is not None and (not _whole(time_limit) or not 0 <= time_limit < 2**31):
            raise engine.Error(f"{name}: time_limit={time_limit!r}, expected None or a whole number from 0 (no limit) to 2**31 - 1")
        params, text = engine.params_of(number), None
        for key in settings:
            if key not in params:
                raise UnknownSetting(f"{_unknown(f'setting of {name}:', key, list(params))}: unexpected keyword argument '{key}'")
        values = (c.c_double * (len(params) + 1))()
        for i, (key, (default, choices)) in enumerate(params.items()):
            value = settings.get(key, default)
            if choices:
                if not isinstance(value, str) or value not in choices:
                    raise _unknown(f"value of {name}: {key}", value, choices)
                values[i] = choices.index(value)
            elif isinstance(default, str):
                text = _encoded(value, f"{name}: {key}={value!r:.80}, expected a text")
            else:
                values[i] = engine.number(value, f"{name}: {key}={value!r:.80}, expected a number")
        self.lock = threading.RLock()
        self.made = (name, num_envs, time_limit, settings)
        self.ctx = engine.new_ctx()
        self.vec = lib.mn_vec_new(self.ctx, number, num_envs, 1, values, text, -1 if time_limit is None else time_limit)
        self.drawing = []                         # what frees the canvas and the raster, once there are some
        self.free = weakref.finalize(self, _free, self.ctx, self.vec, self.drawing)
        self.check(self.vec)
        self.name, self.n = f"{lib.mn_env_name(number).decode()}-v{lib.mn_env_version(number)}", num_envs
        dtype, shape = c.c_int(), (c.c_int * engine.MOST_AXES)()
        axes = lib.mn_vec_space(self.vec, c.byref(dtype), shape)
        self.shape, self.dtype = tuple(shape[:axes]), _DTYPES[dtype.value]
        self.codes, self.acts = lib.mn_vec_codes(self.vec), engine.ActionSpace()
        lib.mn_vec_action_space(self.vec, c.byref(self.acts))
        self.obs = _buffer((num_envs, *self.shape), self.dtype)
        self.reward, self.action = np.zeros(num_envs, np.float32), self.room_for_actions()
        self.terminated, self.truncated = np.zeros(num_envs, np.uint8), np.zeros(num_envs, np.uint8)

        self.final_obs = _buffer(self.obs.shape, self.dtype)  # of the engine's memory nothing is lent: it may be freed
        self.score, self.returned = np.zeros(num_envs, np.float32), np.zeros(num_envs, np.float32)
        self.length = np.zeros(num_envs, np.int32)
        self.outcome_names = (lib.mn_env_outcomes(number) or b"").decode().split()
        self.reached = np.zeros((num_envs, len(self.outcome_names)), np.bool_)
        if self.outcome_names:
            self.check(lib.mn_vec_outcomes(self.vec))                 # keep them from now on
        self.raster = self.page = None
        self.begun = False

    def check(self, result):
        return engine.check(self.ctx, result)

    @_alone
    def state(self):
        """Every environment as bytes; None before the first reset."""
        if not self.begun:
            return None
        return [self.save(i) for i in range(self.n)]

    def __reduce__(self):
        """For pickle and copy: an engine of its own with the same environments, which then go on by themselves."""
        self.need()
        return _remade, (self.made, self.state())

    def __deepcopy__(self, memo):
        f, arguments = self.__reduce__()
        return f(*arguments)

    @_alone
    def outcomes(self):
        """Copies what the engine keeps of the episodes that ended in this step."""
        for f, into in ((lib.mn_vec_final_obs, self.final_obs), (lib.mn_vec_score, self.score),
                        (lib.mn_vec_return, self.returned), (lib.mn_vec_length, self.length)):
            c.memmove(into.ctypes.data, f(self.vec), into.nbytes)
        if self.outcome_names:
            c.memmove(self.reached.ctypes.data, lib.mn_vec_outcomes(self.vec), self.reached.nbytes)

    def room_for_actions(self):
        shape = (self.n,) if self.acts.kind == 0 else (self.n, self.acts.size)
        return np.zeros(shape, np.float32 if self.acts.kind == 2 else np.int32)

    def action_space(self):
        size = self.acts.size
        if self.acts.kind == 2:
            return spaces.Box(np.array(self.acts.low[:size], np.float32), np.array(self.acts.high[:size], np.float32), (size,), np.float32)
        return spaces.MultiDiscrete(self.acts.n[:size]) if self.acts.kind == 1 else spaces.Discrete(self.acts.n[0])

    def space(self):
        if self.dtype == np.float32:
            return spaces.Box(-np.inf, np.inf, self.shape, np.float32)
        return spaces.Box(0, self.codes - 1 if self.codes else 255, self.shape, self.dtype)

    def need(self):
        if self.vec is None:
            raise engine.Error(f"{self.name}: it has been closed")
        return self.vec

    def seed_of(self, seed):
        """A seed as the engine's double; beyond 2^53 several seeds would be one."""
        if not _whole(seed) or not 0 <= seed <= 2**53:
            raise engine.Error(f"{self.name}: seed={seed!r:.80}, expected a whole number from 0 to 2**53")
        return float(seed)

    @_alone
    def reset(self, seed):
        self.check(lib.mn_vec_reset(self.need(), -1 if seed is None else self.seed_of(seed), self.obs.ctypes.data))
        self.begun = True

    @_alone
    def reset_each(self, seeds):
        list_of = (c.c_double * self.n)(*[self.seed_of(s) for s in seeds])
        self.check(lib.mn_vec_reset_each(self.need(), list_of, self.obs.ctypes.data))
        self.begun = True

    @_alone
    def reset_part(self, mask, seeds):
        """New episodes where mask is true, by seeds[i] or, where that is None, by the environment's own stream; the others stay."""
        before = self.state()
        if before is None and not mask.all():
            raise engine.Error(f"{self.name}: reset_mask before the first reset, which begins every episode")
        self.reset(None)
        kept = [None if mask[i] else before[i] for i in range(self.n)]
        if any(seed is not None for seed in seeds):
            kept = [self.save(i) if mask[i] and seeds[i] is None else kept[i] for i in range(self.n)]
            self.reset_each([0 if seed is None else seed for seed in seeds])
        for i, data in enumerate(kept):
            if data is not None:
                self.restore(i, data)

    @_alone
    def step(self, actions):
        kind, shape = self.acts.kind, self.action.shape
        expected = f"expected {'numbers' if kind == 2 else 'whole numbers'} {list(shape)}"
        actions = _array(actions, f"{self.name}: actions are {actions!r:.80}, {expected}")
        if actions.dtype.kind not in ("fiu" if kind == 2 else "iu") or actions.shape not in (shape[1:], shape):
            raise engine.Error(f"{self.name}: actions are {actions.dtype}{list(actions.shape)}, {expected}")
        most = self.acts.n[0] if kind == 0 else np.array(self.acts.n[:self.acts.size])
        wrong = ~np.isfinite(actions) if kind == 2 else (actions < 0) | (actions >= most)
        if wrong.any():
            said = "a finite number" if kind == 2 else f"0 to {most - 1}"
            raise engine.Error(f"{self.name}: action {actions[wrong].flat[0]}, expected {said}")
        self.action[:] = actions
        self.check(lib.mn_vec_step(self.need(), self.action.ctypes.data, self.obs.ctypes.data, self.reward.ctypes.data,
                              self.terminated.ctypes.data, self.truncated.ctypes.data))

    @_alone
    def save(self, i):
        data = c.create_string_buffer(lib.mn_vec_bytes(self.need()))
        self.check(lib.mn_vec_save(self.vec, i, data))
        return data.raw

    @_alone
    def restore(self, i, data):
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise engine.Error(f"{self.name}: restore: a {type(data).__name__}, expected the bytes of a saved state")
        data = bytes(data)
        self.check(lib.mn_vec_restore(self.need(), i, data, len(data), self.obs[i:].ctypes.data))

    @_alone
    def set(self, i, fact, value):
        otherwise = f"{self.name}: set({fact!r}, {value!r:.80}), expected the name of a fact and a number"
        fact, value = _encoded(fact, otherwise), engine.number(value, otherwise)
        return self.check(lib.mn_vec_set(self.need(), i, fact, value, self.obs[i:].ctypes.data)) == 1

    @_alone
    def truth(self, i):
        if not _whole(i) or not 0 <= i < self.n:
            raise engine.Error(f"{self.name}: environment {i!r:.80}, expected 0 to {self.n - 1}")
        names, values = c.c_char_p(), c.POINTER(c.c_float)()
        self.check(lib.mn_vec_truth(self.need(), i, c.byref(names), c.byref(values)))
        facts, at = {}, 0
        for word in names.value.decode().split():
            name, _, count = word.partition("[")
            if count:
                n = int(count[:-1])
                facts[name], at = np.array(values[at:at + n], np.float32), at + n
            else:
                facts[name], at = values[at], at + 1
        return facts

    @_alone
    def picture(self, i, width, height):
        vec, view = self.need(), engine.view()
        if self.raster is None:
            self.raster = self.check(view.mn_raster_new(self.ctx, engine.font()))
            self.drawing.append((view.mn_raster_free, self.raster))
            self.page = self.check(lib.mn_canvas_new(self.ctx))
            self.drawing.append((lib.mn_canvas_free, self.page))
        lib.mn_canvas_clear(self.page)
        self.check(lib.mn_canvas_append(self.page, self.check(lib.mn_vec_draw(vec, i)), 0, 0, width, height, 0))
        self.check(view.mn_raster_paint(self.raster, self.page, 0x0F131AFF, width, height))
        pixels = c.cast(view.mn_raster_pixels(self.raster), c.POINTER(c.c_uint8))
        return np.ctypeslib.as_array(pixels, (height, width, 4))[:, :, :3].copy()

    @_alone
    def close(self):
        self.free()                               # once: later calls do nothing
        self.vec = self.raster = self.page = None


class MnemeEnv(gymnasium.Env):
    """One environment: MnemeEnv("tmaze", corridor=20), or gymnasium.make("mneme/tmaze-v0", corridor=20).

    The info of an episode's last step has "score" (0 worst .. 1 solved), "return", "length" and, where an environment declares
    them, "outcomes": name -> whether the episode reached it, such as an achievement.
    ``save``, ``restore``, ``set`` and ``truth`` read and change the environment's state, as in Lua.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(self, name="tmaze", render_mode=None, time_limit=None, size=(480, 480), **settings):
        size = _picture_size(render_mode, size)
        self._envs = _Envs(name, 1, time_limit, settings)
        self.observation_space, self.action_space = self._envs.space(), self._envs.action_space()
        self.render_mode, self.size = render_mode, size
        self._fresh = False                       # the engine has begun an episode that nobody has seen yet

    @_alone
    def reset(self, *, seed=None, options=None):
        known_options(options)
        super().reset(seed=None if seed is None else int(self._envs.seed_of(seed)))
        if seed is not None or not self._fresh:
            self._envs.reset(seed)
        self._fresh = False
        return self._envs.obs[0].copy(), {}

    @_alone
    def step(self, action):
        envs = self._envs
        envs.step(action)
        terminated, truncated, info = bool(envs.terminated[0]), bool(envs.truncated[0]), {}
        obs = envs.obs[0]
        self._fresh = terminated or truncated
        if self._fresh:
            envs.outcomes()
            obs = envs.final_obs[0]
            info = {"score": float(envs.score[0]), "return": float(envs.returned[0]), "length": int(envs.length[0])}
            if envs.outcome_names:
                info["outcomes"] = {name: bool(is_so) for name, is_so in zip(envs.outcome_names, envs.reached[0])}
        return obs.copy(), float(envs.reward[0]), terminated, truncated, info

    def render(self):
        return self._envs.picture(0, *self.size) if self.render_mode == "rgb_array" else None

    def save(self):
        """The state as bytes, for ``restore`` in any environment with the same settings."""
        return self._envs.save(0)

    def restore(self, data):
        """Go back to a saved state; returns its observation."""
        self._envs.restore(0, data)
        self._fresh = False
        return self._envs.obs[0].copy()

    def set(self, fact, value):
        """Change a fact, as `mneme help ENV` lists them; False where that cannot be now."""
        return self._envs.set(0, fact, value)

    def truth(self):
        """Facts of the state, observed or not: name -> value or array."""
        return self._envs.truth(0)

    def close(self):
        self._envs.close()


class MnemeVectorEnv(VectorEnv):
    """Many environments in one engine call: MnemeVectorEnv("tmaze", num_envs=1024, corridor=20), or gymnasium.make_vec.

    An environment whose episode ends begins the next in the same step (AutoresetMode.SAME_STEP): infos["final_obs"] has the last
    observations, infos["final_info"] score, return and length.  ``copy=False`` lends the buffers instead of copies of them.
    One thread at a time: a call, also of close, while another thread is in one is an Error.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": ["rgb_array"], "render_fps": 8}

    def __init__(self, name="tmaze", num_envs=8, render_mode=None, time_limit=None, copy=True, size=(480, 480), **settings):
        size = _picture_size(render_mode, size)
        self._envs = _Envs(name, num_envs, time_limit, settings)
        self.num_envs, self.render_mode, self.size, self._copy = num_envs, render_mode, size, copy
        self.single_observation_space = self._envs.space()
        self.single_action_space = self._envs.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def _out(self, array):
        return array.copy() if self._copy else array.view()

    @_alone
    def reset(self, *, seed=None, options=None):
        """seed: one for all (environment i gets its own stream), or a list with one for each, None: go on with its own stream.
        options={"reset_mask": booleans [num_envs]}: only these environments begin an episode."""
        known_options(options, ("reset_mask",))
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = _array(mask, f"reset: reset_mask is {mask!r:.80}, expected booleans [{self.num_envs}]")
            if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
                raise engine.Error(f"reset: reset_mask is {mask.dtype}{list(mask.shape)}, expected booleans [{self.num_envs}], at least one true")
            if seed is not None and not isinstance(seed, (list, tuple, np.ndarray)):
                raise engine.Error("reset: one seed with reset_mask, expected a list of one for each environment, or None")
        if mask is not None or isinstance(seed, (list, tuple)) and any(s is None for s in seed):
            seeds = [None] * self.num_envs if seed is None else list(np.atleast_1d(seed) if isinstance(seed, np.ndarray) else seed)
            if len(seeds) != self.num_envs:
                raise engine.Error(f"reset: {len(seeds)} seeds for {self.num_envs} environments")
            self._envs.reset_part(np.ones(self.num_envs, bool) if mask is None else mask, seeds)
        elif not isinstance(seed, (list, tuple, np.ndarray)):
            super().reset(seed=None if seed is None else int(self._envs.seed_of(seed)))
            self._envs.reset(seed)
        else:
            seeds = list(np.atleast_1d(seed) if isinstance(seed, np.ndarray) else seed)
            if len(seeds) != self.num_envs:
                raise engine.Error(f"reset: {len(seeds)} seeds for {self.num_envs} environments")
            self._envs.reset_each(seeds)
        return self._out(self._envs.obs), {}

    @_alone
    def step(self, actions):
        envs = self._envs
        envs.step(actions)
        terminated, truncated, infos = envs.terminated.astype(bool), envs.truncated.astype(bool), {}
        ended = terminated | truncated
        if ended.any():
            envs.outcomes()
            infos = {"final_obs": self._out(envs.final_obs), "_final_obs": ended,
                     "final_info": {"score": envs.score.copy(), "_score": ended,
                                    "episode": {"r": envs.returned.copy(), "l": envs.length.copy()}, "_episode": ended},
                     "_final_info": ended}
            if envs.outcome_names:
                infos["final_info"]["outcomes"] = {name: envs.reached[:, k].copy() for k, name in enumerate(envs.outcome_names)}
        return self._out(envs.obs), envs.reward.astype(np.float64), terminated, truncated, infos

    @_alone
    def render(self):
        if self.render_mode != "rgb_array":
            return None
        return tuple(self._envs.picture(i, *self.size) for i in range(self.num_envs))

    def truth(self, i=0):
        """Facts of the state of environment i, observed or not: name -> value or array."""
        return self._envs.truth(i)

    def close_extras(self, **kwargs):
        self._envs.close()
