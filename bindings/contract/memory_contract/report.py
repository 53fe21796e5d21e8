"""report.py -- what was measured of one memory: as data, and as lines."""
import json
import math


class Report:
    """rows: a dict each: property, about, verdict ("holds", "fails", "raised", "not tried"), and error, tolerance, where, or why."""

    def __init__(self, memory, settings, rows):
        self.memory, self.library, self.version, self.dtype = memory.memory, memory.library, memory.version, memory.dtype
        self.settings, self.rows, self.command = settings, rows, None

    def __getitem__(self, name):
        return next(row for row in self.rows if row["property"] == name)

    def count(self, verdict):
        return sum(row["verdict"] == verdict for row in self.rows)

    @property
    def tried(self):
        return len(self.rows) - self.count("not tried")

    @property
    def status(self):
        """0: every property that was tried holds; 1: one does not; 2: none was tried."""
        return 1 if self.count("fails") + self.count("raised") else 0 if self.count("holds") else 2

    def data(self):
        """The report as JSON has it: an error that is not finite is a text, since JSON has no such number."""
        def plain(value):
            return str(value) if isinstance(value, float) and not math.isfinite(value) else value

        rows = [{key: plain(value) for key, value in row.items()} for row in self.rows]
        return {"memory": self.memory, "library": self.library, "version": self.version, "dtype": self.dtype, "settings": self.settings,
                "command": self.command, "holds": self.count("holds"), "tried": self.tried, "properties": rows}

    def json(self, indent=None):
        return json.dumps(self.data(), indent=indent)

    def text(self):
        lines = []
        for row in self.rows:
            said = f"{row['verdict']:10s}{row['about']}"
            if "error" in row:
                said += f": {row['error']:.1e}, tolerance {row['tolerance']:.0e}"
            lines.append(said)
            if row["verdict"] != "holds":
                lines.append(f"          {row.get('why') or row['where']}")
            lines += [f"          not tried {left}" for left in row.get("left_out", [])]
        name = " ".join(filter(None, (self.library, self.version, self.memory)))
        lines.append(f"{name}: {self.count('holds')} of {self.tried} properties hold; {self.count('not tried')} not tried")
        return "\n".join(lines)
