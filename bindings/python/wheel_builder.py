"""wheel_builder.py -- what pip calls (PEP 517): a wheel with the package, memory_contract, the engine that `make` built, and the
libraries that it needs.

The engine comes from build/, or from $MNEME_LIB (`make wheel`).  One built for this machine's CPU gets the tag linux_MACHINE; one with
an engine for each generation of CPUs gets manylinux_2_N_MACHINE, where 2.N is the oldest glibc that all of its libraries run with.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "contract"))
import wheel_writer  # noqa: E402
VERSION = re.search(r'return "([^"]+)"', (ROOT / "lua/mneme/base/version.lua").read_text()).group(1)
METADATA = f"""Metadata-Version: 2.1
Name: mneme
Version: {VERSION}
Summary: Mneme's memory environments as Gymnasium environments
License: MIT
Requires-Python: >=3.9
Requires-Dist: numpy
Requires-Dist: gymnasium>=1.1
"""


def _libraries(folder):
    """Put the engine and what it needs into a folder; returns the wheel's tag."""
    lib = Path(os.environ.get("MNEME_LIB") or ROOT / "build")
    engines = [lib / "libmneme.so", lib / "libmneme_view.so", *sorted(lib.glob("glibc-hwcaps/*/libmneme.so"))]
    ours = []
    for engine in engines:
        if not engine.exists():
            raise SystemExit(f"{engine} is not there: run `make` in {ROOT} first")
        ours.append(folder / engine.relative_to(lib))
        ours[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(engine, ours[-1])
    subprocess.run(["strip", "--strip-unneeded", *ours], check=True)
    glibc = subprocess.run([ROOT / "bindings/bundle.sh", folder / "bundled", *ours], check=True, text=True, stdout=subprocess.PIPE).stdout
    portable = f"manylinux_{glibc.strip().replace('.', '_')}" if len(engines) > 2 else "linux"
    return f"py3-none-{portable}_{platform.machine()}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        tag = _libraries(Path(folder))
        files = {f"mneme/{f.name}": f.read_bytes() for f in sorted((HERE / "mneme").glob("*.py"))}
        files.update({f"mneme/{f.relative_to(folder)}": f.read_bytes() for f in sorted(Path(folder).rglob("*")) if f.is_file()})
        return wheel_writer.write(wheel_directory, tag, METADATA, {**files, **wheel_writer.package()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """`pip install -e`: the package of this checkout, which finds the engine in build/."""
    return wheel_writer.write(wheel_directory, "py3-none-any", METADATA, {"mneme.pth": f"{HERE}\n{HERE.parent / 'contract'}\n".encode()})
