"""memory_contract -- does a memory act as it learns?  Properties that a recurrent memory of any library must have, measured from outside.

    from memory_contract import check
    report = check({"d_in": 5, "initial": initial, "step": step, "sequence": sequence})
    print(report.text())

    python -m memory_contract mine.py:make               # the same from a shell: status 0, every property that was tried holds; 1, one fails

A memory is an object or a dict with these members; what is missing is not tried, nor a call that raises NotTried("why"):

    d_in                                      size of an input; needed
    initial(batch)                            the state before anything was seen; needed.  The library's own: it is only handed back
    step(x, state, done)       -> y, state    x [B,d_in], done [B] bool: x begins an episode; y [B,...]
    sequence(x, done, state)   -> y, state    x [T,B,d_in], done [T,B], y [T,B,...]
    gradient(x, done, state, w) -> {name: array}    of sum(w * y) of a sequence: "x" [T,B,d_in], any other name is a parameter
    online(x, done, state, w)  -> {name: array}     the same of parameters, computed forwards in time
    dtype                                     "float32", or in which it computes: the tolerance follows
    ends                                      False: the library has no `done`; the caller must clear its states
    memory, library, version                  for the report

Arrays are NumPy's, given in float64 or bool, returned as anything that numpy.asarray takes.
"""
from .memory import Memory, load
from .properties import PROPERTIES, TOLERANCE, NotTried, check
from .report import Report

__all__ = ["Memory", "NotTried", "PROPERTIES", "Report", "TOLERANCE", "check", "load"]
__version__ = "0.1.0"
