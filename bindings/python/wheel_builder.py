"""wheel_builder.py -- what pip calls (PEP 517): a wheel `mneme_rl` with the whole program (as `make dist` packs it, in mneme/program), a
command `mneme` that runs it, the Python package, which uses the same libraries, and memory_contract.

The program comes from $MNEME_DIST (`make wheel`), or is built for this machine's CPU.  One built so gets the tag linux_MACHINE; one with an
engine for each generation of CPUs gets manylinux_2_N_MACHINE, where 2.N is the oldest glibc that all of its libraries run with.
"""
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "contract"))
import wheel_writer  # noqa: E402
VERSION = re.search(r'return "([^"]+)"', (ROOT / "lua/mneme/base/version.lua").read_text()).group(1)
METADATA = f"""Metadata-Version: 2.1
Name: mneme-rl
Version: {VERSION}
Summary: A sandbox for reinforcement-learning agents that must remember: the program mneme, and its environments for Gymnasium
License: MIT
Requires-Python: >=3.9
Requires-Dist: numpy
Requires-Dist: gymnasium>=1.1
"""
# Where pip puts it, Python's own folders say where the package is; nothing is imported, so that the program starts at once.
COMMAND = """#!python
import os
import sys

for folder in sys.path:
    program = os.path.join(folder, "mneme/program/bin/mneme")
    if os.access(program, os.X_OK):
        os.execv(program, sys.argv)
sys.exit("mneme: its program is not where pip put it: pip install --force-reinstall mneme-rl")
"""


def _program():
    """The folder of the program, and the oldest glibc that it runs with."""
    if platform.libc_ver()[0] != "glibc":
        raise SystemExit("mneme-rl: this system's C library is not glibc (Alpine, musl), expected glibc 2.34 or newer: Debian 12, Ubuntu 22.04, RHEL 9 ...")
    folder = os.environ.get("MNEME_DIST")
    if not folder:
        if not shutil.which("make"):
            raise SystemExit("mneme-rl: no wheel is for this machine, and to build it `make` is missing (Debian: apt-get install make; then make deps)")
        at = os.path.relpath(os.environ.get("MNEME_BUILD") or ROOT / "build", ROOT)        # as `make` calls it, so that nothing is built again
        env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
        done = subprocess.run(["make", "-s", "-C", ROOT, f"B={at}", "FOR=native", "dist-folder"], env=env, text=True, stdout=subprocess.PIPE)
        if done.returncode:
            raise SystemExit(f"mneme-rl: `make` in {ROOT} failed, for the reason above (make deps installs what it needs)")
        folder = done.stdout.strip().splitlines()[-1]
    said = (Path(folder) / "README.txt").read_text()
    return Path(folder), re.search(r"glibc ([\d.]+)", said).group(1), re.search(r" on (\w+):", said).group(1)


def _kept(file):
    """Is a file of the tarball in the wheel?  Not the pages' pictures, which fill 3 MB, nor Lua as bytecode, 2 MB, nor what a link leads to, which is there."""
    picture = "share/doc" in str(file) and file.suffix in (".png", ".gif", ".svg")
    return file.is_file() and not picture and file.name != "bytecode" and "share/lua/5.1" not in str(file)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder, glibc, machine = _program()
    portable = "linux" if folder.name.endswith("-native") else f"manylinux_{glibc.replace('.', '_')}"
    files = {f"mneme/{f.name}": f for f in sorted((HERE / "mneme").glob("*.py"))}
    files.update({f"mneme/program/{f.relative_to(folder)}": f for f in sorted(folder.rglob("*")) if _kept(f)})
    files = {name: (f.read_bytes(), os.access(f, os.X_OK) and f.parent.name == "bin") for name, f in files.items()}
    files[f"mneme_rl-{VERSION}.data/scripts/mneme"] = COMMAND.encode(), True
    files.update({name: (data, False) for name, data in wheel_writer.package().items()})
    runs = {name for name, (_, run) in files.items() if run}
    return wheel_writer.write(wheel_directory, f"py3-none-{portable}_{machine}", METADATA, {name: data for name, (data, _) in files.items()}, runs)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """`pip install -e`: the package of this checkout, which finds the engine in build/."""
    script = f'#!/bin/sh\nexec "{ROOT}/build/mneme" "$@"\n'.encode()
    files = {"mneme.pth": f"{HERE}\n{HERE.parent / 'contract'}\n".encode(), f"mneme_rl-{VERSION}.data/scripts/mneme": script}
    return wheel_writer.write(wheel_directory, "py3-none-any", METADATA, files, {f"mneme_rl-{VERSION}.data/scripts/mneme"})


def build_sdist(sdist_directory, config_settings=None):
    """The tree as it is committed: where no wheel fits, pip builds it, or prints what is missing."""
    name = f"mneme_rl-{VERSION}"
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, text=True, stdout=subprocess.PIPE).stdout
    backend = (HERE / "pyproject.toml").read_text().replace('["."]', '["bindings/python"]')
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for file in listed.split("\0"):
            if file and (ROOT / file).exists() and not file.startswith("tests/fixtures/"):
                out.add(ROOT / file, f"{name}/{file}", recursive=False)
        for file, text in (("PKG-INFO", METADATA), ("pyproject.toml", backend)):
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size = len(text.encode())
            out.addfile(entry, io.BytesIO(text.encode()))
    return f"{name}.tar.gz"
