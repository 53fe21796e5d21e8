"""search.py -- writes tests/fixtures/search.json: Sobol's points by scipy, for tests/study/test_search.lua.

    python3 -m venv ~/search && ~/search/bin/pip install scipy
    ~/search/bin/python tests/reference/search.py
"""
import json
import os

from scipy import stats

out = {}

sobol = stats.qmc.Sobol(24, scramble=False, bits=30)
out["sobol"] = sobol.random_base2(5).tolist()

path = os.path.join(os.path.dirname(__file__), "..", "fixtures", "search.json")
with open(path, "w") as f:
    json.dump(out, f)
