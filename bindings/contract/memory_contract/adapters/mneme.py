"""mneme.py -- the cores of Mneme, by its program: $MNEME, build/mneme of a checkout, or `mneme` on the PATH.

    python -m memory_contract memory_contract.adapters.mneme:core name=gru small=1
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_suffix(".lua")


def program():
    """Where `mneme` is."""
    checkout = Path(__file__).resolve().parents[4] / "build/mneme"
    found = os.environ.get("MNEME") or (str(checkout) if checkout.exists() else shutil.which("mneme"))
    if not found:
        raise ImportError("there is no program `mneme`: put it on the PATH, or set MNEME to the file")
    return found


def names():
    """Every core of the program."""
    said = subprocess.run([program(), "list", "cores"], text=True, capture_output=True, check=True).stdout
    return re.findall(r"^(\w+) -- ", said, re.M)


class _State:
    """The number of a state that the program keeps, until this is gone."""

    def __init__(self, owner, number):
        self.owner, self.number = owner, number

    def __del__(self):
        self.owner._gone.append(self.number)


class Core:
    library, dtype = "Mneme", "float32"

    def __init__(self, name, small, settings):
        self._gone = []
        words = [f"core={name}", f"small={small}", *(f"core.{key}={value}" for key, value in settings.items())]
        self._process = subprocess.Popen([program(), "run", str(SCRIPT), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.d_in, self.memory = int(self._reply()[0]), name
        self.version = subprocess.run([program(), "--version"], text=True, capture_output=True).stdout.split()[-1]

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _reply(self):
        line = self._process.stdout.readline().decode()
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind != "ok":
            raise RuntimeError(rest or f"mneme ended with status {self._process.wait()}")
        return rest.split(" ")

    def _floats(self, n):
        return np.frombuffer(self._process.stdout.read(4 * n), np.float32)

    def _ask(self, words, *arrays):
        gone, self._gone = self._gone, []
        if gone:
            self._process.stdin.write(("free " + " ".join(map(str, gone)) + "\n").encode())
        self._process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        for a in arrays:
            self._process.stdin.write(np.ascontiguousarray(a, np.uint8 if a.dtype == bool else np.float32).tobytes())
        self._process.stdin.flush()
        return self._reply()

    def initial(self, batch):
        return _State(self, int(self._ask(["initial", batch])[0]))

    def _run(self, how, x, done, state):
        T, B = done.shape
        number, width = map(int, self._ask([how, T, B, state.number], x, done))
        return self._floats(T * B * width).reshape(T, B, width), _State(self, number)

    def step(self, x, state, done):
        y, state = self._run("step", x[None], done[None], state)
        return y[0], state

    def sequence(self, x, done, state):
        return self._run("sequence", x, done, state)

    def gradient(self, x, done, state, w):
        T, B = done.shape
        found = {}
        for _ in range(int(self._ask(["gradient", T, B, state.number], x, done, w)[0])):
            name, n = self._process.stdout.readline().decode().split()
            found[name] = self._floats(int(n))
        found["x"] = found["x"].reshape(x.shape)
        return found


def core(name="gru", small=0, **settings):
    """A core by name, with its settings; d_in is 5 unless given.  small=1: of sizes with which a check takes seconds."""
    return Core(name, small, settings)
