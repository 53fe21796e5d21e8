#!/usr/bin/env python3
"""torch_values.py -- what torch makes of losses, distributions, layers and optimisers, in float64: writes tests/fixtures/torch_values.json.

    python tests/reference/torch_values.py [FILE=tests/fixtures/torch_values.json]

Inputs are sines of whole numbers, which a test can make itself: x[i] = sin(i + phase).
"""
import json
import sys

import torch
import torch.nn.functional as F
from torch import distributions as D

torch.set_default_dtype(torch.float64)


def wave(phase, *shape):
    n = 1
    for size in shape:
        n *= size
    return torch.sin(torch.arange(n, dtype=torch.float64) + phase).reshape(shape)


def leaf(phase, *shape):
    return wave(phase, *shape).requires_grad_()


def flat(t):
    return [round(v, 9) for v in t.detach().reshape(-1).tolist()]


def result(y, *leaves):
    """The values of y, and the gradients of the sum of y times a wave."""
    y.backward(wave(0.5, *y.shape))
    return dict(y=flat(y), grads=[flat(t.grad) for t in leaves])


def losses():
    out = {}
    for reduction in ('mean', 'sum', 'none'):
        r = dict(reduction=reduction)

        def add(name, f, *leaves):
            out[f'{name} {reduction}'] = result(f, *leaves)

        x, z = leaf(1, 4, 5), leaf(2, 4, 5)
        add('mse_loss', F.mse_loss(x, z, **r), x, z)
        x, z = leaf(1, 4, 5), leaf(2, 4, 5)
        add('l1_loss', F.l1_loss(x, z, **r), x, z)
        x, z = leaf(1, 4, 5), leaf(2, 4, 5)
        add('huber_loss', F.huber_loss(x, z, delta=0.4, **r), x, z)
        x, z = leaf(1, 4, 5), leaf(2, 4, 5)
        add('smooth_l1_loss', F.smooth_l1_loss(x, z, beta=0.6, **r), x, z)
        x, z = leaf(1, 4, 5), torch.sigmoid(wave(2, 4, 5))
        add('binary_cross_entropy_with_logits', F.binary_cross_entropy_with_logits(3 * x, z, **r), x)
        x = leaf(1, 4, 5)
        add('nll_loss', F.nll_loss(F.log_softmax(x, -1), torch.tensor([0, 4, 2, 2]), **r), x)
        x = leaf(1, 4, 5)
        add('cross_entropy', F.cross_entropy(x, torch.tensor([0, 4, 2, 2]), **r), x)
        x = leaf(1, 4, 5)
        add('cross_entropy probs', F.cross_entropy(x, torch.softmax(wave(3, 4, 5), -1), **r), x)
        x = leaf(1, 4, 5)
        add('kl_div', F.kl_div(F.log_softmax(x, -1), torch.softmax(wave(3, 4, 5), -1), **r), x)
    x = leaf(1, 4, 5)
    out['kl_div batchmean'] = result(F.kl_div(F.log_softmax(x, -1), torch.softmax(wave(3, 4, 5), -1), reduction='batchmean'), x)
    return out


def distributions():
    out = {}
    action = torch.tensor([0, 4, 2, 2])

    def add(name, make):
        x, z = leaf(1, 4, 5), leaf(2, 4, 5)
        out[name] = result(make(x, z), x, z) if make.__code__.co_argcount == 2 else result(make(x), x)

    add('categorical log_prob', lambda x: D.Categorical(logits=x).log_prob(action))
    add('categorical entropy', lambda x: D.Categorical(logits=x).entropy())
    add('categorical kl', lambda x, z: D.kl_divergence(D.Categorical(logits=x), D.Categorical(logits=z)))
    add('categorical probs', lambda x: D.Categorical(probs=torch.exp(x)).log_prob(action))
    bits = (wave(3, 4, 5) > 0).double()
    add('bernoulli log_prob', lambda x: D.Bernoulli(logits=x).log_prob(bits))
    add('bernoulli entropy', lambda x: D.Bernoulli(logits=x).entropy())
    add('bernoulli kl', lambda x, z: D.kl_divergence(D.Bernoulli(logits=x), D.Bernoulli(logits=z)))
    add('normal log_prob', lambda x, z: D.Normal(x, torch.exp(z)).log_prob(wave(3, 4, 5)))
    add('normal entropy', lambda x, z: D.Normal(x, torch.exp(z)).entropy() + 0 * x)
    add('normal kl', lambda x, z: D.kl_divergence(D.Normal(x, torch.exp(z)), D.Normal(wave(3, 4, 5), torch.exp(wave(4, 4, 5)))))
    return out


def layers():
    """Torch has channels first, Mneme last: [T,B,C] is [B,C,T], [T,B,Y,X,C] is [T*B,C,Y,X]."""
    out = {}
    for name, o in dict(plain={}, strided=dict(stride=2, padding=1), same=dict(padding=1), wide=dict(padding=2)).items():
        x, w, b = leaf(1, 7, 2, 3), leaf(2, 4, 3, 3), leaf(3, 4)
        y = F.conv1d(x.permute(1, 2, 0), w, b, **o).permute(2, 0, 1)
        out['conv1d ' + name] = result(y, x, w, b)
    x, w, b = leaf(1, 7, 2, 3), leaf(2, 4, 3, 3), leaf(3, 4)
    y = F.conv1d(F.pad(x.permute(1, 2, 0), (2, 0)), w, b).permute(2, 0, 1)
    out['conv1d causal'] = result(y, x, w, b)
    for groups in (1, 2, 6):
        x, w, b = leaf(1, 2, 2, 3, 2, 6), leaf(2, 6), leaf(3, 6)
        y = F.group_norm(x.reshape(4, 3, 2, 6).permute(0, 3, 1, 2), groups, w, b).permute(0, 2, 3, 1).reshape(2, 2, 3, 2, 6)
        out[f'group_norm {groups}'] = result(y, x, w, b)
    for name, o in dict(plain=dict(kernel_size=2), padded=dict(kernel_size=3, stride=2, padding=1)).items():
        x = leaf(1, 2, 2, 5, 6, 3)
        y = F.avg_pool2d(x.reshape(4, 5, 6, 3).permute(0, 3, 1, 2), **o).permute(0, 2, 3, 1)
        out['avg_pool2d ' + name] = result(y.reshape(2, 2, *y.shape[1:]), x)
    x = leaf(1, 7, 2, 3)
    out['avg_pool1d'] = result(F.avg_pool1d(x.permute(1, 2, 0), 3).permute(2, 0, 1), x)
    return out


OPTIMISERS = {
    'sgd': (torch.optim.SGD, dict(lr=0.1)),
    'sgd decay': (torch.optim.SGD, dict(lr=0.1, weight_decay=0.2)),
    'sgd momentum': (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3)),
    'sgd nesterov': (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    'rmsprop': (torch.optim.RMSprop, dict(lr=0.02)),
    'rmsprop momentum': (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, momentum=0.8, weight_decay=0.1)),
    'rmsprop centered': (torch.optim.RMSprop, dict(lr=0.02, alpha=0.95, eps=1e-5, centered=True, momentum=0.5)),
    'adam': (torch.optim.Adam, dict(lr=0.05)),
    'adamw': (torch.optim.AdamW, dict(lr=0.05, weight_decay=0.1)),
}


def optimisers():
    """Twenty steps on the mean of (w - target)^4 and of a second leaf's squares; the rate halves after ten."""
    out = {}
    for name, (kind, o) in OPTIMISERS.items():
        w, v = leaf(1, 3, 4), leaf(2, 5)
        opt, seen = kind([w, v], **o), []
        for step in range(20):
            if step == 10:
                opt.param_groups[0]['lr'] *= 0.5
            opt.zero_grad()
            loss = ((w - wave(4, 3, 4)) ** 4).mean() + (v ** 2).sum()
            loss.backward()
            opt.step()
            if step % 5 == 4:
                seen.append(flat(w) + flat(v))
        out[name] = dict(options={k: x for k, x in o.items() if k != 'nesterov' and k != 'centered'}, steps=seen,
                         flags=[k for k in ('nesterov', 'centered') if o.get(k)])
    return out


path = sys.argv[1] if len(sys.argv) > 1 else 'tests/fixtures/torch_values.json'
with open(path, 'w') as f:
    groups = dict(losses=losses(), distributions=distributions(), layers=layers(), optimisers=optimisers())
    f.write('{\n' + ',\n'.join(
        f'"{group}": {{\n' + ',\n'.join(f'  {json.dumps(k)}: {json.dumps(v)}' for k, v in values.items()) + '\n}'
        for group, values in groups.items()) + '\n}\n')
