#!/usr/bin/env python3
"""Ask cuda-agent about a work folder and tell the answer as one line of JSON.

usage: ask.py {compile,verify,profile} --workdir DIR [--compile] [--full] [--note TEXT] [options of cuda-agent]

--workdir DIR  folder with model.py and the candidate [.]
--compile      only compile
--full         the whole verdict, still one line
--note TEXT    add the line, with this text, to DIR/attempts.jsonl

cuda-agent is $CUDA_AGENT, or in PATH, or above this file as it is packed. The exit status is its own: 0 right, 1 any other
verdict, 2 command line, 11 something is missing, others as its documentation says.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

USAGE, BAD_BYTES, MISSING = 2, 5, 11
GATE = 1 / 0.95  # "more than 5% faster"


def find_agent():
    """The program's path, or None."""
    named = os.environ.get("CUDA_AGENT")
    if named:
        return shutil.which(named)
    found = shutil.which("cuda-agent")
    if found:
        return found
    for folder in pathlib.Path(__file__).resolve().parents:
        packed = folder / "bin" / "cuda-agent"
        if os.access(packed, os.X_OK):
            return str(packed)
    return None


def tell(answer, status):
    print(json.dumps(answer, ensure_ascii=False))
    return status


def fault(code, text, hint):
    return {"error": code, "text": text, "hint": hint}


def split(argv):
    """What is ours, and what goes to cuda-agent unchanged."""
    ours, rest, at = {"workdir": ".", "note": None, "full": False, "compile": False}, [], 0
    while at < len(argv):
        word, _, value = argv[at].partition("=")
        if word in ("--workdir", "--note"):
            if "=" not in argv[at]:
                at += 1
                if at == len(argv):
                    raise ValueError(f"{word} wants a value")
                value = argv[at]
            ours[word[2:]] = value
        elif argv[at] in ("--full", "--compile"):
            ours[word[2:]] = True
        elif argv[at] != "--json":
            rest.append(argv[at])
        at += 1
    return ours, rest


def at(verdict, *path):
    """A member of a nested object, or None where the way to it ends."""
    for key in path:
        verdict = verdict.get(key) if isinstance(verdict, dict) else None
    return verdict


def real(value):
    """A JSON number; null and "inf" are none to compare with."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def rounded(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def worst_family(verdict):
    """The input family with the most misses."""
    checks = [c for c in at(verdict, "checks") or [] if isinstance(c, dict) and real(c.get("misses"))]
    return max(checks, key=lambda c: c["misses"]).get("family") if checks else None


def hint(verdict):
    """What to look at next; a suggestion, the verdict is what counts."""
    status = verdict.get("status")
    if status != "pass":
        return {
            "compile_error": "mend the first error", "wrong": "see the table of families in SKILL.md",
            "forbidden": "compute it by a kernel of your own", "crashed": "look for an illegal address, check launch errors",
            "tampered": "join every stream to call->stream; write every output",
        }.get(status, "read the reason")
    us, span = real(at(verdict, "time_us", "candidate", "median")), real(verdict.get("span_us"))
    lo, share = real(at(verdict, "speedup", "vs_compile", "lo")), real(at(verdict, "floor", "share"))
    if us is None:
        return "right: time it"
    if us < 50 and span is not None and span < 0.8 * us:
        return "the device waits for the host: fewer launches"
    if share is not None and share > 1.2:
        return "less work than the floor counts: the algebra pays, and the floor no longer guides"
    if share is not None and share >= 0.9:
        return "at the floor: only algebra helps further"
    if lo is not None and lo < GATE:
        return "not 5% faster than compile yet: algebra, then fusion, then traffic"
    return "past the gate: push on while a round gains 2%"


def brief(verdict):
    """The members that decide what to do next."""
    line = {"status": verdict.get("status"), "reason": verdict.get("reason"), "family": worst_family(verdict),
            "class": at(verdict, "precision", "class"), "rel_l2": at(verdict, "precision", "rel_l2")}
    for arm in ("candidate", "eager", "compile", "best"):
        line["us" if arm == "candidate" else arm + "_us"] = at(verdict, "time_us", arm, "median")
    line["best"] = at(verdict, "time_us", "best", "name")
    for rival in ("vs_eager", "vs_compile", "vs_best"):
        bounds = [at(verdict, "speedup", rival, k) for k in ("median", "lo", "hi")]
        line[rival] = [rounded(b) for b in bounds] if any(b is not None for b in bounds) else None
    line.update(span_us=verdict.get("span_us"), alone_us=verdict.get("alone_us"), floor_us=at(verdict, "floor", "us"),
                share=at(verdict, "floor", "share"), milestone=at(verdict, "reward", "milestone"),
                notes=verdict.get("notes") or None, hint=hint(verdict))
    return {k: rounded(v) for k, v in line.items() if v not in (None, "")}


def remember(folder, note, line):
    with open(os.path.join(folder, "attempts.jsonl"), "a", encoding="utf-8") as f:
        f.write(json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "note": note, **line}, ensure_ascii=False) + "\n")


def main(argv):
    if not argv or argv[0] not in ("compile", "verify", "profile") or "--help" in argv or "-h" in argv:
        print(__doc__.strip())
        return 0 if "--help" in argv or "-h" in argv else USAGE
    try:
        ours, rest = split(argv[1:])
    except ValueError as wrong:
        return tell(fault("usage", str(wrong), "--help lists the options"), USAGE)
    agent, folder = find_agent(), ours["workdir"]
    if not os.path.isfile(os.path.join(folder, "model.py")) and not any(w.split("=")[0] == "--task" for w in rest):
        return tell(fault("usage", f"no model.py in {folder}", "--workdir DIR names the folder of the task"), USAGE)
    if agent is None:
        return tell(fault("missing", "cuda-agent was not found", "put it in PATH, or name it in CUDA_AGENT"), MISSING)
    command = [agent, "compile" if ours["compile"] else argv[0], folder, "--json", *rest]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        answer = json.loads(done.stdout)
        if not isinstance(answer, dict):
            raise ValueError("no object")
    except ValueError:
        said = (done.stderr or done.stdout).strip()[-400:]
        return tell(fault("protocol", said, "run it by hand: " + " ".join(command)), done.returncode or BAD_BYTES)
    if isinstance(answer.get("error"), dict):
        e = answer["error"]
        line = fault(e.get("code"), e.get("text"), e.get("hint"))
    else:
        line = answer if ours["full"] else brief(answer)
    if ours["note"] is not None:
        remember(folder, ours["note"], line)
    return tell(line, done.returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
