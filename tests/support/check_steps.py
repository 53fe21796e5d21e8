"""check_steps.py -- takes exported agents through the steps of about.json and prints how far each is off: check_steps.py py|onnx|json"""
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

form = sys.argv[1]


def arrays(step, shape):
    """What a step reads, and what the engine gave."""
    given = {"observation": np.array(step["observation"], np.float32).reshape(shape), "done": np.array(step["done"], np.float32)}
    for name in ("previous_action", "previous_reward"):
        if name in step:
            x = np.array(step[name], np.float32)
            given[name] = x if x.size == shape[0] else x.reshape(shape[0], -1)
    return given, np.array(step["distribution"], np.float64).reshape(shape[0], -1), np.array(step["value"], np.float64)


def distance(got, want, scale=1.0):
    d = np.abs(np.asarray(got, np.float64).reshape(np.shape(want)) - want).max() / scale
    return d if np.isfinite(d) else np.inf


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def by_torch(one):
    import torch

    agent, steps, worst = module(one["name"], one["name"] + ".py").Agent(), one["run"]["steps"], 0.0
    state, rows = agent.initial(2), []
    for step in steps:
        given, p, v = arrays(step, one["shape"])
        given = {key: torch.tensor(x) for key, x in given.items()}
        rows.append(given)
        with torch.no_grad():
            got_p, got_v, state = agent.step(given["observation"], state, given["done"], *list(given.values())[2:])
        worst = max(worst, distance(got_p, p), distance(got_v, v))
    stacked = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
    with torch.no_grad():
        all_p, all_v, _ = agent(stacked.pop("observation"), None, stacked.pop("done"), **stacked)
    worst = max(worst, distance(all_p[-1], arrays(steps[-1], one["shape"])[1]), distance(all_v[-1], arrays(steps[-1], one["shape"])[2]))
    if "gradient" in one["run"]:
        short = one["run"]["gradient"]["steps"]
        rows = [{key: torch.tensor(x) for key, x in arrays(step, one["shape"])[0].items()} for step in short]
        stacked = {key: torch.stack([row[key] for row in rows]) for key in rows[0]}
        p, v, _ = agent(stacked.pop("observation"), None, stacked.pop("done"), **stacked)
        ((p * (torch.arange(p.shape[-1]) + 1) * 0.3).sum() + v.sum()).backward()
        named = dict(agent.named_parameters())
        wanted = {g["name"]: np.array(g["values"], np.float64) for g in one["run"]["gradient"]["grads"]}
        assert wanted.keys() == named.keys(), (sorted(wanted), sorted(named))
        largest = max(np.abs(g).max() for g in wanted.values())
        for name, want in wanted.items():
            got = named[name].grad
            worst = max(worst, distance(np.zeros_like(want) if got is None else got.numpy().ravel(), want, max(1.0, largest)))
    agent.double()                                             # all of it follows its parameters, what it is given, too
    with torch.no_grad():
        fine, _, state = agent.step(given["observation"], agent.initial(2), given["done"], *list(given.values())[2:])
    assert {fine.dtype, *(x.dtype for x in state.values())} == {torch.float64}, one["name"]
    return worst


def by_onnx(one):
    import onnx
    import onnxruntime

    path, worst = one["name"] + ".onnx", 0.0
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    start = {p.key[len("start."):]: np.frombuffer(bytes.fromhex(p.value), np.float32) for p in model.metadata_props}
    names, inputs = [o.name for o in session.get_outputs()], {i.name: i.shape for i in session.get_inputs()}
    for b in range(2):
        state = {name: x.reshape(inputs[name]) for name, x in start.items()}
        for step in one["run"]["steps"]:
            given, p, v = arrays(step, one["shape"])
            got = dict(zip(names, session.run(None, {**state, **{key: x[b:b + 1] for key, x in given.items()}})))
            worst = max(worst, distance(got["distribution"][0], p[b]), distance(got["value"][0], v[b]))
            state = {name[len("next_"):]: x for name, x in got.items() if name.startswith("next_")}
    return worst


def by_numpy(one):
    agent = module("agent", Path(__file__).resolve().parents[2] / "bindings/python/mneme/agent.py").load(one["name"] + ".json")
    state, worst = agent.initial(2), 0.0
    for step in one["run"]["steps"]:
        given, p, v = arrays(step, one["shape"])
        got_p, got_v, state = agent.step(given.pop("observation"), state, **given)
        worst = max(worst, distance(got_p, p), distance(got_v, v))
    return worst


for one in json.loads(Path("about.json").read_text()):
    print("off", one["name"], {"py": by_torch, "onnx": by_onnx, "json": by_numpy}[form](one))
