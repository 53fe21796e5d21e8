"""search.py -- writes tests/fixtures/search.json: Sobol's points by scipy and a Gaussian process by scikit-learn, for
tests/study/test_search.lua.

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

path = os.path.join(os.path.dirname(__file__), "..", "fixtures", "search.json")
with open(path, "w") as f:
    json.dump(out, f)
