"""from_torch.py -- a run folder from a state dict of torch: layers, one LSTM or GRU, a policy and a value, as in CleanRL's ppo_atari_lstm.py
or of TorchRL's LSTMModule and GRUModule.

    torch.save(agent.state_dict(), "agent.pt")
    python -m mneme.from_torch agent.pt run=runs/theirs env=tmaze env.corridor=4
    python -m mneme.from_torch agent.pt run=runs/theirs env=tmaze torso=net.0 core=net.1.lstm actor=policy critic=value act=tanh

torso, core, actor, critic: where the names of each begin; found by their shapes where only one choice fits.  act: the activation between
linear layers, which a state dict does not say (relu).  TorchRL's policy and value may come as files of their own: critic_file=value.pt.
"""
import re
from pathlib import Path

import numpy as np

from .importing import command, head, make_run, of_file, read_torch, script, Used

GATES = {4: "lstm", 3: "gru"}
ACTS = ("relu", "tanh", "elu", "gelu", "silu", "sigmoid")
DQN = [(32, 8), (64, 4), (64, 3)]          # channels and kernels of the torso `conv`


def _chains(theirs, core):
    """Layers in the order of the file, [(prefix, [(name, weight, bias)])]: neighbours below one prefix whose sizes fit."""
    chains = []
    for name, weight in theirs.items():
        if not name.endswith("weight") or weight.ndim not in (2, 4) or name.startswith(core + "."):
            continue
        layer = name[: -len("weight")].rstrip(".")
        bias = theirs.get(f"{layer}.bias", np.zeros(weight.shape[0], np.float32))
        parent = layer.rpartition(".")[0] if re.search(r"(^|\.)\d+$", layer) else layer
        last = chains[-1] if chains else None
        fits = last and last[0] == parent and (weight.ndim == 4 or last[1][-1][1].ndim == 4 or last[1][-1][1].shape[0] == weight.shape[1])
        if fits:
            last[1].append((layer, weight, bias))
        else:
            chains.append((parent, [(layer, weight, bias)]))
    return chains


def _pick(chains, part, how, fits, what):
    """The one chain that a part is: by the prefix in `how`, else by its shapes."""
    told = how.get(part)
    found = [c for c in chains if (c[0] + ".").startswith(told + ".") or c[1][0][0] == told] if told else [c for c in chains if fits(c[1])]
    if len(found) != 1 or told and not fits(found[0][1]):
        known = "; ".join(f"{name} {' '.join('x'.join(map(str, w.shape)) for _, w, _ in layers)}" for name, layers in chains)
        raise ValueError(f"{part}: {what}; {len(found)} of its chains of layers fit{f' {part}={told}' if told else ''}: {known or 'it has none'}")
    return found[0][1]


@of_file
def converted(theirs, how):
    """Parameters by Mneme's names, the core as Lua, and the lines of its torso and heads."""
    theirs, act = Used(theirs), how.get("act", "relu")
    if act not in ACTS:
        raise ValueError(f"act={act}, expected {', '.join(ACTS)}")
    cores = [name[: -len(".weight_hh_l0")] for name in theirs if name.endswith(".weight_hh_l0")]
    core = how.get("core") or (cores[0] if len(cores) == 1 else None)
    if not core or f"{core}.weight_hh_l0" not in theirs:
        raise ValueError(f"expected one LSTM or GRU of torch.nn, or core=NAME; it has {', '.join(cores) or 'none'}")
    rows, d = theirs[f"{core}.weight_hh_l0"].shape
    kind = GATES.get(rows // d)
    reverse = [name for name in theirs if name.startswith(core + ".") and ("reverse" in name or "weight_hr" in name)]
    if not kind or reverse:
        raise ValueError(f"{core}: {reverse[0] if reverse else f'{rows} rows for {d} units'}, expected a GRU or LSTM in one direction, without a projection")
    mine, layers, biased = {}, 0, f"{core}.bias_ih_l0" in theirs
    while f"{core}.weight_hh_l{layers}" in theirs:
        for what in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            mine[f"core.{what}_l{layers}"] = theirs[f"{core}.{what}_l{layers}"] if biased or what.startswith("weight") else np.zeros(rows, np.float32)
        layers += 1
    d_in, chains = theirs[f"{core}.weight_ih_l0"].shape[1], _chains(theirs, core)
    lines, after = [], chains
    before = [c for c in chains if list(theirs).index(c[1][0][0] + ".weight") < list(theirs).index(f"{core}.weight_ih_l0")]
    if how.get("torso") or before:
        torso = _pick(before if not how.get("torso") else chains, "torso", how, lambda c: c[-1][1].shape[0] == d_in,
                      f"layers that end with {d_in} numbers, the core's")
        after = [c for c in chains if c[1] is not torso]
        lines.append(_torso(torso, mine, act))
    ends = lambda c, n: c[0][1].ndim == 2 and c[0][1].shape[1] == d and (c[-1][1].shape[0] == 1) == (n == 1)           # noqa: E731
    actor = _pick(after, "actor", how, lambda c: ends(c, 2), f"layers from {d} numbers, the core's, to a logit for each action")
    lines.append(f"policy = {head('actor', [layer[1:] for layer in actor], mine, act)}")
    critic = _pick(after, "critic", how, lambda c: ends(c, 1), f"layers from {d} numbers, the core's, to one value")
    lines.append(f"value = {head('critic', [layer[1:] for layer in critic], mine, act)}")
    layers_used = [*(torso if how.get("torso") or before else []), *actor, *critic]
    theirs.all_read({f"{layer}.{part}" for layer, *_ in layers_used for part in ("weight", "bias")})
    return mine, f'{{ "{kind}", d_model = {d}, n_layers = {layers} }}', ",\n  ".join(lines)


def _torso(layers, mine, act):
    """Lua for the layers before the core; each is followed by the activation."""
    convolutions = [w for _, w, _ in layers if w.ndim == 4]
    if not convolutions:
        for i, (_, weight, bias) in enumerate(layers):
            mine[f"torso.{2 * i}.weight"], mine[f"torso.{2 * i}.bias"] = weight, bias
        linear = ", ".join(f'nn.linear({w.shape[1]}, {w.shape[0]}, {{ act = "{act}" }})' for _, w, _ in layers)
        return f"torso = (function()\n  local m = nn.sequential({linear})\n  m.d_out = {layers[-1][1].shape[0]}\n  return m\nend)()"
    shapes = [(w.shape[0], w.shape[2]) for w in convolutions]
    if shapes != DQN or len(layers) != 4 or act != "relu":
        raise ValueError(f"torso: convolutions {shapes} and {len(layers) - len(shapes)} linear layers with act={act}, expected those of DQN, {DQN}, then one "
                         "layer, and relu")
    for i, (_, weight, bias) in zip((0, 2, 4, 7), layers):
        mine[f"torso.{i}.weight"], mine[f"torso.{i}.bias"] = weight, bias
    return f'torso = {{ "conv", hidden = {layers[-1][1].shape[0]} }}'


def convert(path, run, env, how=None, **options):
    """Make the run folder `run` of a state dict, whose agent acts in Mneme's environment `env` with these settings.

    how: torso, core, actor, critic: where their names begin; act; critic_file.  Raises ValueError where a part is not found or not known, with what the
    file has.  Returns the run's path.
    """
    how = how or {}
    unknown = set(how) - {"torso", "core", "actor", "critic", "act", "critic_file"}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]}=, expected torso, core, actor, critic, act or critic_file")
    theirs = {name: x for name, x in read_torch(Path(path)).items() if isinstance(x, np.ndarray)}
    if how.get("critic_file"):
        theirs.update({f"critic_file.{name}": x for name, x in read_torch(Path(how["critic_file"])).items() if isinstance(x, np.ndarray)})
    mine, core, lines = converted(theirs, how)
    return make_run(run, path, mine, lambda file: script("torch", core, env, options, lines, file, ' learner = "ppo",'))


if __name__ == "__main__":
    command(convert, "python -m mneme.from_torch FILE.pt run=FOLDER env=NAME [env.SETTING=VALUE ...] "
            "[torso=PREFIX core=PREFIX actor=PREFIX critic=PREFIX act=relu]")
