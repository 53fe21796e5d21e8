"""python -m memory_contract FACTORY [NAME=VALUE ...]: measure a memory from a shell."""
import argparse
import os
import sys

from . import PROPERTIES, __version__, check, load

ABOUT = """\
Does a memory act as it learns?  FACTORY is MODULE:NAME or FILE.py:NAME, a function that returns a memory (pydoc memory_contract lists its
members); NAME=VALUE are its arguments.  Cores of Mneme: memory_contract.adapters.mneme:core name=gru.

properties:
""" + "\n".join(f"  {p.__name__:10s}{p.__doc__}" for p in PROPERTIES) + """

exit status: 0 every property that was tried holds; 1 one fails or raised; 2 none was tried, or the command is wrong."""


def _value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m memory_contract", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factory", metavar="FACTORY")
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--json", metavar="FILE", help="write the report as one line of JSON; -: to standard output, in place of the lines")
    parser.add_argument("--append", action="store_true", help="append to the file of --json")
    parser.add_argument("--only", metavar="NAMES", help="comma-separated properties")
    parser.add_argument("--steps", type=int, default=24, help="length of a sequence (24)")
    parser.add_argument("--streams", type=int, default=3, help="streams of a batch (3)")
    parser.add_argument("--long", type=int, default=2048, help="steps of an endless stream (2048)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (0)")
    parser.add_argument("--tolerance", type=float, help="in place of the dtype's: float64 1e-9, float32 1e-4, half precision 3e-2")
    parser.add_argument("--version", action="version", version=f"memory_contract {__version__}")
    o = parser.parse_intermixed_args(words)
    try:
        pairs = [word.split("=", 1) for word in o.settings]
        wrong = [pair[0] for pair in pairs if len(pair) != 2]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no setting, expected NAME=VALUE")
        memory = load(o.factory, {name: _value(text) for name, text in pairs})
        report = check(memory, o.steps, o.streams, o.seed, o.long, o.tolerance, o.only.split(",") if o.only else None)
    except (ImportError, ValueError, TypeError) as e:
        print(f"{o.factory}: {e}", file=sys.stderr)
        return 2
    report.command = " ".join(["python -m memory_contract", o.factory, *o.settings])
    if o.json:
        with os.fdopen(os.dup(1), "w") if o.json == "-" else open(o.json, "a" if o.append else "w") as out:
            out.write(report.json() + "\n")
    if o.json != "-":
        print(report.text())
    return report.status


if __name__ == "__main__":
    sys.exit(main())
