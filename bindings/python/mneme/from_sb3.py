"""from_sb3.py -- a run folder from an agent of sb3-contrib: RecurrentPPO with an MlpLstmPolicy.

    python -m mneme.from_sb3 agent.zip run=runs/theirs env=tmaze env.corridor=4

Its two LSTMs, of the policy and of the value, become one of both sizes, whose weights between them are 0.  eval, view, where and every
other command take the run; FILE.lua next to it goes on training.  Statistics of VecNormalize are in a file of their own, which is not read.
"""
import io
import json
import re

import numpy as np

from .importing import beside, chain, command, make_run, of_file, read_torch, script, stored, Used


@of_file
def read(path):
    """The parameters by name, and the settings, of a file that RecurrentPPO.save wrote; no code of the file runs."""
    with stored(path) as outer:
        settings = json.loads(outer.read("data"))
        return read_torch(io.BytesIO(outer.read("policy.pth"))), settings


def _diagonal(a, b):
    """The four gates' matrices of two LSTMs that do not see each other."""
    if b is None:
        return a
    n, m = a.shape[1], b.shape[1]
    return beside(np.pad(a, ((0, 0), (0, m))), np.pad(b, ((0, 0), (n, 0))), 4)


@of_file
def converted(theirs, settings):
    """Parameters by Mneme's names, and what the script says of the agent."""
    theirs = Used(theirs)
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
    mine, layers, two = {}, 0, any(name.startswith("lstm_critic.") for name in theirs)
    while f"lstm_actor.weight_ih_l{layers}" in theirs:
        def both(kind):
            return theirs[f"lstm_actor.{kind}_l{layers}"], theirs[f"lstm_critic.{kind}_l{layers}"] if two else None
        for kind in ("bias_ih", "bias_hh"):
            mine[f"core.{kind}_l{layers}"] = beside(*both(kind), 4)
        mine[f"core.weight_hh_l{layers}"] = _diagonal(*both("weight_hh"))
        mine[f"core.weight_ih_l{layers}"] = _diagonal(*both("weight_ih")) if layers else beside(*both("weight_ih"), 4)
        layers += 1
    H = theirs["lstm_actor.weight_hh_l0"].shape[1]
    C = theirs["lstm_critic.weight_hh_l0"].shape[1] if two else 0
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
    theirs.all_read()
    if log_std is not None:
        mine = {re.sub(r"^actor\.", "actor.mean.", name): x for name, x in mine.items()}
        mine["actor.deviation.weight"], mine["actor.deviation.bias"] = np.zeros((len(log_std), H + C), np.float32), log_std
    return mine, {"d_model": H + C, "n_layers": layers, "heads": heads, "act": act, "box": log_std is not None and len(log_std)}


def _agent(about):
    policy = chain(about["heads"]["actor"], about["act"])
    if about["box"]:
        policy = (f"(function()\n  local mean, deviation = {policy}, nn.linear({about['d_model']}, {about['box']})\n"
                  '  local parts = { { "mean", mean }, { "deviation", deviation } }\n'
                  "  return nn.container(parts, function(_, y) return mn.cat({ mean(y), deviation(y) }, -1) end)\nend)()")
    return f"policy = {policy},\n  value = {chain(about['heads']['critic'], about['act'])}"


def convert(path, run, env, **options):
    """Make the run folder `run` of RecurrentPPO's file, whose agent acts in Mneme's environment `env` with these settings.

    Writes FILE.lua and FILE.safetensors next to the run, and trains once with lr=0, which leaves the parameters as they are.  Raises ValueError for a
    policy that is not known here, with its reason.  Returns the run's path.
    """
    theirs, settings = read(path)
    mine, about = converted(theirs, settings)
    names = {"gamma": "gamma", "gae_lambda": "lambda", "ent_coef": "entropy_coef"}
    more = ' learner = "ppo",' + "".join(f' ["{mine}"] = {settings[key]},' for key, mine in names.items()
                                            if type(settings.get(key)) in (int, float) and abs(settings[key]) < 1e6)
    core = f'{{ "lstm", d_model = {about["d_model"]}, n_layers = {about["n_layers"]} }}'
    return make_run(run, path, mine, lambda file: script("sb3-contrib", core, env, options, _agent(about), file, more))


if __name__ == "__main__":
    command(convert, "python -m mneme.from_sb3 FILE.zip run=FOLDER env=NAME [env.SETTING=VALUE ...]")
