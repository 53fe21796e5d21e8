"""properties.py -- the contract: each property is measured as a relative error, and holds if that is within the tolerance of the dtype.

A property that a memory passes because it remembers nothing would say nothing: how much earlier inputs change later outputs is measured
first, and where that is below FLOOR times the tolerance the property is not tried.
"""
import numpy as np

from .memory import Memory
from .report import Report

# Two orders of the same sums, as a share of the largest output.
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 3e-2}
# Difference quotients: what they resolve of a gradient's length; what rounding leaves of a slope that is 0; and their step.
SLOPE = {"float64": (1e-5, 1e-6, 1e-4), "float32": (3e-2, 1e-3, 1e-2), "float16": (3e-1, 1e-1, 1e-1), "bfloat16": (3e-1, 1e-1, 1e-1)}
FLOOR = 20


class NotTried(Exception):
    """Why a property was not tried."""


class Bench:
    """A memory, its inputs, and what the properties share."""

    def __init__(self, memory, steps, streams, seed, long):
        self.memory, self.T, self.B, self.long = memory, steps, streams, long
        self.random = np.random.default_rng(seed)
        self.tolerance = TOLERANCE[memory.dtype]
        self.ways = [by for by in ("sequence", "step") if memory.has(by)]
        self.x = self.normal(steps)
        self.none = np.zeros((steps, streams), bool)
        self._warm = self.normal(5)
        self._past = {}

    def normal(self, steps, streams=None):
        return self.random.standard_normal((steps, streams or self.B, self.memory.d_in))

    def start(self, by=None, warm=None):
        """A state that the memory comes to after some steps; made again for every use, since a library may write into it."""
        warm = self._warm if warm is None else warm
        by = by or self.ways[0]
        return self.memory.run(warm, np.zeros(warm.shape[:2], bool), self.memory.initial(warm.shape[1]), by)[1]

    def ends(self):
        """done [T,B]: every stream but the last has ends at times of its own; all False if the library has none."""
        done = self.none.copy()
        if self.memory.ends:
            for b in range(max(1, self.B - 1)):
                done[[1 + b, self.T // 2 + 2 * b - 1, self.T - 1 - b], b] = True
        return done

    def end_at(self, k):
        done = self.none.copy()
        done[k] = True
        return done

    def past(self, by):
        """How far other inputs in the first half change the outputs of the second, as a share of the largest."""
        if by not in self._past:
            k = self.T // 2
            other = self.x.copy()
            other[:k] = self.normal(k)
            y, y2 = (self.memory.run(x, self.none, self.memory.initial(self.B), by)[0] for x in (self.x, other))
            self._past[by] = apart(y2[k:], y[k:])[0]
        return self._past[by]

    def needs_past(self, by):
        found, least = self.past(by), FLOOR * self.tolerance
        if not found >= least:
            raise NotTried(f"earlier inputs change later outputs by {found:.1e}, expected at least {least:.0e}: what remembers nothing would pass")

    def needs(self, *names):
        for name in names:
            if not self.memory.has(name):
                raise NotTried(f"no {name}")

    def needs_ends(self):
        if not self.memory.ends:
            raise NotTried("the library has no `done`")


def apart(got, want):
    """The largest difference as a share of the largest wanted value, and where it is: (error, "step 3, stream 1").  Other shapes, NaN: infinite."""
    if got.shape != want.shape:
        return float("inf"), f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.size == 0:
        return 0.0, ""
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        t, b = np.argwhere(~(np.isfinite(got) & np.isfinite(want)))[0][:2]
        return float("inf"), f"not finite at step {t}, stream {b}"
    difference = np.abs(got - want)
    at = np.unravel_index(np.argmax(difference), difference.shape)
    return float(difference.max() / max(np.abs(want).max(), 1e-30)), f"step {at[0]}, stream {at[1]}"


class Worst:
    """The largest of several errors, and where it was."""

    def __init__(self):
        self.error, self.where, self.tried, self.left_out = 0.0, "", 0, []

    def add(self, error, where):
        self.tried += 1
        if error > self.error or error != error:
            self.error, self.where = float(error), where

    def compare(self, got, want, what, first=0):
        error, where = apart(got, want)
        self.add(error, f"{what}, {where}")

    def each(self, bench, f):
        """f(by) for every way that the memory can be run; a way that cannot be tried is only named, unless none can."""
        for by in bench.ways:
            try:
                f(by)
            except NotTried as why:
                self.left_out.append(f"by {by}: {why}")
        if not self.tried:
            raise NotTried("; ".join(self.left_out))


# ---- the properties ----

def repeats(bench):
    """the same call twice gives the same values"""
    worst = Worst()

    def way(by):
        first, second = (bench.memory.run(bench.x, bench.ends(), bench.start(by), by)[0] for _ in range(2))
        worst.compare(second, first, f"by {by}")

    worst.each(bench, way)
    return worst


def steps(bench):
    """single steps equal the sequence"""
    bench.needs("step", "sequence")
    bench.needs_past("sequence")
    worst = Worst()
    for done in (bench.none, bench.ends()):
        want = bench.memory.run(bench.x, done, bench.memory.initial(bench.B), "sequence")[0]
        got = bench.memory.run(bench.x, done, bench.memory.initial(bench.B), "step")[0]
        worst.compare(got, want, "with ends" if done.any() else "without ends")
    return worst


def chunks(bench):
    """chunks that carry the state equal the whole"""
    bench.needs("sequence")
    bench.needs_past("sequence")
    worst = Worst()
    for done in (bench.none, bench.ends()):
        want = bench.memory.sequence(bench.x, done, bench.start("sequence"))[0]
        for cuts in [[t] for t in (1, 2, bench.T // 2, bench.T - 1)] + [list(range(1, bench.T)), list(range(5, bench.T, 5))]:
            state, rows = bench.start("sequence"), []
            for t0, t1 in zip([0, *cuts], [*cuts, bench.T]):
                y, state = bench.memory.sequence(bench.x[t0:t1], done[t0:t1], state)
                rows.append(y)
            worst.compare(np.concatenate(rows), want, f"cut at {cuts[0]}" if len(cuts) == 1 else f"chunks of {cuts[0]}")
    return worst


def handover(bench):
    """steps go on from a sequence's state, and a sequence from steps'"""
    bench.needs("step", "sequence")
    bench.needs_past("sequence")
    worst, k, done = Worst(), bench.T // 2 + 1, bench.ends()
    want = bench.memory.sequence(bench.x, done, bench.memory.initial(bench.B))[0]
    for first, then in (("sequence", "step"), ("step", "sequence")):
        y, state = bench.memory.run(bench.x[:k], done[:k], bench.memory.initial(bench.B), first)
        y2 = bench.memory.run(bench.x[k:], done[k:], state, then)[0]
        worst.compare(np.concatenate([y, y2]), want, f"{first}, then {then} from {k}")
    return worst


def reset(bench):
    """an end is a fresh start"""
    bench.needs_ends()
    worst = Worst()

    def way(by):
        bench.needs_past(by)
        for k in (0, 1, bench.T // 2, bench.T - 1):
            got = bench.memory.run(bench.x, bench.end_at(k), bench.start(by), by)[0][k:]
            want = bench.memory.run(bench.x[k:], bench.none[k:], bench.memory.initial(bench.B), by)[0]
            worst.compare(got, want, f"by {by}, end at {k}")

    worst.each(bench, way)
    return worst


def forwards(bench):
    """nothing leaks forwards over an end"""
    bench.needs_ends()
    worst = Worst()

    def way(by):
        bench.needs_past(by)
        done = bench.ends()
        want = bench.memory.run(bench.x, done, bench.start(by), by)[0]
        for b in range(bench.B):
            for k in np.flatnonzero(done[:, b]):
                other = bench.x.copy()
                other[:k, b] = 3 * bench.normal(k)[:, b]
                got = bench.memory.run(other, done, bench.start(by, 3 * bench._warm[::-1]), by)[0]
                worst.compare(got[k:, b:b + 1], want[k:, b:b + 1], f"by {by}, other inputs of stream {b} before {k}")

    worst.each(bench, way)
    return worst


def gradient(bench):
    """no gradient crosses an end"""
    bench.needs_ends()
    if bench.memory.has("gradient"):
        return _gradient_given(bench)
    worst, k = Worst(), bench.T // 2
    _, tolerance, h = SLOPE[bench.memory.dtype]

    def way(by):
        bench.needs_past(by)
        for n in range(3):
            moved = bench.x.copy()
            moved[:k] += h * np.sign(bench.normal(k))
            flow = []
            for done in (bench.none, bench.end_at(k)):
                y, y2 = (bench.memory.run(x, done, bench.start(by), by)[0][k:] for x in (bench.x, moved))
                flow.append(np.abs(y2 - y).max() / h if np.isfinite(y2 - y).all() else float("inf"))
            if not flow[0] > 0:
                raise NotTried("no slope reaches over the same step without an end")
            worst.add(flow[1] / flow[0], f"by {by}, end at {k}, direction {n}")

    worst.each(bench, way)
    worst.tolerance, worst.how = tolerance, "difference quotients: the slope over an end, as a share of that without one"
    return worst


def _gradient_given(bench):
    worst = Worst()
    for k in (1, bench.T // 2):
        w = bench.weights()
        w[:k] = 0
        free, cut = (bench.memory.gradient(bench.x, done, bench.start("sequence" if bench.memory.has("sequence") else "step"), w)["x"][:k]
                     for done in (bench.none, bench.end_at(k)))
        flow = np.abs(free).max()
        if not flow > 0:
            raise NotTried(f"no gradient reaches over step {k} without an end")
        worst.add(np.abs(cut).max() / flow if np.isfinite(cut).all() else float("inf"), f"end at {k}")
    worst.how = "the library's gradient: what crosses an end, as a share of that without one"
    return worst


def slope(bench):
    """the gradient is the slope of the values"""
    bench.needs("gradient")
    worst, done, w, by = Worst(), bench.ends(), bench.weights(), bench.ways[0]
    tolerance, _, first = SLOPE[bench.memory.dtype]
    g = bench.memory.gradient(bench.x, done, bench.start(by), w)
    if "x" not in g:
        raise NotTried("gradient gives none of x")
    g, n = g["x"], bench.x.size
    length = np.sqrt((g * g).sum())
    if not length > 0:
        raise NotTried("the gradient of x is 0")

    def loss(x):
        return float((w * bench.memory.run(x, done, bench.start(by), by)[0]).sum())

    for name, v in [("along the gradient", g / length * np.sqrt(n))] + [(f"direction {i}", np.sign(bench.normal(bench.T))) for i in range(3)]:
        mine = float((g * v).sum())
        scale = max(length, abs(mine))
        # Kinks and sharp curves: a smaller step may lie between them.  Three steps in a row that agree say that a gradient is wrong, unless the
        # last four still come nearer to it.
        d = np.array([(loss(bench.x + h * v) - loss(bench.x - h * v)) / (2 * h) for h in first / 2.0 ** np.arange(10)])
        errors = np.abs(np.concatenate([d, (4 * d[1:] - d[:-1]) / 3]) - mine)
        differ = min(np.ptp(d[i:i + 3]) for i in range(8)) if np.isfinite(d).all() else float("inf")
        e = errors[:10]
        nearing = (e[-3:] < e[-4:-1]).all() and e[-1] < 0.85 * e[-4]
        if not np.isfinite(errors).all():
            worst.add(float("inf"), name)
        elif min(errors) <= tolerance * scale or differ <= tolerance * scale and not nearing:
            worst.add(min(errors) / scale, name)
        else:                                                   # a curve so sharp, or so rough, that no two steps agree on its slope
            worst.left_out.append(f"{name}: two steps of quotients differ by {differ / scale:.1e}")
    if not worst.tried:
        raise NotTried("difference quotients resolve no slope")
    worst.tolerance, worst.how = tolerance, "difference quotients of x, as a share of the gradient's length"
    return worst


def online(bench):
    """an online gradient equals backpropagation"""
    bench.needs("online", "gradient")
    worst, w, by = Worst(), bench.weights(), bench.ways[0]
    for done in (bench.none, bench.ends()):
        got = bench.memory.online(bench.x, done, bench.memory.initial(bench.B), w)
        want = bench.memory.gradient(bench.x, done, bench.memory.initial(bench.B), w)
        both = sorted((set(got) & set(want)) - {"x"})
        if not both:
            raise NotTried("online and gradient have no parameter's name in common")
        for name in both:
            if not np.abs(want[name]).max() > 0:
                continue
            a, b = got[name], want[name]
            error = float("inf") if a.shape != b.shape or not np.isfinite(a).all() else np.abs(a - b).max() / np.abs(b).max()
            worst.add(error, f"{name}, {'with' if done.any() else 'without'} ends")
    if not worst.tried:
        raise NotTried("every parameter's gradient is 0")
    return worst


def endless(bench):
    """endless streams stay finite"""
    worst, largest = Worst(), 0.0

    def way(by):
        nonlocal largest
        total = bench.long if by == "sequence" else max(1, bench.long // 4)
        chunk, state, kinds = 64, bench.memory.initial(4), np.array([1.0, 0.0, 0.0, 10.0])
        for t0 in range(0, total, chunk):
            x = bench.normal(min(chunk, total - t0), 4) * kinds[:, None] + np.array([0.0, 1.0, 0.0, 0.0])[:, None]
            y, state = bench.memory.run(x, np.zeros(x.shape[:2], bool), state, by)
            bad = ~np.isfinite(y)
            if bad.any():
                t, b = np.argwhere(bad)[0][:2]
                what = ("random", "constant", "zero", "large random")[b]
                worst.add(float("inf"), f"by {by}, not finite at step {t0 + t} of {what} inputs")
                return
            largest = max(largest, float(np.abs(y).max()))
            worst.add(0.0, "")

    worst.each(bench, way)
    worst.tolerance, worst.how = 0.0, f"{bench.long} steps; the largest output was {largest:.2g}"
    return worst


def batch(bench):
    """streams do not mix"""
    if bench.B < 2:
        raise NotTried("one stream")
    worst = Worst()

    def way(by):
        done = bench.ends()
        want = bench.memory.run(bench.x, done, bench.start(by), by)[0]
        for b in range(bench.B):
            x, warm, flags, rest = bench.x.copy(), bench._warm.copy(), done.copy(), np.arange(bench.B) != b
            x[:, b], warm[:, b] = 3 * bench.normal(bench.T)[:, b], -warm[:, b]
            if bench.memory.ends:
                flags[bench.T // 3, b] = not flags[bench.T // 3, b]
            got = bench.memory.run(x, flags, bench.start(by, warm), by)[0]
            own = apart(got[:, b:b + 1], want[:, b:b + 1])[0]
            if not own >= FLOOR * bench.tolerance:
                raise NotTried(f"other inputs of a stream change its own outputs by {own:.1e}")
            worst.compare(got[:, rest], want[:, rest], f"by {by}, other inputs of stream {b}")
            alone = bench.memory.run(bench.x[:, b:b + 1], done[:, b:b + 1], bench.start(by, bench._warm[:, b:b + 1]), by)[0]
            worst.compare(alone, want[:, b:b + 1], f"by {by}, stream {b} alone")

    worst.each(bench, way)
    return worst


def _weights(bench):
    y = bench.memory.run(bench.x, bench.none, bench.start(bench.ways[0]), bench.ways[0])[0]
    return bench.random.standard_normal(y.shape)


Bench.weights = _weights

PROPERTIES = (repeats, steps, chunks, handover, reset, forwards, gradient, slope, online, endless, batch)


def check(memory, steps=24, streams=3, seed=0, long=2048, tolerance=None, only=None):
    """Measure every property of a memory.

    memory: what the package's docstring lists.  steps, streams: of the inputs, standard normal numbers of a seed; long: steps of an endless stream (a
    quarter of them where it acts step by step).  tolerance: in place of the one of the dtype.  only: names of properties.  Returns a Report.
    """
    memory = memory if isinstance(memory, Memory) else Memory(memory)
    if memory.dtype not in TOLERANCE:
        raise TypeError(f"the memory's dtype is {memory.dtype!r}, expected one of {', '.join(TOLERANCE)}")
    for name, value, least in (("steps", steps, 12), ("streams", streams, 1), ("long", long, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} is {value!r}, expected a whole number of {least} or more")
    known = [p.__name__ for p in PROPERTIES]
    for name in only or ():
        if name not in known:
            raise ValueError(f"unknown property {name!r}, expected one of {', '.join(known)}")
    if streams > steps // 6:
        raise ValueError(f"streams is {streams}, expected at most a sixth of steps, {steps // 6}")
    rows, moves = [], None
    for n, measure in enumerate(PROPERTIES):
        if only and measure.__name__ not in only and measure is not repeats:
            continue
        bench = Bench(memory, int(steps), int(streams), [seed, 0], int(long))
        bench.random = np.random.default_rng([seed, 1 + n])       # a property's numbers do not depend on those before it
        if tolerance is not None:
            bench.tolerance = float(tolerance)
        row = {"property": measure.__name__, "about": measure.__doc__}
        try:
            if moves:
                raise NotTried(moves)
            found = measure(bench)
            within = getattr(found, "tolerance", bench.tolerance)
            row.update(verdict="holds" if found.error <= within else "fails", error=found.error, tolerance=within, where=found.where)
            if hasattr(found, "how"):
                row["how"] = found.how
            if found.left_out:
                row["left_out"] = found.left_out
            if measure is repeats and row["verdict"] == "fails":
                moves = f"two equal calls differ by {found.error:.1e}"
        except NotTried as why:
            row.update(verdict="not tried", why=str(why))
        except Exception as e:                                    # of the library's: named, and no pass
            row.update(verdict="raised", why=f"{type(e).__name__}: {str(e).strip().splitlines()[0][:300] if str(e).strip() else ''}")
            if measure is repeats:
                moves = "it cannot be called"
        rows.append(row)
    settings = {"steps": int(steps), "streams": int(streams), "seed": seed, "long": int(long)}
    return Report(memory, settings, [r for r in rows if not only or r["property"] in only])
