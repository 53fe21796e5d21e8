#!/usr/bin/env python3
"""make_fixtures.py -- fixtures of our own, for corners of the cores' configurations.

    python tests/reference/make_fixtures.py [FOLDER=tests/fixtures] [NAME ...]

Each is computed in float64 by equations.py: outputs, final states and all gradients of sum(y * cotangent).  The
numbers that are given (parameters, inputs, states) are exact in float32.  The same script gives the same bytes.
"""
import json
import os
import struct
import sys
import zlib

import numpy as np
import torch

import attention
import equations
import gated_deltanet                      # adds itself to equations.CORES
import rmt                                 # so does this
import rwkv7                               # so does this, with rwkv6
import scans                               # so does this: lru, mingru, mlstm

LINEAR = dict(d_in=3, d_model=6, n_layers=1, n_heads=2, d_head=4, d_ffn=5, eta=2, nu=1, m=6, nn_act='relu',
              feature='outer_relu', gate='outer', query='single', decay='separable', update='sum', normalise=True,
              approximation='full', form='code', r=2, eps=0.1, den_clamp=0.0, norm_eps=0.1, feature_eps=1e-3,
              flow='gtrxl', embed_act='relu', ln_eps=1e-6, reset=True)
SOFTMAX = dict(d_in=3, d_model=6, n_layers=1, n_heads=2, d_head=4, d_ffn=5, memory=4, flow='gtrxl', embed_act='relu',
               ln_eps=1e-6, reset=True)
RECURRENT = dict(d_in=3, d_model=5, n_layers=2, reset=True)
DEFAULTS = {'galite': LINEAR, 'agalite': dict(LINEAR, approximation='cos'), 'gru': RECURRENT, 'lstm': RECURRENT,
            'transformer': SOFTMAX, 'gtrxl': SOFTMAX, 'rmt': dict(SOFTMAX, mem_slots=2, segment=4, flow='postnorm'),
            'gated_deltanet': dict(d_in=3, d_model=6, n_layers=1, n_heads=2, d_head=4, expand_v=1, d_ffn=5, conv_size=4, norm_eps=0.1,
                                   rms_eps=1e-2, flow='residual', embed_act='none', ln_eps=1e-6, reset=True),
            'rwkv4': dict(d_in=3, d_model=6, n_layers=1, d_ffn=9, embed_act='none', ln_eps=1e-5, reset=True),
            'rwkv6': dict(d_in=3, d_model=6, n_layers=1, n_heads=2, d_head=3, d_ffn=9, mix_rank=2, decay_rank=3, embed_act='none',
                          ln_eps=1e-5, gn_eps=1e-2, reset=True),
            'rwkv7': dict(d_in=3, d_model=6, n_layers=2, n_heads=2, d_head=3, d_ffn=9, decay_rank=2, rate_rank=3, value_rank=2,
                          gate_rank=4, embed_act='none', ln_eps=1e-5, gn_eps=1e-2, reset=True),
            'lru': dict(d_in=3, d_model=6, n_layers=1, d_state=5, embed_act='none', ln_eps=1e-6, reset=True),
            'mingru': dict(RECURRENT, n_layers=1, space='real'),
            'mlstm': dict(d_in=3, d_model=6, n_layers=1, n_heads=2, expand=2, conv_size=4, qkv_block=3, gate_scale=1.0, den_clamp=1e-6, gn_eps=1e-2,
                          embed_act='none', ln_eps=1e-5, reset=True)}

# name: core, T, B, steps of `done` by copy, configuration; chosen for what other fixtures leave out
# (sequences longer than a chunk of 16, sizes that divide nothing, resets on the first step, unusual pairs of axes).  Of mlstm the
# numbers, which follow the name, are such that no n.q is almost 0: there PyTorch in float32 differs from itself in float64 by 1e-4.
CORES = {
    'own_galite_long': ('galite', 37, 2, [[0, 17, 18], []], dict(d_head=5, eta=3)),
    'own_galite_scalar_favor': ('galite', 9, 2, [[4], [0, 8]], dict(gate='scalar', feature='favor_softmax', m=7, flow='residual')),
    'own_galite_delta_elu1': ('galite', 19, 2, [[7], []], dict(update='delta', feature='elu1', nu=2, flow='postnorm')),
    'own_galite_fastweight_outer': ('galite', 18, 1, [[2, 16]], dict(update='fastweight', feature='outer_elu1', flow='residual')),
    'own_galite_mega_nn': ('galite', 7, 2, [[], [3]], dict(gate='mega', feature='nn', nn_act='exp', query='double', normalise=False)),
    'own_galite_joint_long': ('galite', 21, 2, [[16], [5]], dict(decay='joint', d_head=3, eta=3, flow='residual', embed_act='none')),
    'own_galite_no_reset': ('galite', 8, 2, [[1, 4], [0]], dict(gate='elementwise', feature='rfa', m=3, den_clamp=0.5, reset=False)),
    'own_galite_identity': ('galite', 18, 2, [[3], [0, 16]], dict(feature='identity', gate='elementwise', den_clamp=0.5, flow='residual')),
    'own_galite_rotary': ('galite', 19, 2, [[5], [0, 17]], dict(rotary=True, gate='elementwise', feature='dpfp', decay='joint')),
    'own_galite_rotary_relu': ('galite', 5, 2, [[2], []], dict(rotary=True, gate='scalar', feature='relu', nu=3, d_head=2, query='double')),
    'own_agalite_rotary': ('agalite', 7, 2, [[4], [0]], dict(rotary=True, feature='outer_elu1', form='cossin', r=3, normalise=False)),
    'own_agalite_cossin_long': ('agalite', 35, 2, [[16], [0, 20]], dict(form='cossin', r=3, gate='elementwise', feature='elu1', nu=2, d_head=3)),
    'own_agalite_dpfp_raw': ('agalite', 6, 1, [[]], dict(form='paper', r=4, gate='none', feature='dpfp', normalise=False, flow='postnorm')),
    'own_agalite_random_sign': ('agalite', 20, 2, [[4, 17], []], dict(approximation='random_sign', r=3, seed=5)),
    'own_galite_random_sign_raw': ('galite', 6, 1, [[2]], dict(approximation='random_sign', r=130, seed=2 ** 40, gate='none', feature='elu1',
                                                               n_heads=1, d_head=2, normalise=False, flow='residual')),
    'own_galite_svd': ('galite', 19, 2, [[0, 16], [5]], dict(approximation='svd', r=2)),
    'own_galite_svd_scalar': ('galite', 8, 2, [[], [3]], dict(approximation='svd', r=3, gate='scalar', feature='elu1', flow='postnorm')),
    'own_galite_svd_exact': ('galite', 18, 1, [[7]], dict(approximation='svd', r=4, gate='elementwise', flow='residual', normalise=False)),
    'own_gru_no_reset': ('gru', 20, 3, [[3], [], [0]], dict(reset=False)),
    'own_lstm_two_layers': ('lstm', 18, 2, [[0, 9, 17], []], dict()),
    'own_rwkv4_long': ('rwkv4', 35, 2, [[16, 17], []], dict()),
    'own_rwkv6_long': ('rwkv6', 37, 2, [[0, 17, 18], [5, 32]], dict(d_head=5)),
    'own_rwkv7': ('rwkv7', 9, 2, [[4], [0, 8]], dict()),
    'own_rwkv7_long': ('rwkv7', 37, 2, [[], [3, 16, 17]], dict(n_layers=1, n_heads=1, d_head=5, embed_act='relu')),
    'own_rwkv7_no_reset': ('rwkv7', 18, 1, [[3]], dict(n_layers=3, d_head=4, reset=False)),
    'own_gated_deltanet_long': ('gated_deltanet', 35, 2, [[0, 17, 18], [5]], dict(d_head=5, expand_v=2)),
    'own_gated_deltanet_gtrxl': ('gated_deltanet', 5, 2, [[], [2]], dict(conv_size=3, flow='gtrxl', embed_act='relu', n_layers=2)),
    'own_gated_deltanet_no_reset': ('gated_deltanet', 18, 1, [[3]], dict(flow='postnorm', reset=False, norm_eps=1e-6, rms_eps=1e-5)),
    'own_lru': ('lru', 37, 2, [[0, 17, 18], [5]], dict(n_layers=2)),
    'own_lru_no_reset': ('lru', 9, 2, [[3], []], dict(embed_act='relu', d_state=8, reset=False)),
    'own_mingru': ('mingru', 20, 2, [[0, 9, 19], []], dict(n_layers=2)),
    'own_mingru_log': ('mingru', 37, 2, [[17], [0, 5]], dict(space='log')),
    'own_mlstm_chunks': ('mlstm', 37, 2, [[0, 17, 18], [5]], dict(d_model=4, qkv_block=4)),
    'own_mlstm_two_layers': ('mlstm', 7, 2, [[4], []], dict(d_model=4, qkv_block=2, n_layers=2)),
    'own_mlstm_steep': ('mlstm', 21, 2, [[7], [0, 16]], dict(gate_scale=20.0, n_heads=1)),
    'own_mlstm_endless': ('mlstm', 18, 1, [[3]], dict(embed_act='relu', qkv_block=4, conv_size=2, reset=False)),
    'own_transformer_residual': ('transformer', 11, 2, [[6], []], dict(flow='residual', memory=3, n_layers=2)),
    'own_rmt_gtrxl': ('rmt', 14, 2, [[0, 9], [3, 4]], dict(segment=3, flow='gtrxl', n_layers=2)),
    'own_rmt_residual': ('rmt', 9, 3, [[], [8], [2]], dict(segment=4, flow='residual', d_head=3, mem_slots=1)),
    'own_rmt_single_tokens': ('rmt', 5, 1, [[2]], dict(segment=1, n_layers=2, reset=False)),
    'own_gtrxl_residual': ('gtrxl', 7, 2, [[], [0, 4]], dict(flow='residual', memory=5, d_head=3, n_layers=2)),
}
ATTENTION = {
    'own_longformer_wide': ('longformer', 11, dict(window=5, globals=3, dilation=2, causal=False)),
    'own_longformer_causal': ('longformer', 9, dict(window=3, globals=1, dilation=1, causal=True)),
    'own_bigbird_causal': ('bigbird', 12, dict(block=2, global_blocks=[0, 3], random=[[[], [], [], [0], [5], [2]], [[4], [], [], [1], [], []]], causal=True)),
    'own_nystromformer_global': ('nystromformer', 12, dict(landmarks=3, iterations=4, pinv_scale='global', conv_kernel=5)),
    'own_linformer_shared': ('linformer', 10, dict(k=3, share=True)),
}


def generator(name):
    return np.random.Generator(np.random.Philox(zlib.crc32(name.encode())))


def exact(array):
    return torch.tensor(array).to(torch.float32)


def core_case(core, T, B, resets, changes, name, dtype=torch.float64, like=None):
    """The case's tensors as a dictionary, and the net that holds its parameters."""
    cfg, rng = dict(DEFAULTS[core], **changes), generator(name)
    given = {'input.x': exact(rng.standard_normal((T, B, cfg['d_in']))), 'input.done': torch.zeros(T, B)}
    for b, steps in enumerate(resets):
        given['input.done'][steps, b] = 1
    d_out = cfg['d_model']
    given['cotangent.y'] = exact(rng.standard_normal((T, B, d_out)))
    net = equations.Net(rng, B, dtype, like)
    x = given['input.x'].to(dtype).requires_grad_()
    y = equations.CORES[core](net, cfg, x, given['input.done'])
    for n, t in net.params.items():
        given['param.' + n] = t
    for n, t in net.states.items():
        given['state.' + n] = t
    got = {'output.y': y, **{'final.' + n: t for n, t in net.final.items()}}
    wanted = {'input.x': x, **{n: t for n, t in given.items() if t.requires_grad}}
    gradients(y, given['cotangent.y'], wanted, got)
    return cfg, given, got, net


def gradients(y, cotangent, wanted, got):
    grads = torch.autograd.grad((y * cotangent.to(y.dtype)).sum(), list(wanted.values()), allow_unused=True)
    for (n, t), g in zip(wanted.items(), grads):
        got['grad.' + n] = torch.zeros_like(t) if g is None else g


def attention_case(kind, N, cfg, name, dtype=torch.float64, like=None):
    rng, B, H, dh = generator(name), 2, 2, 3
    net = equations.Net(rng, B, dtype, like)
    inputs = {n: exact(rng.standard_normal((B, H, N, dh))) for n in attention.inputs(kind)}
    given = {'input.' + n: t for n, t in inputs.items()}
    given['cotangent.y'] = exact(rng.standard_normal((B, H, N, dh)))
    leaves = {n: t.to(dtype).requires_grad_() for n, t in inputs.items()}
    y = attention.KINDS[kind](net, cfg, **leaves)
    given.update({'param.' + n: t for n, t in net.params.items()})
    got, wanted = {'output.y': y}, {'input.' + n: t for n, t in leaves.items()}
    wanted.update({n: t for n, t in given.items() if t.requires_grad})
    gradients(y, given['cotangent.y'], wanted, got)
    return cfg, given, got, net


def worst(got, want):
    """Error as `mneme check` measures it."""
    def top(t):
        t = t.abs()[t.abs() < 1e37]
        return t.max().item() if t.numel() else 0.0
    groups, error = {}, 0.0
    for n, t in want.items():
        groups[n.split('.')[0]] = max(groups.get(n.split('.')[0], 0.0), top(t))
    for n, t in want.items():
        floor = max(top(t), 1e-3 * groups[n.split('.')[0]], 1e-30)
        near = t.abs() < 1e37
        if near.any():
            error = max(error, ((got[n].double() - t.double())[near].abs().max() / floor).item())
    return error


def save(path, meta, tensors):
    head, parts, at = {'__metadata__': meta}, [], 0
    for name in sorted(tensors):
        data = tensors[name].detach().to(torch.float32).contiguous().numpy().tobytes()
        head[name] = {'dtype': 'F32', 'shape': list(tensors[name].shape), 'data_offsets': [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(head, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(parts))
    return 8 + len(text) + at


def make(folder, name, core, run):
    cfg, given, got, net = run(torch.float64, None)
    _, _, single, _ = run(torch.float32, net)
    meta = {'format': 'mneme-fixture-1', 'core': core, 'config': json.dumps(cfg), 'source': 'torch-float64', 'tolerance': '2e-5',
            'float32_error': '%.1e' % worst(single, got)}
    if net.fixed:
        meta['fixed'] = json.dumps(net.fixed)
    size = save(os.path.join(folder, name + '.safetensors'), meta, {**given, **got})
    print('%-32s %6d bytes, float32 error %s' % (name, size, meta['float32_error']))


def main(words):
    torch.set_num_threads(1)
    folder = words[0] if words else os.path.join(os.path.dirname(__file__), '..', 'fixtures')
    unknown = set(words[1:]) - set(CORES) - set(ATTENTION)
    if unknown:
        sys.exit('no such fixture: %s; known: %s' % (' '.join(sorted(unknown)), ' '.join([*CORES, *ATTENTION])))
    for name, case in CORES.items():
        if name in words[1:] or len(words) < 2:
            make(folder, name, case[0], lambda dtype, like: core_case(*case, name, dtype, like))
    for name, (kind, N, cfg) in ATTENTION.items():
        if name in words[1:] or len(words) < 2:
            make(folder, name, 'attention.' + kind, lambda dtype, like: attention_case(kind, N, cfg, name, dtype, like))


if __name__ == '__main__':
    main(sys.argv[1:])
