"""Every environment passes Gymnasium's own checker; one environment, many environments and saved states agree bit for bit."""
import copy
import gc
import multiprocessing
import pathlib
import pickle
import subprocess
import sys
import threading
import time
import warnings
import weakref

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mneme

MAP = "#######\n#S?...#\n#..1.2#\n#######"
NEEDS = {"gridworld-v0": {"map": MAP}}


def settings(name):
    return NEEDS.get(name, {})


@pytest.fixture(params=mneme.names())
def name(request):
    return request.param


def draws(seed, space, *shape):
    """Actions of a space, [shape] or [shape, size]; those of a box beyond its bounds, too."""
    rng = np.random.default_rng(seed)             # a generator goes on
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(0, space.n, shape)
    return rng.uniform(1.5 * space.low, 1.5 * space.high, shape + space.shape).astype(np.float32)


def test_a_box_of_actions():
    one, many = mneme.MnemeEnv("pendulum"), mneme.MnemeVectorEnv("pendulum", num_envs=2)
    assert one.action_space == gym.spaces.Box(-2, 2, (1,), np.float32) and many.action_space.shape == (2, 1)
    one.reset(seed=1), many.reset(seed=[1, 2])
    assert np.array_equal(one.step(np.array([5.0], np.float32))[0], many.step(np.array([[2.0], [0.5]], np.float32))[0][0])
    for wrong in ([np.nan], 1.0, [1.0, 2.0], ["a"]):
        with pytest.raises(mneme.Error):
            one.step(np.array(wrong))
    one.close(), many.close()


def test_checker(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(infinity|unbounded|Box observation|precision lowered|symmetric and normalized).*")
        env = gym.make(f"mneme/{name}", render_mode="rgb_array", **settings(name))
        check_env(env.unwrapped, skip_render_check=False)
        env.close()


def test_a_mask_resets_a_part(name):
    """Environments outside of reset_mask stay as they are; None in a list of seeds goes on with the environment's own stream."""
    many, other = (gym.make_vec(f"mneme/{name}", num_envs=3, **settings(name)) for _ in range(2))
    many.reset(seed=[1, 2, 3]), other.reset(seed=[1, 2, 3])
    actions = draws(2, many.single_action_space, 40, 3)
    for step in actions[:5]:
        many.step(step), other.step(step)
    before = many.unwrapped._envs.state()
    obs, _ = many.reset(seed=[7, None, None], options={"reset_mask": np.array([True, False, False])})
    after = many.unwrapped._envs.state()
    assert after[1:] == before[1:] and after[0] != before[0]
    fresh = gym.make_vec(f"mneme/{name}", num_envs=3, **settings(name))
    first, _ = fresh.reset(seed=[7, 8, 9])
    assert np.array_equal(obs[0], first[0])
    for step in actions[5:]:
        seen, kept, one = many.step(step)[0], other.step(step)[0], fresh.step(step)[0]
        assert np.array_equal(seen[1:], kept[1:]) and np.array_equal(seen[0], one[0])
    again, _ = many.reset(seed=[3, None, 5])
    assert np.array_equal(again[0], fresh.reset(seed=[3, 4, 5])[0][0])
    many.close(), other.close(), fresh.close()


def test_singles_equal_vector(name):
    seeds = [3, 14, 15]
    many = gym.make_vec(f"mneme/{name}", num_envs=3, **settings(name))
    ones = [gym.make(f"mneme/{name}", disable_env_checker=True, **settings(name)).unwrapped for _ in seeds]
    obs, _ = many.reset(seed=seeds)
    for one, seed, row in zip(ones, seeds, obs):
        assert np.array_equal(one.reset(seed=seed)[0], row)
    actions = draws(1, many.single_action_space, 300, 3)
    ended = 0
    for step in actions:
        obs, reward, terminated, truncated, infos = many.step(step)
        for i, one in enumerate(ones):
            seen, paid, over, cut, info = one.step(step[i])
            assert paid == np.float32(reward[i]) and over == terminated[i] and cut == truncated[i]
            if over or cut:
                ended += 1
                assert np.array_equal(seen, infos["final_obs"][i])
                assert info["score"] == infos["final_info"]["score"][i]
                assert info["length"] == infos["final_info"]["episode"]["l"][i]
                assert info["return"] == infos["final_info"]["episode"]["r"][i]
                seen, _ = one.reset()
            assert np.array_equal(seen, obs[i])
    many.close()


@pytest.mark.parametrize("vector", [False, True])
def test_gymnasium_counts_episodes(name, vector):
    """Its RecordEpisodeStatistics refuses an info that has its key; of one environment and of several it counts what the engine counted."""
    wrappers = gym.wrappers.vector if vector else gym.wrappers
    made = [lambda: gym.make(f"mneme/{name}", disable_env_checker=True, time_limit=20, **settings(name))] * 2
    env = wrappers.RecordEpisodeStatistics(gym.vector.SyncVectorEnv(made) if vector else made[0]())
    env.reset(seed=1)
    ended = 0
    for action in draws(3, env.unwrapped.single_action_space if vector else env.action_space, 60, *([2] if vector else [])):
        _, _, terminated, truncated, info = env.step(action)
        if np.any(terminated | truncated):
            ended += 1
            over = terminated | truncated if vector else ()
            assert np.all(info["episode"]["l"][over] == info["length"][over] if vector else info["episode"]["l"] == info["length"])
            assert vector or info["episode"]["r"] == pytest.approx(info["return"], rel=1e-4, abs=1e-4)
            if not vector:
                env.reset()
    assert ended
    env.close()


def test_saved_worlds_go_on(name):
    env = mneme.MnemeEnv(name, **settings(name))
    env.reset(seed=5)
    actions = draws(2, env.action_space, 40)
    for a in actions[:7]:
        if any(env.step(a)[2:4]):
            env.reset()
    kept = env.save()

    def live():
        seen = []
        for a in actions[7:]:
            obs, reward, over, cut, _ = env.step(a)
            seen.append((obs.tobytes(), reward, over, cut))
            if over or cut:
                env.reset()
        return seen

    first = live()
    env.restore(kept)
    assert live() == first


def test_truth_and_set():
    env = mneme.MnemeEnv("tmaze", corridor=10)
    env.reset(seed=1)
    assert set(env.truth()) >= {"cue", "position"}
    before = env.truth()["cue"]
    assert env.set("cue", 1 - before) and env.truth()["cue"] == 1 - before


def test_pictures():
    env = mneme.MnemeEnv("tmaze", render_mode="rgb_array", size=(320, 200), corridor=10)
    env.reset(seed=1)
    picture = env.render()
    assert picture.shape == (200, 320, 3) and picture.std() > 0


@pytest.mark.parametrize("make, words", [
    (lambda: mneme.MnemeEnv("tmaez"), "did you mean 'tmaze'"),
    (lambda: mneme.MnemeEnv("tmaze", coridor=3), "did you mean 'corridor'"),
    (lambda: mneme.MnemeEnv("tmaze", corridor=0), "corridor"),
    (lambda: mneme.MnemeEnv("tmaze", corridor="long"), "expected a number"),
    (lambda: mneme.MnemeEnv("memory_maze", mode="round"), "known: grid continuous"),
    (lambda: mneme.MnemeEnv("gridworld", map="no map"), "map"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=0), "num_envs"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(seed=[1]), "1 seeds for 2 environments"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(options={"no_such_option": 1}), "no_such_option"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(options={"reset_maks": [True, False]}), "did you mean 'reset_mask'"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(options={"reset_mask": np.array([True, False])}), "before the first reset"),
    (lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(options={"reset_mask": np.array([True])}), "expected booleans"),
    (lambda: mneme.MnemeEnv("tmaze").reset(options={"no_such_option": 1}), "no_such_option"),
    (lambda: mneme.MnemeEnv("tmaze", render_mode="human"), "render_mode"),
    (lambda: mneme.MnemeEnv("tmaze").restore(b"nothing"), "restore"),
    (lambda: mneme.MnemeEnv("tmaze").restore("text"), "expected the bytes"),
    (lambda: mneme.MnemeEnv("tmaze").set("cue", "up"), "expected the name of a fact and a number"),
    (lambda: mneme.MnemeEnv("craftax", time_limit=-5), "time_limit=-5, expected"),
    (lambda: mneme.MnemeEnv("craftax", time_limit=2**31), "time_limit=2147483648, expected"),
    (lambda: mneme.MnemeEnv("craftax", time_limit=2.5), "time_limit=2.5, expected"),
    (lambda: mneme.MnemeVectorEnv("craftax_classic", time_limit="long"), "time_limit='long', expected"),
])
def test_mistakes_say_what_is_expected(make, words):
    with pytest.raises(mneme.Error, match=words):
        make()


def test_an_unknown_setting_is_an_unknown_keyword():
    """TorchRL's GymEnv hands `frameskip` to every environment, and makes it without where the error is of this class and has these words."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
        gym.make("mneme/tmaze-v0", frameskip=1)


@pytest.mark.parametrize("game", ["craftax", "craftax_classic"])
def test_damaged_states_are_refused(game):
    """Each byte of a state changed in turn (some of many): what no episode reaches is an Error, and a state that was refused changes nothing."""
    env = mneme.MnemeEnv(game)
    env.reset(seed=3)
    for action in (1, 5, 3):
        env.step(action)
    kept, refused = env.save(), 0
    for at in range(0, len(kept), len(kept) // 300):
        damaged = bytearray(kept)
        damaged[at] ^= 0x55
        with pytest.raises(mneme.Error):
            env.restore(damaged)
        refused += 1
        assert env.save() == kept
    for short in (b"", kept[:-1], kept + b"x"):
        with pytest.raises(mneme.Error):
            env.restore(short)
    assert refused >= 300
    env.restore(kept)
    env.close()


@pytest.mark.parametrize("game, count", [("craftax", 67), ("craftax_classic", 22)])
def test_outcomes_of_episodes_are_their_achievements(game, count):
    one, many = mneme.MnemeEnv(game), mneme.MnemeVectorEnv(game, num_envs=2)
    one.reset(seed=5), many.reset(seed=[5, 6])
    rng = np.random.default_rng(0)
    while True:
        actions = rng.integers(0, one.action_space.n, 2)
        *_, over, _, info = one.step(actions[0])
        infos = many.step(actions)[4]
        if over:
            break
    assert len(info["outcomes"]) == count and "wake_up" in info["outcomes"]
    assert {name: bool(reached[0]) for name, reached in infos["final_info"]["outcomes"].items()} == info["outcomes"]
    if game == "craftax_classic":
        assert sum(info["outcomes"].values()) == round(info["score"] * count)


def test_wrong_actions_and_closed_environments():
    env = mneme.MnemeEnv("tmaze", corridor=5, render_mode="rgb_array")
    env.reset(seed=1)
    with pytest.raises(mneme.Error, match="action 9, expected 0 to 3"):
        env.step(9)
    env.render()
    env.close()
    env.close()
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(mneme.Error, match="closed"):
            call()


def walk(env, n=6, seed=3):
    """What an environment shows for n steps."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(n):
        out = env.step(draws(rng, env.action_space) if isinstance(env, mneme.MnemeEnv) else draws(rng, env.single_action_space, env.num_envs))
        seen.append([np.asarray(x).tobytes() for x in out[:4]])
        if isinstance(env, mneme.MnemeEnv) and (out[2] or out[3]):
            env.reset()
    return seen


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("make", [lambda **s: mneme.MnemeEnv(**s), lambda **s: mneme.MnemeVectorEnv(num_envs=3, **s)])
def test_a_copy_is_an_environment_of_its_own(name, how, make):
    env = make(name=name, **settings(name))
    env.reset(seed=7)
    walk(env, 4)
    twin, third = COPIES[how](env), COPIES[how](env)
    first = walk(env)
    assert walk(twin) == first                         # the same world ...
    assert walk(third) == first                        # ... which no other's steps move
    env.close()
    walk(twin, 2)
    twin.close()
    with pytest.raises(mneme.Error, match="closed"):
        pickle.dumps(twin)


def in_another_process(data, out):
    env = pickle.loads(data)
    out.put(walk(env))


def test_an_environment_travels_to_another_process():
    env = mneme.MnemeVectorEnv("tmaze", num_envs=2, corridor=9)
    env.reset(seed=1)
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    child = context.Process(target=in_another_process, args=(pickle.dumps(env), out))
    child.start()
    seen = out.get(timeout=60)
    child.join()
    assert child.exitcode == 0 and seen == walk(env)


def test_unclosed_environments_are_freed():
    freed = []
    for _ in range(3):
        env = mneme.MnemeEnv("tmaze")
        weakref.finalize(env._envs, freed.append, 1)
        assert env._envs.free.alive
        del env
    gc.collect()
    assert len(freed) == 3


def test_what_a_vector_lends_outlives_it():
    env = mneme.MnemeVectorEnv("tmaze", num_envs=2, corridor=2, copy=False, time_limit=3)
    env.reset(seed=1)
    infos = {}
    while "final_obs" not in infos:
        *_, infos = env.step([0, 0])
    lent, before = infos["final_obs"], infos["final_obs"].copy()
    env.close()
    gc.collect()
    assert np.array_equal(lent, before)       # its memory is a bytearray, which the array keeps, not the engine's


@pytest.mark.parametrize("actions", [np.array([2**32, 0]), [0.5, 0], [0, 0, 0], np.array([-1, 0]), ["a", "b"]])
def test_wrong_actions_are_refused(actions):
    env = mneme.MnemeVectorEnv("tmaze", num_envs=2)
    env.reset(seed=1)
    with pytest.raises(mneme.Error, match="action"):
        env.step(actions)


@pytest.mark.parametrize("seed", [-1, 2**53 + 1, 1.5])
def test_seeds_that_would_not_be_told_apart_are_refused(seed):
    with pytest.raises((mneme.Error, gym.error.Error), match="seed"):
        mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(seed=[1, seed])
    with pytest.raises((mneme.Error, gym.error.Error, TypeError)):
        mneme.MnemeEnv("tmaze").reset(seed=seed)


def test_threads_read_their_own_errors():
    wrong = []

    def ask(fact):
        env = mneme.MnemeEnv("tmaze")
        env.reset(seed=1)
        for _ in range(2000):
            try:
                env.set(fact, 0)
            except mneme.Error as e:
                if fact not in str(e):
                    wrong.append((fact, str(e)))

    threads = [threading.Thread(target=ask, args=(fact,)) for fact in ("nothing", "nobody")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def weights(n):
    """What tests/reference/craftax_recorder.py weighs the values of a sum by."""
    x = np.arange(1, n + 1, dtype=np.uint64) * 0x9E3779B1 & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 0x2C1B3C6D) & 0xFFFFFFFF
    return (x ^ x >> 12) | 1


def total(values):
    return int((values.astype(np.uint64) * weights(len(values)) & 0xFFFFFFFF).sum() & 0xFFFFFFFF)


def halves(floats):
    bits = np.ascontiguousarray(floats, np.float32).view(np.uint32)
    return np.stack([bits & 0xFFFF, bits >> 16], axis=-1).ravel()


@pytest.mark.parametrize("game, steps, least", [("craftax", 200, 3), ("craftax_classic", 300, 12)])
def test_seeds_of_jax_are_those_of_the_original(game, steps, least):
    """Observations, rewards and ends equal the recordings of Craftax 1.6.1 in JAX, seed by seed and step by step."""
    data = (pathlib.Path(__file__).parents[3] / "tests/fixtures/envs" / f"{game}.bin").read_bytes()
    count, recorded, seed = np.frombuffer(data, "<u4", 3, 8)
    rows = np.frombuffer(data, np.uint8, offset=20).reshape(count, 4 + recorded * 9)         # first observation, actions, two sums a step
    envs = gym.make_vec(f"mneme/{game}-v1", num_envs=int(count), random="jax")
    obs, _ = envs.reset(seed=[int(seed) + e for e in range(count)])
    assert [total(halves(o)) for o in obs] == np.ascontiguousarray(rows[:, :4]).view("<u4").ravel().tolist()
    actions = rows[:, 4:4 + recorded]
    sums = np.ascontiguousarray(rows[:, 4 + recorded:]).view("<u4").reshape(count, recorded, 2)[:, :, 1]
    plain = [e for e in range(count) if actions[e, :steps].max() < envs.single_action_space.n]      # others are given things by the script
    assert len(plain) >= least
    ends = 0
    for t in range(steps):
        obs, reward, terminated, truncated, infos = envs.step(np.minimum(actions[:, t].astype(np.int64), envs.single_action_space.n - 1))
        assert not truncated.any()
        ends += int(terminated[plain].sum())
        for e in plain:
            after = np.concatenate([halves(reward[e:e + 1]), [int(terminated[e])]])
            last = infos["final_obs"][e] if terminated[e] else obs[e]
            assert (total(halves(last)) + total(after)) & 0xFFFFFFFF == sums[e, t], f"environment {e}, step {t}"
    assert ends > 0
    envs.close()


def test_another_thread_is_an_error():
    envs = mneme.MnemeVectorEnv("memory_maze", num_envs=512)
    envs.reset(seed=1)
    inside, done, errors = threading.Event(), threading.Event(), []

    def hold():
        with envs._envs.lock:
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    calls = [lambda: envs.step(np.zeros(512, int)), lambda: envs.reset(seed=1), envs.close, envs.truth, lambda: envs._envs.save(0),
             lambda: envs._envs.restore(0, b""), lambda: copy.deepcopy(envs._envs)]
    for call in calls:
        with pytest.raises(mneme.Error, match="another thread steps it"):
            call()
    done.set()
    thread.join()
    envs.step(np.zeros(512, int))

    stop = []

    def step():
        while not stop:
            time.sleep(0.001)
            try:
                envs.step(np.random.randint(0, int(envs.single_action_space.n), 512))
            except mneme.Error as e:
                errors.append(str(e))

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    done.clear()
    done.wait(1)
    closed = False
    until = time.monotonic() + 60
    while not closed and time.monotonic() < until:
        try:
            envs.close()
            closed = True
        except mneme.Error as e:
            errors.append(str(e))
    stop.append(1)
    for thread in threads:
        thread.join()
    assert closed and any("another thread steps it" in e for e in errors)
    assert all("another thread steps it" in e or "it has been closed" in e for e in errors)


@pytest.mark.parametrize("name", mneme.names())
def test_what_is_lent_cannot_be_taken_away(name):
    envs = mneme.MnemeVectorEnv(name, num_envs=8, copy=False, **settings(name))
    obs, _ = envs.reset(seed=1)
    shape = obs.shape
    array = obs
    while isinstance(array, np.ndarray):
        with pytest.raises(ValueError):
            array.resize((1,), refcheck=False)
        array = array.base
    with pytest.raises(BufferError):
        array.obj.clear()
    obs.shape = (-1,)
    for _ in range(50):
        obs, *_ = envs.step(draws(4, envs.single_action_space, 8))
    assert obs.shape == shape
    envs.close()


@pytest.mark.parametrize("name", mneme.names())
def test_numbers_that_no_float_holds_are_our_error(name):
    number = mneme.engine.lib.mn_env_find(name.split("-v")[0].encode())
    for key in mneme.engine.params_of(number):
        for value in (10**400, -(10**400), 2**63, 2**70, None, b"x", [], {}, np.array([1, 2]), "x\0y"):
            try:
                mneme.MnemeEnv(name, **{**settings(name), key: value}).close()
            except mneme.Error:
                pass
    env = mneme.MnemeEnv(name, **settings(name))
    env.reset(seed=1)
    for call in (lambda: env.set("cue", 10**400), lambda: env._envs.truth(2**32), lambda: env._envs.truth(-1)):
        with pytest.raises(mneme.Error):
            call()


class Odd:
    """An object that is none of what is expected, and whose array raises."""

    def __array__(self, *_, **__):
        raise ValueError("no array")


ODD = [1.5, True, None, b"tmaze", "x", "\0", "\ud800", [], [1, [2]], [[1], [1, 2]], (), {}, set(), Odd(), float("nan"), 2**70, -1, np.float64(1), np.array(2),
       np.array([1, 2]), np.array([[0, 1]]), np.array(["a"]), np.bool_(True), object()]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_arguments_of_every_call_are_our_error(value):
    one, many = mneme.MnemeEnv("tmaze"), mneme.MnemeVectorEnv("tmaze", num_envs=2)
    one.reset(seed=1)
    many.reset(seed=1)
    lines = NEEDS["gridworld-v0"]["map"]
    calls = [lambda: mneme.MnemeEnv(value), lambda: mneme.MnemeVectorEnv(value), lambda: mneme.MnemeVectorEnv("tmaze", num_envs=value),
             lambda: mneme.MnemeEnv("tmaze", time_limit=value), lambda: mneme.MnemeEnv("tmaze", size=value), lambda: mneme.MnemeVectorEnv("tmaze", size=value),
             lambda: mneme.MnemeEnv("tmaze", render_mode=value), lambda: mneme.MnemeVectorEnv("tmaze", render_mode=value),
             lambda: mneme.MnemeEnv("tmaze", corridor=value), lambda: mneme.MnemeEnv("gridworld", map=value),
             lambda: mneme.MnemeEnv("gridworld", map=lines, nosuch=value),
             lambda: one.reset(seed=value), lambda: one.reset(options=value), lambda: one.reset(options={"x": value}), lambda: one.step(value),
             lambda: one.restore(value), lambda: one.set(value, 1), lambda: one.set("position", value),
             lambda: many.reset(seed=value), lambda: many.reset(seed=[value, 1]), lambda: many.reset(options=value),
             lambda: many.reset(options={"reset_mask": value}), lambda: many.reset(seed=value, options={"reset_mask": np.array([True, False])}),
             lambda: many.step(value), lambda: many.step([value, 0]), lambda: many.truth(value)]
    for call in calls:
        try:
            call()
        except mneme.Error as e:
            assert len(str(e)) < 400, str(e)
    one.step(0)
    many.step([0, 1])


@pytest.mark.parametrize("make", [
    lambda: mneme.MnemeEnv("tmaze").reset(seed=1.5), lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(seed=1.5),
    lambda: mneme.MnemeVectorEnv("tmaze", num_envs=True),
    lambda: mneme.MnemeEnv(None), lambda: mneme.MnemeEnv(b"tmaze"), lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).step([[0], [0, 1]]),
    lambda: mneme.MnemeEnv("tmaze", size=None), lambda: mneme.MnemeVectorEnv("tmaze", num_envs=2).reset(seed=[True, 1])])
def test_an_error_says_what_was_given_and_what_was_expected(make):
    with pytest.raises(mneme.Error, match="(1.5|True|None|b'tmaze'|\\[\\[0\\], \\[0, 1\\]\\]).*expected"):
        make()


@pytest.mark.parametrize("before", [
    "mneme", "gymnasium, mneme", "mneme, gymnasium", "mneme, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium"])
def test_gymnasium_has_the_environments_in_either_order_and_is_not_imported_for_mneme_alone(before):
    done = subprocess.run([sys.executable, "-c", f"""if True:
        import {before}, sys
        print(sorted({{"numpy", "gymnasium"}} & {{*sys.modules}}), {{*mneme.__all__}} <= {{*dir(mneme)}}, mneme.Agent.__module__, mneme.envs.__name__)
        import gymnasium
        print(sorted(mneme.names()) == sorted(i[6:] for i in gymnasium.registry if i.startswith("mneme/")), gymnasium.make("mneme/tmaze-v0").reset(seed=1)[1])
    """], capture_output=True, text=True)
    loaded = [] if before == "mneme" else ["gymnasium", "numpy"]
    assert done.stdout == f"{loaded} True mneme.agent mneme.envs\nTrue {{}}\n", done.stderr


def test_version_is_the_checkouts():
    lua = pathlib.Path(__file__).resolve().parents[3] / "lua/mneme/base/version.lua"
    assert f'return "{mneme.__version__}"' in lua.read_text()
