#!/usr/bin/env python3
"""pqn.py -- updates of recurrent PQN(lambda) with each form of targets, in NumPy and float64, with gradients by hand.

    python tests/reference/pqn.py            # writes tests/fixtures/pqn_updates.json

Written from the algorithm's description (Gallici et al. 2025; recurrent as in purejaxql; targets=rollout as in memorax): a GRU, then Q by a hidden
layer with layer norm and relu.  Rollouts, actions and the order of the environments are given; the first rollout is the first window.  Gradients are
compared with differences before anything is written.  Numbers that are given are exact in float32.
"""
import json
import os

import numpy as np

SETTINGS = dict(num_envs=4, num_steps=6, window=2, epochs=2, minibatches=2, gamma=0.97, lam=0.8, lr=0.05, max_norm=0.4, adam_eps=1e-8, beta1=0.9,
                beta2=0.999)
ROLLOUTS, OF = 4, 5                      # what is written, of a training that would have so many
D, ACTIONS, MODEL, HIDDEN, LN_EPS = 5, 3, 4, 6, 1e-6
rng = np.random.default_rng(48)


def exact(a):
    return np.asarray(a, np.float32).astype(np.float64)


def made(*shape):
    return exact(rng.standard_normal(shape) * 0.5)


def parameters():
    p = {}
    for g in 'rzn':
        p[f'core.layers.0.i{g}.weight'], p[f'core.layers.0.i{g}.bias'] = made(MODEL, D), made(MODEL)
        p[f'core.layers.0.h{g}.weight'] = made(MODEL, MODEL)
    p['core.layers.0.hn.bias'] = made(MODEL)
    p['actor.0.weight'], p['actor.0.bias'] = made(HIDDEN, MODEL), made(HIDDEN)
    p['actor.norm.weight'], p['actor.norm.bias'] = exact(1 + made(HIDDEN) / 4), made(HIDDEN)
    p['actor.1.weight'], p['actor.1.bias'] = made(ACTIONS, HIDDEN), made(ACTIONS)
    return p


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def forward(p, x, done, h):
    """Q [T,B,A], the states before each step and after the last, and what backward needs."""
    c = lambda n: p['core.layers.0.' + n]
    states, kept, qs = [h], [], []
    for t in range(len(x)):
        old = h * (1 - done[t])[:, None]
        r = sigmoid(x[t] @ c('ir.weight').T + c('ir.bias') + old @ c('hr.weight').T)
        z = sigmoid(x[t] @ c('iz.weight').T + c('iz.bias') + old @ c('hz.weight').T)
        inner = old @ c('hn.weight').T + c('hn.bias')
        n = np.tanh(x[t] @ c('in.weight').T + c('in.bias') + r * inner)
        h = (1 - z) * n + z * old
        u = h @ p['actor.0.weight'].T + p['actor.0.bias']
        deviation = np.sqrt(((u - u.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True) + LN_EPS)
        unit = (u - u.mean(-1, keepdims=True)) / deviation
        v = unit * p['actor.norm.weight'] + p['actor.norm.bias']
        qs.append(np.maximum(v, 0) @ p['actor.1.weight'].T + p['actor.1.bias'])
        states.append(h)
        kept.append((old, r, z, inner, n, h, deviation, unit, v))
    return np.stack(qs), states, kept


def backward(p, x, done, kept, dq):
    g = {k: np.zeros_like(v) for k, v in p.items()}
    c = lambda n: p['core.layers.0.' + n]

    def add(name, delta, into):
        g[name + '.weight'] += delta.T @ into
        if name + '.bias' in g:
            g[name + '.bias'] += delta.sum(0)
    dh = np.zeros_like(kept[0][0])
    for t in reversed(range(len(x))):
        old, r, z, inner, n, h, deviation, unit, v = kept[t]
        add('actor.1', dq[t], np.maximum(v, 0))
        dv = dq[t] @ p['actor.1.weight'] * (v > 0)
        g['actor.norm.weight'] += (dv * unit).sum(0)
        g['actor.norm.bias'] += dv.sum(0)
        dunit = dv * p['actor.norm.weight']
        du = (dunit - dunit.mean(-1, keepdims=True) - unit * (dunit * unit).mean(-1, keepdims=True)) / deviation
        add('actor.0', du, h)
        dh = dh + du @ p['actor.0.weight']
        dz, dn, dold = dh * (old - n), dh * (1 - z), dh * z
        an, az = dn * (1 - n * n), dz * z * (1 - z)
        ar, dinner = an * inner * r * (1 - r), an * r
        for name, delta in (('ir', ar), ('iz', az), ('in', an)):
            add('core.layers.0.' + name, delta, x[t])
        for name, delta in (('hr', ar), ('hz', az), ('hn', dinner)):
            add('core.layers.0.' + name, delta, old)
        dold += ar @ c('hr.weight') + az @ c('hz.weight') + dinner @ c('hn.weight')
        dh = dold * (1 - done[t])[:, None]
    return g


def targets(rewards, ends, best):
    """rewards, ends (of the episode, with the step) [n]; best: largest Q [n + 1]."""
    s, G = SETTINGS, [None] * len(rewards)
    for t in reversed(range(len(rewards))):
        after = best[t + 1] if t == len(rewards) - 1 else best[t + 1] + s['lam'] * (G[t + 1] - best[t + 1])
        G[t] = rewards[t] + s['gamma'] * (1 - ends[t]) * after
    return np.stack(G)


def loss_of(p, m, form):
    q, _, kept = forward(p, m['x'], m['done'], m['state'])
    W, R = SETTINGS['window'], len(q)
    taught = range(0, R - 1) if form == 'fresh' else range(W, R)
    G = m['G'] if 'G' in m else targets(m['rewards'][:-1], m['done'][1:], q.max(-1)) if form == 'fresh' else m['returns']
    B = q.shape[1]
    chosen = np.stack([q[t, np.arange(B), m['actions'][t]] for t in taught])
    dq = np.zeros_like(q)
    for i, t in enumerate(taught):
        dq[t, np.arange(B), m['actions'][t]] = (chosen[i] - G[i]) / chosen.size
    return 0.5 * ((chosen - G) ** 2).mean(), chosen.mean(), G, (kept, dq)


def radam(p, g, moments, n, lr):
    s = SETTINGS
    norm = np.sqrt(sum((v ** 2).sum() for v in g.values()))
    scale = s['max_norm'] / norm if norm > s['max_norm'] else 1.0
    most = 2 / (1 - s['beta2']) - 1
    rho = most - 2 * n * s['beta2'] ** n / (1 - s['beta2'] ** n)
    for k in p:
        m, v = moments.setdefault(k, [np.zeros_like(p[k]), np.zeros_like(p[k])])
        m[...] = s['beta1'] * m + (1 - s['beta1']) * g[k] * scale
        v[...] = s['beta2'] * v + (1 - s['beta2']) * (g[k] * scale) ** 2
        step = m / (1 - s['beta1'] ** n)
        if rho >= 5:
            rect = (rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)
            step = np.sqrt(rect) * step / (np.sqrt(v / (1 - s['beta2'] ** n)) + s['adam_eps'])
        p[k] -= lr * step
    return norm


def by_differences(p, m, form, g):
    G, worst = loss_of(p, m, form)[2], 0
    for k in p:
        for i in range(p[k].size):
            was, at = p[k].flat[i], []
            for e in (1e-6, -1e-6):
                p[k].flat[i] = was + e
                at.append(loss_of(p, dict(m, G=G), form)[0])
            p[k].flat[i] = was
            worst = max(worst, abs((at[0] - at[1]) / 2e-6 - g[k].flat[i]))
    assert worst < 1e-8, worst


def case(form):
    s = SETTINGS
    T, W, B, each = s['num_steps'], s['window'], s['num_envs'], s['num_envs'] // s['minibatches']
    n_rows = ROLLOUTS * T
    x, rewards = exact(rng.standard_normal((n_rows + 1, B, D))), exact(rng.standard_normal((n_rows, B)))
    actions, done = rng.integers(0, ACTIONS, (n_rows, B)), (rng.random((n_rows + 1, B)) < 0.15).astype(np.float64)
    done[0] = 1
    orders = [[rng.permutation(B).tolist() for _ in range(s['epochs'])] for _ in range(ROLLOUTS)]
    p, moments, n, log = parameters(), {}, 0, []
    first = {k: v.copy() for k, v in p.items()}
    h, front = np.zeros((B, MODEL)), None
    for u in range(ROLLOUTS):
        at = u * T
        q, states, _ = forward(p, x[at:at + T + 1], done[at:at + T + 1], h)
        returns = targets(rewards[at:at + T], done[at + 1:at + T + 1], q.max(-1))
        lr, steps = s['lr'] * (1 - u / OF), []
        for order in orders[u] if u else []:
            for k in range(0, B, each):
                take, rows = order[k:k + each], slice(at - W, at + T)
                m = dict(x=x[rows][:, take], done=done[rows][:, take], rewards=rewards[rows][:, take], actions=actions[rows][:, take],
                         returns=returns[:, take], state=front[take])
                loss, mean_q, _, (kept, dq) = loss_of(p, m, form)
                g = backward(p, m['x'], m['done'], kept, dq)
                if n in (0, 7):
                    by_differences(p, m, form, g)
                n += 1
                steps.append([loss, mean_q, radam(p, g, moments, n, lr)])
        front, h = states[T - W], states[T]
        log.append(dict(rate=lr, steps=steps))
    return dict(x=x, done=done, rewards=rewards, actions=actions, orders=orders, params=first, updates=log, trained=p)


def plain(t):
    if isinstance(t, dict):
        return {k: plain(v) for k, v in t.items()}
    if isinstance(t, (list, tuple)):
        return [plain(v) for v in t]
    if isinstance(t, np.ndarray):
        return [float('%.9g' % v) for v in t.flatten().tolist()]
    return float('%.9g' % t) if isinstance(t, float) else t


if __name__ == '__main__':
    sizes = dict(observation=D, actions=ACTIONS, model=MODEL, hidden=HIDDEN, rollouts=ROLLOUTS, of=OF)
    out = dict(settings=SETTINGS, sizes=sizes, targets={form: plain(case(form)) for form in ('fresh', 'rollout')})
    path = os.path.join(os.path.dirname(__file__), '..', 'fixtures', 'pqn_updates.json')
    with open(path, 'w') as f:
        json.dump(out, f, separators=(',', ':'), sort_keys=True)
        f.write('\n')
