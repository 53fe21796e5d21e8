"""from_sb3.py -- a run folder from an agent of sb3-contrib: RecurrentPPO with an MlpLstmPolicy.

    python -m mneme.from_sb3 agent.zip run=runs/theirs env=tmaze env.corridor=4

Its two LSTMs, of the policy and of the value, become one of both sizes, whose weights between them are 0.  eval, view, where and every
other command take the run; FILE.lua next to it goes on training.  Statistics of VecNormalize are in a file of their own, which is not read.
"""
import collections
import io
import json
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

from .agent import program

_DTYPES = {"FloatStorage": np.float32, "DoubleStorage": np.float64, "LongStorage": np.int64}


class _Reader(pickle.Unpickler):
    """The tensors of a file of torch, and nothing else that a pickle may do."""

    def __init__(self, archive):
        self._archive = archive
        name = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
        self._folder = name[: -len("data.pkl")]
        super().__init__(io.BytesIO(archive.read(name)))

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        raise ValueError(f"{module}.{name} in the file of parameters, expected tensors alone")

    def persistent_load(self, what):
        _, dtype, key, _, size = what
        return np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype, size)


def _tensor(storage, offset, size, stride, *_):
    return np.lib.stride_tricks.as_strided(storage[offset:], size, [s * storage.itemsize for s in stride]).astype(np.float32)


def read(path):
    """The parameters by name, and the settings, of a file that RecurrentPPO.save wrote; no code of the file runs."""
    with zipfile.ZipFile(path) as outer:
        settings = json.loads(outer.read("data"))
        with zipfile.ZipFile(io.BytesIO(outer.read("policy.pth"))) as inner:
            return _Reader(inner).load(), settings


def _side_by_side(a, b, blocks):
    """Rows of both for each of the gates' blocks; b None: a alone."""
    if b is None:
        return a
    return np.concatenate([x for pair in zip(np.split(a, blocks), np.split(b, blocks)) for x in pair])


def _diagonal(a, b):
    """The four gates' matrices of two LSTMs that do not see each other."""
    if b is None:
        return a
    n, m = a.shape[1], b.shape[1]
    return _side_by_side(np.pad(a, ((0, 0), (0, m))), np.pad(b, ((0, 0), (n, 0))), 4)


def converted(theirs, settings):
    """Parameters by Mneme's names, and what the script says of the agent."""
    if settings.get("use_sde") or "log_std" in theirs and theirs["log_std"].ndim != 1:
        raise ValueError("use_sde=True: noise that depends on the state is not known here")
    kwargs = str(settings.get("policy_kwargs"))
    act = re.search(r"activation\.(\w+)", kwargs)
    act = act.group(1).lower() if act else "tanh"
    known = ("lstm_actor.", "lstm_critic.", "mlp_extractor.", "action_net.", "value_net.", "log_std")
    for name in theirs:
        if not name.startswith(known):
            alone = "enable_critic_lstm=False has a value without a memory"
            raise ValueError(f"parameter {name}: {alone if name.startswith('critic.') else 'a policy of vectors is expected (MlpLstmPolicy)'}")
    if act not in ("tanh", "relu") or "lstm_actor.weight_ih_l0" not in theirs:
        raise ValueError(f"activation {act}, expected Tanh or ReLU" if "lstm_actor.weight_ih_l0" in theirs else "no lstm_actor: expected a RecurrentPPO")
    mine, layers = {}, 0
    while f"lstm_actor.weight_ih_l{layers}" in theirs:
        def both(kind):
            return theirs[f"lstm_actor.{kind}_l{layers}"], theirs.get(f"lstm_critic.{kind}_l{layers}")
        for kind in ("bias_ih", "bias_hh"):
            mine[f"core.{kind}_l{layers}"] = _side_by_side(*both(kind), 4)
        mine[f"core.weight_hh_l{layers}"] = _diagonal(*both("weight_hh"))
        mine[f"core.weight_ih_l{layers}"] = _diagonal(*both("weight_ih")) if layers else _side_by_side(*both("weight_ih"), 4)
        layers += 1
    H = theirs["lstm_actor.weight_hh_l0"].shape[1]
    C = theirs["lstm_critic.weight_hh_l0"].shape[1] if "lstm_critic.weight_hh_l0" in theirs else 0
    heads = {}
    for head, net, last, before, after in (("actor", "policy_net", "action_net", 0, C), ("critic", "value_net", "value_net", H if C else 0, 0)):
        chain = []
        while f"mlp_extractor.{net}.{2 * len(chain)}.weight" in theirs:
            chain.append(f"mlp_extractor.{net}.{2 * len(chain)}")
        chain.append(last)
        heads[head] = []
        for i, name in enumerate(chain):
            weight = theirs[f"{name}.weight"]
            if i == 0:
                weight = np.pad(weight, ((0, 0), (before, after)))         # its own half of the memory
            mine[f"{head}.{2 * i}.weight"], mine[f"{head}.{2 * i}.bias"] = weight, theirs[f"{name}.bias"]
            heads[head].append(weight.shape)
    log_std = theirs.get("log_std")
    if log_std is not None:
        mine = {re.sub(r"^actor\.", "actor.mean.", name): x for name, x in mine.items()}
        mine["actor.deviation.weight"], mine["actor.deviation.bias"] = np.zeros((len(log_std), H + C), np.float32), log_std
    return mine, {"d_model": H + C, "n_layers": layers, "heads": heads, "act": act, "box": log_std is not None and len(log_std)}


def _write_tensors(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        x = np.ascontiguousarray(x, "<f4")
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _script(about, settings, env, options, file):
    def chain(shapes):
        acts = [f', {{ act = "{about["act"]}" }}'] * (len(shapes) - 1) + [""]
        return f"nn.sequential({', '.join(f'nn.linear({i}, {o}{act})' for (o, i), act in zip(shapes, acts))})"

    policy = chain(about["heads"]["actor"])
    if about["box"]:
        policy = (f"(function()\n  local mean, deviation = {policy}, nn.linear({about['d_model']}, {about['box']})\n"
                  '  local parts = { { "mean", mean }, { "deviation", deviation } }\n'
                  "  return nn.container(parts, function(_, y) return mn.cat({ mean(y), deviation(y) }, -1) end)\nend)()")
    given = "".join(f", {key} = {json.dumps(value)}" for key, value in options.items())
    names = {"gamma": "gamma", "gae_lambda": "lambda", "ent_coef": "entropy_coef"}
    more = "".join(f' ["{mine}"] = {settings[key]},' for key, mine in names.items() if isinstance(settings.get(key), (int, float)))
    return f"""-- An agent of sb3-contrib, imported: lr=0 leaves it as it came; lr=3e-4 steps=1e6 goes on training.
local mn = require "mneme"
local nn = mn.nn
local cfg = mn.config {{ env = {json.dumps(env)}, core = {{ "lstm", d_model = {about['d_model']}, n_layers = {about['n_layers']} }}, learner = "ppo",
  num_envs = 4, num_steps = 64, lr = 0, steps = 256, record_every = 0,{more}
  init = {json.dumps(file)} }}
local env = mn.env(cfg.env, {{ num_envs = cfg.num_envs, seed = cfg.seed{given} }})
local agent = mn.agent {{ env = env, core = cfg.core, policy = {policy},
  value = {chain(about["heads"]["critic"])} }}
return mn.learner(cfg, env, agent):train()
"""


def convert(path, run, env, **options):
    """Make the run folder `run` of RecurrentPPO's file, whose agent acts in Mneme's environment `env` with these settings.

    Writes FILE.lua and FILE.safetensors next to the run, and trains once with lr=0, which leaves the parameters as they are.  Raises ValueError for a
    policy that is not known here, with its reason.  Returns the run's path.
    """
    run, path = Path(run), Path(path)
    theirs, settings = read(path)
    mine, about = converted(theirs, settings)
    run.parent.mkdir(parents=True, exist_ok=True)
    stem = run.parent / re.sub(r"\W", "_", path.stem)
    weights, script = stem.with_suffix(".safetensors"), stem.with_suffix(".lua")
    _write_tensors(weights, mine)
    script.write_text(_script(about, settings, env, options, str(weights)))
    done = subprocess.run([program(), "run", str(script), f"run={run}"], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip() or done.stdout.strip())
    return run


def main(words):
    path, given = words[0], dict(word.split("=", 1) for word in words[1:])
    options = {key[len("env."):]: json.loads(value) if re.fullmatch(r"-?[\d.]+", value) else value for key, value in given.items() if key.startswith("env.")}
    print(convert(path, given["run"], given["env"], **options))


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all("=" in word for word in sys.argv[2:]):
        sys.exit("python -m mneme.from_sb3 FILE.zip run=FOLDER env=NAME [env.SETTING=VALUE ...]")
    main(sys.argv[1:])
