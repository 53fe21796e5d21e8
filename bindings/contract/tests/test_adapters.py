"""Adapters of other libraries, where these are installed: each memory can be called, in every way it claims, and gives the same values twice."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from memory_contract import check, load                                        # noqa: E402

MEMORIES = {
    "sb3_contrib": ("sb3_contrib", {}), "torchrl": ("torchrl", {"name": "GRU"}), "xlstm": ("xlstm", {"name": "sLSTM"}), "fla": ("fla", {"name": "kda"}),
    "memorax": ("memorax", {"name": "GRU"}), "memax": ("memax", {"name": "GRU"}),
}


@pytest.mark.parametrize("adapter", MEMORIES)
def test_a_memory_can_be_called(adapter):
    library, settings = MEMORIES[adapter]
    pytest.importorskip(library)
    report = check(load(f"memory_contract.adapters.{adapter}:memory", settings), steps=12, streams=2, long=8, only=["repeats", "steps"])
    assert [row["verdict"] for row in report.rows] == ["holds", "holds"], report.text()
    assert report.library and report.version


@pytest.mark.parametrize("adapter", [a for a in MEMORIES if a != "sb3_contrib"])
def test_an_unknown_memory_is_refused(adapter):
    pytest.importorskip(MEMORIES[adapter][0])
    with pytest.raises(ValueError, match="expected"):
        load(f"memory_contract.adapters.{adapter}:memory", {"name": "nobody"})
