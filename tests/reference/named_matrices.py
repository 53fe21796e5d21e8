#!/usr/bin/env python3
"""named_matrices.py -- fixtures of the memories that keep a matrix a head, one token at a time, in float64 with NumPy alone: RetNet (Sun et al.
2023), GLA (Yang et al. 2024), HGRN2 (Qin et al. 2024), Mamba-2 (Dao and Gu 2024), Kimi Delta Attention (2025), DeltaProduct (Siems et al. 2025).

    python tests/reference/named_matrices.py [FOLDER=tests/fixtures] [NAME ...]

named_scans.py has what both share.  The state of mamba2's convolution is its raw inputs before the step, of this episode: packages that keep none
act otherwise than they learn."""
import json
import os
import sys

import numpy as np

import named_scans
from named_scans import dropped, relu, sigmoid, silu, softplus


def rms(x, eps):
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps)


def heads(x, H):
    return x.reshape(*x.shape[:-1], H, -1)


def flat(x):
    return x.reshape(*x.shape[:2], -1)


def length_one(cfg, x):
    return x / (np.sqrt((x ** 2).sum(-1, keepdims=True)) + cfg['norm_eps'])


def in_layers(net, cfg, x, attend):
    """The frame: embedding; per layer norm, memory, norm, feed-forward, joined by sums.  attend(n, prefix of states, of parameters, normalised e)."""
    e = net.affine('embed', x, cfg['d_model'])
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        e = e + relu(attend(n, at, at + 'attn.', net.norm(at + 'norm1', e, cfg['ln_eps'])))
        f = relu(net.affine(at + 'ffn.0', net.norm(at + 'norm2', e, cfg['ln_eps']), cfg['d_ffn']))
        e = e + relu(net.affine(at + 'ffn.1', f, cfg['d_model']))
    return e


def convolved(net, cfg, at, z, done, parts, bias=False):
    """silu(conv(W z)) of each part; its state is what W z gave before, and is empty where an episode begins."""
    W, rows = cfg['conv_size'], []
    raw = np.concatenate([net.affine(at + 'attn.' + s, z, size, False) for s, size in parts], -1)
    taps = np.concatenate([net.param(at + 'attn.' + s + '_conv.weight', size, 1, W) for s, size in parts])[:, 0]
    past = net.state(at + 'conv', z.shape[1], W - 1, raw.shape[-1])
    more = net.param(at + 'attn.conv.bias', raw.shape[-1], scale=0.3) if bias else 0.0
    for t in range(z.shape[0]):
        seen = np.concatenate([dropped(cfg, done[t], past), raw[t][:, None]], 1)
        past = seen[:, 1:]
        rows.append(silu((seen * taps.T).sum(1) + more))
    net.final[at + 'conv'] = past
    return np.split(np.stack(rows), np.cumsum([size for _, size in parts])[:-1], -1)


def walk(net, cfg, at, done, q, k, v, keep):
    """C = C diag(keep) + v k^T, y = C q; keep [T,B,H,K] or [T,B,H,1]."""
    C, rows = net.state(at + 'C', *v.shape[1:], k.shape[-1]), []
    for t in range(q.shape[0]):
        C = dropped(cfg, done[t], C) * keep[t][..., None, :] + v[t][..., :, None] * k[t][..., None, :]
        rows.append((C * q[t][..., None, :]).sum(-1))
    net.final[at + 'C'] = C
    return np.stack(rows)


def closed(net, cfg, a, z, o):
    """The norm of each head and the gate, of all but hgrn2, mamba2 and kda; o is scaled as fla's kernels scale it."""
    o = rms(o * cfg['d_head'] ** -0.5, cfg['rms_eps']) * net.param(a + 'norm.weight', o.shape[-1], mean=1.0, scale=0.1)
    g = silu(net.affine(a + 'g', z, o.shape[-1] * cfg['n_heads'], False))
    return net.affine(a + 'out', flat(o) * g, cfg['d_model'], False)


def turned(a, tick):
    """Pairs (2i, 2i+1) turned by their position, that of row t being tick + t."""
    T, D = a.shape[0], a.shape[-1]
    angle = (tick + np.arange(T)[:, None])[..., None, None] * 10000.0 ** (-np.arange(0, D, 2) / D)
    u, v, s, c = a[..., 0::2], a[..., 1::2], np.sin(angle), np.cos(angle)
    return np.stack([u * c - v * s, u * s + v * c], -1).reshape(a.shape)


def qkv(net, cfg, a, z):
    return (heads(net.affine(a + s, z, cfg['n_heads'] * cfg['d_head'] * wide, False), cfg['n_heads'])
            for s, wide in (('q', 1), ('k', 1), ('v', cfg['expand_v'])))


def retnet(net, cfg, x, done):
    if 'tick' not in net.states:
        net.states['tick'] = net.rng.integers(0, 50, x.shape[1]).astype(float)
    tick = net.states['tick']

    def attend(n, at, a, z):
        q, k, v = qkv(net, cfg, a, z)
        if a + 'keep' not in net.params:
            net.params[a + 'keep'] = named_scans.single(net.rng.random((cfg['n_heads'], 1)))
        keep = np.broadcast_to(net.params[a + 'keep'], (*z.shape[:2], cfg['n_heads'], 1))
        return closed(net, cfg, a, z, walk(net, cfg, at, done, turned(q, tick), turned(k, tick), v, keep))

    y = in_layers(net, cfg, x, attend)
    net.final['tick'] = tick + x.shape[0]
    return y


def gla(net, cfg, x, done):
    H, K, rank = cfg['n_heads'], cfg['d_head'], cfg['decay_rank']

    def attend(n, at, a, z):
        q, k, v = qkv(net, cfg, a, z)
        gate = net.affine(a + 'decay_b', net.affine(a + 'decay_a', z, rank, False) if rank else z, H * K)
        return closed(net, cfg, a, z, walk(net, cfg, at, done, q, k, v, sigmoid(heads(gate, H)) ** (1 / 16)))

    return in_layers(net, cfg, x, attend)


def hgrn2(net, cfg, x, done):
    H, K, L = cfg['n_heads'], cfg['d_head'], cfg['n_layers']
    share = np.exp(net.param('shared.bounds', L, H * K, scale=1.0))
    share = share / share.sum(0)
    low = np.cumsum(share, 0) - share[0]

    def attend(n, at, a, z):
        q, f, v = (net.affine(a + s, z, H * K * wide, False) for s, wide in (('q', 1), ('f', 1), ('v', cfg['expand_v'])))
        keep = heads(low[n] + (1 - low[n]) * sigmoid(f + net.param(a + 'f.bias', H * K, scale=1.0)), H)
        o = flat(walk(net, cfg, at, done, heads(silu(q), H), 1 - keep, heads(v, H), keep))
        o = rms(o * K ** -0.5, cfg['rms_eps']) * net.param(a + 'norm.weight', o.shape[-1], mean=1.0, scale=0.1)
        return net.affine(a + 'out', o, cfg['d_model'], False)

    return in_layers(net, cfg, x, attend)


def mamba2(net, cfg, x, done):
    H, P, N = cfg['n_heads'], cfg['d_head'], cfg['d_state']

    def attend(n, at, a, z):
        u, B, C = convolved(net, cfg, at, z, done, (('x', H * P), ('B', N), ('C', N)), bias=True)
        dt = softplus(net.affine(a + 'dt', z, H, False) + net.param(a + 'dt_bias', H, scale=1.0))[..., None]
        keep, u = np.exp(-np.exp(net.param(a + 'A_log', H, scale=1.0))[:, None] * dt), heads(u, H)
        k, q = (np.repeat(s[..., None, :], H, 2) for s in (B, C))
        y = flat(walk(net, cfg, at, done, q, k, dt * u, keep) + net.param(a + 'D', H, 1, scale=1.0) * u)
        y = rms(y * silu(net.affine(a + 'g', z, H * P, False)), cfg['rms_eps'])
        return net.affine(a + 'out', y * net.param(a + 'norm.weight', H * P, mean=1.0, scale=0.1), cfg['d_model'], False)

    return in_layers(net, cfg, x, attend)


def kda(net, cfg, x, done):
    H, K, V = cfg['n_heads'], cfg['d_head'], cfg['d_head'] * cfg['expand_v']

    def attend(n, at, a, z):
        q, k, v = (heads(u, H) for u in convolved(net, cfg, at, z, done, (('q', H * K), ('k', H * K), ('v', H * V))))
        q, k = length_one(cfg, q), length_one(cfg, k)
        f = net.affine(a + 'f_b', net.affine(a + 'f_a', z, cfg['decay_rank'], False), H * K, False)
        dt = heads(softplus(f + net.param(a + 'dt_bias', H * K, scale=1.0)), H)
        keep = np.exp(-np.exp(net.param(a + 'A_log', H, scale=1.0))[:, None] * dt)
        beta = sigmoid(net.affine(a + 'b', z, H, False))[..., None]
        S, rows = net.state(at + 'S', z.shape[1], H, K, V), []
        for t in range(z.shape[0]):
            S = dropped(cfg, done[t], S) * keep[t][..., None]
            wrong = v[t] - (S * k[t][..., None]).sum(-2)
            S = S + (beta[t] * k[t])[..., None] * wrong[..., None, :]
            rows.append((S * q[t][..., None]).sum(-2))
        net.final[at + 'S'] = S
        o = rms(np.stack(rows) * K ** -0.5, cfg['rms_eps']) * net.param(a + 'norm.weight', V, mean=1.0, scale=0.1)
        g = net.affine(a + 'g_b', net.affine(a + 'g_a', z, cfg['gate_rank'], False), H * V)
        return net.affine(a + 'out', flat(o) * sigmoid(g), cfg['d_model'], False)

    return in_layers(net, cfg, x, attend)


def deltaproduct(net, cfg, x, done, gated=False):
    H, K, V, M = cfg['n_heads'], cfg['d_head'], cfg['d_head'] * cfg['expand_v'], cfg['keys']

    def attend(n, at, a, z):
        q, k, v = convolved(net, cfg, at, z, done, (('q', H * K), ('k', M * H * K), ('v', M * H * V)))
        shape = (*z.shape[:2], M, H)
        q, k, v = length_one(cfg, heads(q, H)), length_one(cfg, k.reshape(*shape, K)), v.reshape(*shape, V)
        beta = 2 * sigmoid(net.affine(a + 'b', z, M * H, False)).reshape(*shape, 1, 1)
        keep = np.ones((*z.shape[:2], H))
        if gated:
            dt = softplus(net.affine(a + 'a', z, H, False) + net.param(a + 'dt_bias', H, scale=1.0))
            keep = np.exp(-np.exp(net.param(a + 'A_log', H, scale=1.0)) * dt)
        C, rows = net.state(at + 'C', z.shape[1], H, V, K), []
        for t in range(z.shape[0]):
            C = dropped(cfg, done[t], C) * keep[t][..., None, None]
            for j in range(M):
                key = k[t, :, j][..., None, :]
                C = C + beta[t, :, j] * (v[t, :, j][..., None] - (C * key).sum(-1, keepdims=True)) * key
            rows.append((C * q[t][..., None, :]).sum(-1))
        net.final[at + 'C'] = C
        return closed(net, cfg, a, z, np.stack(rows))

    return in_layers(net, cfg, x, attend)


def gated_deltaproduct(net, cfg, x, done):
    return deltaproduct(net, cfg, x, done, gated=True)


MATRIX = dict(d_in=3, d_model=6, n_layers=1, n_heads=2, d_head=4, d_ffn=5, rms_eps=1e-2, flow='residual', embed_act='none', ln_eps=1e-6, reset=True)
DELTA = dict(MATRIX, expand_v=1, conv_size=4, norm_eps=0.1)
DEFAULTS = {'retnet': dict(MATRIX, expand_v=2), 'gla': dict(MATRIX, expand_v=2, decay_rank=2), 'hgrn2': dict(MATRIX, expand_v=1),
            'mamba2': dict(MATRIX, d_state=5, conv_size=4), 'kda': dict(DELTA, decay_rank=2, gate_rank=3),
            'deltaproduct': dict(DELTA, keys=2), 'gated_deltaproduct': dict(DELTA, keys=2)}
CASES = {
    'own_retnet': ('retnet', 21, 2, [[0, 17, 18], [5]], dict(expand_v=1)),
    'own_gla': ('gla', 37, 2, [[0, 17, 18], [5]], dict(d_head=3)),
    'own_gla_full_rank': ('gla', 9, 2, [[3], []], dict(decay_rank=0, expand_v=1, reset=False)),
    'own_hgrn2': ('hgrn2', 20, 2, [[0, 17, 18], [5]], dict(n_layers=3, d_head=3)),
    'own_mamba2': ('mamba2', 37, 2, [[0, 17, 18], [5]], dict(d_head=3)),
    'own_mamba2_endless': ('mamba2', 7, 2, [[4], []], dict(d_state=3, conv_size=2, n_layers=2, reset=False)),
    'own_kda': ('kda', 21, 2, [[0, 17, 18], [5]], dict(expand_v=2)),
    'own_deltaproduct': ('deltaproduct', 21, 2, [[0, 7, 8], [5]], dict()),
    'own_gated_deltaproduct': ('gated_deltaproduct', 20, 2, [[0, 17, 18], [5]], dict(d_head=3, expand_v=2, keys=3)),
}
FIXED = ('tick', 'keep')             # nothing to learn


def main(words):
    folder = words[0] if words else os.path.join(os.path.dirname(__file__), '..', 'fixtures')
    unknown = set(words[1:]) - set(CASES)
    if unknown:
        sys.exit('no such fixture: %s; known: %s' % (' '.join(sorted(unknown)), ' '.join(CASES)))
    named_scans.DEFAULTS.update(DEFAULTS)
    named_scans.CORES.update({name: globals()[name] for name in DEFAULTS})
    for name in words[1:] or CASES:
        cfg, given, got = named_scans.case(name, *CASES[name])
        fixed = [n for n in given if n.split('.')[-1] in FIXED]
        got = {n: t for n, t in got.items() if n[len('grad.'):] not in fixed}
        meta = {'format': 'mneme-fixture-1', 'core': CASES[name][0], 'config': json.dumps(cfg), 'source': 'numpy-float64', 'tolerance': '2e-5'}
        if fixed:
            meta['fixed'] = json.dumps([n[len('param.'):] for n in fixed if n.startswith('param.')])
        named_scans.save(os.path.join(folder, name + '.safetensors'), meta, {**given, **got})
        print(name, flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
