#!/usr/bin/env python3
"""adamw.py -- what torch.optim.AdamW makes of three tensors in four steps, in float64.

    python tests/reference/adamw.py [FOLDER=tests/fixtures]

Gradients are scaled to max_norm where their global norm reaches it, as learn.adam has it; the rest is PyTorch's.
"""
import json
import os
import sys

import torch

from make_fixtures import save, worst

CONFIG = dict(lr=0.02, beta1=0.9, beta2=0.99, eps=1e-8, max_norm=2.0, weight_decay=0.3, steps=4)
SHAPES = {'a': (3, 5), 'b': (7,), 'c': (2, 2, 2)}


def run(dtype):
    torch.manual_seed(11)
    c, given, got, norms = CONFIG, {}, {}, []
    p = {n: torch.randn(s).to(dtype) for n, s in SHAPES.items()}
    given.update({'param.' + n: t.clone() for n, t in p.items()})
    adam = torch.optim.AdamW(p.values(), c['lr'], (c['beta1'], c['beta2']), c['eps'], c['weight_decay'])
    for step in range(1, c['steps'] + 1):
        for n, t in p.items():
            t.grad = (torch.randn(t.shape) * (0.2 * step)).to(dtype)
            given['input.grad%d.%s' % (step, n)] = t.grad.clone()
        norm = torch.sqrt(sum((t.grad ** 2).sum() for t in p.values()))
        norms.append(norm)
        if norm >= c['max_norm']:
            for t in p.values():
                t.grad *= c['max_norm'] / norm
        adam.step()
        got.update({'output.step%d.%s' % (step, n): t.clone() for n, t in p.items()})
    for n, t in p.items():
        got['final.m.' + n], got['final.v.' + n] = adam.state[t]['exp_avg'], adam.state[t]['exp_avg_sq']
    got['output.norm'] = torch.stack(norms)
    return given, got


def main(words):
    folder = words[0] if words else os.path.join(os.path.dirname(__file__), '..', 'fixtures')
    given, got = run(torch.float64)
    meta = {'format': 'mneme-fixture-1', 'core': 'learn.adamw', 'config': json.dumps(CONFIG), 'source': 'torch-float64',
            'tolerance': '2e-05', 'float32_error': '%.1e' % worst(run(torch.float32)[1], got)}
    save(os.path.join(folder, 'own_adamw.safetensors'), meta, {**given, **got})
    print(meta['float32_error'], [round(n.item(), 2) for n in got['output.norm']])


if __name__ == '__main__':
    main(sys.argv[1:])
