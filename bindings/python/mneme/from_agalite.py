"""from_agalite.py -- a run folder from an agent of AGaLiTe's released code (github.com/subho406/agalite, trainer.py): agalite, gru or lstm.

    python -m mneme.from_agalite CHECKPOINTS run=runs/theirs env=tmaze env.corridor=60

CHECKPOINTS is the folder that its save_interval fills (save_dir/save_tag), the newest step of it, or one step's folder; read by orbax, which that
code needs, too.  Or FILE.msgpack of flax.serialization.to_bytes(agent.params), read by flax; or, read by NumPy alone, FILE.npz:

    np.savez("FILE.npz", **flax.traverse_util.flatten_dict(agent.params, sep="/"))
"""
import re
from pathlib import Path

import numpy as np

from .importing import command, head, make_run, of_file, script, Used


@of_file
def read(path):
    """The tree of parameters: names to trees or arrays."""
    path = Path(path).absolute()
    if path.suffix == ".npz" and path.is_file():
        tree = {}
        with np.load(path) as arrays:
            for name in arrays:
                *above, last = name.split("/")
                below = tree
                for key in above:
                    below = below.setdefault(key, {})
                below[last] = arrays[name]
    elif path.is_file():
        from flax import serialization
        tree = serialization.msgpack_restore(path.read_bytes())
    elif path.is_dir():
        import orbax.checkpoint
        steps = [f for f in path.iterdir() if f.name.isdigit()]
        step = max(steps, key=lambda f: int(f.name)) if steps else path
        tree = orbax.checkpoint.PyTreeCheckpointer().restore(step / "default" if (step / "default").is_dir() else step)
    else:
        raise ValueError("there is no such file or folder")
    tree = tree.get("agent", tree)
    tree = tree.get("params", tree)
    if not {"actor", "critic", "seq_model"} <= set(tree):
        raise ValueError(f"its parts are {', '.join(sorted(tree))}, expected actor, critic and seq_model: an agent of trainer.py (not of trainer_pure.py)")
    if tree.get("repr_model"):
        raise ValueError("repr_model has parameters (pictures), expected none: vectors, as of its T-Maze")
    return tree


def _dense(layer):
    """[out, in] and [out], as here."""
    weight = np.asarray(layer["kernel"], np.float32).T
    return weight, np.asarray(layer["bias"], np.float32) if "bias" in layer else None


def _of_heads(layer, heads, names):
    """The parts of a projection whose rows are, head by head, those of each name."""
    weight, bias = _dense(layer)
    parts = np.split(weight.reshape(heads, -1, weight.shape[1]), len(names), 1), np.split(bias.reshape(heads, -1), len(names), 1)
    return {f"attn.{name}.{what}": part.reshape(-1, *weight.shape[1:]) if what == "weight" else part.ravel()
            for what, found in zip(("weight", "bias"), parts) for name, part in zip(names, found)}


def _agalite(tree, how):
    mine, n = {}, len(tree)
    for i in range(n):
        layer = tree[f"layer{i + 1}"]
        attention = layer["AttentionORLiTLayer_0"]
        own = {}
        if i == 0:
            mine["core.embed.weight"], mine["core.embed.bias"] = _dense(layer["emb_layer"])
        for k in (0, 1):
            own[f"norm{k + 1}.weight"], own[f"norm{k + 1}.bias"] = (np.asarray(layer[f"LayerNorm_{k}"][w], np.float32) for w in ("scale", "bias"))
            gate = layer[f"GRUGatingUnit_{k}"]
            own[f"gate{k + 1}.bias"] = np.asarray(gate["bgp"], np.float32)
            own.update({f"gate{k + 1}.{a}_{b}.weight": _dense(gate[f"{a.upper()}{b}"])[0] for a in "wu" for b in "rzg"})
        ffn = [layer[name] for name in ("Dense_0", "Dense_1")] if "Dense_0" in layer else [layer["Sequential_0"][name] for name in ("layers_0", "layers_2")]
        for k, dense in enumerate(ffn):
            own[f"ffn.{2 * k}.weight"], own[f"ffn.{2 * k}.bias"] = _dense(dense)
        own["attn.out.weight"], own["attn.out.bias"] = _dense(attention["project"])
        heads = how["n_heads"]
        own.update(_of_heads(attention["linear_kqvbetagammas"], heads, ("k", "q", "v", "beta", "gamma")))
        own.update(_of_heads(attention["linear_p1p2p3"], heads, ("p_k", "p_q", "p_gamma")))
        mine.update({f"core.layers.{i}.{name}": np.ascontiguousarray(x) for name, x in own.items()})
    d, rows = mine["core.embed.weight"].shape[0], mine["core.layers.0.attn.k.weight"].shape[0]
    sizes = dict(n_layers=n, n_heads=heads, d_model=d, d_head=rows // heads, d_ffn=mine["core.layers.0.ffn.0.weight"].shape[0],
                 eta=mine["core.layers.0.attn.p_k.weight"].shape[0] // heads, r=how["r"])
    return mine, '{ "agalite", ' + ", ".join(f"{key} = {value}" for key, value in sizes.items()) + " }"


def _recurrent(tree, kind, cell):
    """Layers GRU_0 or LSTM_0 ..., each the one cell below whatever scans it; gates have the same names here."""
    mine = {}
    for i in range(len(tree)):
        found = tree[f"{kind.upper()}_{i}"]
        while cell not in found:
            (found,) = found.values()
        for gate, layer in found[cell].items():
            weight, bias = _dense(layer)
            mine[f"core.layers.{i}.{gate}.weight"] = weight
            if bias is not None:
                mine[f"core.layers.{i}.{gate}.bias"] = bias
            d = weight.shape[0]
    return mine, f'{{ "{kind}", d_model = {d}, n_layers = {len(tree)} }}'


@of_file
def converted(tree, how):
    """Parameters by Mneme's names, the core as Lua, and the heads' lines."""
    tree = Used(tree)
    seq = tree["seq_model"]
    if "layer1" in seq and "AttentionORLiTLayer_0" in seq["layer1"]:
        mine, core = _agalite(seq, how)
    elif "GRU_0" in seq:
        mine, core = _recurrent(seq, "gru", "GRUCell_0")
    elif "LSTM_0" in seq:
        mine, core = _recurrent(seq, "lstm", "OptimizedLSTMCell_0")
    else:
        raise ValueError(f"seq_model has {', '.join(sorted(seq))}, expected agalite, gru or lstm (galite and gtrxl are not known here)")
    heads = []
    for name, key in (("actor", "policy"), ("critic", "value")):
        heads.append(f"{key} = {head(name, [_dense(tree[name][layer]) for layer in ('layers_0', 'layers_2')], mine, 'tanh')}")
    tree.all_read()
    return {name: np.ascontiguousarray(x) for name, x in mine.items()}, core, ",\n  ".join(heads)


def convert(path, run, env, how=None, **options):
    """Make the run folder `run` of a checkpoint, whose agent acts in Mneme's environment `env` with these settings.

    how: what shapes do not say: n_heads and r of agalite (4 and 2, its T-Maze's).  Raises ValueError where the checkpoint is of another kind.
    Returns the run's path.
    """
    known = {"n_heads": 4, "r": 2}
    for key, value in (how or {}).items():
        if key not in known or not re.fullmatch(r"[1-9]\d*", str(value)):
            raise ValueError(f"{key}={value}, expected n_heads=N or r=N, settings of its agalite")
        known[key] = int(value)
    mine, core, heads = converted(read(path), known)
    settings = ' learner = "a2c", bootstrap_truncated = 0,'
    return make_run(run, path, mine, lambda file: script("AGaLiTe's released code", core, env, options, heads, file, settings))


if __name__ == "__main__":
    command(convert, "python -m mneme.from_agalite CHECKPOINTS run=FOLDER env=NAME [env.SETTING=VALUE ...] [n_heads=4] [r=2]")
