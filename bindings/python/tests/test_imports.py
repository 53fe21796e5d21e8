"""State dicts of torch and an agent of AGaLiTe's released code, imported: Mneme's run acts as they do, step by step."""
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mneme
from mneme import from_agalite, from_sb3, from_torch, importing

ROOT = Path(__file__).resolve().parents[3]
MNEME = Path(os.environ.get("MNEME_BUILD", ROOT / "build")) / "mneme"
os.environ["MNEME"] = str(MNEME)


def compared(run, theirs, observations, done):
    """The largest difference of logits (as distributions) and values, theirs(observations [T,B,...], done [T,B]) -> logits, values."""
    agent, state, worst = mneme.load(run), None, 0.0
    logits, values = theirs(observations, done)
    for t in range(len(observations)):
        p, v, state = agent.step(observations[t], state, done[t])
        got, want = (x - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) - x.max(-1, keepdims=True) for x in (p, logits[t]))
        worst = max(worst, float(np.abs(got - want).max()), float(np.abs(v - values[t]).max()))
    return worst


def looked_at(run):
    """eval and view take the run."""
    for words in (["eval", run, "episodes=4"], ["view", run, f"out={run}.png"]):
        said = subprocess.run([str(MNEME), *map(str, words)], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr


def episodes(shape, T=24, B=3):
    rng = np.random.default_rng(1)
    done = rng.random((T, B)) < 0.2
    done[0] = True
    return rng.random((T, B, *shape)).astype(np.float32), done.astype(np.float32)


def test_agalite(tmp_path):
    kept = np.load(Path(__file__).with_name("agalite.npz"))
    for kind in ("agalite", "gru", "lstm"):
        names = [name for name in kept if name.startswith(f"{kind}/params/")]
        file = tmp_path / f"{kind}.npz"
        np.savez(file, **{name[len(kind) + 1:]: kept[name] for name in names})
        run = from_agalite.convert(file, tmp_path / "Läufe 1" / kind, "tmaze", corridor=4)
        worst = compared(run, lambda *_: (kept[f"{kind}/logits"], kept[f"{kind}/values"]), kept["observations"], kept["done"])
        assert worst < 1e-5, (kind, worst)
        looked_at(run)
    with pytest.raises(ValueError, match="n_heads=N or r=N"):
        from_agalite.convert(file, tmp_path / "no", "tmaze", how={"eta": "4"})
    np.savez(file, **{"params/Dense_0/kernel": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="its parts are Dense_0, expected actor, critic and seq_model"):
        from_agalite.convert(file, tmp_path / "no", "tmaze")


def test_refused_leaves_nothing(tmp_path):
    kept = np.load(Path(__file__).with_name("agalite.npz"))
    tensors = {name[len("gru/"):]: kept[name] for name in kept if name.startswith("gru/params/")}
    np.savez(tmp_path / "theirs.npz", **tensors)
    np.savez(tmp_path / "nan.npz", **{name: np.full_like(x, np.nan) for name, x in tensors.items()})
    for file, env, options, words in (("theirs", "mqar", {}, "unknown environment"), ("theirs", "tmaze", {"corridors": 4}, "corridors"),
                                      ("theirs", "repeat_previous", {}, "its shapes are not"), ("nan", "tmaze", {"corridor": 4}, "nan")):
        with pytest.raises(ValueError, match=words):
            from_agalite.convert(tmp_path / f"{file}.npz", tmp_path / "runs" / "theirs", env, **options)
        assert not list((tmp_path / "runs").glob("*")), env
    for name in ("theirs.lua", "theirs.safetensors"):
        (tmp_path / "runs" / name).write_text("mine")
        with pytest.raises(ValueError, match=f"{name} is there already"):
            from_agalite.convert(tmp_path / "theirs.npz", tmp_path / "runs" / "theirs", "tmaze", corridor=4)
        assert [(x.name, x.read_text()) for x in (tmp_path / "runs").glob("*")] == [(name, "mine")]
        (tmp_path / "runs" / name).unlink()
    for run in ("first", "second"):                      # the same file once more: its script and parameters are those
        from_agalite.convert(tmp_path / "theirs.npz", tmp_path / "runs" / run, "tmaze", corridor=4)
    with pytest.raises(ValueError, match="it is there already"):
        from_agalite.convert(tmp_path / "theirs.npz", tmp_path / "runs" / "first", "tmaze", corridor=4)
    assert (tmp_path / "runs" / "first" / "config.json").exists()


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def agents(torch):
    """CleanRL's ppo_atari_lstm on pictures and on vectors, TorchRL's layout: a sequence of modules, and policy and value as two files."""
    nn = torch.nn

    class Agent(nn.Module):
        def __init__(self, network, d_in, kind, d, layers=1, hidden=None):
            super().__init__()
            self.network = network
            core = getattr(nn, kind.upper())(d_in, d, layers)
            for name, x in core.named_parameters():
                nn.init.normal_(x, 0, 0.3)
            if kind == "lstm":
                self.lstm = core
            else:
                self.gru = core
            self.actor = nn.Linear(d, 4) if not hidden else nn.Sequential(nn.Linear(d, hidden), nn.Tanh(), nn.Linear(hidden, 4))
            self.critic = nn.Linear(d, 1) if not hidden else nn.Sequential(nn.Linear(d, hidden), nn.Tanh(), nn.Linear(hidden, 1))

        def forward(self, observations, done):
            core = self.lstm if hasattr(self, "lstm") else self.gru
            T, B = done.shape
            y, state, out = self.network(observations.flatten(0, 1)).view(T, B, -1), None, []
            for t in range(T):
                if state is not None:
                    keep = (1 - done[t]).view(1, B, 1)
                    state = tuple(s * keep for s in state) if isinstance(state, tuple) else state * keep
                h, state = core(y[t:t + 1], state)
                out.append(h[0])
            h = torch.stack(out)
            return self.actor(h), self.critic(h)[..., 0]

    yield "cleanrl", Agent(nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10), nn.ReLU()), 10, "lstm", 8), {}
    yield "gru", Agent(nn.Sequential(), 16, "gru", 8, 2, 6), {"act": "tanh"}


@pytest.mark.parametrize("which", range(2))
def test_torch(torch, tmp_path, which):
    name, agent, how = list(agents(torch))[which]
    torch.save(agent.state_dict(), tmp_path / f"{name}.pt")
    run = from_torch.convert(tmp_path / f"{name}.pt", tmp_path / "runs" / name, "tmaze", how=how, corridor=4)

    def theirs(observations, done):
        with torch.no_grad():
            return tuple(x.numpy() for x in agent(torch.tensor(observations), torch.tensor(done)))

    assert compared(run, theirs, *episodes((16,))) < 1e-5
    looked_at(run)


def test_torchrl_layout(torch, tmp_path):
    """Names as TensorDictSequential gives them; the policy and the value are files of their own, and the value has no memory of its own."""
    nn = torch.nn
    common, lstm = nn.Sequential(nn.Linear(16, 10), nn.Tanh()), nn.LSTM(10, 8, batch_first=True)
    policy, value = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 4)), nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 1))
    file, more = tmp_path / "policy.pt", tmp_path / "value.pt"
    torch.save({f"module.{i}.module.{key}": x for i, part in ((0, common), (2, policy)) for key, x in part.state_dict().items()}
               | {f"module.1.lstm.{key}": x for key, x in lstm.state_dict().items()}, file)
    torch.save({f"module.{key}": x for key, x in value.state_dict().items()}, more)
    with pytest.raises(ValueError, match="critic: "):
        from_torch.convert(file, tmp_path / "runs/no", "tmaze", corridor=4)
    run = from_torch.convert(file, tmp_path / "runs/theirs", "tmaze", corridor=4, how={"act": "tanh", "critic_file": str(more)})

    def theirs(observations, done):
        state, out = None, []
        with torch.no_grad():
            for x, new in zip(torch.tensor(observations), torch.tensor(done)):
                if state is not None:
                    state = tuple(s * (1 - new).view(1, -1, 1) for s in state)
                y, state = lstm(common(x)[:, None], state)
                out.append((policy(y[:, 0]).numpy(), value(y[:, 0])[:, 0].numpy()))
        return tuple(np.stack(x) for x in zip(*out))

    assert compared(run, theirs, *episodes((16,))) < 1e-5


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_torchrl(torch, tmp_path, kind):
    """Where TorchRL is installed: an actor and a value on one memory, as its ActorValueOperator saves and computes them."""
    pytest.importorskip("torchrl", reason="TorchRL is not installed")
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl import modules

    def mlp(d_in, d_out, **more):
        return modules.MLP(in_features=d_in, out_features=d_out, num_cells=[10], activation_class=torch.nn.Tanh, **more)

    memory = getattr(modules, f"{kind}Module")(input_size=12, hidden_size=8, num_layers=2, in_key="feature", out_key="core")
    common = TensorDictSequential(TensorDictModule(mlp(16, 12, activate_last_layer=True), ["observation"], ["feature"]), memory)
    agent = modules.ActorValueOperator(common, TensorDictModule(mlp(8, 4), ["core"], ["logits"]), modules.ValueOperator(mlp(8, 1), in_keys=["core"]))
    torch.save(agent.state_dict(), tmp_path / "theirs.pt")
    run = from_torch.convert(tmp_path / "theirs.pt", tmp_path / "runs/theirs", "tmaze", corridor=4, how={"act": "tanh"})

    def theirs(observations, done):
        T, B = done.shape
        given = TensorDict({"observation": torch.tensor(observations).transpose(0, 1), "is_init": torch.tensor(done).T[..., None] > 0}, [B, T])
        with torch.no_grad(), modules.set_recurrent_mode(True):
            made = agent(given)
        return made["logits"].transpose(0, 1).numpy(), made["state_value"][..., 0].T.numpy()

    assert compared(run, theirs, *episodes((16,))) < 1e-5
    looked_at(run)


def test_torch_pictures(torch, tmp_path):
    """CleanRL's own ppo_atari_lstm network, on Mneme's pictures; its channels are the environment's."""
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
                        nn.Linear(64 * 7 * 7, 32), nn.ReLU())
    parts = nn.ModuleDict(dict(network=net, lstm=nn.LSTM(32, 8), actor=nn.Linear(8, 9), critic=nn.Linear(8, 1)))
    torch.save(parts.state_dict(), tmp_path / "atari.pt")
    run = from_torch.convert(tmp_path / "atari.pt", tmp_path / "runs/atari", "mystery_path", observation="pixels")
    observations, done = episodes((84, 84, 3), 6, 2)
    pictures = np.floor(observations * 255)

    def theirs(observations, done):
        state, out = None, []
        with torch.no_grad():
            for x, new in zip(torch.tensor(observations), torch.tensor(done)):
                if state is not None:
                    state = tuple(s * (1 - new).view(1, -1, 1) for s in state)
                y, state = parts["lstm"](net(x.permute(0, 3, 1, 2) / 255.0)[None], state)
                out.append((parts["actor"](y[0]).numpy(), parts["critic"](y[0])[:, 0].numpy()))
        return tuple(np.stack(x) for x in zip(*out))

    assert compared(run, theirs, pictures, done) < 1e-5


def test_torch_refused(torch, tmp_path):
    file = tmp_path / "no.pt"
    lstm = {f"lstm.{key}": x for key, x in torch.nn.LSTM(16, 8).state_dict().items()}
    for tensors, how, said in (
        ({"a.weight": torch.zeros(2, 2)}, {}, "expected one LSTM or GRU"),
        (lstm | {"a.weight": torch.zeros(4, 8)}, {}, "critic: layers from 8 numbers"),
        (lstm | {"a.weight": torch.zeros(4, 8)}, {"act": "mish"}, "act=mish, expected relu"),
        (lstm | {"a.weight": torch.zeros(4, 8)}, {"heads": "a"}, "heads=, expected torso"),
        ({f"lstm.{key}": x for key, x in torch.nn.LSTM(16, 8, bidirectional=True).state_dict().items()}, {}, "in one direction"),
    ):
        torch.save(tensors, file)
        with pytest.raises(ValueError, match=said):
            from_torch.convert(file, tmp_path / "runs/no", "tmaze", how=how)
    torch.save({f"lstm.{key}": x for key, x in torch.nn.LSTM(1, 8).state_dict().items()} | {"a.weight": torch.zeros(4, 8), "v.weight": torch.zeros(1, 8)}, file)
    with pytest.raises(ValueError, match=r"one-hot.*\[8,4\], not \[8,1\]"):
        from_torch.convert(file, tmp_path / "runs/codes", "repeat_previous")
    file.write_text("no zip")
    with pytest.raises(ValueError, match="not a file of torch.save"):
        from_torch.convert(file, tmp_path / "runs/no", "tmaze")
    torch.save(torch.nn.Linear(2, 2), file)
    with pytest.raises(ValueError, match="expected tensors alone"):
        from_torch.convert(file, tmp_path / "runs/no", "tmaze")


def rewritten(file, into, change, compression=zipfile.ZIP_STORED):
    """The archive with each member as change(name, bytes) gives it; None: without it."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(into, "w", compression) as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


def test_torch_damaged(torch, tmp_path):
    """Whatever stands in a file, it is an agent's tensors or a ValueError, and nothing beyond the file's numbers is read."""
    file, broken, rng = tmp_path / "agent.pt", tmp_path / "broken.pt", np.random.default_rng(1)
    lstm = torch.nn.LSTM(5, 3)
    torch.save({f"lstm.{key}": x for key, x in lstm.state_dict().items()} | {"a.weight": torch.zeros(4, 3), "v.weight": torch.zeros(1, 3)}, file)

    def flipped(data):
        data = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 5)):
            data[at] ^= 1 << rng.integers(8)
        return bytes(data)

    def tensors():
        try:
            from_torch.converted(importing.read_torch(broken), {})
        except (ValueError, OSError) as problem:
            return str(problem)

    for _ in range(400):
        rewritten(file, broken, lambda name, data: flipped(data) if name.endswith("data.pkl") else data)
        tensors()
        broken.write_bytes(flipped(file.read_bytes()) if rng.random() < 0.5 else file.read_bytes()[:rng.integers(file.stat().st_size)])
        tensors()
    sizes, seen = b"K\x0cK\x05\x86", []
    for wrong in (b"K\xffK\xff\x86", b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", b"J\xff\xff\xff\xffK\x05\x86"):
        rewritten(file, broken, lambda name, data: seen.append(sizes in data) or data.replace(sizes, wrong) if name.endswith("data.pkl") else data)
        assert "in a storage of 60" in tensors()
    assert any(seen)
    rewritten(file, broken, lambda name, data: None if name.endswith("data/0") else data)
    assert "it has no" in tensors()
    rewritten(file, broken, lambda name, data: data, zipfile.ZIP_DEFLATED)
    assert "compressed" in tensors()


def files_of(torch, folder):
    """Of each importer: its tensors, and what writes a file of some."""
    def state(kind, d_in, d):
        return {key: x.numpy() for key, x in getattr(torch.nn, kind)(d_in, d).state_dict().items()}

    def linear(name, i, o):
        return {f"{name}.weight": np.ones((o, i), np.float32), f"{name}.bias": np.ones(o, np.float32)}

    def as_torch(tensors, file):
        torch.save({key: torch.from_numpy(np.array(x)) for key, x in tensors.items()}, file)

    def as_sb3(tensors, file):
        inner = io.BytesIO()
        as_torch(tensors, inner)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("data", json.dumps({"policy_kwargs": {}, "gamma": 10 ** 400, "gae_lambda": True, "ent_coef": float("nan")}))
            archive.writestr("policy.pth", inner.getvalue())

    def memory(name, *size):
        return {f"{name}.{key}": x for key, x in state("LSTM", *size).items()}

    kept = np.load(Path(__file__).with_name("agalite.npz"))
    yield from_torch, as_torch, memory("lstm", 16, 8) | linear("actor", 8, 4) | linear("critic", 8, 1), "torch.pt"
    nets = linear("mlp_extractor.policy_net.0", 8, 6) | linear("mlp_extractor.value_net.0", 8, 6) | linear("action_net", 6, 4) | linear("value_net", 6, 1)
    yield from_sb3, as_sb3, memory("lstm_actor", 16, 8) | memory("lstm_critic", 16, 8) | nets, "sb3.zip"
    for kind in ("agalite", "gru", "lstm"):
        mine = {name[len(kind) + 1:]: kept[name] for name in kept if name.startswith(f"{kind}/params/")}
        yield from_agalite, lambda tensors, file: np.savez(file, **tensors), mine, f"{kind}.npz"


def test_nothing_is_left_out(torch, tmp_path):
    """A tensor that is not there, has another name, is one too many or holds nan: no run, whichever it is; the whole file makes one."""
    run = tmp_path / "runs" / "theirs"
    for importer, write, tensors, name in files_of(torch, tmp_path):
        file = tmp_path / name
        write(tensors, file)
        importer.convert(file, tmp_path / "whole" / file.stem, "tmaze", corridor=4)
        between = "/" if importer is from_agalite else "."
        wrong = [tensors | {between.join([*key.split(between)[:-1], "more"]): np.ones(8, np.float32)} for key in tensors]
        for key, x in tensors.items():
            bad = np.array(x)
            bad.flat[-1] = np.nan
            wrong += [tensors | {key: bad}, {k + "_2" * (k == key): y for k, y in tensors.items()}]
            alone = importer is from_torch and key in ("actor.bias", "critic.bias")              # a layer may have none
            wrong += [] if alone else [{k: y for k, y in tensors.items() if k != key}]
        for case in wrong:
            write(case, file)
            with pytest.raises(ValueError):
                importer.convert(file, run, "tmaze", corridor=4)
                print(name, sorted(set(case) ^ set(tensors)))
            assert not run.parent.exists() or not list(run.parent.iterdir())


def test_torch_reads_its_own_numbers(torch, tmp_path):
    """A pickle that takes a tensor for a storage would read past its end; numbers of the other order of bytes would be others."""
    class Storage:
        pass

    class Call:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, self.arguments

    class Pickler(pickle.Pickler):
        def persistent_id(self, x):
            return ("storage", torch.FloatStorage, "0", "cpu", 1000) if isinstance(x, Storage) else None

    for storage, order, said in ((Storage(), b"little", None), (Storage(), b"big", "another order of bytes"),
                                 (Call(Storage(), 0, (2, 500), (500, 1)), b"little", "without a storage of its own")):
        text, file = io.BytesIO(), tmp_path / "x.pt"
        Pickler(text, 2).dump({"x": Call(storage, 400, (500,), (1,))})
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in (("data.pkl", text.getvalue()), ("byteorder", order), ("data/0", np.arange(1000, dtype="<f4").tobytes())):
                archive.writestr(f"x/{name}", data)
        if said:
            with pytest.raises(ValueError, match=said):
                importing.read_torch(file)
        else:
            assert importing.read_torch(file)["x"][0] == 400


def test_words(tmp_path):
    """Whatever settings are typed, no traceback: a number is a number, and a name is one."""
    np.savez(tmp_path / "no.npz", x=np.zeros(2))
    for word in ("env.a=1.2.3", "env.a=.5", "env.a=05", "env.a=-", "env.a=\u0663", "env.a=1e400", "env.a b=1", "env.=1", "=", "env.a=1]"):
        said = subprocess.run([sys.executable, "-m", "mneme.from_agalite", tmp_path / "no.npz", f"run={tmp_path / 'r'}", "env=tmaze", word],
                              capture_output=True, text=True)
        assert said.returncode == 1 and "Traceback" not in said.stderr, said.stderr


def test_load_says_what_it_is_given(tmp_path):
    """mneme.load and its agent name what has another shape than they read, in place of computing with it."""
    text = subprocess.run([str(MNEME), "run", "tmaze", "quick=1", "core=gru", "steps=300", f"run={tmp_path / 'a'}"], capture_output=True, text=True)
    assert text.returncode == 0, text.stderr
    subprocess.run([str(MNEME), "export", str(tmp_path / "a"), f"to={tmp_path / 'a.json'}"], check=True, capture_output=True)
    agent = mneme.load(tmp_path / "a.json")
    seen = np.zeros((3, *agent.inputs[0]["shape"][1:]), np.float32)
    _, _, state = agent.step(seen, done=True)
    for arguments, said in (((seen, state, [1]), r"done is \[1\], expected \[3\]"), ((seen, state, np.ones((3, 1))), r"done is \[3, 1\]"),
                            ((seen, agent.initial(1)), r"h is \[1, .*expected \[3, "), ((seen, {}), "h is missing"), ((seen[:0],), r"observation is \[0")):
        with pytest.raises(ValueError, match=said):
            agent.step(*arguments)
    with pytest.raises(ValueError, match="num_envs is 0"):
        agent.initial(0)
    whole = (tmp_path / "a.json").read_text()
    for text in ("", "3", "[]", "{}", whole[:2000], (tmp_path / "a/config.json").read_text(), "[" * 100000):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(ValueError, match="no agent, expected what `mneme export"):
            mneme.load(tmp_path / "b.json")
    with pytest.raises(ValueError, match="step="):
        mneme.load(tmp_path / "a.json", step=5)
