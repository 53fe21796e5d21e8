#!/usr/bin/env python3
"""bench_gpu.py -- one layer of attention or recurrence, forward and backward, on an NVIDIA GPU: PyTorch's own kernels and those of
flash-linear-attention (Yang and Zhang 2024), which compute the same kind of memory.

    python tests/reference/bench_gpu.py STEPS ENVIRONMENTS [FORM ...]       one line a form: NAME MILLISECONDS FORM

H=4 heads of 64, names as in `mneme bench kernels device=cuda torch=PYTHON`.  Every form is launched as a CUDA graph, so no time of
Python's counts; forms end in fp32 or bf16, the type of their inputs.  Means of 20 launches, the fastest of 5 rounds.  Triton tunes each
kernel at first, for minutes, and keeps what it found: a form that is not ready within LIMIT seconds (60) is left out.  CONFIGS=N lets
it try the first N of each kernel's configurations alone: a form may then be slower than it can be.
"""
import os
import signal
import sys

import torch
import torch.nn.functional as F

T, B = int(sys.argv[1]), int(sys.argv[2])
ONLY, LIMIT = sys.argv[3:], int(os.environ.get('LIMIT', 60))
H, V = 4, 64


def too_long(*_):
    raise TimeoutError('more than %d s' % LIMIT)


signal.signal(signal.SIGALRM, too_long)

if 'CONFIGS' in os.environ:
    from triton.runtime.autotuner import Autotuner
    set_up = Autotuner.__init__

    def few(self, fn, names, configs, *more, **named):
        set_up(self, fn, names, configs[:int(os.environ['CONFIGS'])], *more, **named)
    Autotuner.__init__ = few


def leaf(*shape, dtype, gate=False):
    x = torch.rand(*shape, device='cuda') if gate else torch.randn(*shape, device='cuda')
    return x.to(dtype).requires_grad_()


def timed(name, form, f, inputs):
    """Print the time of forward and backward of f as one graph; a form that fails says so, and the others go on."""
    if ONLY and '%s.%s' % (name, form) not in ONLY:
        return
    signal.alarm(LIMIT)
    try:
        def both():
            y = f()
            return torch.autograd.grad(y, inputs, torch.ones_like(y))
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                both()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            both()
        graph.replay()
        torch.cuda.synchronize()
        best, start, end = 1e9, torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(5):
            start.record()
            for _ in range(20):
                graph.replay()
            end.record()
            torch.cuda.synchronize()
            best = min(best, start.elapsed_time(end) / 20)
        print(name, '%.4f' % best, form, flush=True)
    except Exception as error:                       # one form less
        print('%s %s failed: %s' % (name, form, str(error).split('\n')[0][:200]), file=sys.stderr, flush=True)
        torch.cuda.synchronize()
    finally:
        signal.alarm(0)


def torch_forms(dtype, mark):
    q, k, v = (leaf(B, H, T, V, dtype=dtype) for _ in range(3))
    timed('softmax', 'sdpa' + mark, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), [q, k, v])
    for name, module, d in (('gru', torch.nn.GRU, 680), ('lstm', torch.nn.LSTM, 600)):
        net, x = module(16, d).to('cuda', dtype), leaf(T, B, 16, dtype=dtype)
        timed(name, 'cudnn' + mark, lambda net=net, x=x: net(x)[0], [x, *net.parameters()])


def fla_forms(dtype, mark):
    from fla.ops.delta_rule import chunk_delta_rule
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    from fla.ops.gla import chunk_gla
    from fla.ops.linear_attn import chunk_linear_attn
    from fla.ops.rwkv6 import chunk_rwkv6
    from fla.ops.rwkv7 import chunk_rwkv7
    from fla.ops.simple_gla import chunk_simple_gla
    q, k, v = (leaf(B, T, H, V, dtype=dtype) for _ in range(3))
    kn = F.normalize(torch.randn(B, T, H, V, device='cuda'), dim=-1).to(dtype).requires_grad_()
    b, g1 = leaf(B, T, H, dtype=dtype, gate=True), F.logsigmoid(torch.randn(B, T, H, device='cuda')).to(dtype).requires_grad_()
    g = F.logsigmoid(torch.randn(B, T, H, V, device='cuda')).to(dtype).requires_grad_()
    u = leaf(H, V, dtype=dtype)
    timed('ungated', 'fla' + mark, lambda: chunk_linear_attn(q, k, v, normalize=True)[0], [q, k, v])
    timed('scalar', 'fla' + mark, lambda: chunk_simple_gla(q, k, v, g=g1)[0], [q, k, v, g1])
    timed('delta', 'fla' + mark, lambda: chunk_gated_delta_rule(q, kn, v, g=g1, beta=b)[0], [q, kn, v, g1, b])
    timed('delta', 'ungatedfla' + mark, lambda: chunk_delta_rule(q, kn, v, b)[0], [q, kn, v, b])
    timed('wkv6', 'fla' + mark, lambda: chunk_rwkv6(q, k, v, g, u)[0], [q, k, v, g, u])
    timed('wkv7', 'fla' + mark, lambda: chunk_rwkv7(r=q, w=g, k=k, v=v, a=kn, b=kn)[0], [q, g, k, v, kn])
    # GaLiTe's keys have 256 channels and its values decay too; GLA decays keys alone
    q4, k4 = (leaf(B, T, H, 4 * V, dtype=dtype) for _ in range(2))
    g4 = F.logsigmoid(torch.randn(B, T, H, 4 * V, device='cuda')).to(dtype).requires_grad_()
    timed('gated', 'gla' + mark, lambda: chunk_gla(q4, k4, v, g4)[0], [q4, k4, v, g4])


if __name__ == '__main__':
    torch.manual_seed(1)
    for kind, ending in ((torch.float32, 'fp32'), (torch.bfloat16, 'bf16')):
        torch_forms(kind, ending)
        try:
            fla_forms(kind, ending)
        except ImportError as missing:
            print('flash-linear-attention: %s' % missing, file=sys.stderr)
