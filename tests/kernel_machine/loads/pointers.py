# SPDX-License-Identifier: Apache-2.0
"""Sessions on the victim `pointers`, for cases that have several, or somebody else beside them."""

import importlib.machinery
import importlib.util
import os
import signal

LOADER = importlib.machinery.SourceFileLoader(
    "trace_victim", os.path.join(os.environ["HERE"], "trace_victim"))
tools = importlib.util.module_from_spec(importlib.util.spec_from_loader("trace_victim", LOADER))
LOADER.exec_module(tools)
QUERY = """from e in entry("pointers!take_node") group by e.args.node->value
           select new { value = e.args.node->value, n = count() }"""


def armed(pid):
    tracer = tools.tracer_of(QUERY, pid)
    tools.wait_until_armed(tracer)
    return tracer


def end(tracer):
    """What it prints."""
    tracer.send_signal(signal.SIGINT)
    return tracer.communicate()[0]
