"""rwkv7.py -- RWKV-6 (Peng et al. 2024, arXiv 2404.05892) and RWKV-7 (Peng et al. 2025, arXiv 2503.14456) as their
equations stand, in the frame of the other cores (equations.py).  The matrix S is kept keys by values in both."""
import torch

from equations import CORES, affine, before, dropped, embedded, heads, norm


def shift(net, name, z, prev, more=0.0):
    """z with as much of the step before as `name` says."""
    return z + (prev - z) * (net.param(name, z.shape[-1], low=0.0) + more)


def low_rank(net, name, x, rank, rows, inner=torch.tanh):
    return affine(net, name + '_b', inner(affine(net, name + '_a', x, rank, False)), rows, False)


def group_norm(net, name, y, eps):
    """y [T,B,H,V], each head by itself -> [T,B,H*V]."""
    n = y.shape[-1] * y.shape[-2]
    mean = y.mean(-1, keepdim=True)
    unit = (y - mean) / (((y - mean) ** 2).mean(-1, keepdim=True) + eps).sqrt()
    return unit.flatten(2) * net.param(name + '.weight', n, mean=1.0, scale=0.1) + net.param(name + '.bias', n, scale=0.1)


def rwkv(time_mixing, receptance):
    def core(net, cfg, x, done):
        d, eps, shared = cfg['d_model'], cfg['ln_eps'], {}
        e = norm(net, 'ln0', embedded(net, cfg, x), eps)
        for n in range(cfg['n_layers']):
            at = 'layers.%d.' % n
            f = at + 'ffn.'
            z = norm(net, at + 'norm1', e, eps)
            prev = before(net, cfg, at + 'att_x', z, done)
            e = e + affine(net, at + 'attn.out', time_mixing(net, cfg, at, n, z, prev, done, shared), d, False)
            z = norm(net, at + 'norm2', e, eps)
            prev = before(net, cfg, at + 'ffn_x', z, done)
            y = affine(net, f + 'v', affine(net, f + 'k', shift(net, f + 'mix_k', z, prev), cfg['d_ffn'], False).relu().square(), d, False)
            if receptance:
                y = y * affine(net, f + 'r', shift(net, f + 'mix_r', z, prev), d, False).sigmoid()
            e = e + y
        return norm(net, 'ln_out', e, eps)
    return core


def time_mixing_6(net, cfg, at, n, z, prev, done, shared):
    H, V, a, B, d = cfg['n_heads'], cfg['d_head'], at + 'attn.', z.shape[1], z.shape[2]
    wide, rank = H * V, cfg['mix_rank']
    low = affine(net, a + 'mix_a', shift(net, a + 'mix_x', z, prev), 5 * rank, False).tanh().unflatten(-1, (5, rank))
    more = torch.einsum('tbci,cdi->ctbd', low, net.param(a + 'mix_b', 5, d, rank))
    stream = {s: shift(net, a + 'mix_' + s, z, prev, more[i]) for i, s in enumerate('wkvrg')}
    r, k, v = (heads(affine(net, a + s, stream[s], wide, False), H) for s in 'rkv')
    decay = net.param(a + 'decay', wide, scale=1.0) + low_rank(net, a + 'decay', stream['w'], cfg['decay_rank'], wide)
    w, first = heads((-decay.exp()).exp(), H), net.param(a + 'first', H, V, scale=0.5)
    S, rows = net.state(at + 'S', B, H, V, V), []
    for t in range(z.shape[0]):
        S = dropped(cfg, done[t], S)
        new = k[t][..., :, None] * v[t][..., None, :]
        rows.append((r[t][..., :, None] * (S + first[..., :, None] * new)).sum(-2))
        S = w[t][..., :, None] * S + new
    net.final[at + 'S'] = S
    gate = torch.nn.functional.silu(affine(net, a + 'g', stream['g'], wide, False))
    return group_norm(net, a + 'norm', torch.stack(rows), cfg['gn_eps']) * gate


def time_mixing_7(net, cfg, at, n, z, prev, done, shared):
    H, V, a, B = cfg['n_heads'], cfg['d_head'], at + 'attn.', z.shape[1]
    wide, plain = H * V, lambda x: x
    stream = {s: shift(net, a + 'mix_' + s, z, prev) for s in 'rwkvag'}
    r, k, v = (affine(net, a + s, stream[s], wide, False) for s in 'rkv')
    decay = net.param(a + 'decay', wide, scale=1.0) + low_rank(net, a + 'decay', stream['w'], cfg['decay_rank'], wide)
    w = heads((-decay.sigmoid() * torch.tensor(-0.5, dtype=z.dtype).exp()).exp(), H)
    rate = (net.param(a + 'a', wide, scale=1.0) + low_rank(net, a + 'a', stream['a'], cfg['rate_rank'], wide, plain)).sigmoid()
    if n == 0:
        shared['v'] = v
    else:
        how = net.param(a + 'v0', wide, scale=1.0) + low_rank(net, a + 'v0', stream['v'], cfg['value_rank'], wide, plain)
        v = v + (shared['v'] - v) * how.sigmoid()
    gate = low_rank(net, a + 'g', stream['g'], cfg['gate_rank'], wide, torch.sigmoid)
    kappa = heads(k * net.param(a + 'k_k', wide, mean=0.7, scale=0.3), H)
    kappa = kappa / kappa.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    write = heads(k * (1 + (rate - 1) * net.param(a + 'k_a', wide, mean=1.0, scale=0.3)), H)
    r, v, rate = heads(r, H), heads(v, H), heads(rate, H)
    S, rows = net.state(at + 'S', B, H, V, V).transpose(-1, -2), []          # as in the paper: values by keys
    for t in range(z.shape[0]):
        S = dropped(cfg, done[t], S)
        change = torch.diag_embed(w[t]) - kappa[t][..., :, None] * (rate[t] * kappa[t])[..., None, :]
        S = S @ change + v[t][..., :, None] * write[t][..., None, :]
        rows.append((S @ r[t][..., None]).squeeze(-1))
    net.final[at + 'S'] = S.transpose(-1, -2)
    bonus = (r * net.param(a + 'r_k', H, V, scale=0.5) * write).sum(-1, keepdim=True) * v
    return (group_norm(net, a + 'norm', torch.stack(rows), cfg['gn_eps']) + bonus.flatten(2)) * gate


CORES['rwkv6'] = rwkv(time_mixing_6, True)
CORES['rwkv7'] = rwkv(time_mixing_7, False)
