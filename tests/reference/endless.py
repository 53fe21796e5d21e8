"""endless.py -- memory-gym plays its endless tasks with our commands and paths: what it sees, pays and does, step by step.

What was played comes from tests/support/endless_plays.lua; rules and pictures from memory-gym, whose random draws are replaced by ours.

    python3 -m venv ~/memory-gym && ~/memory-gym/bin/pip install memory-gym==1.0.2
    ~/memory-gym/bin/python tests/reference/endless.py [FOLDER=tests/fixtures/envs]       # writes endless.json there
"""
import json
import os
import subprocess
import sys
import zlib

os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"
import numpy as np
from memory_gym import endless_mystery_path, pygame_assets
from memory_gym.endless_mortar_mayhem import EndlessMortarMayhemEnv
from memory_gym.pygame_assets import Command, Node


def theirs(settings):
    """Our settings as memory-gym has them."""
    yes = {"yes": True, "no": False}
    lists = ("explosion_delay", "explosion_duration", "command_show_duration", "command_show_delay")
    return {k: [v] if k in lists else yes.get(v, v) for k, v in settings.items()}


class Draws:
    """Draws of the place where an episode of Mortar Mayhem begins."""

    def __init__(self, x, y):
        x, y = round(x * 14 + 7), round(y * 14 + 7)
        self.tile, self.offset = x // 14 * 6 + y // 14, np.array([x % 14 - 7, y % 14 - 7])

    def integers(self, low, high=None, size=None):
        return self.tile if size is None else self.offset

    def choice(self, values):
        return values[0]


def mortar(episode, settings):
    env = EndlessMortarMayhemEnv()
    left = [list(Command.COMMANDS)[int(c)] for c in episode["command"] if c >= 0]
    env._generate_commands = lambda n: [left.pop(0) if left else "stay" for _ in range(n)]
    env._np_random = Draws(episode["x"][0], episode["y"][0])
    return env, env.reset(options=settings)[0], lambda a: [a // 3, a % 3], lambda: env._total_commands_completed


def mystery(episode, settings):
    def add_piece(self):
        s = self.num_segments
        if s < len(episode["pieces"]):
            place = {int(n): (i % 8, i // 8) for i, n in enumerate(episode["pieces"][s]) if n > 0}
            cells = [place[n] for n in sorted(place)]
        else:                          # never seen: straight on
            cells = [(x, self.row) for x in range(8)]
        nodes = [Node(x + 8 * s, y) for x, y in cells]
        before = self.path[-1][-1] if self.path else None
        for node in nodes:
            node.previous_node = before
            if before:
                before.next_node = node
            before = node
        self.path.append(nodes)
        self.row, self.num_segments = cells[-1][1], s + 1

    pygame_assets.EndlessMysteryPath.add_path_segment = add_piece
    env = endless_mystery_path.EndlessMysteryPathEnv()
    return env, env.reset(seed=0, options=settings)[0], lambda a: a, lambda: env.tiles_visited


def play(task, episode, settings):
    env, frame, action_of, count = task(episode, settings)
    log = {key: [] for key in ("x", "y", "heading", "count", "reward", "ended", "frame")}

    def note(picture):
        x, y = env.agent.rect.center
        log["x"].append(x)
        log["y"].append(y)
        log["heading"].append(env.agent.rotation // 45)
        log["count"].append(count())
        log["frame"].append(zlib.crc32(np.ascontiguousarray(picture.transpose(1, 0, 2)).tobytes()))

    note(frame)
    for action in episode["actions"]:
        frame, reward, done, _, _ = env.step(action_of(int(action)))
        note(frame)
        log["reward"].append(float(reward))
        log["ended"].append(int(done))
        if done:
            break
    log["actions"] = len(episode["actions"])
    return log


def main():
    run = subprocess.run(["luajit", "tests/support/endless_plays.lua"], capture_output=True, text=True, check=True,
                         env={**os.environ, "MNEME_BUILD": os.path.abspath("build")})
    fixture = []
    for played in json.loads(run.stdout):
        task = mortar if played["name"].startswith("mortar") else mystery
        settings = theirs(dict(played["settings"] or {}))
        episodes = [play(task, episode, settings) for episode in played["episodes"]]
        print(played["name"], played["settings"], [(len(e["reward"]), e["actions"], e["count"][-1]) for e in episodes])
        fixture.append({"name": played["name"], "episodes": episodes})
    with open((sys.argv[1] if len(sys.argv) > 1 else "tests/fixtures/envs") + "/endless.json", "w") as f:
        f.write(json.dumps(fixture, separators=(",", ":")) + "\n")


main()
