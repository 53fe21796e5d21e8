#!/usr/bin/env python3
"""bench_peers.py -- training of small recurrent agents with other programs, on CartPole without velocities.

    python tests/reference/bench_peers.py NAME [STEPS=20000] [THREADS=1]

NAME: recurrent_ppo (sb3-contrib's RecurrentPPO, an LSTM of 64: it has no GRU), torch_ppo or torch_a2c (a plain loop with
nn.GRU of 64, as in CleanRL's ppo_atari_lstm.py).  8 environments x 128 steps; PPO: 4 epochs, 4 minibatches.  Prints
NAME STEPS PROCESSOR_SECONDS WALL_SECONDS of training without start and imports; `mneme bench peers` runs it by turns with Mneme.
"""
import sys
import time

import gymnasium
import numpy as np
import torch
from torch import nn

ENVS, STEPS, EPOCHS, MINIBATCHES, WIDTH = 8, 128, 4, 4, 64


class Positions(gymnasium.ObservationWrapper):
    """CartPole's place and angle only."""

    def __init__(self):
        super().__init__(gymnasium.make('CartPole-v1'))
        space = self.env.observation_space
        self.observation_space = gymnasium.spaces.Box(space.low[::2], space.high[::2])

    def observation(self, x):
        return x[::2]


class Clock:
    def __init__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def line(self, name, steps):
        print(name, steps, '%.4f' % (time.process_time() - self.cpu), '%.4f' % (time.perf_counter() - self.wall), flush=True)


def recurrent_ppo(steps):
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv
    model = RecurrentPPO('MlpLstmPolicy', DummyVecEnv([Positions] * ENVS), n_steps=STEPS, n_epochs=EPOCHS, device='cpu', seed=1,
                         batch_size=ENVS * STEPS // MINIBATCHES, policy_kwargs=dict(lstm_hidden_size=WIDTH, net_arch=[WIDTH], enable_critic_lstm=False,
                                                                                  shared_lstm=True))
    model.learn(ENVS * STEPS)
    clock, before = Clock(), model.num_timesteps
    model.learn(steps, reset_num_timesteps=False)
    clock.line('recurrent_ppo', model.num_timesteps - before)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(2, WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH)
        self.policy, self.value = nn.Linear(WIDTH, 2), nn.Linear(WIDTH, 1)

    def forward(self, x, done, h):
        """[T,B,2], [T,B], [1,B,WIDTH]: the state is zero where an episode begins."""
        x, rows = torch.relu(self.encoder(x)), []
        if x.shape[0] > 1 and not done.any():
            rows, h = self.gru(x, h)
            return self.policy(rows), self.value(rows)[..., 0], h
        for t in range(x.shape[0]):
            y, h = self.gru(x[t:t + 1], h * (1 - done[t])[None, :, None])
            rows.append(y)
        rows = torch.cat(rows)
        return self.policy(rows), self.value(rows)[..., 0], h


def advantages(reward, value, done, last, last_done, gamma=0.99, lam=0.95):
    out, gae = torch.zeros_like(reward), torch.zeros(reward.shape[1])
    for t in reversed(range(STEPS)):
        alive = 1 - (last_done if t == STEPS - 1 else done[t + 1])
        delta = reward[t] + gamma * (last if t == STEPS - 1 else value[t + 1]) * alive - value[t]
        out[t] = gae = delta + gamma * lam * alive * gae
    return out


def torch_loop(name, steps, ppo):
    envs = gymnasium.vector.SyncVectorEnv([Positions] * ENVS)
    agent = Agent()
    adam = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs, _ = envs.reset(seed=1)
    h, done, clock, trained = torch.zeros(1, ENVS, WIDTH), torch.zeros(ENVS), None, 0
    while clock is None or trained < steps:
        if clock is None and trained:
            clock, trained = Clock(), 0
        h0, kept = h, {k: [] for k in ('x', 'done', 'action', 'logp', 'value', 'reward')}
        for _ in range(STEPS):
            x = torch.as_tensor(np.asarray(obs), dtype=torch.float32)
            with torch.no_grad():
                logits, value, h = agent(x[None], done[None], h)
            dist = torch.distributions.Categorical(logits=logits[0])
            action = dist.sample()
            obs, reward, end, cut, _ = envs.step(action.numpy())
            row = (x, done, action, dist.log_prob(action), value[0], torch.as_tensor(reward, dtype=torch.float32))
            for k, v in zip(kept, row):
                kept[k].append(v)
            done = torch.as_tensor(end | cut, dtype=torch.float32)
        d = {k: torch.stack(v) for k, v in kept.items()}
        with torch.no_grad():
            _, last, _ = agent(torch.as_tensor(np.asarray(obs), dtype=torch.float32)[None], done[None], h)
        adv = advantages(d['reward'], d['value'], d['done'], last[0], done)
        returns = adv + d['value']
        for _ in range(EPOCHS if ppo else 1):
            order = torch.randperm(ENVS)
            for part in order.chunk(MINIBATCHES if ppo else 1):
                logits, value, _ = agent(d['x'][:, part], d['done'][:, part], h0[:, part])
                dist = torch.distributions.Categorical(logits=logits)
                logp, a = dist.log_prob(d['action'][:, part]), adv[:, part]
                if ppo:
                    a = (a - a.mean()) / (a.std() + 1e-8)
                    ratio = (logp - d['logp'][:, part]).exp()
                    policy = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
                else:
                    policy = -(logp * a).mean()
                loss = policy + 0.5 * ((value - returns[:, part]) ** 2).mean() - 0.01 * dist.entropy().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                adam.step()
        trained += ENVS * STEPS
    clock.line(name, trained)


def main():
    name, steps, threads = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    torch.set_num_threads(threads)
    if name == 'recurrent_ppo':
        recurrent_ppo(steps)
    elif name in ('torch_ppo', 'torch_a2c'):
        torch_loop(name, steps, name == 'torch_ppo')
    else:
        sys.exit('unknown peer ' + name)


if __name__ == '__main__':
    main()
