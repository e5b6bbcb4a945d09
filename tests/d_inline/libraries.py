# SPDX-License-Identifier: Apache-2.0
"""Libraries with inline probes that are closed and opened again."""

import shutil
import tempfile
from pathlib import Path

from bench import Footprint, changed_text, descriptors, expect, expect_equal, ours_in


def library_that_comes_back(bench):
    """Its probes are there each time, from the first call on, wherever it is loaded."""
    plugin = Path(bench.path).parent / "libinline_plugin.so"
    for flags in ((), ("-x", "useruprobes")):
        with bench.victim() as victim, tempfile.TemporaryDirectory() as folder:
            other = shutil.copy(plugin, Path(folder) / "libother.so")
            footprint = Footprint(victim.pid)
            victim.ask(f"load {plugin}")
            trace = bench.trace(
                victim, "pid$target:libinline_plugin.so:plug:entry { @ = count(); } "
                'END { printa("%@d\\n", @); }', flags=flags)
            victim.ask("plug 5")
            for turn in range(20):
                for line in ("unload", f"load {other}", "plug 3"):
                    victim.ask(line)
                if turn % 2 == 0:  # Else the library finds its old place taken.
                    victim.ask("unload")
                for line in (f"load {plugin}", "plug 7"):
                    victim.ask(line)
            expect_equal(trace.end().strip(), "145", "calls")
            expect("warning" not in trace.said(), "no warning", trace.said())
            victim.ask("unload")
            expect_equal(changed_text(victim.pid), [], "changed text")
            expect_equal(ours_in(victim.pid), [], "mappings left")
            expect_equal(descriptors(victim.pid), footprint.before[1], "descriptors")


def library_that_is_another_file(bench):
    """What was learned of the one says nothing about the other, be it in the same place."""
    plugin = Path(bench.path).parent / "libinline_plugin.so"
    with bench.victim() as victim, tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(plugin, Path(folder) / "libinline_plugin.so")
        victim.ask(f"load {copy}")
        trace = bench.trace(victim, "pid$target:libinline_plugin.so:plug:entry { @ = count(); } "
                            'END { printa("%@d\\n", @); }')
        for line in ("plug 5", "unload"):
            victim.ask(line)
        with open(copy, "ab") as file:
            file.write(b"changed")
        for line in (f"load {copy}", "plug 7"):
            victim.ask(line)
        expect_equal(trace.end().strip(), "5", "calls")
        expect("another file now" in trace.said(), "a warning", trace.said())


def library_of_two_sessions(bench):
    """Each finds its entries, returns and variables of threads' own in each load."""
    plugin = Path(bench.path).parent / "libinline_plugin.so"
    with bench.victim() as victim:
        victim.ask(f"load {plugin}")
        text = ("pid$target:libinline_plugin.so:plug:entry { self->a = arg0 + 1; } "
                "pid$target:libinline_plugin.so:plug:return /self->a/ "
                "{ @n = count(); @s = sum(self->a); self->a = 0; } "
                'END { printa("%@d %@d\\n", @n, @s); }')
        traces = [bench.trace(victim, text) for _ in range(2)]
        for _ in range(5):
            for line in ("plug 10", "unload", f"load {plugin}"):
                victim.ask(line)
        for trace in traces:
            expect_equal(trace.end().strip(), "50 275", "calls")
            expect("warning" not in trace.said(), "no warning", trace.said())


def semaphore_that_comes_back(bench):
    """That of a library is raised each time; what is in its place later is nobody's business."""
    plugin = Path(bench.path).parent / "libinline_plugin.so"
    with bench.victim() as victim, tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(plugin, Path(folder) / "libother.so")
        victim.ask(f"load {plugin}")
        trace = bench.trace(victim, "inline_plugin$target:libinline_plugin.so::plugged "
                            '{ @ = count(); } END { printa("%@d\\n", @); }')
        for _ in range(70):  # More than the journal has records.
            expect_equal(victim.ask("marked"), 1, "semaphore")
            for line in ("plugged 2", "unload", f"load {plugin}"):
                victim.ask(line)
        for line in ("unload", f"load {other}", "mark 9"):
            victim.ask(line)
        expect_equal(trace.end().strip(), "140", "firings")
        expect_equal(victim.ask("marked"), 9, "another library's")
