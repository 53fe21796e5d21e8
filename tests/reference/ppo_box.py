#!/usr/bin/env python3
"""ppo_box.py -- an update of PPO with a Gaussian policy, written from its equations alone, in float64 and with numpy alone.

    python3 -m venv ~/numpy && ~/numpy/bin/pip install numpy
    ~/numpy/bin/python tests/reference/ppo_box.py [FILE=tests/fixtures/ppo_box.json]

A dense layer, a GRU, two heads with a hidden layer; an action of two numbers, whose means the policy's head gives and whose log-deviations are
parameters that begin at 0, as in CleanRL's ppo_continuous_action.py.  Advantages are divided by their population deviation, as our PPO does.
Gradients are by complex steps, f(x + ih) / h, which have no rounding error of a difference: nothing here is derived by hand.
Observations, rewards, ends, actions (not clipped) and the order of the environments are given.  Numbers that are given are exact in float32.
"""
import json
import os
import sys

import numpy as np

S = dict(num_envs=8, num_steps=6, epochs=3, minibatches=4, gamma=0.95, lam=0.9, clip=0.1, entropy_coef=0.02, value_coef=0.5, max_norm=0.5, lr=3e-3,
         adam_eps=1e-5, beta1=0.9, beta2=0.999)
D, K, H = 5, 2, 6


def shapes():
    list_of = {'torso': (H, D, True)}
    for g in 'rzn':
        list_of['core.layers.0.i' + g] = (H, H, True)
        list_of['core.layers.0.h' + g] = (H, H, g == 'n')
    for head, n in (('actor.mean', K), ('critic', 1)):
        list_of[head + '.0'], list_of[head + '.1'] = (H, H, True), (n, H, True)
    return list_of


def exact(a):
    return np.asarray(a, np.float32).astype(np.float64)


def parameters(rng):
    p = {'actor.log_std': np.zeros(K)}
    for name, (out, into, bias) in shapes().items():
        p[name + '.weight'] = exact(rng.standard_normal((out, into)) / np.sqrt(into))
        if bias:
            p[name + '.bias'] = exact(0.1 * rng.standard_normal(out))
    return p


def affine(p, name, x):
    y = x @ p[name + '.weight'].T
    return y + p[name + '.bias'] if name + '.bias' in p else y


def relu(x):
    return np.where(x.real > 0, x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def model(p, x, done):
    """Means [T,B,K], values [T,B]."""
    u, h, means, values = relu(affine(p, 'torso', x)), np.zeros((x.shape[1], H)), [], []
    at = 'core.layers.0.'
    for t in range(x.shape[0]):
        h = h * (1 - done[t])[:, None]
        r, z = (sigmoid(affine(p, at + 'i' + g, u[t]) + affine(p, at + 'h' + g, h)) for g in 'rz')
        h = (1 - z) * np.tanh(affine(p, at + 'in', u[t]) + r * affine(p, at + 'hn', h)) + z * h
        means.append(affine(p, 'actor.mean.1', relu(affine(p, 'actor.mean.0', h))))
        values.append(affine(p, 'critic.1', relu(affine(p, 'critic.0', h)))[:, 0])
    return np.stack(means), np.stack(values)


def log_prob(p, means, actions):
    deviation = np.exp(p['actor.log_std'])
    return (-0.5 * ((actions - means) / deviation) ** 2 - p['actor.log_std'] - 0.5 * np.log(2 * np.pi)).sum(-1)


def larger(a, b):
    return np.where(a.real > b.real, a, b)


def clipped(x, lo, hi):
    return np.where(x.real < lo, lo, np.where(x.real > hi, hi, x))


def losses(p, m):
    means, values = model(p, m['x'], m['done'])
    ratio = np.exp(log_prob(p, means, m['actions']) - m['log_probs'])
    A = (m['advantages'] - m['advantages'].mean()) / (m['advantages'].std() + 1e-8)
    policy = larger(-ratio * A, -clipped(ratio, 1 - S['clip'], 1 + S['clip']) * A).mean()
    near = m['values'] + clipped(values - m['values'], -S['clip'], S['clip'])
    value = 0.5 * larger((values - m['returns']) ** 2, (near - m['returns']) ** 2).mean()
    entropy = (p['actor.log_std'] + 0.5 + 0.5 * np.log(2 * np.pi)).sum()
    return policy + S['value_coef'] * value - S['entropy_coef'] * entropy, policy, value, entropy


def gradients(p, m):
    grads, step = {}, 1e-30
    for name, value in p.items():
        g = np.zeros(value.size)
        for i in range(value.size):
            moved = value.astype(complex)
            moved.reshape(-1)[i] += 1j * step
            g[i] = losses({**p, name: moved}, m)[0].imag / step
        grads[name] = g.reshape(value.shape)
    return grads


def main(path):
    rng = np.random.default_rng(12)
    T, B, each = S['num_steps'], S['num_envs'], S['num_envs'] // S['minibatches']
    x, done = exact(rng.standard_normal((T + 1, B, D))), (rng.random((T + 1, B)) < 0.15).astype(float)
    done[0] = 1
    rewards, actions = exact(rng.standard_normal((T, B))), exact(1.5 * rng.standard_normal((T, B, K)))
    orders = [rng.permutation(B).tolist() for _ in range(S['epochs'])]
    p = parameters(rng)
    first = {k: v.copy() for k, v in p.items()}
    means, values = model(p, x, done)
    A, last = np.zeros((T, B)), np.zeros(B)
    for t in reversed(range(T)):
        goes_on = 1 - done[t + 1]
        last = rewards[t] + S['gamma'] * goes_on * values[t + 1] - values[t] + S['gamma'] * S['lam'] * goes_on * last
        A[t] = last
    batch = dict(x=x[:-1], done=done[:-1], actions=actions, values=values[:-1], advantages=A, returns=A + values[:-1],
                 log_probs=log_prob(p, means[:-1], actions))
    moments, steps, n = {k: (np.zeros_like(v), np.zeros_like(v)) for k, v in p.items()}, [], 0
    for order in orders:
        for k in range(0, B, each):
            m = {name: a[:, order[k:k + each]] for name, a in batch.items()}
            numbers, grads = [float(np.real(v)) for v in losses(p, m)], gradients(p, m)
            norm, n = np.sqrt(sum((g ** 2).sum() for g in grads.values())), n + 1
            for name in p:
                g = grads[name] * min(1.0, S['max_norm'] / norm)
                a, b = moments[name]
                a[...] = S['beta1'] * a + (1 - S['beta1']) * g
                b[...] = S['beta2'] * b + (1 - S['beta2']) * g * g
                p[name] = p[name] - S['lr'] * (a / (1 - S['beta1'] ** n)) / (np.sqrt(b / (1 - S['beta2'] ** n)) + S['adam_eps'])
            steps.append(numbers + [float(norm)])

    def plain(v):
        return {k: plain(x) for k, x in v.items()} if isinstance(v, dict) else [float('%.9g' % x) for x in np.ravel(v)]
    out = dict(settings=S, sizes=dict(observation=D, action=K, hidden=H), x=plain(x), done=plain(done), rewards=plain(rewards), actions=plain(actions),
               orders=orders, params=plain(first), log_probs=plain(batch['log_probs']), advantages=plain(A), steps=[plain(s) for s in steps], trained=plain(p))
    with open(path, 'w') as f:
        json.dump(out, f, separators=(',', ':'), sort_keys=True)
        f.write('\n')


if __name__ == '__main__':
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '..', 'fixtures', 'ppo_box.json'))
