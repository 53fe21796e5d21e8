"""search.py -- writes tests/fixtures/search.json: Sobol's points by scipy, a Gaussian process by scikit-learn, and rank tests of numbers
whose ties rounding hides, for tests/study/test_search.lua and tests/study/test_stats.lua.

    python3 -m venv ~/search && ~/search/bin/pip install scipy scikit-learn
    ~/search/bin/python tests/reference/search.py
"""
import json
import os

import numpy as np
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

rng = np.random.default_rng(5)
out = {}

sobol = stats.qmc.Sobol(24, scramble=False, bits=30)
out["sobol"] = sobol.random_base2(5).tolist()

out["process"] = []
for n, lengths, variance in [(1, [0.3], 1.0), (6, [0.2, 1.5], 2.5), (25, [0.7, 0.1, 3.0], 0.4)]:
    d = len(lengths)
    x, at = rng.random((n, d)), rng.random((7, d))
    y, noise = rng.normal(size=n), rng.random(n) * 0.3 + 0.01
    kernel = ConstantKernel(variance, "fixed") * Matern(lengths, "fixed", nu=2.5)
    gp = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(x, y)
    mean, sd = gp.predict(at, return_std=True)
    out["process"].append(dict(x=x.tolist(), y=y.tolist(), noise=noise.tolist(), lengths=lengths, variance=variance, at=at.tolist(), mean=mean.tolist(),
                               sd=sd.tolist(), log_likelihood=float(gp.log_marginal_likelihood_value_)))

# Scores k/100, as those of 100 episodes are: differences are rounded here, as scipy has the same fault with ties.
out["ties"] = []
for n, low, high in [(7, 0, 12), (10, 30, 60), (12, 0, 5), (9, 90, 101)]:
    while True:
        x, y = rng.integers(low, high, n) / 100, rng.integers(low, high, n) / 100
        d = np.round(x - y, 12)
        raw = np.abs(x - y)
        if len(np.unique(raw)) > len(np.unique(np.abs(d))) and np.any(d):
            break
    d = d[d != 0]
    ranks = stats.rankdata(np.abs(d))
    sums = np.zeros(1)
    for r in ranks:                         # the sum of ranks under every choice of signs
        sums = np.concatenate([sums, sums + r])
    seen = ranks[d > 0].sum()
    p = min(1, 2 * min((sums <= seen + 1e-9).mean(), (sums >= seen - 1e-9).mean()))
    asymptotic = stats.wilcoxon(d, zero_method="wilcox", correction=False, method="asymptotic").statistic
    assert min(seen, ranks.sum() - seen) == asymptotic
    out["ties"].append(dict(x=x.tolist(), y=y.tolist(), p=float(p), sum=float(seen)))

# Sums whose parts come in another order, against each other.
parts = rng.integers(0, 20, (16, 3)) / 10
a, b = parts.sum(1)[:8], parts[8:, ::-1].sum(1)
u = stats.mannwhitneyu(np.round(a, 12), np.round(b, 12), method="asymptotic").statistic
out["rank_sum"] = dict(x=[float(p[0] + p[1] + p[2]) for p in parts[:8]], y=[float(p[2] + (p[1] + p[0])) for p in parts[8:]], u=float(u))

path = os.path.join(os.path.dirname(__file__), "..", "fixtures", "search.json")
with open(path, "w") as f:
    json.dump(out, f)
