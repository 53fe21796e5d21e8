"""gated_deltanet.py -- Gated DeltaNet as its equations stand in Yang, Kautz, Hatamizadeh 2024 (arXiv 2412.06464): eq. 10
and the layer of figure 1, with Mamba-2's decay, in the frame of the other cores (equations.py)."""
import torch

from equations import CORES, affine, dropped, embedded, heads, layer


def gated_deltanet(net, cfg, x, done):
    H, K, W, B = cfg['n_heads'], cfg['d_head'], cfg['conv_size'], x.shape[1]
    V = K * cfg['expand_v']
    silu, parts = torch.nn.functional.silu, (('q', H * K), ('k', H * K), ('v', H * V))

    def attend(at, z):
        a, rows = at + 'attn.', []
        raw = torch.cat([affine(net, a + s, z, size, False) for s, size in parts], -1)
        taps = torch.cat([net.param(a + s + '_conv.weight', size, 1, W) for s, size in parts]).squeeze(1)      # [D,W]
        past, C = net.state(at + 'conv', B, W - 1, raw.shape[-1]), net.state(at + 'C', B, H, V, K)
        step = torch.nn.functional.softplus(affine(net, a + 'a', z, H, False) + net.param(a + 'dt_bias', H, scale=1.0))
        alpha = torch.exp(-torch.exp(net.param(a + 'A_log', H, scale=1.0)) * step)[..., None, None]
        beta = torch.sigmoid(affine(net, a + 'b', z, H, False))[..., None, None]
        for t in range(z.shape[0]):
            seen = torch.cat([dropped(cfg, done[t], past), raw[t][:, None]], 1)
            past, mixed_ = seen[:, 1:], silu((seen * taps.T).sum(1))
            q, k, v = (heads(part, H) for part in mixed_.split([size for _, size in parts], -1))
            q, k = (u / (u.norm(dim=-1, keepdim=True) + cfg['norm_eps']) for u in (q, k))
            erase = torch.eye(K, dtype=x.dtype) - beta[t] * k[..., :, None] * k[..., None, :]
            C = dropped(cfg, done[t], C) @ (alpha[t] * erase) + beta[t] * v[..., :, None] * k[..., None, :]
            rows.append((C @ q[..., None]).squeeze(-1))
        net.final.update({at + 'conv': past, at + 'C': C})
        o = torch.stack(rows)
        o = o / (o.square().mean(-1, keepdim=True) + cfg['rms_eps']).sqrt() * net.param(a + 'norm.weight', V, mean=1.0, scale=0.1)
        return affine(net, a + 'out', o.flatten(2) * silu(affine(net, a + 'g', z, H * V, False)), cfg['d_model'], False)

    e = embedded(net, cfg, x)
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        e = layer(net, cfg, at, e, lambda z, first: attend(at, first(z)))
    return e


CORES['gated_deltanet'] = gated_deltanet
