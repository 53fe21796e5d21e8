#!/usr/bin/env python3
"""bench_images.py -- the torsos for pictures as a PyTorch user would run them, timed.

    python tests/reference/bench_images.py [THREADS=1]        one line a case: NAME MILLISECONDS FORM

Acting is a forward pass of 8 pictures without gradients; training is forward and backward of a batch.  Pictures are bytes
[N,Y,X,C]; both of torch's layouts are tried.  `mneme bench torsos torch=PYTHON` compares with the better one.
"""
import sys
import time

import torch

from images import conv_torso, impala_torso

BATCH = {'conv': 2048, 'impala': 256}


def timed(name, form, f, most, seconds=4.0):
    """Least of up to `most` runs, or of what fits into `seconds` (at least one after the first)."""
    times, began = [], time.perf_counter()
    while len(times) < 2 or (len(times) < most + 1 and time.perf_counter() - began < seconds):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    print(name, '%.3f' % (1e3 * min(times[1:])), form, flush=True)


def main(words):
    torch.set_num_threads(int(words[0]) if words else 1)
    for name, make in (('conv', conv_torso), ('impala', impala_torso)):
        for side in (64, 84):
            for form, layout in (('planes', torch.contiguous_format), ('pixels', torch.channels_last)):
                net = make(side, side, 3).to(memory_format=layout)

                def forward(x):
                    return net((x.permute(0, 3, 1, 2).float() / 255).contiguous(memory_format=layout))

                def learn(x):
                    y = forward(x)
                    torch.autograd.grad(y.mean(), list(net.parameters()))

                few, many = (torch.randint(0, 256, (n, side, side, 3), dtype=torch.uint8) for n in (8, BATCH[name]))
                with torch.no_grad():
                    timed('%s%dact' % (name, side), form, lambda: forward(few), 300, 2.0)
                timed('%s%dtrain' % (name, side), form, lambda: learn(many), 3)


if __name__ == '__main__':
    main(sys.argv[1:])
