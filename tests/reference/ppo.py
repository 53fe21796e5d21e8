#!/usr/bin/env python3
"""ppo.py -- two updates of PPO as the released Craftax run makes them, written from its description alone, in float64.

    python tests/reference/ppo.py            # writes tests/fixtures/ppo_updates.json

Model, rollouts and settings are those of config_pure/craftax/arelit.yaml and src_pure/purejaxrl/ppo_rnn.py of
github.com/subho406/agalite in small: a dense layer, a core, two heads with a hidden layer; 16 environments, 8
minibatches of whole sequences, 4 epochs, an annealed rate.  Observations, rewards, ends, actions and the order of the
environments are given.  Numbers that are given are exact in float32.
"""
import json
import os
import types

import numpy as np
import torch

import equations
from make_fixtures import DEFAULTS, generator

SETTINGS = dict(num_envs=16, num_steps=6, epochs=4, minibatches=8, gamma=0.99, lam=0.8, clip=0.2, entropy_coef=0.01,
                value_coef=0.5, max_norm=1.0, lr=4e-4, adam_eps=1e-5, beta1=0.9, beta2=0.999)
UPDATES, OF = 2, 3                       # what is written, of a training that would have so many
D, ACTIONS, HIDDEN = 5, 4, 6
CORES = {'gru': dict(d_in=HIDDEN, d_model=HIDDEN, n_layers=1),
         'agalite': dict(d_in=HIDDEN, d_model=HIDDEN, n_layers=2, n_heads=2, d_head=4, d_ffn=HIDDEN, eta=3, r=2, eps=1e-5)}


class Within:
    """The net of a part: names of its parameters begin with the part's."""

    def __init__(self, net, part):
        self.net, self.part = net, part

    def param(self, name, *shape, **how):
        return self.net.param(self.part + name, *shape, **how)

    def __getattr__(self, name):
        return getattr(self.net, name)


def model(core, cfg, x, done, rng, params=None, states=None):
    """Logits [T,B,A] and values [T,B]; the net, which has the parameters, their gradients, and the states afterwards."""
    net = equations.Net(rng, x.shape[1], like=params and types.SimpleNamespace(params=params, states=states))
    y = equations.CORES[core](Within(net, 'core.'), cfg, torch.relu(equations.affine(net, 'torso', x, HIDDEN)), done)
    logits, values = (equations.affine(net, head + '.1', torch.relu(equations.affine(net, head + '.0', y, HIDDEN)), n)
                      for head, n in (('actor', ACTIONS), ('critic', 1)))
    return logits, values[..., 0], net


def advantages(rewards, done, values):
    """done [T+1,B]: the observation of that row begins an episode, so nothing of it belongs to the step before."""
    s, A, last = SETTINGS, torch.zeros_like(rewards), torch.zeros(rewards.shape[1], dtype=torch.float64)
    for t in reversed(range(rewards.shape[0])):
        goes_on = 1 - done[t + 1]
        last = rewards[t] + s['gamma'] * goes_on * values[t + 1] - values[t] + s['gamma'] * s['lam'] * goes_on * last
        A[t] = last
    return A


def losses(logits, values, m):
    s = SETTINGS
    log_p = torch.log_softmax(logits, -1)
    ratio = (log_p.gather(-1, m['actions'][..., None])[..., 0] - m['log_probs']).exp()
    A = (m['advantages'] - m['advantages'].mean()) / (m['advantages'].std(correction=0) + 1e-8)
    policy = -torch.minimum(ratio * A, ratio.clamp(1 - s['clip'], 1 + s['clip']) * A).mean()
    near = m['values'] + (values - m['values']).clamp(-s['clip'], s['clip'])
    value = 0.5 * torch.maximum((values - m['returns']) ** 2, (near - m['returns']) ** 2).mean()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return policy + s['value_coef'] * value - s['entropy_coef'] * entropy, policy, value, entropy


def adam(params, grads, moments, n, lr):
    """In place; the gradient's norm before it is clipped."""
    s = SETTINGS
    norm = sum((g ** 2).sum() for g in grads.values()).sqrt()
    for name, p in params.items():
        g = grads[name] * min(1.0, s['max_norm'] / norm.item())
        m, v = moments.setdefault(name, [torch.zeros_like(p), torch.zeros_like(p)])
        m.mul_(s['beta1']).add_(g, alpha=1 - s['beta1'])
        v.mul_(s['beta2']).add_(g * g, alpha=1 - s['beta2'])
        p -= lr * (m / (1 - s['beta1'] ** n)) / ((v / (1 - s['beta2'] ** n)).sqrt() + s['adam_eps'])
    return norm.item()


def exact(array):
    return torch.tensor(np.asarray(array, np.float32)).double()


def case(core):
    s, rng, cfg = SETTINGS, generator('ppo_' + core), dict(DEFAULTS[core], **CORES[core])
    T, B, each = s['num_steps'], s['num_envs'], s['num_envs'] // s['minibatches']
    x, done = exact(rng.standard_normal((UPDATES * T + 1, B, D))), torch.zeros(UPDATES * T + 1, B, dtype=torch.float64)
    done[0] = 1
    done[torch.tensor(rng.random(done.shape) < 0.15)] = 1
    rewards, actions = exact(rng.standard_normal((UPDATES * T, B))), torch.tensor(rng.integers(0, ACTIONS, (UPDATES * T, B)))
    orders = [[rng.permutation(B).tolist() for _ in range(s['epochs'])] for _ in range(UPDATES)]
    made = model(core, cfg, x[:1], done[:1], rng)[2]
    states, params = ({n: t.detach() for n, t in kept.items()} for kept in (made.states, made.params))
    states = {n: torch.zeros_like(t) for n, t in states.items()}
    first, moments, n, log = {k: p.clone() for k, p in params.items()}, {}, 0, []
    for u in range(UPDATES):
        rows, after = slice(u * T, (u + 1) * T), slice(u * T, (u + 1) * T + 1)
        with torch.no_grad():
            logits, values, _ = model(core, cfg, x[after], done[after], rng, params, states)
            final = model(core, cfg, x[rows], done[rows], rng, params, states)[2].final
        A = advantages(rewards[rows], done[after], values)
        batch = dict(x=x[rows], done=done[rows], actions=actions[rows], values=values[:-1], advantages=A, returns=A + values[:-1],
                     log_probs=torch.log_softmax(logits[:-1], -1).gather(-1, actions[rows][..., None])[..., 0])
        lr, steps = s['lr'] * (1 - u / OF), []
        for order in orders[u]:
            for k in range(0, B, each):
                take = order[k:k + each]
                m = {name: t[:, take] for name, t in batch.items()}
                logits, values, net = model(core, cfg, m['x'], m['done'], rng, params, {name: t[take] for name, t in states.items()})
                loss, *parts = losses(logits, values, m)
                grads = dict(zip(net.params, torch.autograd.grad(loss, list(net.params.values()))))
                n += 1
                steps.append([p.item() for p in (loss, *parts)] + [adam(params, grads, moments, n, lr)])
        log.append(dict(advantages=A, log_probs=batch['log_probs'], rate=lr, steps=steps))
        states = {k: t.detach() for k, t in final.items()}
    return dict(config=CORES[core], x=x, done=done, rewards=rewards, actions=actions, orders=orders, params=first,
                updates=log, trained=params)


def plain(t):
    if isinstance(t, dict):
        return {k: plain(v) for k, v in t.items()}
    if isinstance(t, list):
        return [plain(v) for v in t]
    if isinstance(t, torch.Tensor):
        return [float('%.9g' % v) for v in t.detach().flatten().tolist()]
    return float('%.9g' % t) if isinstance(t, float) else t


if __name__ == '__main__':
    sizes = dict(observation=D, actions=ACTIONS, hidden=HIDDEN, updates=UPDATES, of=OF)
    out = dict(settings=SETTINGS, sizes=sizes, cores={core: plain(case(core)) for core in CORES})
    path = os.path.join(os.path.dirname(__file__), '..', 'fixtures', 'ppo_updates.json')
    with open(path, 'w') as f:
        json.dump(out, f, separators=(',', ':'), sort_keys=True)
        f.write('\n')
