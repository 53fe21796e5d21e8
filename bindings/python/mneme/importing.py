"""importing.py -- what from_sb3.py, from_agalite.py and from_torch.py share: tensors of torch's files, without running what a pickle may run,
and a run folder of parameters by Mneme's names.
"""
import collections
import functools
import io
import json
import math
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

from .agent import program

_DTYPES = {"FloatStorage": np.float32, "DoubleStorage": np.float64, "HalfStorage": np.float16, "LongStorage": np.int64, "IntStorage": np.int32,
           "BoolStorage": np.bool_}


def of_file(f):
    """Of what reads a file: whatever that lacks, or has otherwise than expected, is a ValueError."""

    @functools.wraps(f)
    def call(*arguments, **named):
        try:
            return f(*arguments, **named)
        except (ValueError, OSError, ImportError):
            raise
        except KeyError as problem:
            raise ValueError(f"it has no {problem}") from problem
        except Exception as problem:
            raise ValueError(f"it is damaged, or of another kind ({type(problem).__name__}: {problem})") from problem

    return call


def stored(file):
    """A zip archive as torch and Stable-Baselines3 write it, uncompressed: no member is larger than the file."""
    archive = zipfile.ZipFile(file)
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("its members are compressed, expected a file as torch.save writes it")
    return archive


class Used(dict):
    """A tree of parameters, that refuses those which were never read: the agent without them is another one."""

    def __init__(self, tree):
        super().__init__({name: Used(x) if isinstance(x, dict) else x for name, x in tree.items()})
        self._read = set()

    def __getitem__(self, name):
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        return self[name] if name in self else default

    def unread(self):
        below = {name: ["/" + n for n in x.unread()] if isinstance(x, Used) else [""] * (name not in self._read) for name, x in self.items()}
        return [name + rest for name, more in below.items() for rest in more]

    def all_read(self, besides=()):
        left = [name for name in self.unread() if name not in besides]
        if left:
            raise ValueError(f"parameter {', '.join(left[:6])}{f' and {len(left) - 6} more' if left[6:] else ''}: no part of an agent that is known here; "
                             "without it the agent is another one")


class _Reader(pickle.Unpickler):
    """The tensors of a file of torch, and nothing else that a pickle may do."""

    def __init__(self, archive):
        self._archive = archive
        name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if not name:
            raise ValueError("no tensors in the file, expected one that torch.save wrote")
        self._folder = name[: -len("data.pkl")]
        if self._folder + "byteorder" in archive.namelist() and archive.read(self._folder + "byteorder") != b"little":
            raise ValueError("its numbers are in another order of bytes, expected little")
        super().__init__(io.BytesIO(archive.read(name)))

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) in (("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter")):
            return _tensor if name.endswith("v2") else lambda x, *_: x
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        raise ValueError(f"{module}.{name} in the file, expected tensors alone: torch.save(agent.state_dict(), FILE)")

    def persistent_load(self, what):
        _, dtype, key, _, size = what
        return np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype, size)


def _tensor(storage, offset, size, stride, *_):
    if not isinstance(storage, np.ndarray) or storage.ndim != 1:
        raise ValueError("a tensor without a storage of its own")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if len(size) != len(stride) or min(offset, *size, *stride, 0) < 0 or last >= max(storage.size, 1) or math.prod(size) > storage.size:
        raise ValueError(f"a tensor of {list(size)} numbers in a storage of {storage.size}")
    return np.lib.stride_tricks.as_strided(storage[offset:], size, [s * storage.itemsize for s in stride]).astype(np.float32)


@of_file
def read_torch(file):
    """The tensors by name that torch.save wrote: a path or an open file; no code of the file runs."""
    if not zipfile.is_zipfile(file):
        raise ValueError(f"{'its policy' if hasattr(file, 'read') else file}: not a file of torch.save, expected one of torch 1.6 or newer (a zip archive)")
    with stored(file) as archive:
        tensors = _Reader(archive).load()
    if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
        raise ValueError("no tensors by name in the file, expected torch.save(agent.state_dict(), FILE)")
    return tensors


def beside(a, b, blocks):
    """Rows of two layers, one after the other in each of so many blocks; b None: a alone."""
    if b is None:
        return a
    return np.concatenate([x for pair in zip(np.split(a, blocks), np.split(b, blocks)) for x in pair])


def _safetensors(tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        x = np.ascontiguousarray(x, "<f4")
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def chain(shapes, act, last=""):
    """Lua: a head or torso of linear layers [out, in]; act: the activation between them, last: that of the last one."""
    acts = [f', {{ act = "{act}" }}'] * (len(shapes) - 1) + [f', {{ act = "{last}" }}' if last else ""]
    return f"nn.sequential({', '.join(f'nn.linear({i}, {o}{a})' for (o, i), a in zip(shapes, acts))})"


def head(name, tensors, into, act_of):
    """Linear layers [(weight, bias)] become parameters NAME.0, NAME.2 ...; returns Lua for them."""
    for i, (weight, bias) in enumerate(tensors):
        into[f"{name}.{2 * i}.weight"], into[f"{name}.{2 * i}.bias"] = weight, bias
    return chain([weight.shape for weight, _ in tensors], act_of)


def _lua(value):
    """As Lua reads it: of JSON's escapes it knows no \\uXXXX."""
    return json.dumps(value, ensure_ascii=False)


def script(whose, core, env, options, agent, file, settings):
    """The text of the script that goes on training: core and settings as Lua, agent its lines of mn.agent besides env and core."""
    given = "".join(f", [{_lua(key)}] = {_lua(value)}" for key, value in options.items())
    return f"""-- An agent of {whose}, imported: lr=0 leaves it as it came; lr=3e-4 steps=1e6 goes on training.
local mn = require "mneme"
local nn = mn.nn
local cfg = mn.config {{ env = {_lua(env)}, core = {core},
  num_envs = 4, num_steps = 64, lr = 0, steps = 256,{settings}
  init = {_lua(file)} }}
local env = mn.env(cfg.env, {{ num_envs = cfg.num_envs, seed = cfg.seed{given} }})
local agent = mn.agent {{ env = env, core = cfg.core, {agent} }}
return mn.learner(cfg, env, agent):train()
"""


def make_run(run, path, tensors, text):
    """A run folder of parameters by Mneme's names; text: of(FILE) the script.  FILE.lua and FILE.safetensors lie next to the run, which trains
    once with lr=0, so that its parameters are those.  Raises ValueError with what the program says, and leaves no file then.
    Returns the run's path.
    """
    run = Path(run)
    for name, x in tensors.items():
        if np.asarray(x).dtype.kind not in "fiu":
            raise ValueError(f"it has no numbers for {name}")
    stem = run.parent / re.sub(r"\W", "_", Path(path).stem)
    weights, lua = stem.with_suffix(".safetensors"), stem.with_suffix(".lua")
    files = {weights: _safetensors(tensors), lua: text(str(weights)).encode("utf-8", "surrogateescape")}
    for file, content in files.items():
        if file.exists() and file.read_bytes() != content:
            raise ValueError(f"{file} is there already, and another one: expected another folder for the run, or another name for {path}")
    new = [file for file in files if not file.exists()]
    try:
        run.mkdir(parents=True)
    except FileExistsError:
        raise ValueError(f"run={run}: it is there already, expected a new folder") from None
    try:
        for file in new:
            file.write_bytes(files[file])
        done = subprocess.run([program(), "run", str(lua), f"run={run}"], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip() or done.stdout.strip())
        if re.search(r"; (new|left out): ", done.stdout):
            raise ValueError("its shapes are not those of an agent in this environment, which reads codes as one-hot numbers where theirs may "
                             "read a code as one number: " + re.search(r"begins with.*", done.stdout).group(0))
    except BaseException:
        shutil.rmtree(run, ignore_errors=True)
        for file in new:
            file.unlink(missing_ok=True)
        raise
    return run


def command(convert, usage, words=None):
    """What `python -m mneme.from_X FILE run=FOLDER env=NAME [env.SETTING=VALUE ...]` does."""
    words = sys.argv[1:] if words is None else words
    given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    if len(words) < 3 or len(given) < len(words) - 1 or not {"run", "env"} <= set(given) or not all(re.fullmatch(r"[A-Za-z_][\w.]*", k) for k in given):
        sys.exit(usage)
    number = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false"
    options = {key[len("env."):]: json.loads(value) if re.fullmatch(number, value) else value for key, value in given.items() if key.startswith("env.")}
    more = {key: value for key, value in given.items() if key not in ("run", "env") and not key.startswith("env.")}
    try:
        print(convert(words[0], given["run"], given["env"], **({"how": more} if more else {}), **options))
    except (ValueError, OSError, ImportError) as problem:
        sys.exit(f"{words[0]}: {problem}")
