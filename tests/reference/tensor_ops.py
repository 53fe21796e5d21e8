"""tensor_ops.py -- what PyTorch computes, in float64, for elementwise ops, comparisons and reductions, with gradients.
Writes tests/fixtures/tensor_ops.json, which tests/engine/test_tensor_ops.lua reads:
    ~/torch/bin/python tests/reference/tensor_ops.py tests/fixtures/tensor_ops.json
"""
import json
import math
import sys

import torch

inf = float("inf")
cases = []


def cotangent(shape):
    n = math.prod(shape)
    return torch.tensor([((k * 37 + 11) % 19 - 9) / 9 for k in range(n)], dtype=torch.float64).reshape(shape)


def leaf(shape, values):
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def numbers(x):
    return ["nan" if math.isnan(v) else "inf" if v == inf else "-inf" if v == -inf else float(f"{v:.9g}") for v in x.reshape(-1).tolist()]


def case(op, inputs, f, *arguments, gradient=True):
    """op(inputs..., arguments...) of Mneme is f(inputs...) of PyTorch."""
    leaves = [x.clone().requires_grad_(gradient) if isinstance(x, torch.Tensor) else x for x in inputs]
    y = f(*leaves)
    one = {"op": op, "arguments": list(arguments), "inputs": [], "shape": list(y.shape) or [1], "y": numbers(y.double())}
    if gradient:
        y.backward(cotangent(tuple(y.shape)))
    for x in leaves:
        if not isinstance(x, torch.Tensor):
            one["inputs"].append(x)
            continue
        one["inputs"].append({"shape": list(x.shape), "data": numbers(x)} | ({"gradient": numbers(x.grad)} if gradient else {}))
    cases.append(one)


def spread(n, step=0.37, first=-2.9):
    return [first + step * k for k in range(n)]


x = leaf((3, 4), spread(12, 0.55))
positive = leaf((3, 4), spread(12, 0.31, 0.2))
halves = leaf((6,), [-2.5, -1.5, -0.2, 0.5, 1.5, 2.7])

for op, f in {"expm1": torch.expm1, "tan": torch.tan, "atan": torch.atan, "mish": torch.nn.functional.mish,
              "elu": torch.nn.functional.elu, "reciprocal": torch.reciprocal}.items():
    case(op, [x], f)
case("log1p", [positive], torch.log1p)
case("elu", [x], lambda v: torch.nn.functional.elu(v, 0.5), 0.5)
case("reciprocal", [x], lambda v: -3 / v, -3)
for op in "ceil", "trunc", "floor", "round":
    case(op, [halves], getattr(torch, op), gradient=False)

# Exponents: numbers of either side, and tensors; 0^0, 0^b and negative numbers to whole powers.
for p in 2, 3, 0.5, -1, -0.5, 1.7, 0:
    case("pow", [positive], lambda v, p=p: v ** p, p)
case("pow", [x], lambda v: v ** 3, 3)
case("pow", [2, x], lambda a, b: a ** b)
case("pow", [positive, leaf((4,), [-1, 0, 0.5, 2])], lambda a, b: a ** b)
case("power", [leaf((3,), [0, 0, 2]), leaf((3,), [0, 2, 0])], lambda a, b: a ** b)
case("atan2", [x, leaf((4,), [-1.5, 0.3, 2, -0.7])], torch.atan2)
case("maximum", [x, 0.1], lambda v, n: torch.maximum(v, torch.tensor(n, dtype=torch.float64)))
case("minimum", [0.1, x], lambda n, v: torch.minimum(torch.tensor(n, dtype=torch.float64), v))
case("div", [2, x], lambda n, v: n / v)

a = leaf((2, 3), [1, 2, 3, float("nan"), inf, -inf])
b = leaf((3,), [1, 3, inf])
for op in "eq", "ne", "lt", "le", "gt", "ge":
    case(op, [a, b], getattr(torch, op), gradient=False)
    case(op, [a, 2], getattr(torch, op), gradient=False)
    case(op, [2, a], lambda n, v, op=op: getattr(torch, op)(torch.tensor(n, dtype=torch.float64), v), gradient=False)
for op in "isnan", "isinf", "isfinite":
    case(op, [a], getattr(torch, op), gradient=False)

# Reductions over an axis, over several, neighbours or not, and over all.
r = leaf((2, 3, 2), [round(math.sin(1.7 * k + 0.3) * (2 if k % 5 else 1), 2) for k in range(12)])
for axes in (0,), (1,), (-1,), (0, 1), (1, 2), (0, 2), (-1, 0), (0, 1, 2):
    given = list(axes) if len(axes) > 1 else axes[0]
    keep = len(axes) % 2 == 0
    arguments = (given, keep)
    case("sum", [r], lambda v: v.sum(axes, keep), *arguments)
    case("mean", [r], lambda v: v.mean(axes, keep), *arguments)
    case("var", [r], lambda v: v.var(axes, keepdim=keep), *arguments)
    case("std", [r], lambda v: v.std(axes, correction=0, keepdim=keep), *arguments, 0)
    case("logsumexp", [r], lambda v: v.logsumexp(axes, keep), *arguments)
    case("max", [r], lambda v: v.amax(axes, keep), *arguments)
    case("min", [r], lambda v: v.amin(axes, keep), *arguments)
    for p in 1, 2, 3.5, inf:
        case("norm", [r], lambda v: torch.linalg.vector_norm(v, p, axes, keep), "inf" if p == inf else p, *arguments)
    if len(axes) == 1:
        case("prod", [r], lambda v: v.prod(axes[0], keep), *arguments)
        case("argmax", [r], lambda v: v.argmax(axes[0], keep), *arguments, gradient=False)
        case("argmin", [r], lambda v: v.argmin(axes[0], keep), *arguments, gradient=False)
for axis in 0, 1, -1:
    case("softmax", [r], lambda v: v.softmax(axis), axis)
    case("log_softmax", [r], lambda v: v.log_softmax(axis), axis)
case("prod", [leaf((4, 3), [2, 3, 4, 0, 5, 6, 0, 0, 7, -1, 2, 0.5])], lambda v: v.prod(1), 1)
case("norm", [leaf((2, 3), [0, 0, 0, -2, 2, 1])], lambda v: torch.linalg.vector_norm(v, 2, 1), 2, 1)
case("norm", [leaf((2, 3), [0, 0, 0, -2, 2, 1])], lambda v: torch.linalg.vector_norm(v, inf, 1), "inf", 1)
case("std", [leaf((2, 3), [1, 1, 1, -2, 2, 1])], lambda v: v.std(1), 1)
case("var", [leaf((1,), [3])], lambda v: v.var(0), 0, gradient=False)

with open(sys.argv[1], "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases")
