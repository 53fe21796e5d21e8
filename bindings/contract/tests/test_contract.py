"""The checker finds every planted fault, by its own property, and passes what is right.  NumPy alone."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from memory_contract import PROPERTIES, Memory, check, load                    # noqa: E402
from memory_contract.__main__ import main                                      # noqa: E402

D, N, O = 5, 6, 4                              # an input, a state, an output
NAMES = [p.__name__ for p in PROPERTIES]


class Traces:
    """h = a h + x B, where an episode begins h = x B;  y = tanh(h) C.  Its gradients backwards and forwards in time; a fault is planted by name."""

    memory, library, version, d_in = "traces", "numpy", np.__version__, D

    def __init__(self, dtype="float64", fault=None, ends=True):
        r = np.random.default_rng(3)
        self.dtype, self.fault, self.ends, self.calls = dtype, fault, ends, 0
        a, B, C = r.uniform(0.7, 0.95, N), r.standard_normal((D, N)) / 2, r.standard_normal((N, O))
        self.a, self.B, self.C = a.astype(dtype), B.astype(dtype), C.astype(dtype)

    def initial(self, batch):
        return np.zeros((batch, N), self.dtype)

    def step(self, x, h, done):
        x = x.astype(self.dtype)
        if self.fault == "mix":
            x = x + 0.01 * x.mean(0)
        if self.fault == "late reset":                          # cleared after the step that begins an episode
            before, h = h, self.a * h + x @ self.B
            y = np.tanh(h) @ self.C
            return y, np.where(done[:, None], h - self.a * before, h)
        if self.fault != "deaf":
            h = np.where(done[:, None], 0.01 * h if self.fault == "leak" else 0, h)
        h = self.a * h + x @ self.B
        if self.fault == "grows":
            with np.errstate(over="ignore", invalid="ignore"):
                h = np.where(np.abs(h) > 0, h * np.asarray(1.7, self.dtype), h)
        with np.errstate(over="ignore", invalid="ignore"):
            y = (h if self.fault == "grows" else np.tanh(h)) @ self.C
        if self.fault == "random":
            self.calls += 1
            y = y + 0.01 * np.sin(self.calls)
        return (y * 1.01 if self.fault == "step" else y), h

    def sequence(self, x, done, h):
        if self.fault == "chunk":
            h, start = h * 0, h
        rows = []
        for t in range(len(x)):
            y, h = self.step(x[t], h, done[t])
            rows.append(y / 1.01 if self.fault == "step" else y)
        return np.stack(rows), h

    def gradient(self, x, done, h, w):
        states, before, keep = [], [], []
        for t in range(len(x)):
            keep.append(np.where(done[t][:, None], 0, np.ones_like(h)))
            before.append(h)
            h = self.a * keep[t] * h + x[t] @ self.B
            states.append(h)
        g, gx, ga, gB = 0, np.zeros_like(x), 0, 0
        for t in reversed(range(len(x))):
            g = g + (w[t] @ self.C.T) * (1 - np.tanh(states[t]) ** 2)
            gx[t], gB = g @ self.B.T, gB + x[t].T @ g
            ga = ga + (g * keep[t] * before[t]).sum(0)
            crossing = 1 if self.fault == "gradient crosses" else keep[t]
            g = g * self.a * crossing
            if self.fault == "gradient cut" and t % 8 == 0:
                g = g * 0
        return {"x": gx, "a": ga, "B": gB}

    def online(self, x, done, h, w):
        Sa, SB, ga, gB = np.zeros_like(h), np.zeros((x.shape[1], D, N)), 0, 0
        for t in range(len(x)):
            keep = np.where(done[t][:, None], 0, np.ones_like(h))
            Sa = self.a * keep * Sa + keep * h
            SB = (self.a * keep)[:, None] * SB + x[t][:, :, None]
            h = self.a * keep * h + x[t] @ self.B
            g = (w[t] @ self.C.T) * (1 - np.tanh(h) ** 2)
            ga, gB = ga + (g * Sa).sum(0), gB + (g[:, None] * SB).sum(0)
        return {"a": ga * (0.9 if self.fault == "online" else 1), "B": gB}


def without(memory, *names):
    members = ("d_in", "initial", "step", "sequence", "gradient", "online", "dtype", "ends", "memory")
    return {name: getattr(memory, name) for name in members if name not in names}


def verdicts(report):
    return {row["property"]: row["verdict"] for row in report.rows}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("steps, streams, seed", [(24, 3, 0), (13, 2, 1), (12, 1, 2)])
def test_what_is_right_passes(dtype, steps, streams, seed):
    report = check(Traces(dtype), steps=steps, streams=streams, seed=seed, long=64)
    expected = dict.fromkeys(NAMES, "holds")
    if streams == 1:
        expected["batch"] = "not tried"
    assert verdicts(report) == expected, report.text()
    assert report.status == 0


# A fault, the properties that must fail, and those that must not.
FAULTS = {
    "step": ({"steps", "handover"}, {"chunks", "reset", "forwards", "batch", "endless"}),
    "leak": ({"reset", "forwards", "gradient"}, {"steps", "chunks", "batch"}),
    "late reset": ({"reset", "forwards"}, {"steps", "chunks", "batch"}),
    "deaf": ({"reset", "forwards", "gradient"}, {"steps", "chunks", "batch"}),
    "mix": ({"batch"}, {"steps", "chunks", "reset"}),
    "chunk": ({"chunks", "handover"}, {"steps", "batch"}),
    "grows": ({"endless"}, {"batch"}),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_its_property(fault, dtype):
    fails, holds = FAULTS[fault]
    report = check(without(Traces(dtype, fault), "gradient", "online"), steps=13, streams=2, long=2048 if fault == "grows" else 64)
    found = verdicts(report)
    assert {found[name] for name in fails} == {"fails"}, report.text()
    assert {found[name] for name in holds} == {"holds"}, report.text()
    assert report.status == 1


@pytest.mark.parametrize("fault, name", [
    ("gradient crosses", "gradient"), ("gradient crosses", "slope"), ("gradient cut", "slope"), ("online", "online")])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_wrong_gradient_is_found(fault, name, dtype):
    report = check(Traces(dtype, fault), steps=13, streams=2, long=64)
    assert report[name]["verdict"] == "fails", report.text()
    assert report["steps"]["verdict"] == report["forwards"]["verdict"] == "holds"


def test_the_error_is_the_fault_s_size():
    row = check(without(Traces(fault="step"), "gradient", "online"), long=64)["steps"]
    assert row["error"] == pytest.approx(0.01 * 1.01, rel=0.02) and row["tolerance"] == 1e-9
    assert re.match(r"with\w* ends, step \d+, stream \d", row["where"])


def test_nan_after_a_long_stream_is_found_where_it_begins():
    memory = without(Traces(), "gradient", "online", "step")
    honest = memory["sequence"]

    def sequence(x, done, state):                               # a clock that overflows
        h, clock = state
        y, h = honest(x, done, h)
        clock = clock + len(x)
        return np.where((clock > 1500)[None, :, None], np.nan, y), (h, clock)

    memory.update(sequence=sequence, initial=lambda batch: (np.zeros((batch, N)), np.zeros(batch)))
    assert check(memory, long=1024, only=["endless"])["endless"]["verdict"] == "holds"
    report = check(memory, long=2048, only=["endless"])
    row = report["endless"]
    assert row["verdict"] == "fails" and "not finite at step 14" in row["where"]
    assert json.loads(report.json())["properties"] == [{**row, "error": "inf"}]


@pytest.mark.parametrize("left_out, untried", [
    (("step",), {"steps", "handover"}), (("sequence", "gradient", "online"), {"steps", "chunks", "handover", "slope", "online"}),
    (("gradient", "online"), {"slope", "online"}), (("online",), {"online"}), (("gradient",), {"slope", "online"})])
def test_what_is_missing_is_not_tried_and_no_pass(left_out, untried):
    report = check(without(Traces(), *left_out), long=64)
    assert {row["property"] for row in report.rows if row["verdict"] == "not tried"} == untried, report.text()
    assert all(row["why"].startswith("no ") for row in report.rows if row["verdict"] == "not tried")
    assert report.tried == len(NAMES) - len(untried) and report.status == 0


def test_a_library_without_ends_is_not_tried_at_them():
    report = check(Traces(ends=False), long=64)
    assert {row["property"] for row in report.rows if row["verdict"] == "not tried"} == {"reset", "forwards", "gradient"}


def test_what_remembers_nothing_does_not_pass():
    C = np.random.default_rng(0).standard_normal((D, O))
    report = check({"d_in": D, "dtype": "float64", "initial": lambda batch: None, "step": lambda x, state, done: (x @ C, state),
                    "sequence": lambda x, done, state: (x @ C, state)}, long=64)
    found = verdicts(report)
    for name in ("steps", "chunks", "handover", "reset", "forwards", "gradient"):
        assert found[name] == "not tried" and "remembers nothing" in report[name]["why"]


def test_a_gradient_that_never_flows_does_not_pass():
    memory = Traces()
    wrong = without(memory, "online")
    wrong["gradient"] = lambda x, done, h, w: {"x": np.zeros_like(x)}
    report = check(wrong, long=64)
    assert report["gradient"]["verdict"] == report["slope"]["verdict"] == "not tried"


def test_what_is_not_repeatable_is_only_that():
    report = check(Traces(fault="random"), long=64)
    found = verdicts(report)
    assert found.pop("repeats") == "fails" and set(found.values()) == {"not tried"} and report.status == 1


def test_what_raises_is_named_and_no_pass():
    memory = without(Traces(), "gradient", "online")
    honest = memory["sequence"]

    def sequence(x, done, state):
        if done[1:].any():
            raise RuntimeError("no ends inside\nof a sequence")
        return honest(x, done, state)

    memory["sequence"] = sequence
    report = check(memory, long=64)
    assert report["repeats"]["verdict"] == "raised" and report["repeats"]["why"] == "RuntimeError: no ends inside" and report.status == 1
    memory["sequence"] = lambda x, done, state: (honest(x, done, state)[0][:-1], state)
    assert "sequence returned y of [4, 3, 4], expected [5, 3]" in check(memory, long=64)["repeats"]["why"]


def test_a_library_may_write_into_its_state():
    memory = without(Traces(), "gradient", "online")
    honest = memory["step"]

    def step(x, state, done):
        y, state[:] = honest(x, state, done)
        return y, state

    def sequence(x, done, state):
        rows = [step(x[t], state, done[t])[0] for t in range(len(x))]
        return np.stack(rows), state

    memory.update(step=step, sequence=sequence)
    assert check(memory, long=64).status == 0


@pytest.mark.parametrize("wrong, said", [
    ({}, "d_in is None"), ({"d_in": 3}, "initial is None"), ({"d_in": 3, "initial": list}, "neither step nor sequence"),
    ({"d_in": 3, "initial": list, "step": 5}, "step is 5"), ({"d_in": 3, "initial": list, "stepp": list}, "unknown member 'stepp'"),
    ({"d_in": 3, "initial": list, "step": list, "dtype": "int8"}, "dtype is 'int8', expected one of float64")])
def test_wrong_members_are_named(wrong, said):
    with pytest.raises(TypeError, match=said):
        check(wrong)


def test_wrong_settings_are_named():
    for settings, said in (({"steps": 3}, "steps is 3"), ({"long": 0}, "long is 0"), ({"streams": 9}, "at most a sixth"),
                           ({"only": ["step"]}, "unknown property 'step'")):
        with pytest.raises(ValueError, match=said):
            check(Traces(), **settings)


def test_the_command(tmp_path):
    (tmp_path / "mine.py").write_text(f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_contract import Traces, without

def make(dtype="float64", fault=None):
    return without(Traces(dtype, fault), "gradient", "online")
""")

    def run(*words):
        done = subprocess.run([sys.executable, "-m", "memory_contract", *words], cwd=tmp_path, text=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": f"{Path(__file__).resolve().parents[1]}:{os.environ.get('PYTHONPATH', '')}"})
        return done.returncode, done.stdout, done.stderr

    status, out, _ = run("mine.py:make", "--long", "64", "--json", "one.json")
    assert status == 0 and "9 of 9 properties hold; 2 not tried" in out
    data = json.loads((tmp_path / "one.json").read_text())
    assert data["holds"] == data["tried"] == 9 and [row["property"] for row in data["properties"]] == NAMES
    status, out, _ = run("mine:make", "fault=leak", "dtype=float32", "--long", "64", "--json", "-")
    assert status == 1 and json.loads(out)["dtype"] == "float32"
    status, out, _ = run("mine.py:make", "--only", "batch,steps", "--long", "64", "--json", "one.json", "--append")
    assert status == 0 and len((tmp_path / "one.json").read_text().splitlines()) == 2
    for words, said in ((["mine.py:nothing"], "it has make"), (["mine.py"], "expected MODULE:FACTORY"), (["absent:make"], "absent"),
                        (["gone.py:make"], "is not there"), (["mine.py:make", "fault"], "expected NAME=VALUE"),
                        (["mine.py:make", "--only", "step"], "unknown property"), (["mine.py:make", "depth=3"], "depth")):
        status, _, err = run(*words)
        assert status == 2 and said in err, err
    status, out, _ = run("--help")
    assert status == 0 and all(p.__doc__ in out for p in PROPERTIES)


def test_the_page_s_memory_passes_and_its_tables_are_whole(tmp_path):
    page = (Path(__file__).resolve().parents[3] / "docs/memory-contract.md").read_text()
    (tmp_path / "mine.py").write_text(re.search(r"`mine.py`:\n```python\n(.*?)\n```", page, re.S).group(1))
    report = check(load(str(tmp_path / "mine.py") + ":make"), long=64)
    assert (report.count("holds"), report.tried, report.status) == (9, 9, 0), report.text()
    assert [name for name in re.findall(r"^\| `(\w+)` \|", page, re.M) if name in NAMES] == NAMES


def test_factories_are_found():
    assert Memory(Traces()).memory == "traces"
    with pytest.raises(ValueError, match="expected MODULE:FACTORY"):
        load("memory_contract")
    assert callable(main)
