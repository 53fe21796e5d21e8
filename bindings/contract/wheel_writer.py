"""wheel_writer.py -- writes a wheel, and is what pip calls (PEP 517) for this package alone; ../python/wheel_builder.py uses it, too."""
import base64
import hashlib
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "([^"]+)"', (HERE / "memory_contract/__init__.py").read_text()).group(1)
METADATA = f"""Metadata-Version: 2.1
Name: memory_contract
Version: {VERSION}
Summary: Does a recurrent memory act as it learns?  Properties of the memory of any library, measured
License: MIT
Requires-Python: >=3.9
Requires-Dist: numpy
"""


def package():
    """The files of the package, name -> bytes."""
    found = sorted(f for f in (HERE / "memory_contract").rglob("*") if f.suffix in (".py", ".lua"))
    return {str(f.relative_to(HERE)): f.read_bytes() for f in found}


def write(directory, tag, metadata, files, programs=()):
    """A wheel of files, name -> bytes, whose metadata names it; `programs` are names of files that can be run.  Returns its file's name."""
    name, version = (re.search(rf"^{key}: (\S+)", metadata, re.M).group(1).replace("-", "_") for key in ("Name", "Version"))
    info, wheel = f"{name}-{version}.dist-info", f"{name}-{version}-{tag}.whl"
    pure = "true" if tag.endswith("-none-any") else "false"
    files = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: mneme\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode(),
    }
    licence = HERE.parent.parent / "LICENSE"
    if licence.exists():
        files[f"{info}/licenses/LICENSE"] = licence.read_bytes()
    record = [f"{file},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
              for file, data in files.items()]
    with zipfile.ZipFile(Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for file, data in files.items():
            entry = zipfile.ZipInfo(file, (2020, 1, 1, 0, 0, 0))          # the same files, the same wheel
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if file in programs else 0o100644) << 16
            out.writestr(entry, data, compresslevel=9)
        out.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory, "py3-none-any", METADATA, package())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """`pip install -e`: the package of this checkout."""
    return write(wheel_directory, "py3-none-any", METADATA, {"memory_contract.pth": f"{HERE}\n".encode()})
