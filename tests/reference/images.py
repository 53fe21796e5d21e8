#!/usr/bin/env python3
"""images.py -- what PyTorch computes in float64 for convolutions, pooling and the two torsos for pictures.

    python tests/reference/images.py [FOLDER=tests/fixtures/images]

ops.safetensors holds small calls whole: inputs, outputs, gradients of sum(y * cotangent); its metadata lists them with
their options.  torsos.safetensors holds outputs and every 29th number of each gradient: the parameters and the pictures
follow from a formula, which the test knows too, so that files stay small.  Pictures are [T,B,Y,X,C].
"""
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from make_fixtures import exact, generator, save

EVERY = 29

# T, B, Y, X, C, O, kernel, options: sizes that divide nothing, strides larger than the kernel, padding larger than it, the
# whole image under one kernel, widths beside those of the vectors.
CONVOLUTIONS = [
    (2, 3, 7, 5, 3, 4, (3, 2), dict(stride=2, padding=1)),
    (1, 2, 4, 3, 5, 19, (1, 1), dict()),
    (2, 1, 6, 5, 2, 3, (6, 5), dict(act='relu')),
    (1, 2, 8, 7, 4, 16, (2, 2), dict(stride=3, bias=False)),
    (2, 2, 11, 9, 7, 33, (5, 4), dict(stride=2, padding=2, act='relu')),
    (2, 2, 12, 9, 3, 32, (8, 5), dict(stride=4, act='relu', image=True)),
    (1, 1, 5, 6, 3, 2, (1, 2), dict(stride=3, padding=2)),
    (3, 1, 1, 1, 6, 5, (3, 3), dict(padding=1)),
    (1, 2, 9, 10, 1, 64, (4, 4), dict(stride=2, image=True, divide=16)),
]
# T, B, Y, X, C, options
POOLS = [
    (2, 2, 6, 7, 3, dict(kernel=2)),
    (1, 2, 7, 8, 17, dict(kernel=3, stride=2, padding=1)),
    (2, 1, 8, 5, 2, dict(kernel=3, stride=2, ceil=1)),
    (1, 1, 9, 9, 4, dict(kernel=2, stride=3)),
    (1, 2, 5, 5, 3, dict(kernel=4, stride=1, padding=2)),
    (1, 1, 6, 6, 1, dict(kernel=3, stride=3, padding=1, ceil=1)),
]


def planes(x):
    """[T,B,Y,X,C] as torch wants it."""
    return x.flatten(0, 1).permute(0, 3, 1, 2)


def pixels(y, T, B):
    return y.permute(0, 2, 3, 1).unflatten(0, (T, B))


def outcome(tensors, name, rng, y, inputs):
    """Adds y, its cotangent and the gradients of the inputs."""
    cotangent = exact(rng.standard_normal(y.shape))
    grads = torch.autograd.grad((y * cotangent.double()).sum(), list(inputs.values()))
    tensors.update({name + '.y': y, name + '.cotangent': cotangent})
    tensors.update({name + '.grad.' + n: g for n, g in zip(inputs, grads)})


def convolution(tensors, name, T, B, Y, X, C, O, kernel, o):
    rng = generator(name)
    inputs = {'w': exact(rng.standard_normal((O, C, *kernel)) / np.sqrt(C * kernel[0] * kernel[1]))}
    if o.get('bias', True):
        inputs['b'] = exact(rng.standard_normal(O))
    if o.get('image'):
        x = exact(rng.integers(0, 256, (T, B, Y, X, C)))
    else:
        x = inputs['x'] = exact(rng.standard_normal((T, B, Y, X, C)))
    tensors.update({name + '.' + n: t for n, t in {'x': x, **inputs}.items()})
    inputs = {n: t.double().requires_grad_() for n, t in inputs.items()}
    x = inputs.get('x', x.double() / o.get('divide', 255))
    y = F.conv2d(planes(x), inputs['w'], inputs.get('b'), o.get('stride', 1), o.get('padding', 0))
    outcome(tensors, name, rng, pixels(torch.relu(y) if 'act' in o else y, T, B), inputs)


def pool(tensors, name, T, B, Y, X, C, o):
    """Whole numbers, so that many a window has several that are largest."""
    rng = generator(name)
    tensors[name + '.x'] = exact(rng.integers(-3, 4, (T, B, Y, X, C)))
    x = tensors[name + '.x'].double().requires_grad_()
    y = F.max_pool2d(planes(x), o['kernel'], o.get('stride'), o.get('padding', 0), ceil_mode=bool(o.get('ceil')))
    outcome(tensors, name, rng, pixels(y, T, B), {'x': x})


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.conv0, self.conv1 = nn.Conv2d(d, d, 3, padding=1), nn.Conv2d(d, d, 3, padding=1)

    def forward(self, x):
        return x + self.conv1(torch.relu(self.conv0(torch.relu(x))))


class Stage(nn.Module):
    def __init__(self, d_in, d):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(d_in, d, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1)
        self.res_block0, self.res_block1 = Residual(d), Residual(d)

    def forward(self, x):
        return self.res_block1(self.res_block0(self.pool(self.conv(x))))


def after(size, *layers):
    """What is left of a side after layers of (kernel, stride, padding)."""
    for kernel, stride, padding in layers:
        size = (size + 2 * padding - kernel) // stride + 1
    return size


def conv_torso(Y, X, C, hidden=512):
    """Mnih et al. 2015, as in CleanRL's ppo_atari."""
    layers = [(8, 4, 0), (4, 2, 0), (3, 1, 0)]
    return nn.Sequential(nn.Conv2d(C, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(64 * after(Y, *layers) * after(X, *layers), hidden), nn.ReLU())


def impala_torso(Y, X, C, hidden=256):
    """Espeholt et al. 2018, as in CleanRL's ppo_procgen."""
    layers = [(3, 2, 1)] * 3
    return nn.Sequential(Stage(C, 16), Stage(16, 32), Stage(32, 32), nn.Flatten(), nn.ReLU(),
                         nn.Linear(32 * after(Y, *layers) * after(X, *layers), hidden), nn.ReLU())


TORSOS = {'conv': (conv_torso, (44, 36, 3)), 'impala': (impala_torso, (11, 9, 3))}


def formula(shape, number, scale):
    """Parameter `number` of a torso: numbers from -scale to scale."""
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return exact((((i * 7919 + number * 104729 + 13) % 2003 - 1001) / 1001 * scale).reshape(shape))


def torso(tensors, about, name, T=2, B=2, hidden=16):
    make, space = TORSOS[name]
    net, scales = make(*space, hidden).double(), {}
    for number, (n, p) in enumerate(net.named_parameters()):
        scales[n] = [number, 0.1 if p.ndim == 1 else float(2 / np.sqrt(p[0].numel()))]
        p.data = formula(p.shape, *scales[n]).double()
    x = torch.arange(T * B * int(np.prod(space))).mul(7919).add(13).remainder(251).reshape(T, B, *space).double()
    y = net(planes(x / 255))
    cotangent = ((torch.arange(y.numel()) * 37 + 11) % 19 - 9).double() / 9
    grads = torch.autograd.grad((y.flatten() * cotangent).sum(), list(net.parameters()))
    tensors[name + '.y'] = y.unflatten(0, (T, B))
    tensors.update({'%s.grad.%s' % (name, n): g.flatten()[::EVERY] for n, g in zip(scales, grads)})
    about[name] = dict(space=space, hidden=hidden, parameters=scales, every=EVERY)


def main(words):
    torch.set_num_threads(1)
    folder = words[0] if words else os.path.join(os.path.dirname(__file__), '..', 'fixtures', 'images')
    os.makedirs(folder, exist_ok=True)
    tensors, about = {}, {}
    for kind, cases, run in (('conv2d', CONVOLUTIONS, convolution), ('max_pool2d', POOLS, pool)):
        for i, case in enumerate(cases):
            name = '%s.%d' % (kind, i)
            about[name] = case[-1]
            run(tensors, name, *case)
    print(save(os.path.join(folder, 'ops.safetensors'), {'cases': json.dumps(about)}, tensors), 'bytes')
    tensors, about = {}, {}
    for name in TORSOS:
        torso(tensors, about, name)
    print(save(os.path.join(folder, 'torsos.safetensors'), {'torsos': json.dumps(about)}, tensors), 'bytes')


if __name__ == '__main__':
    main(sys.argv[1:])
