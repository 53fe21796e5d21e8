"""approximations.py -- what stands in for the matrix of gated linear attention: random signs, and low rank.

Random signs.  nu_m of a step is bit m of the Philox4x32-10 stream (Salmon et al. 2011) whose key is the seed and whose
counter is (tick low, tick high, copy, 0xA0000000 + block), 128 bits a block; 1 means +1.

Low rank.  C^ = decay * C + write, then C' = C^ - (1 - P) C^ (1 - Q), where P and Q project onto the r leading singular
directions of C^ and are constants to the gradient.  In value this is the nearest matrix of rank r.  Files hold it as
U W^T; while a column of both is zero the new one takes its place, and nothing is cut.
"""
import torch

MASK = 0xFFFFFFFF


def philox(key, counter):
    """Four words of Philox4x32-10."""
    (k0, k1), (a, b, c, d) = key, counter
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & MASK, (p >> 32) ^ d ^ k1, p & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return a, b, c, d


def sign(seed, copy, tick, m):
    words = philox((seed & MASK, seed >> 32), (tick & MASK, tick >> 32, copy, 0xA0000000 + m // 128))
    return 1.0 if words[m % 128 // 32] >> m % 32 & 1 else -1.0


def signs(cfg):
    """Functions of the clock [B], as the waves of the cosine forms are."""
    return [lambda tick, m=m: torch.tensor([sign(cfg['seed'], b, int(t), m) for b, t in enumerate(tick)], dtype=torch.float64)
            for m in range(cfg['r'])]


def cut(C, U, W, r):
    """C [..,V,K] with a gradient, and its factors U [..,V,r+1], W [..,K,r+1] without, cut back to rank r."""
    with torch.no_grad():
        free = ((U[..., :r] == 0).all(-2) & (W[..., :r] == 0).all(-2))                       # [..,r]
        left, sigma, right = torch.linalg.svd((U @ W.mT).double(), full_matrices=False)
        left, sigma, right = (torch.nn.functional.pad(z, (0, max(0, r - sigma.shape[-1])))[..., :r] for z in (left, sigma, right.mT))
        kept = (sigma > 1e-7 * sigma[..., :1]) & (sigma > 1e-37)
        root = torch.where(kept, sigma, torch.zeros_like(sigma)).sqrt()[..., None, :]
        left, right = left * kept[..., None, :], right * kept[..., None, :]
        mixture = torch.where(kept[..., None, :], W.double().mT @ right, 0.0)                # A, up to positive factors
        turn = torch.where(mixture.gather(-2, mixture.abs().argmax(-2, keepdim=True)) < 0, -1.0, 1.0)
        U_new, W_new = (left * root * turn).to(U.dtype), (right * root * turn).to(U.dtype)
        corners = [torch.eye(z.shape[-2], dtype=torch.float64) - z @ z.mT for z in (left, right)]
        place = torch.nn.functional.one_hot(free.to(torch.int64).argmax(-1), r).bool() & free    # the first free one
        some = free.any(-1)[..., None, None]
        U_out, W_out = (torch.where(some, torch.where(place[..., None, :], z[..., r:], z[..., :r]), new)
                        for z, new in ((U, U_new), (W, W_new)))
        off, on = (torch.where(some, 0.0, z).to(C.dtype) for z in corners)
    return C - off @ C @ on, U_out, W_out
