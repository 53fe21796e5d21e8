"""agalite_torch.py -- an AGaLiTe agent of Mneme's in PyTorch, written from the equations, living one recorded episode again.

    mneme run demo run=runs/demo
    mneme export runs/demo to=agent.safetensors
    mneme eval runs/demo episodes=1 num_envs=1 record=episodes internals=1
    python agalite_torch.py agent.safetensors episodes/episode-0.npz

It prints how far its policy and value are from what the agent had in mind: some 1e-6.  (core agalite, form=code, gate=outer,
feature=outer_relu, flow=gtrxl: Pramanik et al., TMLR 2024, and the released code; `mneme help core agalite`.)
"""
import json
import sys

import numpy as np
import torch
from safetensors import safe_open
from torch.nn.functional import layer_norm, linear


class Agent:
    def __init__(self, path):
        with safe_open(path, "pt") as f:
            self.cfg = json.loads(f.metadata()["config"])
            self.p = {name: f.get_tensor(name).double() for name in f.keys()}
        c = self.cfg
        for key, value in (("form", "code"), ("gate", "outer"), ("feature", "outer_relu"), ("flow", "gtrxl"), ("approximation", "cos")):
            if c[key] != value:
                sys.exit(f"{path}: {key}={c[key]}, this script knows {value}")
        self.K, r = c["eta"] * c["d_head"], c["r"]
        self.omega = torch.linspace(-torch.pi, torch.pi, r, dtype=torch.double)
        self.tick = 0
        self.forget()

    def forget(self):
        """An episode begins: the memory is empty; the clock of the cosines goes on."""
        H, dh, r = self.cfg["n_heads"], self.cfg["d_head"], self.cfg["r"]
        zeros = lambda *shape: torch.zeros(*shape, dtype=torch.double)
        self.memory = [[zeros(H, r, dh), zeros(H, r, self.K), zeros(H, self.K)] for _ in range(self.cfg["n_layers"])]

    def dense(self, name, x):
        return linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def norm(self, name, x):
        return layer_norm(x, x.shape, self.p[name + ".weight"], self.p[name + ".bias"], self.cfg["ln_eps"])

    def gate(self, name, x, y):
        w = lambda part, v: self.p[f"{name}.{part}.weight"] @ v
        r = torch.sigmoid(w("w_r", y) + w("u_r", x))
        z = torch.sigmoid(w("w_z", y) + w("u_z", x) - self.p[name + ".bias"])
        return (1 - z) * x + z * torch.tanh(w("w_g", y) + w("u_g", r * x))

    def attention(self, at, x, memory):
        H, dh = self.cfg["n_heads"], self.cfg["d_head"]
        head = lambda name: self.dense(at + name, x).view(H, -1)
        outer = lambda p, a: (p[:, :, None] * a[:, None, :]).reshape(H, -1)
        q = outer(torch.relu(head("p_q")), torch.relu(head("q")))
        k = outer(torch.relu(head("p_k")), torch.relu(head("k")))
        beta = torch.sigmoid(head("beta"))
        gamma = outer(torch.sigmoid(head("p_gamma")), torch.sigmoid(head("gamma")))
        wave = torch.cos(self.omega * self.tick)[None, :, None]
        v_m, k_m, s = memory
        v_m = (1 - beta)[:, None] * v_m + wave * (beta * head("v"))[:, None]
        k_m = (1 - gamma)[:, None] * k_m + wave * (gamma * k)[:, None]
        s = (1 - gamma) * s + gamma * k
        memory[:] = v_m, k_m, s
        read = (v_m * (k_m * q[:, None]).sum(-1, keepdim=True)).sum(1)
        den = 2 * self.cfg["r"] * (s * q).sum(-1, keepdim=True) + self.cfg["eps"]
        return self.dense(at + "out", (read / den).reshape(H * dh))

    def act(self, observation):
        """Policy and value after one more observation."""
        self.tick += 1
        e = torch.relu(self.dense("core.embed", torch.as_tensor(observation, dtype=torch.double)))
        for n, memory in enumerate(self.memory):
            at = f"core.layers.{n}."
            h = self.gate(at + "gate1", e, torch.relu(self.attention(at + "attn.", self.norm(at + "norm1", e), memory)))
            f = self.dense(at + "ffn.2", torch.relu(self.dense(at + "ffn.0", self.norm(at + "norm2", h))))
            e = self.gate(at + "gate2", h, torch.relu(f))
        head = lambda name: self.dense(name + ".2", torch.tanh(self.dense(name + ".0", e)))
        return torch.softmax(head("actor"), 0).numpy(), head("critic").item()


def main(parameters, episode):
    agent, z = Agent(parameters), np.load(episode)
    worst = 0.0
    for t, observation in enumerate(z["observations"]):
        policy, value = agent.act(observation)
        worst = max(worst, np.abs(policy - z["policy"][t]).max(), abs(value - z["value"][t]))
        if z["terminated"][t] or z["truncated"][t]:
            agent.forget()
    print(f"{len(z['actions'])} steps, largest difference {worst:.2g}")
    return 0 if worst < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
