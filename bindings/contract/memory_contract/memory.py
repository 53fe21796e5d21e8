"""memory.py -- one interface to what a factory returns, and how a factory is found: MODULE:NAME, or FILE.py:NAME."""
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np

CALLABLES = ("step", "sequence", "gradient", "online")
_DEFAULTS = {"dtype": "float32", "ends": True, "memory": None, "library": "", "version": ""}


class Memory:
    """What a factory returned, with its members checked and its results as float64 arrays.

    given: an object or a dict with the members that the package's docstring lists.  A TypeError says which one is missing or wrong.
    """

    def __init__(self, given):
        def get(name, otherwise=None):
            return given.get(name, otherwise) if isinstance(given, dict) else getattr(given, name, otherwise)

        if isinstance(given, dict):
            unknown = sorted(set(given) - {"d_in", "initial", *CALLABLES, *_DEFAULTS})
            if unknown:
                raise TypeError(f"the memory has an unknown member {unknown[0]!r}, expected d_in, initial, {', '.join((*CALLABLES, *_DEFAULTS))}")
        self.d_in = get("d_in")
        if isinstance(self.d_in, bool) or not isinstance(self.d_in, (int, np.integer)) or self.d_in < 1:
            raise TypeError(f"the memory's d_in is {self.d_in!r}, expected the size of an input, 1 or more")
        self.initial = get("initial")
        if not callable(self.initial):
            raise TypeError(f"the memory's initial is {self.initial!r}, expected a function of the batch size that returns a state")
        self._given = {name: get(name) for name in CALLABLES}
        for name, f in self._given.items():
            if f is not None and not callable(f):
                raise TypeError(f"the memory's {name} is {f!r}, expected a function, or nothing")
        if not (self._given["step"] or self._given["sequence"]):
            raise TypeError("the memory has neither step nor sequence: there is nothing to measure")
        for name, otherwise in _DEFAULTS.items():
            setattr(self, name, get(name, otherwise))
        self.memory = self.memory or type(given).__name__

    def has(self, name):
        return self._given[name] is not None

    def step(self, x, state, done):
        y, state = self._given["step"](x.copy(), state, done.copy())
        return _outputs(y, x.shape[:1], "step"), state

    def sequence(self, x, done, state):
        y, state = self._given["sequence"](x.copy(), done.copy(), state)
        return _outputs(y, x.shape[:2], "sequence"), state

    def gradient(self, x, done, state, w):
        return self._gradients("gradient", x, done, state, w)

    def online(self, x, done, state, w):
        return self._gradients("online", x, done, state, w)

    def _gradients(self, name, x, done, state, w):
        found = self._given[name](x.copy(), done.copy(), state, w.copy())
        if not isinstance(found, dict) or not found:
            raise TypeError(f"{name} returned {type(found).__name__}, expected a dict of arrays by name")
        found = {key: np.asarray(value, np.float64) for key, value in found.items()}
        if "x" in found and found["x"].shape != x.shape:
            raise TypeError(f"{name} returned an x of {list(found['x'].shape)}, expected {list(x.shape)}")
        return found

    def run(self, x, done, state, by):
        """y [T,B,...] and the state after it, by "sequence", or by "step", one after another."""
        if by == "sequence":
            return self.sequence(x, done, state)
        rows = []
        for t in range(len(x)):
            y, state = self.step(x[t], state, done[t])
            rows.append(y)
        return np.stack(rows), state


def _outputs(y, shape, name):
    y = np.asarray(y, np.float64)
    if y.shape[:len(shape)] != shape or y.size == 0:
        raise TypeError(f"{name} returned y of {list(y.shape)}, expected {list(shape)} and the axes of an output behind them")
    return y


def load(where, settings=None):
    """The memory of MODULE:NAME or FILE.py:NAME, made with settings (name -> text, or a number where it is one)."""
    module, colon, name = where.rpartition(":")
    if not colon or not module or not name:
        raise ValueError(f"{where!r} is no memory, expected MODULE:FACTORY or FILE.py:FACTORY")
    if module.endswith(".py"):
        path = Path(module)
        if not path.is_file():
            raise ValueError(f"{module} is not there")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        found = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, found)
        spec.loader.exec_module(found)
    else:
        if "" not in sys.path:
            sys.path.insert(0, "")
        found = importlib.import_module(module)
    factory = getattr(found, name, None)
    if factory is None:
        names = [n for n, f in vars(found).items() if inspect.isfunction(f) and f.__module__ == found.__name__ and n[0] != "_"]
        raise ValueError(f"{module} has no {name!r}; it has {', '.join(names) or 'no functions'}")
    return Memory(factory(**(settings or {})) if callable(factory) else factory)
