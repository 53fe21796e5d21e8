"""mystery_path.py -- memory-gym plays on our boards: what it sees, pays and does, step by step.

The boards come from build/mneme (their paths are compared by statistics alone, since random numbers differ), the
rules and the pictures from memory-gym, by way of the objects that its own reset makes.

    python3 -m venv ~/memory-gym && ~/memory-gym/bin/pip install memory-gym==1.0.2
    ~/memory-gym/bin/python tests/reference/mystery_path.py            # writes tests/fixtures/envs/mystery_path.json
"""
import json
import os
import random
import subprocess
import zlib

os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"
import numpy as np
import pygame
from memory_gym.character_controller import GridCharacterController
from memory_gym.mystery_path import MysteryPathEnv
from memory_gym.mystery_path_grid import GridMysteryPathEnv

EASY = {"show_origin": True, "show_goal": True, "reward_path_progress": 0.1}
# environment, our settings, theirs, seed, boards, how often an action is a random one
PLAYS = [
    ("mystery_path_grid", {}, {}, 1, 2, 0.6),
    ("mystery_path_grid", {"level": "easy"}, EASY, 2, 3, 0.4),
    ("mystery_path_grid", {"level": "easy", "show_origin": "no", "visual_feedback": "no", "reward_fall_off": -0.5},
     {**EASY, "show_origin": False, "visual_feedback": False, "reward_fall_off": -0.5}, 3, 1, 0.5),
    ("mystery_path", {}, {}, 4, 2, 0.8),
    ("mystery_path", {"level": "easy"}, EASY, 5, 2, 0.1),
]

BOARDS = """
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local json = require "mneme.base.json"
local asked = json.decode(arg[1])
asked.settings.num_envs, asked.settings.seed = asked.boards, asked.seed
local task = require("mneme.envs").new(asked.name, asked.settings)
task:reset()
local boards = {}
for i = 1, asked.boards do boards[i] = task:truth(i - 1) end
print(json.encode(boards))
"""


def our_boards(name, settings, seed, n):
    asked = json.dumps({"name": name, "settings": settings, "seed": seed, "boards": n})
    run = subprocess.run(["luajit", "-", asked], input=BOARDS, capture_output=True, text=True, check=True,
                         env={**os.environ, "MNEME_BUILD": os.path.abspath("build")})
    return json.loads(run.stdout)


def way_of(board):
    """Cells from start to goal: breadth first over the cells of the path."""
    cells = {(i % 7, i // 7) for i, on in enumerate(board["path"]) if on}
    start, goal = (int(board["start_x"]), int(board["start_y"])), (int(board["goal_x"]), int(board["goal_y"]))
    came, front = {start: None}, [start]
    while goal not in came:
        x, y = front.pop(0)
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if cell in cells and cell not in came:
                came[cell] = (x, y)
                front.append(cell)
    way = [goal]
    while came[way[-1]]:
        way.append(came[way[-1]])
    return way[::-1], cells


def place(env, board, settings):
    """Put our board in the place of the one that reset has made."""
    way, cells = way_of(board)
    env.reset(seed=0, options=settings)
    env.start, env.end = way[0], way[-1]
    made = env.mystery_path
    made.path = [made.grid[x][y] for x, y in [way[-1]] + sorted(cells - {way[0], way[-1]}) + [way[0]]]
    for node in made.path:
        node.is_wall = False           # of the board that was there: it would be painted red
    env.path_surface.fill(0)
    made.draw_to_surface(env.path_surface, env.tile_dim, env.reset_params["show_origin"], env.reset_params["show_goal"])
    if isinstance(env, GridMysteryPathEnv):
        env.agent = GridCharacterController(0.25, way[0], made.to_grid(env.tile_dim), 0)
        env.rotated_agent_surface, env.rotated_agent_rect = env.agent.get_rotated_sprite(0)
    else:
        env.agent.rect.center = tuple(c * env.tile_dim + env.agent.radius for c in way[0])
    env._draw_surfaces([(env.path_surface, (0, 0)), (env.rotated_agent_surface, env.rotated_agent_rect)])
    return way, pygame.surfarray.array3d(pygame.display.get_surface())


def choose(env, way):
    """The action that leads along the way (ours: one number)."""
    x, y = env.agent.rect.center
    here = (x // 12, y // 12)
    ahead = way[min(way.index(here) + 1, len(way) - 1)] if here in way else way[0]
    dx, dy = ahead[0] * 12 + 6 - x, ahead[1] * 12 + 6 - y
    if isinstance(env, GridMysteryPathEnv):
        want = {(0, -1): 0, (-1, 0): 90, (0, 1): 180, (1, 0): 270}.get((np.sign(dx), np.sign(dy)), 0)
        return {0: 3, 90: 1, 270: 2, 180: 1}[(want - env.agent.rotation) % 360]
    if abs(dx) >= abs(dy):
        dy = 0
    else:
        dx = 0
    return 3 * (0 if dx == 0 else 1 if dx < 0 else 2) + (0 if dy == 0 else 1 if dy < 0 else 2)


def play(name, settings, board, chance, rng):
    grid = name == "mystery_path_grid"
    env = (GridMysteryPathEnv if grid else MysteryPathEnv)()
    way, frame = place(env, board, settings)
    log = {key: [] for key in ("action", "x", "y", "heading", "reward", "fails", "frame")}

    def note(picture, **more):
        more.update(x=env.agent.rect.center[0], y=env.agent.rect.center[1], heading=env.agent.rotation // 45,
                    fails=env.num_fails, frame=zlib.crc32(np.ascontiguousarray(picture.transpose(1, 0, 2)).tobytes()))
        for key, value in more.items():
            log[key].append(value)

    note(frame)
    done = False
    while not done:
        action = rng.randrange(4 if grid else 9) if rng.random() < chance else choose(env, way)
        frame, reward, done, _, info = env.step(action if grid else (action // 3, action % 3))
        note(frame, action=action, reward=reward)
    log["success"], log["path"] = info["success"], [int(on) for on in board["path"]]
    return log


def main():
    rng, plays = random.Random(1), []
    for name, ours, theirs, seed, n, chance in PLAYS:
        episodes = [play(name, theirs, board, chance, rng) for board in our_boards(name, ours, seed, n)]
        print(name, ours, [(len(e["action"]), e["success"], e["fails"][-1]) for e in episodes])
        plays.append({"env": name, "settings": ours, "seed": seed, "episodes": episodes})
    with open("tests/fixtures/envs/mystery_path.json", "w") as f:
        f.write(json.dumps(plays, separators=(",", ":")) + "\n")


main()
