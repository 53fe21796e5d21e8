"""with_torch.py -- what the adapters of PyTorch libraries share: a module and a function of inputs and a state, as a memory."""
import numpy as np
import torch


torch.set_num_threads(1)


def numbers(a):
    """An array as a float32 tensor, which a caller may differentiate."""
    return torch.tensor(np.asarray(a), dtype=torch.float32)


class TorchMemory:
    """run(x [B,T,d_in], starts [B,T] bool, state) -> (y [B,T,...], state); act: the same for one step, where the library has another function for it.
    module: whose parameters have gradients.  ends: whether the library has flags for where an episode begins."""

    dtype = "float32"

    def __init__(self, memory, library, version, d_in, module, run, initial, act=None, ends=True):
        self.memory, self.library, self.version, self.d_in, self.initial, self.ends = memory, library, version, d_in, initial, ends
        self._module, self._run, self._act = module, run, act or run

    def _go(self, how, x, done, state):
        y, state = how(x, torch.tensor(done.T.copy()), state)
        return y.transpose(0, 1), state

    def sequence(self, x, done, state):
        with torch.no_grad():
            y, state = self._go(self._run, numbers(x.swapaxes(0, 1)), done, state)
        return y.numpy(), state

    def step(self, x, state, done):
        with torch.no_grad():
            y, state = self._go(self._act, numbers(x[:, None]), done[None], state)
        return y[0].numpy(), state

    def gradient(self, x, done, state, w):
        x = numbers(x.swapaxes(0, 1)).requires_grad_()
        self._module.zero_grad()
        y, _ = self._go(self._run, x, done, state)
        (y * numbers(w)).sum().backward()
        found = {name: p.grad.numpy().copy() for name, p in self._module.named_parameters() if p.grad is not None}
        return {**found, "x": x.grad.transpose(0, 1).numpy()}
