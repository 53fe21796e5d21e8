"""stats.py -- writes tests/fixtures/stats.json: what scipy, statsmodels and rliable say of some numbers, for
tests/study/test_stats.lua.  The bootstrap of rliable is run many times, because only the distribution of its intervals can
be compared with that of ours.

    python3 -m venv ~/stats && ~/stats/bin/pip install scipy statsmodels rliable 'pandas<3'
    ~/stats/bin/python tests/reference/stats.py
"""
import json
import os

import numpy as np
from rliable import library, metrics
from scipy import special, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

REPS, REPEATS = 2000, 40
rng = np.random.default_rng(7)
out = {}


def numbers(a):
    return np.asarray(a, float).tolist()


# ---- functions ----

shares = [1e-12, 1e-4, 0.005, 0.025, 0.2, 0.5, 0.75, 0.95, 0.975, 0.9999, 1 - 1e-9]
degrees = [1, 1.5, 2, 3, 4.7, 9, 29, 100, 1234.5, 1e5, 1e7]
out["student_quantile"] = [[p, df, float(stats.t.ppf(p, df))] for p in shares for df in degrees]
out["student_cdf"] = [[t, df, float(stats.t.cdf(t, df))]
                      for t in [-40, -3.3, -1, -1e-3, 0, 0.4, 1.96, 6] for df in degrees]
out["normal_quantile"] = [[p, float(stats.norm.ppf(p))] for p in shares]
out["normal_cdf"] = [[z, float(stats.norm.cdf(z))] for z in [-9, -2.2, -0.1, 0, 0.6, 1.96, 5]]
out["wilson"] = []
for k, n, level in [(8, 10, 0.95), (0, 3, 0.95), (3, 3, 0.95), (1, 1, 0.9), (450, 1000, 0.99), (0, 2000, 0.95)]:
    ci = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    out["wilson"].append([k, n, level, k / n, ci.low, ci.high])

# ---- scores[task][seed] ----

centre = np.array([0.2, 0.55, 0.8, 1.1])[:, None]
x = np.round(centre + 0.15 * rng.standard_normal((4, 5)), 4)
y = np.round(centre - 0.05 + 0.2 * rng.standard_normal((4, 7)), 4)
z = np.round(x - 0.06 + 0.05 * rng.standard_normal((4, 5)), 4)     # the same seeds as x, another treatment
y[1, :3] = x[1, :3]                                                # ties
out["x"], out["y"], out["z"] = numbers(x), numbers(y), numbers(z)
AGGREGATES = {
    "mean": metrics.aggregate_mean, "iqm": metrics.aggregate_iqm, "median": np.median,
}
out["aggregates"] = {name: {"x": float(f(x.T)), "y": float(f(y.T))} for name, f in AGGREGATES.items()}
out["one_task"] = {"iqm": [float(stats.trim_mean(y[0, :n], 0.25)) for n in range(1, 8)],
                   "sd": float(np.std(y[0], ddof=1))}


def spread(data, f):
    """Mean and deviation of the ends of rliable's intervals, over many bootstraps."""
    ends = []
    for repeat in range(REPEATS):
        np.random.seed(repeat)
        point, ci = library.get_interval_estimates({"a": data}, lambda *a: np.atleast_1d(f(*a)), reps=REPS)
        ends.append(ci["a"])
    ends = np.array(ends)                                            # [repeat, end, 1 or thresholds]
    return {"value": numbers(point["a"]), "mean": numbers(ends.mean(0)), "sd": numbers(ends.std(0, ddof=1))}


out["reps"], out["repeats"] = REPS, REPEATS
out["intervals"] = {name: spread(x.T, f) for name, f in AGGREGATES.items()}
out["improvement"] = spread([x.T, y.T], metrics.probability_of_improvement)


def paired_spread(a, b, f):
    """The same for the difference of f where equal seeds are drawn together, which rliable does not do."""
    ends = []
    for repeat in range(REPEATS):
        rows = np.random.default_rng(repeat).integers(a.shape[1], size=(REPS, *a.shape))
        drawn = [f(np.take_along_axis(a, r, 1).T) - f(np.take_along_axis(b, r, 1).T) for r in rows]
        ends.append(np.percentile(drawn, [2.5, 97.5])[:, None])
    ends = np.array(ends)
    return {"value": [float(f(a.T) - f(b.T))], "mean": numbers(ends.mean(0)), "sd": numbers(ends.std(0, ddof=1))}


out["paired_difference"] = paired_spread(x, z, metrics.aggregate_iqm)

# ---- intervals of means ----

out["t"], out["welch"], out["paired_t"] = [], [], []
for level in [0.9, 0.95, 0.99]:
    for task in range(4):
        for name, r in [("t", stats.ttest_1samp(x[task], 0)), ("welch", stats.ttest_ind(x[task], y[task], equal_var=False)),
                        ("paired_t", stats.ttest_rel(x[task], z[task]))]:
            ci = r.confidence_interval(level)
            out[name].append([level, task + 1, float(ci.low), float(ci.high), float(r.pvalue)])

# The mean of numbers that lie in a range: Wilson's interval of as many trials as would have their spread, with the
# quantile of Student's t, which is told to statsmodels as the level at which the normal one is as large.
out["bounded"] = []
for level in [0.9, 0.95]:
    for a, low, high, mean in [([0.2, 0.9, 1.0], 0, 1, 0.5), ([1, 1, 1, 0.98], 0, 1, 0.9), ([0, 0, 0, 0, 1], 0, 1, 0.3), ([0.5, 0.51], 0, 1, 0.4),
                               ([-3, 2, 4.5, 4.9], -5, 5, 0), ([195, 200, 188, 150, 199], 0, 200, 180)]:
        a = (np.array(a, float) - low) / (high - low)
        m, t = a.mean(), stats.t(len(a) - 1)
        trials = m * (1 - m) / (a.var(ddof=1) / len(a))
        ci = proportion_confint(m * trials, trials, 2 * stats.norm.sf(t.ppf(0.5 + level / 2)), method="wilson")
        z = proportions_ztest(m * trials, trials, (mean - low) / (high - low), prop_var=(mean - low) / (high - low))[0]
        out["bounded"].append({"list": numbers(low + (high - low) * a), "range": [low, high], "level": level, "mean": mean,
                               "low": low + (high - low) * ci[0], "high": low + (high - low) * ci[1], "p": float(2 * t.sf(abs(z)))})

# ---- tests ----

rng.standard_normal(12 + 13 + 150 + 150)     # drawn for tests that are gone: what follows stays as it is
out["sign_test"] = [[a, b, float(stats.binomtest(a, a + b).pvalue)] for a, b in [(1, 5), (5, 0), (3, 3), (40, 22), (700, 801)]]
p = np.array([0.01, 0.04, 0.03, 0.005, 0.04, 0.9, 0.2])
out["holm"] = {"p": numbers(p), "adjusted": numbers(multipletests(p, method="holm")[1])}

# ---- curves ----

curves, grid = [], np.linspace(60, 900, 12)
for i in range(3):
    steps = np.cumsum(rng.integers(5, 60, 40)) + i * 7.0
    curves.append({"x": numbers(steps), "y": numbers(np.round(rng.standard_normal(40).cumsum(), 4))})
out["curves"] = {
    "curves": curves, "grid": numbers(grid),
    "linear": [numbers(np.interp(grid, c["x"], c["y"])) for c in curves],
    "last": [[c["y"][int(np.searchsorted(c["x"], g, "right")) - 1] for g in grid] for c in curves],
}

where = os.path.join(os.path.dirname(__file__), "..", "fixtures", "stats.json")
with open(where, "w", encoding="utf-8") as f:
    json.dump(out, f)
    f.write("\n")
