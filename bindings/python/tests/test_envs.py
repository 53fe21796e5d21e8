"""Every environment passes Gymnasium's own checker; one environment, many environments and saved states agree bit for bit."""
import warnings

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


def test_checker(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(infinity|unbounded|Box observation|precision lowered).*")
        env = gym.make(f"mneme/{name}", render_mode="rgb_array", **settings(name))
        check_env(env.unwrapped, skip_render_check=False)
        env.close()


def test_singles_equal_vector(name):
    seeds = [3, 14, 15]
    many = gym.make_vec(f"mneme/{name}", num_envs=3, **settings(name))
    ones = [gym.make(f"mneme/{name}", disable_env_checker=True, **settings(name)).unwrapped for _ in seeds]
    obs, _ = many.reset(seed=seeds)
    for one, seed, row in zip(ones, seeds, obs):
        assert np.array_equal(one.reset(seed=seed)[0], row)
    actions = np.random.default_rng(1).integers(0, many.single_action_space.n, (300, 3))
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
                assert info["episode"]["l"] == infos["final_info"]["episode"]["l"][i]
                seen, _ = one.reset()
            assert np.array_equal(seen, obs[i])
    many.close()


def test_saved_worlds_go_on(name):
    env = mneme.MnemeEnv(name, **settings(name))
    env.reset(seed=5)
    actions = np.random.default_rng(2).integers(0, env.action_space.n, 40)
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
    (lambda: mneme.MnemeEnv("tmaze", render_mode="human"), "render_mode"),
    (lambda: mneme.MnemeEnv("tmaze").restore(b"nothing"), "restore"),
])
def test_mistakes_say_what_is_expected(make, words):
    with pytest.raises(mneme.Error, match=words):
        make()


def test_wrong_actions_and_closed_environments():
    env = mneme.MnemeEnv("tmaze", corridor=5)
    env.reset(seed=1)
    with pytest.raises(mneme.Error, match="action 9, expected 0 to 3"):
        env.step(9)
    env.close()
    env.close()
    with pytest.raises(mneme.Error, match="closed"):
        env.step(0)
