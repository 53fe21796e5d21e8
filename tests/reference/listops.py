"""The table of tests/envs/test_sequence_tasks.lua: ListOps as the Long Range Arena draws it, written once more, with Python's
recursion and numpy's median.  Prints how often each label comes, the mean and median length, and trees per one kept.

    python3 tests/reference/listops.py [kept] [seed]"""
import random
import sys

import numpy as np


def tree(depth, max_depth=10, max_args=10, leaf=0.25):
    """(value, tokens) of a random tree whose root is at `depth`, from 1."""
    if depth == max_depth or random.random() > leaf:
        return random.randint(0, 9), 1
    below = [tree(depth + 1) for _ in range(random.randint(2, max_args))]
    values = [value for value, _ in below]
    operator = random.choice([min, max, lambda v: int(np.median(v)), lambda v: sum(v) % 10])
    return operator(values), 2 + sum(length for _, length in below)


def main(wanted=20000, seed=1):
    random.seed(seed)
    kept, drawn = [], 0
    while len(kept) < wanted:
        value, length = tree(1)
        drawn += 1
        if 500 < length < 2000:
            kept.append((value, length))
    labels, lengths = np.array(kept).T
    print("labels", np.bincount(labels, minlength=10) / wanted)
    print("length: mean %.1f, median %.0f, deviation %.1f" % (lengths.mean(), np.median(lengths), lengths.std()))
    print("trees drawn for one kept: %.2f" % (drawn / wanted))


main(*map(int, sys.argv[1:]))
