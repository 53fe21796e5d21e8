"""attention.py -- attention over a whole sequence, as its papers define it: q, k, v [B,H,N,dh] -> y [B,H,N,dh]."""
import torch


def inputs(kind):
    return ['q', 'k', 'v'] + (['q_global', 'k_global', 'v_global'] if kind == 'longformer' else [])


def attend(q, k, v, see=None):
    """Softmax attention; see [N,M] or [H,N,M]: who may look at whom."""
    score = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if see is not None:
        score = score.masked_fill(~see, float('-inf'))
    return torch.softmax(score, -1) @ v


def pairs(N, rule):
    return torch.tensor([[bool(rule(i, j)) for j in range(N)] for i in range(N)])


def linformer(net, cfg, q, k, v):
    """Wang et al. 2020: the N keys become cfg['k'] mixtures of them."""
    N = q.shape[2]
    e = net.param('e', cfg['k'], N)
    f = e if cfg['share'] else net.param('f', cfg['k'], N)
    return attend(q, e @ k, f @ v)


def nystromformer(net, cfg, q, k, v):
    """Xiong et al. 2021: softmax through landmarks, and the inverse of the middle matrix by iteration."""
    N, m = q.shape[2], cfg['landmarks']
    q, k = q / q.shape[-1] ** 0.25, k / q.shape[-1] ** 0.25
    mean = lambda x: x.unflatten(2, (m, N // m)).mean(3)
    soft = lambda a, b: torch.softmax(a @ b.transpose(-1, -2), -1)
    A, eye = soft(mean(q), mean(k)), torch.eye(m, dtype=q.dtype)
    columns = A.abs().sum(-2)
    Z = A.transpose(-1, -2) / (columns.amax() if cfg['pinv_scale'] == 'global' else columns.amax(-1)[..., None, None])
    for _ in range(cfg['iterations']):
        AZ = A @ Z
        Z = Z @ (13 * eye - AZ @ (15 * eye - AZ @ (7 * eye - AZ))) / 4
    y = soft(q, mean(k)) @ Z @ (soft(mean(q), k) @ v)
    n = cfg['conv_kernel']
    if n:
        conv = net.param('conv', q.shape[1], n)
        for j in range(n):
            shift = j - n // 2                      # y[t] += conv[j] v[t + shift]
            moved = torch.zeros_like(v)
            lo, hi = max(0, -shift), min(N, N - shift)
            moved[:, :, lo:hi] = v[:, :, lo + shift:hi + shift]
            y = y + conv[:, j, None, None] * moved
    return y


def longformer(net, cfg, q, k, v, q_global, k_global, v_global):
    """Beltagy et al. 2020: a (dilated) window and the first g positions; those see everything by maps of their own."""
    N, w, g, s, causal = q.shape[2], cfg['window'], cfg['globals'], cfg['dilation'], cfg['causal']

    def near(i, j):
        if j < g:
            return not causal or j <= i
        reach = 0 <= i - j < w * s if causal else abs(i - j) <= w // 2 * s
        return reach and (i - j) % s == 0

    local = attend(q, k, v, pairs(N, near))
    whole = attend(q_global, k_global, v_global, pairs(N, lambda i, j: not causal or j <= i))
    return torch.cat([whole[:, :, :g], local[:, :, g:]], 2)


def bigbird(net, cfg, q, k, v):
    """Zaheer et al. 2020, by blocks: neighbours, random blocks of every head, global blocks."""
    N, b, whole = q.shape[2], cfg['block'], cfg['global_blocks']

    def near(h):
        def rule(i, j):
            I, J = i // b, j // b
            ok = abs(I - J) <= 1 or J in cfg['random'][h][I] or I in whole or J in whole
            return ok and (not cfg['causal'] or j <= i)
        return rule

    return attend(q, k, v, torch.stack([pairs(N, near(h)) for h in range(q.shape[1])]))


KINDS = {'linformer': linformer, 'nystromformer': nystromformer, 'longformer': longformer, 'bigbird': bigbird}
