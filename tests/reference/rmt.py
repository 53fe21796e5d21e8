"""rmt.py -- the recurrent memory transformer, segment by segment and copy by copy, in the frame of the other cores
(equations.py)."""
import torch

from equations import CORES, affine, embedded, heads, layer, weighted


def rmt(net, cfg, x, done):
    """Bulatov et al. 2022, section 3.2: memory tokens, read before a segment and written anew by the top layer after it."""
    H, dh, m, (T, B) = cfg['n_heads'], cfg['d_head'], cfg['mem_slots'], x.shape[:2]
    mem0, start, e = net.param('mem0', m, cfg['d_model']), net.state('mem', B, m, cfg['d_model']), embedded(net, cfg, x)

    def through(z):                            # [m + tokens + m, d], one copy
        rows = len(z)
        see = torch.ones(rows, rows, dtype=torch.bool).tril()
        see[:m, :m] = True
        see[rows - m:] = True
        z = z[:, None]
        for n in range(cfg['n_layers']):
            at = 'layers.%d.' % n

            def attend(z, first):
                q, k, v = (heads(affine(net, at + 'attn.' + s, first(z), H * dh), H) for s in 'qkv')
                score = torch.einsum('tbhn,fbhn->bhtf', q, k) / dh ** 0.5
                return affine(net, at + 'attn.out', weighted(score, see[None], v), cfg['d_model'])

            z = layer(net, cfg, at, z, attend)
        return z[:, 0]

    out, last = [], []
    for b in range(B):
        mem, rows, t = start[b], [], 0
        while t < T:
            began = [cfg['reset'] and done[i, b] > 0 for i in range(T)]
            mem = mem0 if began[t] else mem
            end = min([t + cfg['segment'], T] + [i for i in range(t + 1, T) if began[i]])
            z = through(torch.cat([mem, e[t:end, b], mem]))
            rows.append(z[m:-m])
            mem, t = z[-m:], end
        out.append(torch.cat(rows))
        last.append(mem)
    net.final['mem'] = torch.stack(last)
    return torch.stack(out, 1)


CORES['rmt'] = rmt
