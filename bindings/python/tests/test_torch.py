"""What `mneme export` writes is what PyTorch takes: GRU, LSTM by load_state_dict, AGaLiTe by the example's equations."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

ROOT = Path(__file__).resolve().parents[3]
MNEME = Path(os.environ.get("MNEME_BUILD", ROOT / "build")) / "mneme"


def mneme(where, *words):
    subprocess.run([str(MNEME), *words], cwd=where, check=True, capture_output=True, text=True)


def exported(where, core, *options):
    """A little-trained agent's parameters and one of its episodes."""
    mneme(where, "run", "demo", f"core={core}", "steps=2048", "run=run", *options)
    mneme(where, "export", "run", "to=agent.safetensors")
    mneme(where, "eval", "run", "episodes=1", "num_envs=1", "record=episodes", "internals=1")
    return safetensors.load_file(where / "agent.safetensors"), np.load(where / "episodes/episode-0.npz")


@pytest.mark.parametrize("core, kind", [("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
def test_recurrent(tmp_path, core, kind):
    tensors, episode = exported(tmp_path, core, "core.n_layers=2", "core.d_model=24")
    mine = {name[len("core."):]: t for name, t in tensors.items() if name.startswith("core.")}
    model = kind(mine["weight_ih_l0"].shape[1], 24, 2)
    assert not any(model.load_state_dict(mine))
    ends = episode["terminated"] | episode["truncated"]
    first = int(np.argmax(ends)) + 1 if ends.any() else len(episode["actions"])
    with torch.no_grad():
        y, _ = model(torch.tensor(episode["observations"][:first])[:, None])
    assert np.abs(y[:, 0].numpy() - episode["memory:layers.1.h"][:first]).max() < 1e-5


def test_agalite_script(tmp_path):
    exported(tmp_path, "agalite")
    script = ROOT / "bindings/python/examples/agalite_torch.py"
    done = subprocess.run([sys.executable, str(script), "agent.safetensors", "episodes/episode-0.npz"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_arrays(tmp_path):
    _, episode = exported(tmp_path, "gru")
    about = json.loads(bytes(episode["about"]))
    n = len(episode["actions"])
    assert about["env"] == "tmaze-v0" and episode["rewards"].shape == (n,) and episode["policy"].shape == (n, 4)
    assert episode["terminated"][-1] + episode["truncated"][-1] == 1
