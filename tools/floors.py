#!/usr/bin/env python3
"""Refuse an #include that goes up or sideways. usage: floors.py TABLE SRC"""
import pathlib
import re
import sys


def read_table(path: pathlib.Path) -> dict[str, list[str]]:
    """Part -> what it may include, in the table's order."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {words[0]: words[1:] for words in lines}


def table_faults(table: dict[str, list[str]]) -> list[str]:
    order = list(table)
    return [f"'{part}' may include '{lower}', which does not stand below it"
            for part, may in table.items() for lower in may
            if lower not in "-*" and (lower not in order or order.index(lower) >= order.index(part))]


def include_faults(path: pathlib.Path, part: str, table: dict[str, list[str]]) -> list[str]:
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not found or found[1] in ("cuda_agent.h", "ca_runner.h"):
            continue
        target, slash, name = found[1].partition("/")
        where = f"{path}:{number}"
        if not slash:
            faults.append(f"{where}: write \"{part}/{found[1]}\": every include names its part")
        elif target != part and ((target not in table.get(part, []) and table.get(part) != ["*"]) or name.endswith("_int.h")):
            faults.append(f"{where}: {part} must not include {target}/{name}")
    return faults


def main() -> int:
    table, root = read_table(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    faults = table_faults(table)
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh")):
        part = path.relative_to(root).parts[0]
        faults += [f"{path}: '{part}' is not in the table"] if part not in table else include_faults(path, part, table)
    print("\n".join(faults) or f"{len(table)} parts, no arrow goes up")
    return bool(faults)


sys.exit(main())
