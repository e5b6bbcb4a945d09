# SPDX-License-Identifier: Apache-2.0
"""Judges what trace_victim prints of a query that groups by the value of the shaken page.

Each call is a hit that read a value which was there, or is counted as missed.
"""

import ast
import json
import sys

THERE = (0, 7)  # Before and after the victim has written its page.


def main():
    others = hits = calls = 0
    for line in sys.stdin:
        if line.startswith("{"):
            row = json.loads(line)
            others += row["n"] if row["value"] not in THERE else 0
            hits += row["n"]
        elif line.startswith("missed:"):
            missed, lost = line[len("missed:"):].split(" lost: ")
            hits += sum(ast.literal_eval(missed.strip()).values())
            print("lost:", lost.strip())
        elif line.startswith("take_node"):
            calls = int(line.split()[1])
        else:
            print(line, end="")
    print("values that were never there:", others)
    print("hits of", f"{calls} calls: {hits}" if hits != calls else "all calls")


main()
