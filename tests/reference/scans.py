"""scans.py -- the cores on scans, step by step: the LRU (Orvieto et al. 2023, section 3), minGRU (Feng et al. 2024, section 3.1 and,
in log space, appendix B) and xLSTM's mLSTM (Beck et al. 2024, equations 19 to 27 and the block of figure 11)."""
import math

import torch

from equations import CORES, FAR, affine, dropped, embedded, heads, norm


def lru(net, cfg, x, done):
    N, B = cfg['d_state'], x.shape[1]

    def unit(at, u):
        def complex_(name, *shape):
            return torch.complex(net.param(at + name + '_re', *shape), net.param(at + name + '_im', *shape))
        size = torch.exp(-torch.exp(net.param(at + 'nu_log', N, scale=1.0)))
        lam = torch.polar(size, torch.exp(net.param(at + 'theta_log', N, scale=1.0)))
        gamma = torch.exp(net.param(at + 'gamma_log', N, scale=0.5))
        into, out, skip = complex_('B', N, u.shape[-1]), complex_('C', u.shape[-1], N), net.param(at + 'D', u.shape[-1], scale=1.0)
        name, rows = at.replace('lru.', 'h'), []
        start = net.state(name, B, 2 * N)
        h = torch.complex(start[:, :N], start[:, N:])
        for t in range(u.shape[0]):
            h = lam * dropped(cfg, done[t], h) + gamma * (u[t].to(lam.dtype) @ into.T)
            rows.append((h @ out.T).real + skip * u[t])
        net.final[name] = torch.cat([h.real, h.imag], -1)
        return torch.stack(rows)

    e = embedded(net, cfg, x)
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        y = torch.nn.functional.gelu(unit(at + 'lru.', norm(net, at + 'norm', e, cfg['ln_eps'])))
        e = e + affine(net, at + 'out1', y, e.shape[-1]) * torch.sigmoid(affine(net, at + 'out2', y, e.shape[-1]))
    return e


def mingru(net, cfg, x, done):
    d, B, logs = cfg['d_model'], x.shape[1], cfg['space'] == 'log'
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        z, v = torch.sigmoid(affine(net, at + 'z', x, d)), affine(net, at + 'h', x, d)
        if logs:
            v = torch.where(v >= 0, v + 0.5, torch.sigmoid(v))
        h = net.state(at + 'h', B, d)
        h = torch.exp(h) if logs else h
        for t in range(x.shape[0]):
            h = (1 - z[t]) * dropped(cfg, done[t], h) + z[t] * v[t]
            rows.append(h)
        net.final[at + 'h'] = torch.log(h) if logs else h
        x = torch.stack(rows)
    return x


def mlstm(net, cfg, x, done):
    H, B, W, E, side = cfg['n_heads'], x.shape[1], cfg['conv_size'], cfg['expand'] * cfg['d_model'], cfg['qkv_block']
    K, silu = E // H, torch.nn.functional.silu

    def in_blocks(name, u):
        w = net.param(name + '.weight', E, side).unflatten(0, (E // side, side))
        return torch.einsum('tbhi,hji->tbhj', u.unflatten(-1, (E // side, side)), w).flatten(2)

    def layer(at, e):
        u, g = affine(net, at + 'up', norm(net, at + 'norm', e, cfg['ln_eps']), 2 * E, False).split(E, -1)
        taps, past, convolved = net.param(at + 'conv.weight', E, 1, W).squeeze(1), net.state(at + 'conv', B, W - 1, E), []
        for t in range(u.shape[0]):
            seen = torch.cat([dropped(cfg, done[t], past), u[t][:, None]], 1)
            past = seen[:, 1:]
            convolved.append(silu((seen * taps.T).sum(1)))
        c = torch.stack(convolved)
        q, k, v = in_blocks(at + 'q', c), in_blocks(at + 'k', c), in_blocks(at + 'v', u)
        every, scale = torch.cat([q, k, v], -1), cfg['gate_scale']
        i, f = (every @ net.param(at + s + '.weight', H, 3 * E, scale=scale).T + net.param(at + s + '.bias', H, scale=scale) for s in 'if')
        q, k, v = (heads(r, H) for r in (q, k / math.sqrt(K), v))
        C, n = net.state(at + 'C', B, H, K, K), net.state(at + 'n', B, H, K)
        m, rows = net.state(at + 'm', B, H), []
        for t in range(u.shape[0]):
            C, n, m = dropped(cfg, done[t], C), dropped(cfg, done[t], n), dropped(cfg, done[t], m, FAR)
            keep = torch.nn.functional.logsigmoid(f[t]) + m
            m = torch.maximum(keep, i[t])
            a, b = torch.exp(keep - m)[..., None], torch.exp(i[t] - m)[..., None]
            C = a[..., None] * C + b[..., None] * k[t][..., :, None] * v[t][..., None, :]
            n = a * n + b * k[t]
            den = torch.maximum((n * q[t]).sum(-1).abs(), torch.exp(-m)).clamp(min=cfg['den_clamp'])
            rows.append((C * q[t][..., :, None]).sum(-2) / den[..., None])
        net.final.update({at + 'conv': past, at + 'C': C, at + 'n': n, at + 'm': m})
        o = torch.stack(rows)
        o = ((o - o.mean(-1, keepdim=True)) / (o.var(-1, keepdim=True, unbiased=False) + cfg['gn_eps']).sqrt()).flatten(2)
        o = o * net.param(at + 'outnorm.weight', E, mean=1.0, scale=0.1) + net.param(at + 'skip', E, mean=1.0, scale=0.1) * c
        return e + affine(net, at + 'down', o * silu(g), e.shape[-1], False)

    e = embedded(net, cfg, x)
    for n in range(cfg['n_layers']):
        e = layer('layers.%d.' % n, e)
    return norm(net, 'norm', e, cfg['ln_eps'])


CORES.update(lru=lru, mingru=mingru, mlstm=mlstm)
