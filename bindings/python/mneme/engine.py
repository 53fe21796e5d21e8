"""engine.py -- the few functions of libmneme.so that environments need, by ctypes.

A library is looked for next to $MNEME_LIBRARY, in program/lib next to this file (where pip puts it; a wheel may hold the engine once for
each generation of CPUs), in the build folder of a checkout, and where the system keeps libraries.
"""
import ctypes as c
import numbers
import os
import re
from pathlib import Path


F32, I32, U8 = 0, 1, 2
MOST_AXES = 6


def version():
    """Mneme's version: the installed package's, else that of the checkout around this file."""
    from importlib import metadata          # takes twice as long as all else that `import mneme` adds to Gymnasium
    try:
        return metadata.version("mneme-rl")
    except metadata.PackageNotFoundError:
        text = (Path(__file__).resolve().parents[3] / "lua/mneme/base/version.lua").read_text()
        return re.search(r'return "([^"]+)"', text).group(1)


class Error(ValueError):
    """What the engine refused, in its own words."""


# As lua/mneme/base/engine.lua has them.
_GENERATIONS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
}


def _packaged(folder, name):
    """Where a wheel may hold a library, the one for this CPU first."""
    try:
        flags = set(re.search(r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.M).group(1).split())
    except (OSError, AttributeError):
        flags = set()
    return [folder / "glibc-hwcaps" / g / name for g, needs in _GENERATIONS.items() if needs <= flags] + [folder / name]


def _load(name):
    here = Path(__file__).resolve().parent
    told = os.environ.get("MNEME_LIBRARY")
    places = ([Path(told).parent / name] if told else []) + _packaged(here / "program/lib", name) + [here.parents[2] / "build" / name]
    for place in places:
        if place.exists():
            return c.CDLL(str(place), mode=c.RTLD_GLOBAL)
    try:
        return c.CDLL(name, mode=c.RTLD_GLOBAL)
    except OSError:
        raise ImportError(f"{name} was not found: run `make` in Mneme's checkout, or set MNEME_LIBRARY to the file") from None


_P, _S, _I, _D = c.c_void_p, c.c_char_p, c.c_int, c.c_double


class ActionSpace(c.Structure):
    """mn_action_space of mneme.h: kind 0 one whole number, 1 several, 2 floats between bounds."""

    _fields_ = [("kind", _I), ("size", _I), ("n", _I * 32), ("low", c.c_float * 32), ("high", c.c_float * 32)]


_SIGNATURES = {
    "mn_ctx_new": (_P, _S, _I), "mn_ctx_free": (None, _P), "mn_error": (_S, _P), "mn_env_count": (_I,), "mn_env_find": (_I, _S), "mn_env_name": (_S, _I),
    "mn_env_version": (_I, _I), "mn_env_params": (_S, _I), "mn_env_doc": (_S, _I), "mn_env_actions": (_S, _I),
    "mn_env_settable": (_S, _I), "mn_env_outcomes": (_S, _I), "mn_vec_new": (_P, _P, _I, _I, _D, _P, _S, _I), "mn_vec_free": (None, _P),
    "mn_vec_space": (_I, _P, _P, _P), "mn_vec_codes": (_I, _P), "mn_vec_action_space": (None, _P, _P),
    "mn_vec_time_limit": (_I, _P),
    "mn_vec_bytes": (_I, _P), "mn_vec_reset": (_I, _P, _D, _P), "mn_vec_reset_each": (_I, _P, _P, _P),
    "mn_vec_step": (_I, _P, _P, _P, _P, _P, _P), "mn_vec_final_obs": (_P, _P), "mn_vec_score": (_P, _P),
    "mn_vec_return": (_P, _P), "mn_vec_length": (_P, _P), "mn_vec_outcomes": (_P, _P), "mn_vec_save": (_I, _P, _I, _P),
    "mn_vec_restore": (_I, _P, _I, _P, _I, _P), "mn_vec_set": (_I, _P, _I, _S, _D, _P), "mn_vec_draw": (_P, _P, _I),
    "mn_vec_truth": (_I, _P, _I, _P, _P), "mn_canvas_new": (_P, _P), "mn_canvas_free": (None, _P), "mn_canvas_clear": (None, _P),
    "mn_canvas_append": (_I, _P, _P, c.c_float, c.c_float, c.c_float, c.c_float, c.c_float),
}
_VIEW = {
    "mn_raster_new": (_P, _P, _S), "mn_raster_free": (None, _P), "mn_raster_paint": (_I, _P, _P, c.c_uint32, _I, _I), "mn_raster_pixels": (_P, _P),
}


def _declare(library, signatures):
    for name, (result, *arguments) in signatures.items():
        f = getattr(library, name)
        f.restype, f.argtypes = result, arguments
    return library


lib = _declare(_load("libmneme.so"), _SIGNATURES)
_view = None


def new_ctx():
    """A context of the engine: memory and the text of the last error, so that no thread reads another's."""
    ctx = lib.mn_ctx_new(b"cpu", 1)
    if not ctx:
        raise Error(lib.mn_error(None).decode())
    return ctx


def view():
    """What paints: libmneme_view.so; an ImportError where it or FreeType is missing."""
    global _view
    if _view is None:
        try:
            _view = _declare(_load("libmneme_view.so"), _VIEW)
        except OSError as e:
            raise ImportError(f"pictures need libmneme_view.so with FreeType: {e}") from None
    return _view


def font():
    """The font of a wheel; empty: $MNEME_FONT or the system's."""
    bundled = Path(__file__).resolve().parent / "program/lib/bundled/DejaVuSans.ttf"
    return str(bundled).encode() if bundled.exists() and "MNEME_FONT" not in os.environ else b""


def check(ctx, result):
    """Turn a failure (-1 or NULL) of a call in this context into an Error; hand anything else through."""
    if result is None or result == -1:
        raise Error(lib.mn_error(ctx).decode())
    return result


def number(value, otherwise):
    """A number that the engine takes, as a float; what it is not is an Error, which says `otherwise`."""
    try:
        if isinstance(value, numbers.Real):
            return float(value)
    except OverflowError:
        pass
    raise Error(otherwise)


def params_of(number):
    """The parameters of an environment: name -> (default, choices or None)."""
    params = {}
    for name, rule in re.findall(r"(\w+)=(\S+)", lib.mn_env_params(number).decode()):
        default = rule.split("[")[0]
        if rule == '""':
            params[name] = ("", None)
        elif "[" in rule:
            params[name] = (float(default) if "." in default else int(default), None)
        else:
            params[name] = (rule.split("|")[0], rule.split("|"))
    return params


def names():
    """Every environment: "tmaze-v0", ..."""
    return [f"{lib.mn_env_name(i).decode()}-v{lib.mn_env_version(i)}" for i in range(lib.mn_env_count())]
