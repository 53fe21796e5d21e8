"""Spaces of Gymnasium as Mneme has them (gym_worker.py imports this once gymnasium is there): observations as one array, actions as numbers, and
what a vector environment gives to each of its environments."""
import itertools

import gymnasium as gym
import numpy as np
from __main__ import Refused

LEAST_SIDE, MOST_NUMBERS, MOST_CODES = 16, 32, 2**20     # of a picture, in pixels; of an action; of a part beside a picture
BOUNDS_FOR = 1000                                  # steps in which values are held against the bounds of their space


# ---- observations: the leaves of a space, in order, as one array ----

def leaves(space, path=()):
    """(path, leaf) of Dict by sorted key and of Tuple by order."""
    if isinstance(space, gym.spaces.Dict):
        return [x for key in sorted(space.spaces) for x in leaves(space[key], path + (key,))]
    if isinstance(space, gym.spaces.Tuple):
        return [x for i, part in enumerate(space.spaces) for x in leaves(part, path + (i,))]
    return [(path, space)]


def at(observation, path):
    for key in path:
        observation = observation[key]
    return observation


def below(x, start, count, name):
    """What a Discrete or MultiDiscrete holds, counted from 0."""
    k = np.asarray(x) - start
    if ((k < 0) | (k >= count)).any():
        raise ValueError(f"'{name}' holds {np.asarray(x).tolist()}, expected {np.add(start, 0).tolist()} to {np.add(start, count - 1).tolist()}")
    return k


def name_of(path):
    return "_".join("".join(c if c.isalnum() else "_" for c in str(key)) for key in path) or "observation"


def is_text(space):
    """Text, or a space of a package that gives texts (MissionSpace of minigrid)."""
    if isinstance(space, gym.spaces.Text):
        return True
    try:
        return type(space).__module__.split(".")[0] != "gymnasium" and isinstance(space.sample(), str)
    except Exception:
        return False


def is_picture(space):
    return (isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)
            and sorted(space.shape)[-2] >= LEAST_SIDE)


def picture_of(space, channels):
    """The shape [y, x, channels], and the axes that lead there."""
    if len(space.shape) == 2:
        return (*space.shape, 1), None
    if channels is None:
        channels = "last" if space.shape[2] in (1, 2, 3, 4) or space.shape[0] not in (1, 2, 3, 4) else "first"
    if channels not in ("last", "first"):
        raise Refused(f"channels={channels}, expected last or first")
    if channels == "last":
        return space.shape, None
    return (space.shape[1], space.shape[2], space.shape[0]), (1, 2, 0)


class View:
    """One array of an observation: a u8 picture, u8 codes, or f32 numbers; a picture with others beside it: several arrays in a row of f32."""

    def __init__(self, space, o, actions=None):
        found, self.notes, self.later = [], [], []
        self.mask, self.actions = o.get("mask"), None
        for path, leaf in leaves(space):
            name = name_of(path)
            if name == self.mask:
                self.mask = path
                continue
            if o.get("keys") and name not in o["keys"]:
                continue
            if is_text(leaf):
                self.notes.append(f"leaves out the text '{name}'")
            elif isinstance(leaf, (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)):
                found.append((path, leaf, name))
            else:
                raise Refused(f"the observation '{name}' is a {type(leaf).__name__}, expected Box, Discrete, MultiDiscrete, MultiBinary, "
                              "or Dict and Tuple of these", "keys=NAME,NAME chooses parts; a gymnasium.ObservationWrapper changes them")
        for key in o.get("keys") or []:
            if key not in [name for _, _, name in found]:
                raise Refused(f"keys={key}: no part of the observation has that name",
                              "parts: " + " ".join(name_of(path) for path, _ in leaves(space)))
        if not any(np.prod(leaf.shape, dtype=int) for _, leaf, _ in found):
            raise Refused("the observation holds no numbers")
        pictures = [name for _, leaf, name in found if is_picture(leaf)]
        self.codes = o.get("codes")
        if self.mask and self.codes is not None:
            raise Refused("codes and mask do not go together", "without codes, Discrete parts are codes by themselves")
        self.parts, self.arrays = [], None
        if self.codes is not None:
            self.dtype, size = np.uint8, 0
            for path, leaf, name in found:
                if not np.issubdtype(leaf.dtype, np.integer):
                    raise Refused(f"codes={self.codes}: '{name}' has the dtype {leaf.dtype}, expected integers")
                n = int(np.prod(leaf.shape, dtype=int))
                low = leaf.start if isinstance(leaf, gym.spaces.Discrete) else 0
                self.parts.append((path, size, size + n, ("codes", low, name)))
                size += n
            self.shape = (size,)
        elif pictures and len(found) == 1 and not self.mask:
            self.dtype = np.uint8
            self.shape, axes = picture_of(found[0][1], o.get("channels"))
            self.parts.append((found[0][0], 0, int(np.prod(self.shape)), ("picture", axes, pictures[0])))
        elif pictures or self.mask:
            self.dtype, self.arrays, size = np.float32, [], 0
            for path, leaf, name in found:
                shape, codes, how = [int(np.prod(leaf.shape, dtype=int))], None, ("numbers", None, name)
                if name in pictures:
                    shape, axes = picture_of(leaf, o.get("channels"))
                    how = ("picture", axes, name)
                elif isinstance(leaf, (gym.spaces.Discrete, gym.spaces.MultiDiscrete)):
                    codes = int(leaf.n) if isinstance(leaf, gym.spaces.Discrete) else int(leaf.nvec.max())
                    how = ("below", (np.ravel(getattr(leaf, "start", 0)), leaf.n if isinstance(leaf, gym.spaces.Discrete) else leaf.nvec.ravel()), name)
                if codes and codes > MOST_CODES:
                    raise Refused(f"the observation '{name}' is one of {codes}, expected at most {MOST_CODES} beside a picture")
                self.arrays.append({"name": name, "kind": how[0] if name in pictures else "codes" if codes else "floats",
                                    "shape": list(map(int, shape)), **({"codes": codes} if codes else {})})
                n = int(np.prod(shape))
                self.parts.append((path, size, size + n, how))
                size += n
            if self.mask:
                if not isinstance(actions, gym.spaces.Discrete):
                    raise Refused(f"mask={o['mask']}: its actions are a {type(actions).__name__}, expected Discrete")
                self.actions = slice(size, size + int(actions.n))
                self.arrays.append({"name": "action_mask", "kind": "mask", "shape": [int(actions.n)]})
                size += int(actions.n)
            self.shape = (size,)
        else:
            self.dtype, size = np.float32, 0
            for path, leaf, name in found:
                if isinstance(leaf, gym.spaces.Discrete):
                    n, how = int(leaf.n), ("one-hot", int(leaf.start), name)
                elif isinstance(leaf, gym.spaces.MultiDiscrete):
                    sizes = leaf.nvec.ravel()
                    n, how = int(sizes.sum()), ("one-hots", (np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.ravel(getattr(leaf, "start", 0)), sizes), name)
                else:
                    n, how = int(np.prod(leaf.shape, dtype=int)), ("numbers", None, name)
                self.parts.append((path, size, size + n, how))
                size += n
            self.shape = (size,)
        self.shapes = {path: tuple(leaf.shape or ()) for path, leaf, _ in found}
        self.low, self.high = np.full(self.shape, -np.inf).ravel(), np.full(self.shape, np.inf).ravel()
        for path, start, stop, how in self.parts:
            leaf = next(leaf for p, leaf, _ in found if p == path)
            if how[0] == "numbers" and isinstance(leaf, gym.spaces.Box):
                self.low[start:stop], self.high[start:stop] = leaf.low.ravel(), leaf.high.ravel()
        # Of one Box of numbers in one axis: its shape, for the short way.
        self.plain = self.shape if len(self.parts) == 1 and self.parts[0][3][0] == "numbers" and not self.mask and self.parts[0][0] == () else None
        self.bounded = BOUNDS_FOR if np.isfinite(self.low).any() or np.isfinite(self.high).any() else 0
        self.observes = "" if self.arrays or self.dtype == np.uint8 and not self.codes else " ".join(
            f"{how[2]}[{stop - start}]" if stop - start > 1 else how[2] for _, start, stop, how in self.parts if stop > start)

    def allowed(self, observation, info, env):
        """Which actions are allowed: a part of the observation, an info, or what a method returns."""
        name = self.mask
        if isinstance(name, tuple):
            return at(observation, name)
        if name in info:
            return info[name]
        try:
            return env.get_wrapper_attr(name)()
        except AttributeError:
            raise ValueError(f"mask={name}: no part of the observation, no info and no method has that name") from None

    def write(self, observation, row, info=None, env=None, over=False):
        """Write an observation to row, which is flat."""
        if self.mask:
            mask = np.asarray(self.allowed(observation, info, env)).ravel()
            if mask.size != self.actions.stop - self.actions.start or not np.isin(mask, (0, 1)).all() or not (over or mask.any()):
                raise ValueError(f"mask={self.mask}: {mask.tolist()}, expected a 0 or 1 for each of {self.actions.stop - self.actions.start} actions, "
                                 "one at least a 1")
            row[self.actions] = mask
        for path, start, stop, (kind, about, name) in self.parts:
            x = at(observation, path) if path else observation
            if getattr(x, "shape", None) == (stop - start,) and kind == "numbers":
                row[start:stop] = x
                continue
            shape = self.shapes[path]
            if x is None or np.shape(x) != shape and (np.size(x) != stop - start or kind != "numbers"):
                raise ValueError(f"'{name}' is {'None' if x is None else f'of shape {np.shape(x)}'}, expected {shape}")
            if kind == "one-hot":
                row[start:stop], k = 0, int(x) - about
                row[start + (k if 0 <= k < stop - start else below(x, about, stop - start, name))] = 1
            elif kind == "one-hots":
                row[start:stop] = 0
                row[start + about[0] + below(np.ravel(x), *about[1:], name)] = 1
            elif kind == "picture":
                row[start:stop] = (x if about is None else np.transpose(x, about)).ravel()
            elif kind == "below":
                row[start:stop] = below(np.ravel(x), *about, name)
            elif kind == "codes":
                x = np.asarray(x).ravel() - about if about else np.asarray(x).ravel()
                if x.dtype != np.uint8 and not (0 <= x.min() and x.max() <= 255):
                    raise ValueError(f"'{name}' holds {x.min() if x.min() < 0 else x.max()}, expected a code below {self.codes}")
                row[start:stop] = x
            else:
                row[start:stop] = np.asarray(x, np.float32).ravel()

    def hold(self, rows, numbers):
        """Note the first value beyond the bounds of its space: in the first steps, since the search costs time."""
        self.bounded -= 1
        beyond = (rows < self.low - 1e-6 * abs(self.low)) | (rows > self.high + 1e-6 * abs(self.high))
        if beyond.any():
            self.bounded, (i, k) = 0, np.argwhere(beyond)[0]
            name = next(how[2] for _, start, stop, how in self.parts if start <= k < stop)
            self.later.append(f"'{name}' holds {rows[i, k]:g} in environment {numbers[i]}, beyond the bounds of its space, "
                              f"{self.low[k]:g} to {self.high[k]:g}; it is taken as it is")

    def check(self, rows, numbers):
        """Raise what is wrong with the values of rows [n, size], of environments of these numbers."""
        if self.bounded:
            self.hold(rows, numbers)
        if self.codes is not None:
            if rows.max() < self.codes:
                return
            i, k = np.argwhere(rows >= self.codes)[0]
        elif self.dtype == np.float32:
            if np.isfinite(rows).all():
                return
            i, k = np.argwhere(~np.isfinite(rows))[0]
        else:
            return
        name = next(how[2] for _, start, stop, how in self.parts if start <= k < stop)
        expected = f"a code below {self.codes}" if self.codes is not None else "a finite number"
        raise ValueError(f"environment {numbers[i]}: '{name}' holds {rows[i, k]}, expected {expected}")


def rendered(picture):
    """What render gives, in colour, [rows, columns, 3]; one channel is grey."""
    if picture is None:
        raise Refused("render gives none")
    x = np.asarray(picture)
    x = x[:, :, None] if x.ndim == 2 else x
    if x.ndim != 3 or x.shape[2] not in (1, 3, 4) or x.dtype.kind not in "iu" or x.size == 0:
        raise Refused(f"render gives {x.dtype} of shape {np.shape(picture)}, expected whole numbers of shape (rows, columns, 3)")
    return np.ascontiguousarray(x.repeat(3, 2) if x.shape[2] == 1 else x[:, :, :3], np.uint8)


# ---- actions: one whole number, several of them, or floats ----

def names_of(space, env):
    """Of a Discrete's actions: those that the environment has, else their numbers."""
    n, start = int(space.n), int(space.start)
    for get in (lambda: env.unwrapped.get_action_meanings(), lambda: [a.name for a in env.unwrapped.actions]):
        try:
            names = [str(name).replace(" ", "_") or "none" for name in get()]
            if len(names) == len(set(names)) == n:
                return names
        except Exception:
            pass
    return [str(start + i) for i in range(n)]


class Actions:
    """What Mneme knows of the actions, and the function from its numbers to what step takes."""

    def __init__(self, space, env):
        spaces = gym.spaces
        found = leaves(space)
        if isinstance(space, spaces.Discrete):
            self.about, self.dtype, self.size = {"kind": "discrete", "names": names_of(space, env)}, np.int32, 1
            self.build = [space.dtype.type(space.start + a) for a in range(int(space.n))].__getitem__
            return
        whole = all(isinstance(leaf, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)) for _, leaf in found)
        if not whole and not all(isinstance(leaf, spaces.Box) and np.issubdtype(leaf.dtype, np.floating) for _, leaf in found):
            raise Refused(f"its actions are a {type(space).__name__}{'' if len(found) < 2 else ' of whole numbers and floats'}, expected Discrete, "
                          "MultiDiscrete, MultiBinary, a Box of floats, or Dict and Tuple of these of one kind")
        counts, low, high, names, parts = [], [], [], [], []
        for path, leaf in found:
            n = int(np.prod(leaf.shape, dtype=int))
            parts.append((leaf, slice(len(names), len(names) + n)))
            name = name_of(path) if path else "action"
            names += [name] if n == 1 else [f"{name}_{k}" for k in range(n)]
            if isinstance(leaf, spaces.Discrete):
                counts.append(int(leaf.n))
            elif isinstance(leaf, spaces.MultiDiscrete):
                counts += leaf.nvec.ravel().tolist()
            elif isinstance(leaf, spaces.MultiBinary):
                counts += [2] * n
            else:
                low += leaf.low.ravel().tolist()
                high += leaf.high.ravel().tolist()
        self.dtype, self.size = np.int32 if whole else np.float32, len(names)
        if self.size > MOST_NUMBERS:
            raise Refused(f"its actions are {self.size} numbers, expected at most {MOST_NUMBERS}")
        self.about = {"kind": "multi_discrete", "counts": counts, "names": names} if whole else {
            "kind": "box", "low": [max(x, -3e38) for x in low], "high": [min(x, 3e38) for x in high], "names": names}

        def one(leaf, numbers):
            x = np.array(numbers, leaf.dtype)
            if isinstance(leaf, spaces.Discrete):
                return leaf.dtype.type(leaf.start + x[0])
            x = x.reshape(leaf.shape)
            if isinstance(leaf, spaces.Box):
                return np.clip(x, leaf.low, leaf.high)             # float32 bounds can lie beyond those of float64
            return x + getattr(leaf, "start", 0) if isinstance(leaf, spaces.MultiDiscrete) else x

        def rebuild(space, numbers, place):
            if isinstance(space, spaces.Dict):
                return {key: rebuild(space[key], numbers, place) for key in sorted(space.spaces)}
            if isinstance(space, spaces.Tuple):
                return tuple(rebuild(part, numbers, place) for part in space.spaces)
            leaf, where = parts[next(place)]
            return one(leaf, numbers[where])

        self.build = lambda numbers: rebuild(space, numbers, itertools.count())

    def shape(self, n):
        return (n,) if self.about["kind"] == "discrete" else (n, self.size)


# ---- vector environments ----

def mode_of(vector):
    """How a vector environment begins episodes: NextStep, SameStep or Disabled."""
    mode = (vector.metadata or {}).get("autoreset_mode")
    mode = getattr(mode, "value", mode)
    if mode not in ("NextStep", "SameStep", "Disabled"):
        raise Refused(f"it is a vector environment whose metadata has autoreset_mode {mode}, expected NextStep, SameStep or Disabled",
                      'metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP} says what it does')
    return mode


def nth(space, batch, i):
    """Observation i of a batch."""
    if isinstance(space, gym.spaces.Dict):
        return {key: nth(space[key], batch[key], i) for key in space.spaces}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(nth(part, x, i) for part, x in zip(space.spaces, batch))
    return batch[i]


def nth_info(info, i):
    """The infos of copy i: those that "_NAME" says it has."""
    own = {}
    for name, x in info.items():
        if name.startswith("_") or "_" + name in info and not info["_" + name][i]:
            continue
        if isinstance(x, dict):
            own[name] = nth_info(x, i)
        elif isinstance(x, (list, tuple)) or getattr(x, "shape", ()) != ():
            own[name] = x[i]
    return own


def last_of(space, info, i):
    """Of a vector that begins episodes in the same step: the last observation and the last infos of copy i."""
    last = info.get("final_obs", info.get("final_observation"))
    if last is None:
        raise ValueError("an episode has ended, and info has no final_obs: autoreset_mode SameStep gives the last observation there")
    more = info.get("final_info") or {}
    return last[i] if getattr(last, "dtype", None) == object else nth(space, last, i), nth_info(more, i) if isinstance(more, dict) else more[i] or {}


def batch_of(space, actions):
    return gym.vector.utils.concatenate(space, actions, gym.vector.utils.create_empty_array(space, len(actions)))
