"""with_jax.py -- what the adapters of JAX libraries share: a pure function of parameters, inputs and a carry, as a memory."""
import jax
import jax.numpy as jnp


class JaxMemory:
    """apply(params, x [B,T,d_in], starts [B,T] bool, carry) -> (carry, y [B,T,...]); initial(batch) -> carry.  Compiled once for every shape."""

    dtype = "float32"

    def __init__(self, memory, library, version, d_in, params, apply, initial):
        self.memory, self.library, self.version, self.d_in, self.initial = memory, library, version, d_in, initial
        self._params, self._run = params, jax.jit(apply)

        def loss(params, x, starts, carry, w):
            return (apply(params, x, starts, carry)[1] * w).sum()

        self._slope = jax.jit(jax.grad(loss, argnums=(0, 1)))

    def sequence(self, x, done, state):
        state, y = self._run(self._params, jnp.asarray(x.swapaxes(0, 1), self.dtype), jnp.asarray(done.T), state)
        return jnp.swapaxes(y, 0, 1), state

    def step(self, x, state, done):
        y, state = self.sequence(x[None], done[None], state)
        return y[0], state

    def gradient(self, x, done, state, w):
        of_params, of_x = self._slope(self._params, jnp.asarray(x.swapaxes(0, 1), self.dtype), jnp.asarray(done.T), state,
                                      jnp.asarray(w.swapaxes(0, 1), self.dtype))
        found = {jax.tree_util.keystr(path): value for path, value in jax.tree_util.tree_flatten_with_path(of_params)[0]}
        return {**found, "x": of_x.swapaxes(0, 1)}
