"""fla.py -- recurrences of flash-linear-attention in the plain PyTorch that its tests compare kernels with (fla/ops/*/naive.py).  The kernels need a GPU.
Steps are the recurrent form; a sequence is the same, or with chunks=1 the form by chunks.

    python -m memory_contract memory_contract.adapters.fla:memory name=gated_delta_rule chunks=1
"""
from importlib.metadata import version

import torch
import torch.nn.functional as F
from fla.ops.delta_rule.naive import delta_rule_recurrence
from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product
from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule, naive_recurrent_gated_delta_rule
from fla.ops.gla.naive import naive_recurrent_gla
from fla.ops.hgrn.naive import naive_recurrent_hgrn
from fla.ops.kda.naive import naive_recurrent_kda
from fla.ops.simple_gla.naive import naive_chunk_simple_gla, naive_recurrent_simple_gla
from torch import nn

from .with_torch import TorchMemory

D, H, K, CHUNK = 6, 2, 4, 16


def _delta(q, k, v, beta, initial_state):
    q, k, v, beta = (t.transpose(1, 2) for t in (q, k, v, beta))
    o, state = delta_rule_recurrence(q, k, v, beta, initial_state)
    return o.transpose(1, 2), state


def _product(q, k, v, g, beta, initial_state):                 # two keys a step: the second is the first backwards
    k, v, beta = (torch.stack((t, t.flip(-1)), 2).flatten(1, 2) for t in (k, v, beta))
    return naive_recurrent_gated_delta_product(q, k, v, g, beta, K ** -0.5, initial_state=initial_state, output_final_state=True, num_householder=2)


# Recurrent form, form by chunks, and what it takes of q, k, v, beta, g [B,T,H], gk [B,T,H,K]: argument=name where they differ.
FORMS = {
    "delta_rule": (_delta, None, ("q", "k", "v", "beta")),
    "gated_delta_product": (_product, None, ("q", "k", "v", "g", "beta")),
    "gated_delta_rule": (naive_recurrent_gated_delta_rule, naive_chunk_gated_delta_rule, ("q", "k", "v", "beta", "g")),
    "gla": (naive_recurrent_gla, None, ("q", "k", "v", "gk")),
    "hgrn": (naive_recurrent_hgrn, None, ("x", "g")),
    "kda": (naive_recurrent_kda, None, ("q", "k", "v", "g=gk", "beta")),
    "simple_gla": (naive_recurrent_simple_gla, naive_chunk_simple_gla, ("q", "k", "v", "g")),
}


class Inputs(nn.Module):
    """Random products of x, with what each form expects of its gates."""

    def __init__(self):
        super().__init__()
        self.qkv, self.gates = nn.Linear(D, 3 * H * K), nn.Linear(D, 2 * H + H * K)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).unflatten(-1, (3, H, K)).unbind(2)
        beta, g, gk = self.gates(x).split((H, H, H * K), -1)
        return {"q": F.normalize(q, dim=-1), "k": F.normalize(k, dim=-1), "v": v, "beta": beta.sigmoid(), "g": F.logsigmoid(g),
                "gk": F.logsigmoid(gk).unflatten(-1, (H, K))}


def memory(name="gla", chunks=0, seed=0):
    """A form by name, of random products of its input."""
    if name not in FORMS:
        raise ValueError(f"there is no form {name!r} here, expected one of {', '.join(FORMS)}")
    recurrent, by_chunks, takes = FORMS[name]
    if chunks and not by_chunks:
        raise ValueError(f"{name} has no plain form by chunks that takes a state")
    torch.manual_seed(seed)
    inputs = Inputs()

    def call(form, **more):
        def run(x, starts, state):
            given = inputs(x)
            if name == "hgrn":
                given = {"x": given["v"].flatten(2), "g": given["gk"].flatten(2)}
            given = {key.split("=")[0]: given[key.split("=")[-1]] for key in takes}
            if form not in (_delta, _product):
                more["output_final_state"] = True
            return form(**given, initial_state=state, **more)
        return run

    def initial(batch):
        return torch.zeros(batch, H * K) if name == "hgrn" else torch.zeros(batch, H, K, K)

    act = call(recurrent)
    sequence = call(by_chunks, chunk_size=CHUNK) if chunks else act
    return TorchMemory(f"{name}, chunks" if chunks else name, "flash-linear-attention", version("flash-linear-attention"), D, inputs, sequence, initial, act,
                       ends=False)
