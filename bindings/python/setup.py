"""Puts the engine of this checkout (build/, made by `make`) into the package."""
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class WithEngine(build_py):
    def run(self):
        for name in ("libmneme.so", "libmneme_view.so"):
            built = ROOT / "build" / name
            if not built.exists():
                raise SystemExit(f"{built} is not there: run `make` in {ROOT} first")
            shutil.copy2(built, HERE / "mneme" / name)
        super().run()


VERSION = re.search(r'return "([^"]+)"', (ROOT / "lua/mneme/base/version.lua").read_text()).group(1)
setup(version=VERSION, cmdclass={"build_py": WithEngine})
