"""An agent of sb3-contrib's RecurrentPPO, imported: Mneme's run acts as it does, step by step, and scores the same in fresh episodes."""
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

sb3 = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
gym = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import mneme
from mneme import from_sb3

ROOT = Path(__file__).resolve().parents[3]
MNEME = Path(os.environ.get("MNEME_BUILD", ROOT / "build")) / "mneme"
os.environ["MNEME"] = str(MNEME)
EPISODES = 200


@pytest.mark.parametrize("env, options, policy", [
    ("tmaze", {"corridor": 4}, dict(lstm_hidden_size=16, net_arch=dict(pi=[12], vf=[10, 6]))),
    ("tmaze", {"corridor": 4}, dict(lstm_hidden_size=8, n_lstm_layers=2, shared_lstm=True, enable_critic_lstm=False, activation_fn=torch.nn.ReLU)),
    ("position_only_pendulum", {}, dict(lstm_hidden_size=8, net_arch=[])),
])
def test_import(tmp_path, env, options, policy):
    theirs = gym.make(f"mneme/{env}-v{[n for n in mneme.names() if n.startswith(env + '-v')][0].rsplit('v', 1)[1]}", **options)
    model = sb3.RecurrentPPO("MlpLstmPolicy", theirs, n_steps=64, batch_size=32, seed=1, policy_kwargs=policy)
    model.learn(128)
    model.save(tmp_path / "agent.zip")
    run = from_sb3.convert(tmp_path / "agent.zip", tmp_path / "theirs", env, **options)
    mine, state, memory = mneme.load(run), None, None
    observation, _ = theirs.reset(seed=3)
    begins, worst = True, 0.0
    for _ in range(200):
        with torch.no_grad():
            tensor, flag = torch.tensor(observation[None]), torch.tensor([float(begins)])
            if memory is None:
                n = policy.get("n_lstm_layers", 1), 1, policy["lstm_hidden_size"]
                memory = sb3.common.recurrent.type_aliases.RNNStates(*[(torch.zeros(n), torch.zeros(n)) for _ in range(2)])
            value = model.policy.predict_values(tensor, memory.vf, flag) if not policy.get("shared_lstm") else None
            distribution, pi = model.policy.get_distribution(tensor, memory.pi, flag)
            _, _, _, memory = model.policy.forward(tensor, memory, flag, deterministic=True)
        p, v, after = mine.step(observation[None], state, np.array([begins]))
        action, state = mine.act(observation[None], state, np.array([begins]))
        want = distribution.distribution
        if hasattr(want, "logits"):
            got = torch.log_softmax(torch.tensor(p), -1)
            worst = max(worst, float((got - want.logits).abs().max()))
        else:
            worst = max(worst, float((torch.tensor(p[:, :1]) - want.mean).abs().max()), float((torch.tensor(p[:, 1:]).exp() - want.stddev).abs().max()))
        if value is not None:
            worst = max(worst, abs(float(v[0] - value)))
        chosen = distribution.mode().numpy()[0]
        assert np.allclose(action[0], chosen, atol=1e-5)
        observation, _, terminated, truncated, _ = theirs.step(chosen)
        begins = terminated or truncated
        if begins:
            observation, _ = theirs.reset()
    assert worst < 1e-5


def test_score(tmp_path):
    theirs = gym.make("mneme/tmaze-v0", corridor=3)
    model = sb3.RecurrentPPO("MlpLstmPolicy", theirs, n_steps=128, batch_size=64, learning_rate=3e-3, seed=1, policy_kwargs=dict(lstm_hidden_size=16))
    model.learn(1024)
    model.save(tmp_path / "agent.zip")
    run = from_sb3.convert(tmp_path / "agent.zip", tmp_path / "theirs", "tmaze", corridor=3)
    scores, state, begins = [], None, np.array([True])
    observation, _ = theirs.reset(seed=5)
    while len(scores) < EPISODES:
        action, state = model.predict(observation, state=state, episode_start=begins, deterministic=True)
        observation, reward, terminated, truncated, info = theirs.step(action)
        begins = np.array([terminated or truncated])
        if begins[0]:
            scores.append(float(info["score"]))
            observation, _ = theirs.reset()
    said = subprocess.run([str(MNEME), "eval", str(run), f"episodes={EPISODES}", "greedy=1"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    mine, theirs = float(re.search(r"success +([\d.]+)", said.stdout).group(1)), np.mean(scores)
    assert abs(mine - theirs) < 3 * np.sqrt(2 * 0.25 / EPISODES), (mine, theirs)           # three deviations of a difference of two shares


def test_refused(tmp_path):
    theirs = gym.make("mneme/tmaze-v0", corridor=3)
    model = sb3.RecurrentPPO("MlpLstmPolicy", theirs, n_steps=64, batch_size=32, policy_kwargs=dict(enable_critic_lstm=False))
    model.save(tmp_path / "agent.zip")
    with pytest.raises(ValueError, match="without a memory"):
        from_sb3.convert(tmp_path / "agent.zip", tmp_path / "theirs", "tmaze")
