# SPDX-License-Identifier: Apache-2.0
"""Repetitions, medians, spreads, and the table that `make bench` prints."""

import statistics
import sys


def progress(text):
    """One line on a terminal that the next one overwrites; plain lines elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


class Sample:
    """Values of repeated measurements of one thing."""

    def __init__(self, values):
        self.values = list(values)  # In the order of measurement.

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Smallest and largest."""
        return min(self.values), max(self.values)

    def against(self, other, combine):
        """Each value combined with the one that was measured beside it."""
        return Sample([combine(mine, base) for mine, base in zip(self.values, other.values)])


def interleave(repetitions, measures, what):
    """Runs each of `measures` (name -> function) once per repetition, in turn and every other time
    backwards, so that drifts of the machine and the place in a turn hit all alike. Returns
    name -> Sample; a measure that fails gives its error."""
    values, errors = {name: [] for name in measures}, {}
    for repetition in range(repetitions):
        forwards = list(measures.items())
        for name, measure in forwards if repetition % 2 == 0 else reversed(forwards):
            if name in errors:
                continue
            progress(f"{what}: {name}, {repetition + 1} of {repetitions}")
            try:
                values[name].append(measure())
            except (RuntimeError, OSError) as error:
                errors[name] = str(error).splitlines()[-1] if str(error) else repr(error)
    return {name: errors.get(name) or Sample(found) for name, found in values.items()}


class Row:
    """One line of the table: what, how much is required, how much it is."""

    def __init__(self, measure, required, unit, limit, at_most=True):
        self.measure, self.required, self.unit = measure, required, unit
        self.limit, self.at_most = limit, at_most
        self.value, self.spread, self.peer, self.note = None, None, "", ""

    def set(self, value, spread=None, peer="", note=""):
        self.value, self.spread, self.peer, self.note = value, spread, peer, note
        return self

    def fail(self, note):
        self.note = note
        return self

    @property
    def verdict(self):
        if self.value is None:
            return "not measured"
        if self.limit is None:
            return ""
        met = self.value <= self.limit if self.at_most else self.value >= self.limit
        return "met" if met else "MISSED"

    def cells(self):
        value = "" if self.value is None else f"{number(self.value)} {self.unit}".strip()
        spread = ""
        if self.spread:
            spread = f"{number(self.spread[0])} to {number(self.spread[1])}"
        return [self.measure, self.required, value, spread, self.peer, self.verdict, self.note]

    def as_json(self):
        return {"measure": self.measure, "required": self.required, "unit": self.unit,
                "value": self.value, "spread": self.spread, "peer": self.peer,
                "verdict": self.verdict, "note": self.note}


def number(value):
    if isinstance(value, str):
        return value
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def print_table(rows):
    head = ["measure", "required", "median", "spread", "bpftrace", "verdict", "note"]
    cells = [head] + [row.cells() for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head) - 1)]
    for at, line in enumerate(cells):
        padded = [cell.ljust(width) for cell, width in zip(line, widths)] + [line[-1]]
        print("  ".join(padded).rstrip())
        if at == 0:
            print("  ".join("-" * width for width in widths))
