#!/usr/bin/env python3
"""named_scans.py -- fixtures of the memories on scans and elementwise recurrences, in float64 with NumPy alone.

    python tests/reference/named_scans.py [FOLDER=tests/fixtures] [NAME ...]

One step at a time, with complex numbers where the papers have them.  Gradients of sum(y * cotangent) are central differences, exact to
about 1e-9.  The numbers that are given are exact in float32; the same script gives the same bytes.
"""
import json
import os
import struct
import sys
import zlib

import numpy as np

LOWEST = -1e38


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def relu(x):
    return np.maximum(x, 0)


def gelu(x):
    return 0.5 * x * (1 + ERF(x / np.sqrt(2)))


def erf(x):
    """By its series, and by its continued fraction beyond 3 (Abramowitz and Stegun 7.1.6, 7.1.14)."""
    small, term, total = np.clip(x, -3, 3), np.clip(x, -3, 3), np.clip(x, -3, 3)
    for n in range(1, 80):
        term = term * 2 * small ** 2 / (2 * n + 1)
        total = total + term
    series = 2 / np.sqrt(np.pi) * np.exp(-small ** 2) * total
    far, below = np.maximum(np.abs(x), 3), np.maximum(np.abs(x), 3)
    for n in range(60, 0, -1):
        below = far + n / 2 / below
    return np.where(np.abs(x) <= 3, series, np.sign(x) * (1 - np.exp(-far ** 2) / np.sqrt(np.pi) / below))


ERF = erf


class Net:
    """Parameters and states by name, drawn where an equation first asks for them and kept for the next call."""

    def __init__(self, rng):
        self.rng, self.params, self.states, self.final = rng, {}, {}, {}

    def param(self, name, *shape, scale=None, mean=0.0):
        if name not in self.params:
            scale = shape[-1] ** -0.5 if scale is None else scale
            self.params[name] = single(mean + scale * self.rng.standard_normal(shape))
        return self.params[name]

    def state(self, name, *shape, positive=False):
        if name not in self.states:
            z = 0.5 * self.rng.standard_normal(shape)
            self.states[name] = single(np.abs(z) + 0.5 if positive else z)
        return self.states[name]

    def affine(self, name, x, rows, bias=True):
        y = x @ self.param(name + '.weight', rows, x.shape[-1]).T
        return y + self.param(name + '.bias', rows, scale=0.3) if bias else y

    def norm(self, name, x, eps):
        d = x.shape[-1]
        return unit(x, eps) * self.param(name + '.weight', d, mean=1.0, scale=0.1) + self.param(name + '.bias', d, scale=0.1)


def single(x):
    return np.asarray(x).astype(np.float32).astype(np.float64)


def unit(x, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps)


def dropped(cfg, done, state, to=0.0):
    """The state [B,...] before an observation."""
    if not cfg['reset']:
        return state
    return np.where(done.reshape(-1, *[1] * (state.ndim - 1)) > 0, to, state)


def minlstm(net, cfg, x, done):
    """Feng et al. 2024, section 3.2: h = f/(f+i) h + i/(f+i) v."""
    d, B = cfg['d_model'], x.shape[1]
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        f, i, v = (net.affine(at + g, x, d) for g in 'fih')
        f, i, logs = sigmoid(f), sigmoid(i), cfg['space'] == 'log'
        if logs:
            v = np.where(v >= 0, v + 0.5, sigmoid(v))
        h = net.state(at + 'h', B, d)
        h = np.exp(h) if logs else h
        for t in range(x.shape[0]):
            h = f[t] / (f[t] + i[t]) * dropped(cfg, done[t], h) + i[t] / (f[t] + i[t]) * v[t]
            rows.append(h)
        net.final[at + 'h'] = np.log(h) if logs else h
        x = np.stack(rows)
    return x


def turning(net, cfg, at, u, done, lam, into, state, inner=lambda z: z):
    """h = inner(lam h + into u) at every step, complex; inner is applied to both parts."""
    B, N = u.shape[1], lam.shape[0]
    start, rows = net.state(state, B, 2 * N), []
    h = start[:, :N] + 1j * start[:, N:]
    for t in range(u.shape[0]):
        h = lam * dropped(cfg, done[t], h) + u[t] @ into.T
        h = inner(h.real) + 1j * inner(h.imag)
        rows.append(h)
    net.final[state] = np.concatenate([h.real, h.imag], -1)
    return np.stack(rows)


def ring(net, at, N):
    nu, theta = net.param(at + 'nu_log', N, scale=1.0), net.param(at + 'theta_log', N, scale=1.0)
    return np.exp(-np.exp(nu) + 1j * np.exp(theta))


def rtu(net, cfg, x, done):
    """Elelimy et al. 2024: W1 and W2 are the real and the imaginary part of what is written."""
    N, act = cfg['d_model'] // 2, {'relu': relu, 'tanh': np.tanh}[cfg['act']]
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        lam = ring(net, at, N)
        W = net.param(at + 'w1.weight', N, x.shape[-1]) + 1j * net.param(at + 'w2.weight', N, x.shape[-1])
        scale = np.sqrt(1 - np.abs(lam) ** 2) + 1e-8
        h = turning(net, cfg, at, x, done, lam, scale[:, None] * W, at + 'h', *([] if cfg['linear'] else [act]))
        x = np.concatenate([h.real, h.imag], -1)
        x = act(x) if cfg['linear'] else x
    return x


def s5(net, cfg, x, done):
    """Smith et al. 2023; the layer of its released code."""
    N, d = cfg['d_state'], cfg['d_model']
    e = net.affine('embed', x, d)
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        u = net.norm(at + 'norm', e, cfg['ln_eps'])

        def both(name, *shape):
            return net.param(at + 's5.' + name + '_re', *shape) + 1j * net.param(at + 's5.' + name + '_im', *shape)
        Lambda = np.minimum(net.param(at + 's5.Lambda_re', N, mean=-0.5, scale=0.4), -1e-4) + 1j * net.param(at + 's5.Lambda_im', N, scale=3.0)
        dt = np.exp(net.param(at + 's5.log_step', N, mean=-1.0, scale=0.7))
        if cfg['discretisation'] == 'zoh':
            lam = np.exp(Lambda * dt)
            factor = (lam - 1) / Lambda
        else:
            half = 1 / (1 - dt / 2 * Lambda)
            lam, factor = half * (1 + dt / 2 * Lambda), half * dt
        h = turning(net, cfg, at, u, done, lam, factor[:, None] * both('B', N, d), at + 'h')
        y = 2 * (h @ both('C', d, N).T).real + net.param(at + 's5.D', d, scale=1.0) * u
        gate = sigmoid(net.affine(at + 'out2', gelu(y), d))
        e = e + (net.affine(at + 'out1', gelu(y), d) if cfg['glu'] == 'full_glu' else y) * gate
    return e


def framed(net, cfg, at, e, memory):
    """One residual layer of the other cores: see equations.py."""
    d = cfg['d_model']
    h = e + relu(memory(net.norm(at + 'norm1', e, cfg['ln_eps'])))
    f = relu(net.affine(at + 'ffn.0', net.norm(at + 'norm2', h, cfg['ln_eps']), cfg['d_ffn']))
    return h + relu(net.affine(at + 'ffn.1', f, d))


def hgrn(net, cfg, x, done):
    """Qin et al. 2023, as flash-linear-attention has it, with a bias of f."""
    d, L, B = cfg['d_model'], cfg['n_layers'], x.shape[1]
    e = net.affine('embed', x, d)
    e = relu(e) if cfg['embed_act'] == 'relu' else e
    share = np.exp(net.param('lower_bounds', L, d, scale=0.7))
    share = share / share.sum(0)
    for n in range(L):
        at = 'layers.%d.' % n

        def memory(u):
            low, rows = (share.cumsum(0) - share[0])[n], []
            f = low + (1 - low) * sigmoid(net.affine(at + 'attn.f', u, d))
            i, h = silu(net.affine(at + 'attn.i', u, d, False)), net.state(at + 'h', B, d)
            for t in range(u.shape[0]):
                h = f[t] * dropped(cfg, done[t], h) + (1 - f[t]) * i[t]
                rows.append(h)
            net.final[at + 'h'], y = h, np.stack(rows)
            y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + cfg['rms_eps']) * net.param(at + 'attn.norm.weight', d, mean=1.0, scale=0.1)
            return net.affine(at + 'attn.out', y * silu(net.affine(at + 'attn.g', u, d, False)), d, False)
        e = framed(net, cfg, at, e, memory)
    return e


def ffm(net, cfg, x, done):
    """Morad et al. 2023, section 4; S [m,c] complex, step by step, so that no clock is needed."""
    d, m, c, B = cfg['d_model'], cfg['d_state'], cfg['n_phases'], x.shape[1]
    limit = np.log(np.finfo(np.float64).max) / 1024 - 0.01
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        v, u, i, o = np.split(net.affine(at + 'pre', x, 2 * m + 2 * d), [m, m + d, 2 * m + d], -1)
        a, w = np.clip(net.param(at + 'a', m, mean=-0.3, scale=0.3), -limit, -1e-6), net.param(at + 'w', c, scale=2.0)
        turn, write, start = np.exp(a[:, None] + 1j * w), v * sigmoid(i), net.state(at + 'h', B, 2 * m * c).reshape(B, 2, m, c)
        S = start[:, 0] + 1j * start[:, 1]
        for t in range(x.shape[0]):
            S = turn * dropped(cfg, done[t], S) + write[t][..., None]
            rows.append(np.concatenate([S.real.reshape(B, -1), S.imag.reshape(B, -1)], -1))
        net.final[at + 'h'], o = rows[-1], sigmoid(o)
        x = unit(net.affine(at + 'mix', np.stack(rows), d), cfg['ln_eps']) * o + u * (1 - o)
    return x


def shm(net, cfg, x, done):
    """Le et al. 2025, with the one row of theta that the released POPGym agent reads, and its shortcut."""
    m, B = cfg['d_head'], x.shape[1]
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        x = net.norm(at + 'norm', x, cfg['ln_eps'])
        k, q, v, c = (net.affine(at + s, x, m, False) for s in 'kqvc')
        k, q = (relu(r) / (1e-5 + relu(r).sum(-1, keepdims=True)) for r in (k, q))
        eta, theta = sigmoid(net.affine(at + 'eta', x, 1, False)), net.param(at + 'theta', m, scale=0.8)
        M = net.state(at + 'C', B, 1, m, m)[:, 0]
        for t in range(x.shape[0]):
            C = 1 + np.tanh(np.einsum('i,bj->bij', theta, c[t]))
            M = dropped(cfg, done[t], M) * C + np.einsum('bi,bj->bij', eta[t] * v[t], k[t])
            rows.append(np.einsum('bij,bj->bi', M, q[t]))
        net.final[at + 'C'] = M[:, None]
        x = net.affine(at + 'out', np.stack(rows) + net.affine(at + 'shortcut', x, m), cfg['d_model'])
    return x


def slstm_block(net, cfg, x, done):
    """Beck et al. 2024, figure 10, as NX-AI/xlstm has it: i and f of the convolved input, z and o of the input, all by heads."""
    d, H, W, F, B = cfg['d_model'], cfg['n_heads'], cfg['conv_size'], cfg['d_ffn'], x.shape[1]

    def by_head(name, u):
        w = net.param(name + '.weight', d, d // H).reshape(H, d // H, d // H)
        return np.einsum('...hi,hji->...hj', u.reshape(*u.shape[:-1], H, d // H), w).reshape(u.shape)

    e = net.affine('embed', x, d)
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        u = net.norm(at + 'norm1', e, cfg['ln_eps'])
        taps, more = net.param(at + 'conv.weight', d, 1, W)[:, 0], net.param(at + 'conv.bias', d, scale=0.3)
        past, h, c = net.state(at + 'conv', B, W - 1, d), net.state(at + 'h', B, d), net.state(at + 'c', B, d)
        k, m = net.state(at + 'n', B, d, positive=True), net.state(at + 'm', B, d)
        for t in range(x.shape[0]):
            past, h, c, k = (dropped(cfg, done[t], s) for s in (past, h, c, k))
            m = dropped(cfg, done[t], m, LOWEST)
            seen = np.concatenate([past, u[t][:, None]], 1)
            past, v = seen[:, 1:], silu((seen * taps.T).sum(1) + more)
            i, f, z, o = (by_head(at + g, w) + by_head(at + 'r' + g, h) + net.param(at + g + '.bias', d, scale=0.5) for g, w in zip('ifzo', (v, v, u[t], u[t])))
            kept = m - softplus(-f)
            m = np.maximum(kept, i)
            a, b = np.exp(kept - m), np.exp(i - m)
            c, k = a * c + b * np.tanh(z), a * k + b
            h = sigmoid(o) * c / k
            rows.append(h)
        net.final.update({at + 'conv': past, at + 'h': h, at + 'c': c, at + 'n': k, at + 'm': m})
        y = unit(np.stack(rows).reshape(*e.shape[:2], H, -1), cfg['gn_eps']).reshape(e.shape)
        e = e + y * net.param(at + 'outnorm.weight', d, mean=1.0, scale=0.1)
        g, w = np.split(net.affine(at + 'up', net.norm(at + 'norm2', e, cfg['ln_eps']), 2 * F, False), 2, -1)
        e = e + net.affine(at + 'down', gelu(g) * w, d, False)
    return net.norm('norm', e, cfg['ln_eps'])


CORES = {'minlstm': minlstm, 'rtu': rtu, 's5': s5, 'hgrn': hgrn, 'ffm': ffm, 'shm': shm, 'slstm_block': slstm_block}
RECURRENT = dict(d_in=3, d_model=5, n_layers=1, reset=True)
DEFAULTS = {
    'minlstm': dict(RECURRENT, cell='lstm', space='real'),
    'rtu': dict(RECURRENT, d_model=6, linear=True, act='relu'),
    's5': dict(d_in=3, d_model=4, n_layers=1, d_state=3, discretisation='zoh', glu='half_glu2', embed_act='none', ln_eps=1e-6, reset=True),
    'hgrn': dict(d_in=3, d_model=4, n_layers=1, d_ffn=5, rms_eps=1e-2, flow='residual', embed_act='relu', ln_eps=1e-6, reset=True),
    'ffm': dict(d_in=3, d_model=4, n_layers=1, d_state=3, n_phases=2, ln_eps=1e-5, reset=True),
    'shm': dict(d_in=3, d_model=4, n_layers=1, d_head=3, ln_eps=1e-5, reset=True),
    'slstm_block': dict(d_in=3, d_model=6, n_layers=1, n_heads=2, conv_size=4, d_ffn=5, embed_act='none', ln_eps=1e-2, gn_eps=1e-2, reset=True),
}

# name: core, T, B, steps of `done` by environment, configuration.
CASES = {
    'own_minlstm': ('minlstm', 20, 2, [[0, 9, 19], []], dict(n_layers=2)),
    'own_minlstm_log': ('minlstm', 37, 2, [[17], [0, 5]], dict(space='log')),
    'own_rtu': ('rtu', 37, 2, [[0, 17, 18], [5]], dict(n_layers=2)),
    'own_rtu_curved': ('rtu', 20, 2, [[7], []], dict(linear=False, act='tanh')),
    'own_rtu_rectified': ('rtu', 9, 2, [[3], []], dict(linear=False, reset=False)),
    'own_s5': ('s5', 37, 2, [[0, 17, 18], [5]], dict(n_layers=2)),
    'own_s5_bilinear': ('s5', 9, 2, [[3], []], dict(discretisation='bilinear', glu='full_glu', reset=False)),
    'own_hgrn': ('hgrn', 37, 2, [[0, 17, 18], [5]], dict(n_layers=2, rms_eps=0.1)),
    'own_hgrn_no_reset': ('hgrn', 9, 2, [[3], []], dict(embed_act='none', reset=False)),
    'own_ffm': ('ffm', 37, 2, [[0, 17, 18], [5]], dict(n_layers=2)),
    'own_ffm_no_reset': ('ffm', 9, 2, [[3], []], dict(n_phases=3, reset=False)),
    'own_shm': ('shm', 20, 2, [[0, 17, 18], [5]], dict(n_layers=2, d_head=7)),
    'own_shm_no_reset': ('shm', 9, 2, [[3], []], dict(d_head=4, reset=False)),
    'own_slstm_block': ('slstm_block', 20, 2, [[0, 7, 8], [5]], dict()),
    'own_slstm_block_no_reset': ('slstm_block', 9, 2, [[3], []], dict(n_layers=2, conv_size=2, gn_eps=0.1, reset=False)),
}


def case(name, core, T, B, resets, changes):
    cfg = dict(DEFAULTS[core], **changes)
    net = Net(np.random.Generator(np.random.Philox(zlib.crc32(name.encode()))))
    x, done = single(net.rng.standard_normal((T, B, cfg['d_in']))), np.zeros((T, B))
    for b, steps in enumerate(resets):
        done[steps, b] = 1
    cotangent = single(net.rng.standard_normal((T, B, cfg['d_model'])))

    def run():
        return CORES[core](net, cfg, x, done)

    got = {'output.y': run()}
    got.update({'final.' + n: t.copy() for n, t in net.final.items()})
    wanted = {'input.x': x, **{'param.' + n: t for n, t in net.params.items()}, **{'state.' + n: t for n, t in net.states.items()}}
    for n, t in wanted.items():
        got['grad.' + n] = np.zeros_like(t)
        for i in np.ndindex(*t.shape):
            kept, h, sides = t[i], 1e-5 * max(1.0, abs(t[i])), []
            for to in (kept + h, kept - h):
                t[i] = to
                sides.append((run() * cotangent).sum())
            t[i] = kept
            got['grad.' + n][i] = (sides[0] - sides[1]) / (2 * h)
    return cfg, {'input.done': done, 'cotangent.y': cotangent, **wanted}, got


def save(path, meta, tensors):
    head, parts, at = {'__metadata__': meta}, [], 0
    for name in sorted(tensors):
        data = tensors[name].astype('<f4').tobytes()
        head[name] = {'dtype': 'F32', 'shape': list(tensors[name].shape), 'data_offsets': [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(head, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(parts))


def main(words):
    folder = words[0] if words else os.path.join(os.path.dirname(__file__), '..', 'fixtures')
    unknown = set(words[1:]) - set(CASES)
    if unknown:
        sys.exit('no such fixture: %s; known: %s' % (' '.join(sorted(unknown)), ' '.join(CASES)))
    for name in words[1:] or CASES:
        cfg, given, got = case(name, *CASES[name])
        meta = {'format': 'mneme-fixture-1', 'core': CASES[name][0], 'config': json.dumps(cfg), 'source': 'numpy-float64', 'tolerance': '2e-5'}
        save(os.path.join(folder, name + '.safetensors'), meta, {**given, **got})
        print(name)


if __name__ == '__main__':
    main(sys.argv[1:])
