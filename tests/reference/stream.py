#!/usr/bin/env python3
"""stream.py -- 1,000 steps of stream AC(lambda) and stream Q(lambda) in float64, from the equations of Elsayed, Vasan and Mahmood 2024 (arXiv 2410.14606,
algorithms 1, 3, 5 and 6) and of Watkins 1989 (as Sutton and Barto 2018, 12.10, have them) alone; the memory is minGRU (Feng et al. 2024), its
sensitivities by real-time recurrent learning (Williams and Zipser 1989).

    python tests/reference/stream.py [FOLDER=tests/fixtures]           # needs numpy: writes stream.json

Every gradient is written out by hand.  Observations, rewards, ends and actions are drawn here, and the test replays them.
"""
import json
import os
import sys

import numpy as np

GAMMA, LAMBDA, LR, KAPPA, KAPPA_V, ENTROPY = 0.99, 0.8, 1.0, 3.0, 2.0, 0.01
STEPS, SHOWN, ACTIONS = 1000, (100, 1000), 3
EXPLORES, CLEAR = 0.3, 3e-5            # how often Q(lambda) takes any action; by how much its largest Q must exceed the next, for float32 to agree


class Welford:
    def __init__(self, n):
        self.n, self.mean, self.p = 0, np.zeros(n), np.zeros(n)

    def add(self, x):
        self.n += 1
        d = x - self.mean
        self.mean = self.mean + d / self.n
        self.p = self.p + d * (x - self.mean)

    def var(self):
        return np.ones_like(self.p) if self.n < 2 else self.p / (self.n - 1)


class Network:
    """A layer, normalisation without parameters, leaky ReLU, a layer: of the paper's kind, with one hidden layer."""

    def __init__(self, rng, name, n, hidden, out):
        self.name = name
        self.p = {'%s.0.weight' % name: sparse(rng, hidden, n), '%s.0.bias' % name: np.zeros(hidden),
                  '%s.2.weight' % name: sparse(rng, out, hidden), '%s.2.bias' % name: np.zeros(out)}

    def forward(self, p, x):
        u = p[self.name + '.0.weight'] @ x + p[self.name + '.0.bias']
        c = u - u.mean()
        sd = np.sqrt((c * c).mean() + 1e-5)
        y = c / sd
        a = np.where(y > 0, y, 0.01 * y)
        return p[self.name + '.2.weight'] @ a + p[self.name + '.2.bias'], (x, sd, y, a)

    def backward(self, p, saved, dout):
        x, sd, y, a = saved
        da = p[self.name + '.2.weight'].T @ dout
        dy = np.where(y > 0, da, 0.01 * da)
        du = (dy - dy.mean() - y * (dy * y).mean()) / sd
        g = {self.name + '.2.weight': np.outer(dout, a), self.name + '.2.bias': dout.copy(),
             self.name + '.0.weight': np.outer(du, x), self.name + '.0.bias': du}
        return g, p[self.name + '.0.weight'].T @ du


def sparse(rng, rows, cols):                       # the paper's 0.9 would leave nothing of rows this short
    w = rng.uniform(-1, 1, (rows, cols)) / np.sqrt(cols)
    for row in w:
        row[rng.permutation(cols)[:cols // 2]] = 0
    w[w == 0] = 0
    return w.astype(np.float32).astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class MinGRU:
    names = ('z', 'h')

    def __init__(self, rng, n, d):
        self.d = d
        self.p = {}
        for k in self.names:
            self.p['core.layers.0.%s.weight' % k] = (rng.normal(size=(d, n)) * 0.5).astype(np.float32).astype(np.float64)
            self.p['core.layers.0.%s.bias' % k] = (rng.normal(size=d) * 0.5).astype(np.float32).astype(np.float64)

    def step(self, p, x, h):
        W = lambda k: p['core.layers.0.%s.weight' % k] @ x + p['core.layers.0.%s.bias' % k]
        z, v = sigmoid(W('z')), W('h')
        return (1 - z) * h + z * v, (x, z, v, h)

    def jacobian(self, saved, S):
        """d h' / d rows of both gates, [d, n + 1] each, through S, those of h."""
        x, z, v, h = saved
        x1 = np.append(x, 1)
        return {'z': (1 - z)[:, None] * S['z'] + ((v - h) * z * (1 - z))[:, None] * x1,
                'h': (1 - z)[:, None] * S['h'] + z[:, None] * x1}

    def zero(self, n):
        return {k: np.zeros((self.d, n + 1)) for k in self.names}


def softmax(l):
    e = np.exp(l - l.max())
    return e / e.sum()


def run(seed, streams, n, width, credit, of_q=False):
    rng = np.random.default_rng(seed)
    core = MinGRU(rng, n, width) if credit != 'none' else None
    read = width if core else n
    actor, critic = Network(rng, 'actor', read, 8, ACTIONS), Network(rng, 'critic', read, 8, 1)
    p = dict(actor.p, **({} if of_q else critic.p), **(core.p if core else {}))
    initial = {k: v.copy() for k, v in p.items()}
    shared = list(core.p) if core else []
    nets = [(actor, shared + list(actor.p), KAPPA), (critic, shared + list(critic.p), KAPPA_V)]
    if of_q:                                   # one network, whose last layer gives Q of each action
        nets = [(actor, shared + list(actor.p), KAPPA_V)]
    z = [[{k: np.zeros_like(p[k]) for k in net[1]} for net in nets] for _ in range(streams)]
    obs = np.round(rng.normal(size=(STEPS + 1, streams, n)) * 64 * np.array([1, 3, 0.5, 2, 1][:n]) + 16) / 64
    reward = np.round(rng.normal(size=(STEPS, streams)) * 32 + 8) / 32
    done = rng.random((STEPS, streams)) < 0.05
    action = rng.integers(ACTIONS, size=(STEPS, streams))
    explores = np.random.default_rng([seed, 1]).random((STEPS, streams)) < EXPLORES
    seen, paid, u = Welford(n), Welford(1), np.zeros(streams)
    for b in range(streams):
        seen.add(obs[0, b])
    look = lambda x: (x - seen.mean) / np.sqrt(seen.var() + 1e-8)
    x = [look(obs[0, b]) for b in range(streams)]
    h = [np.zeros(width) for _ in range(streams)]
    S = [core.zero(n) if core else None for _ in range(streams)]
    shown, sums = {}, []

    def features(b, x, h):
        return core.step(p, x, h) if core else (x, None)

    for t in range(STEPS):
        u = GAMMA * u * (1 - done[t]) + reward[t]
        for b in range(streams):
            paid.add(np.array([u[b]]))
            seen.add(obs[t + 1, b])
        scale = np.sqrt(paid.var()[0] + 1e-8)
        u = np.where(done[t], 0, u)
        after = [look(obs[t + 1, b]) for b in range(streams)]
        moves = {k: np.zeros_like(v) for k, v in p.items()}
        for b in range(streams):
            y, saved = features(b, x[b], h[b])
            logits, of_actor = actor.forward(p, y)
            follows = 0.0
            if of_q:
                greedy = logits.argmax()
                assert t == 0 or logits[greedy] - np.sort(logits)[-2] > CLEAR          # at first all are 0
                action[t, b] = action[t, b] if explores[t, b] else greedy
                if action[t, b] != greedy:             # what came before does not lead here by the largest Q
                    for k in nets[0][1]:
                        z[b][0][k] = np.zeros_like(p[k])
                if not done[t, b]:
                    follows = actor.forward(p, features(b, after[b], y)[0])[0].max()
                delta = reward[t, b] / scale + GAMMA * follows - logits[action[t, b]]
                outputs = [(of_actor, np.eye(ACTIONS)[action[t, b]])]
            else:
                value, of_critic = critic.forward(p, y)
                if not done[t, b]:
                    follows = critic.forward(p, features(b, after[b], y)[0])[0][0]
                delta = reward[t, b] / scale + GAMMA * follows - value[0]
                pi = softmax(logits)
                H = -(pi * np.log(pi)).sum()
                d_logits = np.eye(ACTIONS)[action[t, b]] - pi + ENTROPY * np.sign(delta) * -pi * (np.log(pi) + H)
                outputs = [(of_actor, d_logits), (of_critic, np.ones(1))]
            if core:
                J = core.jacobian(saved, S[b] if credit == 'exact' else core.zero(n))
            for i, (net, names, kappa) in enumerate(nets):
                g, dy = net.backward(p, *outputs[i])
                if core:
                    for k in core.names:
                        rows = dy[:, None] * J[k]
                        g['core.layers.0.%s.weight' % k], g['core.layers.0.%s.bias' % k] = rows[:, :-1], rows[:, -1]
                trace = z[b][i]
                for k in names:
                    trace[k] = GAMMA * LAMBDA * trace[k] + g[k]
                size = sum(np.abs(trace[k]).sum() for k in names)
                bound = max(abs(delta), 1) * LR * kappa * size
                step = LR / max(bound, 1)
                for k in names:
                    moves[k] += step * delta * trace[k] / streams
                    if done[t, b]:
                        trace[k] = np.zeros_like(trace[k])
            if core:
                S[b], h[b] = (core.zero(n), np.zeros(width)) if done[t, b] else (J, y)
            sums.append(abs(delta))
        for k in p:
            p[k] = p[k] + moves[k]
        x = after
        if t + 1 in SHOWN:
            shown[str(t + 1)] = {k: v.ravel().tolist() for k, v in p.items()}
    return dict(**({'form': 'q'} if of_q else {}), streams=streams, n=n, width=width, credit=credit,
                initial={k: v.ravel().tolist() for k, v in initial.items()},
                obs=(obs * 64).astype(int).ravel().tolist(), reward=(reward * 32).astype(int).ravel().tolist(),
                done=done.astype(int).ravel().tolist(), action=action.ravel().tolist(), after=shown, td_error=float(np.mean(sums)))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else 'tests/fixtures'
    cases = {'apart': run(1, 1, 5, 0, 'none'), 'trace': run(2, 1, 4, 5, 'trace'), 'exact': run(3, 1, 4, 5, 'exact'), 'streams': run(4, 2, 3, 4, 'exact'),
             'q': run(11, 1, 5, 0, 'none', of_q=True), 'q_streams': run(5, 2, 3, 4, 'exact', of_q=True)}

    def short(x):
        return round(x, 8) if isinstance(x, float) else [short(y) for y in x] if isinstance(x, list) else \
            {k: short(v) for k, v in x.items()} if isinstance(x, dict) else x
    with open(os.path.join(folder, 'stream.json'), 'w') as f:
        json.dump(short(cases), f, separators=(',', ':'))
        f.write('\n')


main()
