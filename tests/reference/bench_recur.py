#!/usr/bin/env python3
"""bench_recur.py -- recurrences as a user of PyTorch or JAX would write them, forward and backward.

    python tests/reference/bench_recur.py [THREADS=1]        one line each: NAME MILLISECONDS FORM

T=256, B=8, D=128.  NAME ends with torch (a loop over time) or jax (jit of lax.scan and its gradient, compiled before it is
timed; left out where JAX is not installed).  Best times of half a second; only ratios of one run mean anything.
"""
import os
import sys
import time

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
if THREADS == 1:
    os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1'

import torch

T, B, D = 256, 8, 128


def timed(name, form, f, seconds=3.0):
    times, began = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    print(name, '%.2f' % (1e3 * min(times[1:])), form, flush=True)


def steps(sigmoid, tanh, softplus, maximum, exp):
    """The three bodies, (weights, i, state) -> (y, state), of either library's functions."""
    def rnn(w, i, s):
        h = tanh(i + s[0] @ w)
        return h, (h,)

    def gru(w, i, s):
        h, p = s[0], s[0] @ w
        r, z = sigmoid(i[:, :D] + p[:, :D]), sigmoid(i[:, D:2 * D] + p[:, D:2 * D])
        n = tanh(i[:, 2 * D:] + r * p[:, 2 * D:])
        h = n + z * (h - n)
        return h, (h,)

    def slstm(w, i, s):
        h, c, n, m = s
        a = i + h @ w
        write, keep = a[:, :D], m - softplus(-a[:, D:2 * D])
        top = maximum(keep, write)
        old, new = exp(keep - top), exp(write - top)
        c, n = old * c + new * tanh(a[:, 2 * D:3 * D]), old * n + new
        h = sigmoid(a[:, 3 * D:]) * (c / n)
        return h, (h, c, n, top)

    return {'rnn': (rnn, 1, 1), 'gru': (gru, 3, 1), 'slstm': (slstm, 4, 4)}


def by_torch():
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    for name, (step, gates, states) in steps(torch.sigmoid, torch.tanh, torch.nn.functional.softplus, torch.maximum, torch.exp).items():
        x = torch.randn(T, B, gates * D, requires_grad=True)
        w = (torch.randn(D, gates * D) * D ** -0.5).requires_grad_()

        def run():
            state, rows = tuple(torch.zeros(B, D) for _ in range(states)), []
            for t in range(T):
                y, state = step(w, x[t], state)
                rows.append(y)
            torch.autograd.grad(torch.stack(rows).square().sum(), [x, w])

        timed(name + 'torch', 'loop', run)


def by_jax():
    import jax
    import jax.numpy as jnp
    for name, (step, gates, states) in steps(jax.nn.sigmoid, jnp.tanh, jax.nn.softplus, jnp.maximum, jnp.exp).items():
        x = jax.random.normal(jax.random.PRNGKey(0), (T, B, gates * D))
        w = jax.random.normal(jax.random.PRNGKey(1), (D, gates * D)) * D ** -0.5

        def loss(x, w):
            def body(state, i):
                y, state = step(w, i, state)
                return state, y
            _, y = jax.lax.scan(body, tuple(jnp.zeros((B, D)) for _ in range(states)), x)
            return (y * y).sum()

        grad = jax.jit(jax.grad(loss, argnums=(0, 1)))
        jax.block_until_ready(grad(x, w))
        timed(name + 'jax', 'scan', lambda: jax.block_until_ready(grad(x, w)))


if __name__ == '__main__':
    by_torch()
    try:
        by_jax()
    except ImportError:
        pass
