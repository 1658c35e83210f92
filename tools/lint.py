#!/usr/bin/env python3
"""Lengths, parameters, banned calls, names: the limits of CONTRIBUTING.md. The exception list is empty."""
import pathlib
import re
import subprocess
import sys

FUNCTION_MAX, FILE_MAX, HEADER_MAX, PARAMETERS_MAX, COMPLEXITY_MAX = 100, 1000, 250, 8, 25
BANNED = {
    "strcpy": "str_copy or snprintf", "strcat": "struct buf", "sprintf": "snprintf or buf_addf", "strtok": "str_cut",
    "strncpy": "snprintf", "atoi": "str_int", "atol": "str_int", "atof": "str_real", "strtol": "str_int", "gets": "read",
    "localtime": "clock_utc_us", "mktemp": "mkostemp", "alloca": "an arena", "system": "proc_run", "popen": "proc_run",
    "usleep": "poll on what is awaited", "sleep": "poll on what is awaited", "vsprintf": "vsnprintf",
}
BAD_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
BRANCH = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")


def tracked(*patterns: str) -> list[pathlib.Path]:
    out = subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout
    return [p for p in map(pathlib.Path, out.split()) if p.exists()]


def without_text(source: str) -> str:
    """Comments and literals blanked out, lines kept."""
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])  # noqa: E731
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, source, flags=re.S)


def functions(code: str):
    """(line, name, parameters, body) of each function definition: a brace at the start of a line closes it."""
    for m in re.finditer(r"^(?:[A-Za-z_][^\n;={}]*?)\b([A-Za-z_]\w*)\(([^;{}]*?)\)\s*\n\{\n(.*?)^\}", code, re.S | re.M):
        depth, count = 0, 1 if m[2].strip() not in ("", "void") else 0
        for c in m[2]:
            depth += (c == "(") - (c == ")")
            count += c == "," and depth == 0
        yield code[:m.start()].count("\n") + 1, m[1], count, m[3]


def file_faults(path: pathlib.Path) -> list[str]:
    source = path.read_text()
    lines, code, faults = source.count("\n"), without_text(source), []
    limit = HEADER_MAX if path.suffix == ".h" else FILE_MAX
    if lines > limit:
        faults.append(f"{path}: {lines} lines, limit {limit}")
    if path.stem in BAD_NAMES:
        faults.append(f"{path}: name it after its noun")
    for line, name, count, body in functions(code):
        if body.count("\n") > FUNCTION_MAX:
            faults.append(f"{path}:{line}: {name}: {body.count(chr(10))} lines, limit {FUNCTION_MAX}")
        if count > PARAMETERS_MAX:
            faults.append(f"{path}:{line}: {name}: {count} parameters, limit {PARAMETERS_MAX}: pass a struct")
        if len(BRANCH.findall(body)) + 1 > COMPLEXITY_MAX:
            faults.append(f"{path}:{line}: {name}: complexity {len(BRANCH.findall(body)) + 1}, limit {COMPLEXITY_MAX}")
    if path.parts[0] == "src":
        for number, text in enumerate(code.splitlines(), 1):
            for m in re.finditer(r"(?<![\w.>])(\w+)\s*\(", text):
                if m[1] in BANNED:
                    faults.append(f"{path}:{number}: {m[1]}: use {BANNED[m[1]]}")
    return faults


def main() -> int:
    faults = [f for p in tracked("src/*.c", "src/*.h", "include/*.h", "bench/*.cu") for f in file_faults(p)]
    print("\n".join(faults) or "clean")
    return bool(faults)


sys.exit(main())
