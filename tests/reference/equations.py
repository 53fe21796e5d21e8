"""equations.py -- every core, one token at a time, as its equations stand in the papers.

A core is a function (net, cfg, x, done) -> y.  Parameters and states are asked for by name where an equation
uses them, and made at first use: so a name, its shape and its meaning stand in one place.
Time comes first: x [T,B,d_in]; done [T,B] is 1 where an observation begins an episode, and then what was carried
is gone before that observation is taken in.
"""
import math

import torch

import approximations

FAR = -1e38          # "minus infinity" of running maxima: finite, so that differences are never NaN


class Net:
    """Parameters and states by name.  `rng` (numpy) draws what is asked for first; numbers are exact in float32."""

    def __init__(self, rng, batch, dtype=torch.float64, like=None):
        self.rng, self.batch, self.dtype, self.like = rng, batch, dtype, like
        self.params, self.states, self.final, self.fixed = {}, {}, {}, []

    def _make(self, kept, given, name, draw, grad):
        if name not in kept:
            number = given[name] if given is not None else torch.tensor(draw()).to(torch.float32)
            kept[name] = number.detach().to(self.dtype).requires_grad_(grad)
        return kept[name]

    def param(self, name, *shape, low=None, scale=None, mean=0.0, fixed=False):
        """scale: of normal numbers about `mean` (default 1/sqrt(last size)); low: uniform in low .. low+1."""
        def draw():
            if low is not None:
                return low + self.rng.random(shape)
            return mean + (shape[-1] ** -0.5 if scale is None else scale) * self.rng.standard_normal(shape)
        if fixed and name not in self.params:
            self.fixed.append(name)
        return self._make(self.params, self.like and self.like.params, name, draw, not fixed)

    def state(self, name, *shape, kind='normal', grad=True):
        """kind: normal, positive, flag (0 or 1), or a function that draws."""
        def draw():
            if callable(kind):
                return kind()
            if kind == 'flag':
                return (self.rng.random(shape) < 0.4).astype(float)
            z = 0.5 * self.rng.standard_normal(shape)
            return abs(z) + 0.5 if kind == 'positive' else z
        return self._make(self.states, self.like and self.like.states, name, draw, grad)


def affine(net, name, x, rows, bias=True):
    y = x @ net.param(name + '.weight', rows, x.shape[-1]).T
    return y + net.param(name + '.bias', rows, scale=0.3) if bias else y


def norm(net, name, x, eps):
    mean = x.mean(-1, keepdim=True)
    unit = (x - mean) / (((x - mean) ** 2).mean(-1, keepdim=True) + eps).sqrt()
    return (unit * net.param(name + '.weight', x.shape[-1], mean=1.0, scale=0.1)
            + net.param(name + '.bias', x.shape[-1], scale=0.1))


def elu1(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def heads(x, H):
    return x.unflatten(-1, (H, x.shape[-1] // H))


def outer(p, a):
    """p (x) a with the index of p in front."""
    return (p[..., :, None] * a[..., None, :]).flatten(-2)


def dropped(cfg, done_t, state, to=0.0):
    """The state [B,...] before an observation."""
    if not cfg['reset']:
        return state
    began = (done_t > 0).reshape(-1, *[1] * (state.dim() - 1))
    return torch.where(began, torch.as_tensor(to, dtype=state.dtype).expand_as(state), state)


def gate(net, name, x, y):
    """GTrXL's gate (Parisotto et al. 2020): how much of y goes into x."""
    d = x.shape[-1]

    def sides(part, to):
        return affine(net, name + '.w_' + part, y, d, False) + affine(net, name + '.u_' + part, to, d, False)

    r = torch.sigmoid(sides('r', x))
    z = torch.sigmoid(sides('z', x) - net.param(name + '.bias', d, mean=1.0, scale=0.3))
    return (1 - z) * x + z * torch.tanh(sides('g', r * x))


def layer(net, cfg, at, e, attend):
    """One layer; attend(e, normalise) gets the layer's input and its first normalisation."""
    d, eps = cfg['d_model'], cfg['ln_eps']

    def feed_forward(x):
        return affine(net, at + 'ffn.1', torch.relu(affine(net, at + 'ffn.0', x, cfg['d_ffn'])), d)

    if cfg['flow'] == 'postnorm':
        h = norm(net, at + 'norm1', e + attend(e, lambda x: x), eps)
        return norm(net, at + 'norm2', h + feed_forward(h), eps)
    a = torch.relu(attend(e, lambda x: norm(net, at + 'norm1', x, eps)))
    join = (lambda name, x, y: gate(net, at + name, x, y)) if cfg['flow'] == 'gtrxl' else (lambda name, x, y: x + y)
    h = join('gate1', e, a)
    return join('gate2', h, torch.relu(feed_forward(norm(net, at + 'norm2', h, eps))))


def embedded(net, cfg, x):
    e = affine(net, 'embed', x, cfg['d_model'])
    return torch.relu(e) if cfg['embed_act'] == 'relu' else e


# ---- the gated linear family ----

def feature_size(cfg):
    dh, f = cfg['d_head'], cfg['feature']
    if f in ('outer_relu', 'outer_elu1', 'nn'):
        return cfg['eta'] * dh
    return {'elu1': cfg['nu'] * dh, 'relu': cfg['nu'] * dh, 'dpfp': 2 * cfg['nu'] * dh, 'identity': dh,
            'rfa': 2 * cfg['m']}.get(f, cfg['m'])


def turned(a, tick):
    """Pairs (2i, 2i+1) turned by their position, that of row t being tick + t: Su et al. 2021, section 3.2."""
    T, D = a.shape[0], a.shape[-1]
    position = tick + torch.arange(T, dtype=torch.float64)[:, None]
    angle = position[..., None, None] * 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    u, v, s, c = a[..., 0::2], a[..., 1::2], angle.sin().to(a.dtype), angle.cos().to(a.dtype)
    return torch.stack([u * c - v * s, u * s + v * c], -1).flatten(-2)


def feature(net, cfg, at, x, which, tick):
    """phi(q) or phi(k), [T,B,H,K].  favor_softmax: log(sqrt(m) phi) of keys, without the running maximum."""
    H, dh, f, eta = cfg['n_heads'], cfg['d_head'], cfg['feature'], cfg['eta']
    rows = feature_size(cfg) if f in ('elu1', 'relu', 'nn') else dh

    def inner(name, q0, n):                    # a map within each head
        w = net.param(at + name + '.weight', H * n, q0.shape[-1]).unflatten(0, (H, n))
        return torch.einsum('tbhi,hni->tbhn', q0, w) + net.param(at + name + '.bias', H * n, scale=0.3).unflatten(0, (H, n))

    p = None
    if which == 'q' and cfg['query'] == 'double':
        q0 = heads(affine(net, at + 'q', x, H * dh), H)
        a = inner('q2', q0, rows)
        if f.startswith('outer'):
            p = inner('p_q', q0, eta)
    else:
        a = heads(affine(net, at + which, x, H * rows), H)
        if f.startswith('outer'):
            p = heads(affine(net, at + 'p_' + which, x, H * eta), H)
    if cfg.get('rotary'):
        a = turned(a, tick)
    plain = {'relu': torch.relu, 'elu1': elu1, 'exp': torch.exp, 'identity': lambda z: z}
    if p is not None:
        act = plain[f[6:]]
        return outer(act(p), act(a))
    if f in plain or f == 'nn':
        return plain[cfg['nn_act'] if f == 'nn' else f](a)
    if f == 'dpfp':                            # Schlag et al. 2021, eq. 37
        u = torch.cat([a.relu(), (-a).relu()], -1)
        return torch.cat([u * u.roll(j, -1) for j in range(1, cfg['nu'] + 1)], -1)
    m, eps = cfg['m'], cfg['feature_eps']
    W = net.param(at + 'features', H, m, dh, scale=1.0, fixed=True)
    if f == 'rfa':                             # Peng et al. 2021
        z = torch.einsum('tbhi,hmi->tbhm', a / (a.norm(dim=-1, keepdim=True) + 1e-3), W)
        return torch.cat([z.sin(), z.cos()], -1) / m ** 0.5
    if f == 'favor_relu':
        return torch.einsum('tbhi,hmi->tbhm', a, W).relu() + eps
    a = a / dh ** 0.25                         # favor_softmax: Choromanski et al. 2021, positive features
    z = torch.einsum('tbhi,hmi->tbhm', a, W) - a.square().sum(-1, keepdim=True) / 2
    if which == 'k':
        return z
    return ((z - z.detach().amax(-1, keepdim=True)).exp() + eps) / m ** 0.5


def family_gates(net, cfg, at, x):
    """What multiplies v and k where they are written, the decay of C [..,V,K] and of s [..,K]; all with [T,B,H]."""
    H, V, K, g = cfg['n_heads'], cfg['d_head'], feature_size(cfg), cfg['gate']
    one = torch.ones(*x.shape[:2], H, 1, dtype=x.dtype)

    def open_(name, n):
        return torch.sigmoid(heads(affine(net, at + name, x, H * n), H))

    if g == 'none':
        return one, one, one[..., None], one
    if g == 'scalar':
        b = open_('beta', 1)
        return b, one, (1 - b)[..., None], 1 - b
    if g == 'mega':
        b, b_damp, c, c_damp = (torch.sigmoid(net.param(at + 'mega.' + n, H, size, scale=1.0)) * one for n, size in
                                (('beta', V), ('beta_damp', V), ('gamma', K), ('gamma_damp', K)))
        return b, c, 1 - (b * b_damp)[..., None] * (c * c_damp)[..., None, :], 1 - c * c_damp
    b = open_('beta', V)
    c = outer(open_('p_gamma', K // V), open_('gamma', V)) if g == 'outer' else open_('gamma', K)
    if cfg['decay'] == 'joint' and cfg['approximation'] == 'full':
        return b, c, 1 - b[..., None] * c[..., None, :], 1 - c
    return b, c, (1 - b)[..., None] * (1 - c)[..., None, :], 1 - c


def quotient(cfg, num, z):
    """num / den(z): den = z + eps, kept den_clamp away from zero."""
    den = z + cfg['eps']
    if cfg['den_clamp'] > 0:
        den = torch.where(den < 0, -1.0, 1.0).to(den.dtype) * den.abs().clamp(min=cfg['den_clamp'])
    return num / den[..., None]


def channels(cfg):
    """Functions of the clock, and the divisors of the sum and of s.q in it, of cosines and random signs."""
    r, form = cfg['r'], cfg['form']
    if cfg['approximation'] == 'random_sign':
        return approximations.signs(cfg), r
    if form == 'code':
        steps = [-math.pi + 2 * math.pi * i / (r - 1) if r > 1 else -math.pi for i in range(r)]
        return [lambda t, w=w: torch.cos(w * t) for w in steps], 2 * r
    waves = [lambda t, i=i: torch.cos(2 * math.pi * i / r * t) for i in range(r + 1 if form == 'paper' else r)]
    if form == 'paper':
        return waves, 2 * r
    return waves + [lambda t, i=i: torch.sin(2 * math.pi * i / r * t) for i in range(r)], r


def family_attention(net, cfg, at, x, done, tick):
    """[T,B,d] -> [T,B,H*dh]: GaLiTe (Pramanik et al. 2023), its ablations, AGaLiTe, and the delta rules."""
    B, H, V, K = x.shape[1], cfg['n_heads'], cfg['d_head'], feature_size(cfg)
    attn, held = at + 'attn.', cfg['approximation']
    k, q = feature(net, cfg, attn, x, 'k', tick), feature(net, cfg, attn, x, 'q', tick)
    v = heads(affine(net, attn + 'v', x, H * V), H)
    keep, now, rows = {}, {}, []

    def carry(name, t, *shape, to=0.0, **how):
        if name not in now:
            now[name] = net.state(at + name, *shape, **how)
        return dropped(cfg, done[t], now[name], to)

    rule = cfg['update']
    if rule == 'sum':
        write_v, write_k, keep['C'], keep['s'] = family_gates(net, cfg, attn, x)
    else:
        b = torch.sigmoid(heads(affine(net, attn + 'beta', x, H), H))
        g = torch.sigmoid(heads(affine(net, attn + 'gamma', x, H), H)) if rule == 'delta' else None
        size = (lambda z, eps: z.norm(dim=-1, keepdim=True) + eps) if rule == 'delta' else (lambda z, eps: z.sum(-1, keepdim=True) + eps)
        k, q = k / size(k, cfg['norm_eps']), q / size(q, 1e-6 if rule == 'delta' else cfg['norm_eps'])
    if held in ('cos', 'random_sign'):
        waves, divisor = channels(cfg)
    for t in range(x.shape[0]):
        kt, qt, vt = k[t], q[t], v[t]
        shrink = torch.ones(B, H, 1, dtype=x.dtype)
        if cfg['feature'] == 'favor_softmax':
            c = carry('c', t, B, H, to=FAR, grad=False)
            now['c'] = torch.maximum(c, kt.amax(-1)).detach()
            shrink = (c - now['c']).exp()[..., None]
            kt = (kt - now['c'][..., None]).exp() / cfg['m'] ** 0.5
        if rule != 'sum':
            C = carry('C', t, B, H, V, K)
            gt = g[t] if rule == 'delta' else torch.ones(B, H, 1, dtype=x.dtype)
            lost = vt - (C * kt[..., None, :]).sum(-1)
            now['C'] = (1 - gt if rule == 'delta' else 1 * gt)[..., None] * C + (gt * b[t] * lost)[..., None] * kt[..., None, :]
            add_s, keep_s = gt * b[t] * kt, 1 - gt
        else:
            wv, wk, keep_s = write_v[t] * vt, write_k[t] * kt, keep['s'][t] * shrink
            add_s = write_v[t] * kt if cfg['gate'] == 'scalar' else wk
            if held == 'full':
                now['C'] = keep['C'][t] * shrink[..., None] * carry('C', t, B, H, V, K) + wv[..., None] * wk[..., None, :]
            if held == 'svd':
                U, W = carry('U', t, B, H, V, cfg['r']), carry('W', t, B, H, K, cfg['r'])
                C = dropped(cfg, done[t], now['UW']) if t else U @ W.mT
                on_keys = cfg['gate'] in ('none', 'scalar')              # a scalar gate is one of keys
                keep_v = torch.ones_like(vt) if on_keys else 1 - write_v[t]
                now['UW'], now['U'], now['W'] = approximations.cut(
                    keep['C'][t] * shrink[..., None] * C + wv[..., None] * wk[..., None, :],
                    torch.cat([keep_v[..., None] * U, (vt if on_keys else wv)[..., None]], -1),
                    torch.cat([keep_s[..., None] * W, add_s[..., None]], -1), cfg['r'])
        if cfg['normalise'] and rule != 'fastweight':
            now['s'] = keep_s * carry('s', t, B, H, K, kind='positive') + add_s
        if held in ('full', 'svd'):
            num, scale = (now['C' if held == 'full' else 'UW'] * qt[..., None, :]).sum(-1), 1
        else:
            wave = torch.stack([w(tick + t + 1) for w in waves], 1).to(x.dtype)[..., None, None]         # [B,R,1,1]
            keep_v = 1 - write_v[t] if cfg['gate'] != 'none' else torch.ones_like(wv)
            # All channels of the file start alike, as they would be: mirrored ones are equal.
            for name, size_, decay, add in (('v', V, keep_v, wv), ('k', K, keep_s, wk)):
                start = (lambda n=size_: net.rng.standard_normal((B, 1, H, n)) * waves_at(waves, tick))
                now[name] = decay[:, None] * carry(name, t, B, len(waves), H, size_, kind=start) + wave * add[:, None]
            num, scale = (now['v'] * (now['k'] * qt[:, None]).sum(-1, keepdim=True)).sum(1), divisor
            if held == 'random_sign':
                num, scale = num / divisor, 1
        if cfg['normalise'] and rule != 'fastweight':
            rows.append(quotient(cfg, num, scale * (now['s'] * qt).sum(-1)).flatten(1))
        else:
            rows.append(num.flatten(1) / scale)
    net.final.update({at + name: z for name, z in now.items() if name != 'UW'})
    return torch.stack(rows)


def waves_at(waves, tick):
    return 0.5 * torch.stack([w(tick) for w in waves], 1)[..., None, None].numpy()


def family(net, cfg, x, done):
    e, T, B = embedded(net, cfg, x), x.shape[0], x.shape[1]
    tick = None
    if cfg['approximation'] in ('cos', 'random_sign') or cfg.get('rotary'):
        kept = net.state('tick', B, grad=False, kind=lambda: net.rng.integers(0, 9, B).astype(float))
        tick, net.final['tick'] = kept.to(torch.float64), kept + T
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        e = layer(net, cfg, at, e, lambda z, first: affine(
            net, at + 'attn.out', family_attention(net, cfg, at, first(z), done, tick), cfg['d_model']))
    return e


# ---- recurrent networks ----

def gru(net, cfg, x, done):
    d = cfg['d_model']
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        h = net.state(at + 'h', x.shape[1], d)
        for t in range(x.shape[0]):
            h = dropped(cfg, done[t], h)
            r, z = (torch.sigmoid(affine(net, at + 'i' + g, x[t], d) + affine(net, at + 'h' + g, h, d, False)) for g in 'rz')
            h = (1 - z) * torch.tanh(affine(net, at + 'in', x[t], d) + r * affine(net, at + 'hn', h, d)) + z * h
            rows.append(h)
        x, net.final[at + 'h'] = torch.stack(rows), h
    return x


def lstm(net, cfg, x, done):
    d = cfg['d_model']
    for n in range(cfg['n_layers']):
        at, rows = 'layers.%d.' % n, []
        h, c = net.state(at + 'h', x.shape[1], d), net.state(at + 'c', x.shape[1], d)
        for t in range(x.shape[0]):
            h, c = dropped(cfg, done[t], h), dropped(cfg, done[t], c)
            i, f, g, o = (affine(net, at + 'i' + s, x[t], d, False) + affine(net, at + 'h' + s, h, d) for s in 'ifgo')
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            rows.append(h)
        x, net.final[at + 'h'], net.final[at + 'c'] = torch.stack(rows), h, c
    return x


def before(net, cfg, name, x, done):
    """x of the step before, zeros where an episode begins; its last row is state."""
    first = net.state(name, *x.shape[1:])
    net.final[name] = x[-1]
    return torch.stack([dropped(cfg, done[t], x[t - 1] if t else first) for t in range(x.shape[0])])


def mixed(net, at, which, z, prev):
    m = net.param(at + 'mix_' + which, z.shape[-1], low=0.0)
    return m * z + (1 - m) * prev


def rwkv4(net, cfg, x, done):
    """Peng et al. 2023; wkv with a running maximum o, so that p and q are numerator and denominator times exp(-o)."""
    d, eps = cfg['d_model'], cfg['ln_eps']
    e = norm(net, 'ln0', embedded(net, cfg, x), eps)
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n
        a, f = at + 'attn.', at + 'ffn.'
        z = norm(net, at + 'norm1', e, eps)
        prev = before(net, cfg, at + 'att_x', z, done)
        k, v, r = (affine(net, a + s, mixed(net, a, s, z, prev), d, False) for s in 'kvr')
        w, u = -net.param(a + 'decay', d, scale=1.0).exp(), net.param(a + 'first', d, scale=0.5)
        p, q, o = net.state(at + 'p', x.shape[1], d), net.state(at + 'q', x.shape[1], d, kind='positive'), net.state(at + 'o', x.shape[1], d)
        rows = []
        for t in range(x.shape[0]):
            p, q, o = dropped(cfg, done[t], p), dropped(cfg, done[t], q), dropped(cfg, done[t], o, FAR)
            top = torch.maximum(o, u + k[t])
            old, here = (o - top).exp(), (u + k[t] - top).exp()
            rows.append((old * p + here * v[t]) / (old * q + here))
            top = torch.maximum(w + o, k[t])
            old, here = (w + o - top).exp(), (k[t] - top).exp()
            p, q, o = old * p + here * v[t], old * q + here, top
        net.final.update({at + 'p': p, at + 'q': q, at + 'o': o})
        e = e + affine(net, a + 'out', r.sigmoid() * torch.stack(rows), d, False)
        z = norm(net, at + 'norm2', e, eps)
        prev = before(net, cfg, at + 'ffn_x', z, done)
        key = affine(net, f + 'k', mixed(net, f, 'k', z, prev), cfg['d_ffn'], False).relu().square()
        e = e + affine(net, f + 'r', mixed(net, f, 'r', z, prev), d, False).sigmoid() * affine(net, f + 'v', key, d, False)
    return norm(net, 'ln_out', e, eps)


# ---- softmax attention with a memory ----

def visible(cfg, done, blocked):
    """[B,T,M+T]: may step t look at carried slot j (not blocked, and no episode began since), or at step j - M (its own
    episode, not the future)?  And the mask [M,B] afterwards."""
    T, B = done.shape
    M = blocked.shape[0]
    begun = (done > 0).long().cumsum(0) if cfg['reset'] else torch.zeros(T, B, dtype=torch.long)
    see = torch.zeros(B, T, M + T, dtype=torch.bool)
    for b in range(B):
        for t in range(T):
            for j in range(M):
                see[b, t, j] = blocked[j, b] == 0 and begun[t, b] == 0
            for j in range(t + 1):
                see[b, t, M + j] = begun[j, b] == begun[t, b]
    after = torch.cat([torch.where(begun[-1] > 0, torch.ones_like(blocked), blocked), (begun != begun[-1]).to(blocked.dtype)])
    return see, after[T:]


def weighted(score, see, v):
    """Softmax over the last axis of score [B,H,T,F] where see [B,T,F]; v [F,B,H,n] -> [T,B,H*n]."""
    w = torch.softmax(score.masked_fill(~see[:, None], float('-inf')), -1)
    return torch.einsum('bhtf,fbhn->tbhn', w, v).flatten(2)


def transformer(net, cfg, x, done):
    H, dh, M, (T, B) = cfg['n_heads'], cfg['d_head'], cfg['memory'], x.shape[:2]
    see, net.final['mask'] = visible(cfg, done, net.state('mask', M, B, kind='flag', grad=False))
    age = torch.arange(T)[:, None] + M - torch.arange(M + T)[None]
    see = see & (age <= M)
    e = embedded(net, cfg, x)
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n

        def attend(z, first):
            z = first(z)
            q, k, v = (heads(affine(net, at + 'attn.' + s, z, H * dh), H) for s in 'qkv')
            k = torch.cat([net.state(at + 'k', B, M, H, dh).transpose(0, 1), k])
            v = torch.cat([net.state(at + 'v', B, M, H, dh).transpose(0, 1), v])
            net.final[at + 'k'], net.final[at + 'v'] = k[T:].transpose(0, 1), v[T:].transpose(0, 1)
            score = torch.einsum('tbhn,fbhn->bhtf', q, k) / dh ** 0.5
            return affine(net, at + 'attn.out', weighted(score, see, v), cfg['d_model'])

        e = layer(net, cfg, at, e, attend)
    return e


def gtrxl(net, cfg, x, done):
    """Parisotto et al. 2020 on Dai et al. 2019: keys and values of what was, queries of the raw input, relative positions."""
    H, dh, M, d, (T, B) = cfg['n_heads'], cfg['d_head'], cfg['memory'], cfg['d_model'], x.shape[:2]
    see, net.final['mask'] = visible(cfg, done, net.state('mask', M, B, kind='flag', grad=False))
    memory = net.state('memory', cfg['n_layers'] + 1, M, B, d)
    angle = torch.arange(M + T, dtype=torch.float64)[:, None] * 10000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    waves = torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)
    age = (torch.arange(T)[:, None] + M - torch.arange(M + T)[None]).clamp(min=0)
    u, v_bias = net.param('u', H, dh, scale=0.3), net.param('v', H, dh, scale=0.3)
    e = embedded(net, cfg, x)
    levels = [e]
    for n in range(cfg['n_layers']):
        at = 'layers.%d.' % n

        def attend(z, first):
            seen = first(torch.cat([memory[n], z]))
            q = heads(affine(net, at + 'attn.q', z, H * dh), H)
            k, v = (heads(affine(net, at + 'attn.' + s, seen, H * dh), H) for s in 'kv')
            pos = heads(affine(net, at + 'attn.pos', waves, H * dh), H)[age]                # [T,M+T,H,dh]
            score = torch.einsum('tbhn,fbhn->bhtf', q + u, k) + torch.einsum('tbhn,tfhn->bhtf', q + v_bias, pos)
            return affine(net, at + 'attn.out', weighted(score / dh ** 0.5, see, v), d)

        e = layer(net, cfg, at, e, attend)
        levels.append(e)
    net.final['memory'] = torch.stack([torch.cat([memory[i], level])[T:] for i, level in enumerate(levels)]).detach()
    return e


CORES = {'galite': family, 'agalite': family, 'gru': gru, 'lstm': lstm, 'rwkv4': rwkv4, 'transformer': transformer, 'gtrxl': gtrxl}
CONSTANT = ('tick', 'mask', 'c')     # states without a gradient; c only of favor_softmax (an LSTM's has one)
