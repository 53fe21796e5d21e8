#!/usr/bin/env python3
"""bench_torch.py -- one layer of attention or recurrence, forward and backward, as a PyTorch user would write it.

    python tests/reference/bench_torch.py [THREADS=1]        one line an operation: NAME MILLISECONDS FORM

T=256, B=8, H=4, sizes as in the published configurations.  Where PyTorch has several forms of one function (a loop, the
quadratic form, chunks), each is a line, and `mneme bench cores` compares with the best.  Best times; only ratios to what the
same machine does in the same minute mean anything.
"""
import sys
import time

import torch
import torch.nn.functional as F

T, B, H, V = 256, 8, 4, 64


def leaf(*shape, gate=False, positive=False):
    x = torch.rand(*shape) if gate or positive else torch.randn(*shape)
    return x.requires_grad_()


def timed(name, form, f, inputs, most=5, seconds=3.0):
    """Least of up to `most` runs, or of what fits into `seconds` (at least one after the first); of short ones, of half a
    second's."""
    times, began = [], time.perf_counter()
    while len(times) < 2 or time.perf_counter() - began < (seconds if len(times) <= most else 0.5):
        start = time.perf_counter()
        y = f()
        torch.autograd.grad(y, inputs, torch.ones_like(y))
        times.append(time.perf_counter() - start)
    print(name, '%.2f' % (1e3 * min(times[1:])), form, flush=True)


def gated_recurrence(K=256):
    """C = (1-b)(1-g)^T * C + (b v)(g k)^T, y = C q / s.q: 64 x 256 numbers a head, step by step."""
    q, k, g = leaf(T, B, H, K, positive=True), leaf(T, B, H, K, positive=True), leaf(T, B, H, K, gate=True)
    v, b = leaf(T, B, H, V), leaf(T, B, H, V, gate=True)

    def run():
        C, s, rows = torch.zeros(B, H, V, K), torch.zeros(B, H, K), []
        keep_v, keep_k, write_v, write_k = 1 - b, 1 - g, b * v, g * k
        for t in range(T):
            C = keep_v[t][..., None] * keep_k[t][..., None, :] * C + write_v[t][..., None] * write_k[t][..., None, :]
            s = keep_k[t] * s + write_k[t]
            rows.append((C @ q[t][..., None])[..., 0] / ((s * q[t]).sum(-1, keepdim=True) + 1e-5))
        return torch.stack(rows)

    timed('gated', 'loop', run, [q, k, v, b, g], most=2)


def ungated(K=64, L=64):
    """y_t = sum_{s<=t} (q_t.k_s) v_s / sum_{s<=t} q_t.k_s, [B,H,T,.]."""
    q, k, v = leaf(B, H, T, K, positive=True), leaf(B, H, T, K, positive=True), leaf(B, H, T, V)
    causal = torch.ones(T, T).tril()

    def quadratic():
        a = q @ k.transpose(-1, -2) * causal
        return a @ v / (a.sum(-1, keepdim=True) + 1e-6)

    def chunked():
        qc, kc, vc = (x.unflatten(2, (T // L, L)) for x in (q, k, v))
        a = qc @ kc.transpose(-1, -2) * causal[:L, :L]
        C, s = kc.transpose(-1, -2) @ vc, kc.sum(-2)
        C, s = C.cumsum(2) - C, s.cumsum(2) - s                  # what was before each chunk
        z = a.sum(-1, keepdim=True) + qc @ s[..., None]
        return ((a @ vc + qc @ C) / (z + 1e-6)).flatten(2, 3)

    timed('ungated', 'quadratic', quadratic, [q, k, v])
    timed('ungated', 'chunks', chunked, [q, k, v])


def scalar_gated(K=64):
    """One gate a head: decays of all pairs as one matrix, so the quadratic form."""
    q, k, v = leaf(B, H, T, K, positive=True), leaf(B, H, T, K, positive=True), leaf(B, H, T, V)
    b = leaf(B, H, T, gate=True)
    causal = torch.ones(T, T, dtype=torch.bool).tril()

    def run():
        total = torch.log(1 - b).cumsum(-1)
        decay = (total[..., :, None] - total[..., None, :]).masked_fill(~causal, float('-inf')).exp()
        a = q @ k.transpose(-1, -2) * decay * b[..., None, :]
        return a @ v / (a.sum(-1, keepdim=True) + 1e-6)

    timed('scalar', 'quadratic', run, [q, k, v, b])


def joint(K=256):
    """The decay of the released GaLiTe, 1 - b g^T."""
    q, k, g = leaf(T, B, H, K, positive=True), leaf(T, B, H, K, positive=True), leaf(T, B, H, K, gate=True)
    v, b = leaf(T, B, H, V), leaf(T, B, H, V, gate=True)

    def run():
        C, s, rows = torch.zeros(B, H, V, K), torch.zeros(B, H, K), []
        for t in range(T):
            C = (1 - b[t][..., None] * g[t][..., None, :]) * C + (b[t] * v[t])[..., None] * (g[t] * k[t])[..., None, :]
            s = (1 - g[t]) * s + g[t] * k[t]
            rows.append((C @ q[t][..., None])[..., 0] / ((s * q[t]).sum(-1, keepdim=True) + 1e-5))
        return torch.stack(rows)

    timed('joint', 'loop', run, [q, k, v, b, g], most=2)


def agalite(K=256, r=2):
    """Vectors and cosines in place of the matrix; all r channels, as released."""
    q, k, g = leaf(T, B, H, K, positive=True), leaf(T, B, H, K, positive=True), leaf(T, B, H, K, gate=True)
    v, b = leaf(T, B, H, V), leaf(T, B, H, V, gate=True)
    omega = torch.linspace(-torch.pi, torch.pi, r)

    def run():
        vs, ks, s, rows = torch.zeros(B, r, H, V), torch.zeros(B, r, H, K), torch.zeros(B, H, K), []
        for t in range(T):
            wave = torch.cos(omega * (t + 1))[:, None, None]
            vs = (1 - b[t])[:, None] * vs + wave * (b[t] * v[t])[:, None]
            ks = (1 - g[t])[:, None] * ks + wave * (g[t] * k[t])[:, None]
            s = (1 - g[t]) * s + g[t] * k[t]
            num = (vs * (ks * q[t][:, None]).sum(-1, keepdim=True)).sum(1)
            rows.append(num / (2 * r * (s * q[t]).sum(-1, keepdim=True) + 1e-5))
        return torch.stack(rows)

    timed('agalite', 'loop', run, [q, k, v, b, g], most=3)


def softmax():
    q, k, v = leaf(B, H, T, V), leaf(B, H, T, V), leaf(B, H, T, V)
    causal = torch.ones(T, T, dtype=torch.bool).triu(1)

    def plain():
        return torch.softmax((q @ k.transpose(-1, -2) / V ** 0.5).masked_fill(causal, float('-inf')), -1) @ v

    timed('softmax', 'fused', lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), [q, k, v])
    timed('softmax', 'products', plain, [q, k, v])


def xl_attention(M=128):
    """Transformer-XL's scores with a memory of M, relative positions by the usual shift."""
    q, r = leaf(B, H, T, V), leaf(H, M + T, V)
    k, v, u, w = leaf(B, H, M + T, V), leaf(B, H, M + T, V), leaf(H, 1, V), leaf(H, 1, V)
    hidden = torch.ones(T, M + T, dtype=torch.bool).triu(M + 1)

    def run():
        content = (q + u) @ k.transpose(-1, -2)
        by_distance = (q + w) @ r.flip(1).transpose(-1, -2)
        position = F.pad(by_distance, (1, 0)).reshape(B, H, M + T + 1, T)[:, :, 1:].reshape(B, H, T, M + T)
        score = ((content + position) / V ** 0.5).masked_fill(hidden, float('-inf'))
        return torch.softmax(score, -1) @ v

    timed('xl%d' % M, 'products', run, [q, r, k, v, u, w])


def recurrent(name, module, d_in, d):
    net, x = module(d_in, d), leaf(T, B, d_in)
    timed(name, module.__name__, lambda: net(x)[0], [x, *net.parameters()])


def wkv(C=128):
    """RWKV-4's, with its running maximum."""
    k, v, w, u = leaf(T, B, C), leaf(T, B, C), leaf(C), leaf(C)

    def run():
        p, q, o, rows = torch.zeros(B, C), torch.zeros(B, C), torch.full((B, C), -1e38), []
        decay = -w.exp()
        for t in range(T):
            top = torch.maximum(o, u + k[t])
            old, here = (o - top).exp(), (u + k[t] - top).exp()
            rows.append((old * p + here * v[t]) / (old * q + here))
            top = torch.maximum(decay + o, k[t])
            old, here = (decay + o - top).exp(), (k[t] - top).exp()
            p, q, o = old * p + here * v[t], old * q + here, top
        return torch.stack(rows)

    timed('wkv', 'loop', run, [k, v, w, u])


def delta(K=64):
    """C = a C + b (v - C k) k^T, y = C q (gated delta rule; Yang et al. 2024)."""
    q, v, a, b = leaf(T, B, H, K), leaf(T, B, H, V), leaf(T, B, H, 1, gate=True), leaf(T, B, H, 1, gate=True)
    k = F.normalize(torch.randn(T, B, H, K), dim=-1).requires_grad_()

    def run():
        C, rows = torch.zeros(B, H, V, K), []
        for t in range(T):
            lost = v[t] - (C @ k[t][..., None])[..., 0]
            C = a[t][..., None] * C + (b[t] * lost)[..., None] * k[t][..., None, :]
            rows.append((C @ q[t][..., None])[..., 0])
        return torch.stack(rows)

    timed('delta', 'loop', run, [q, k, v, a, b], most=3)


if __name__ == '__main__':
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    torch.manual_seed(1)
    ungated()
    scalar_gated()
    softmax()
    xl_attention(128)
    xl_attention(256)
    recurrent('gru', torch.nn.GRU, 16, 680)
    recurrent('lstm', torch.nn.LSTM, 16, 600)
    wkv()
    agalite()
    delta()
    gated_recurrence()
    joint()
