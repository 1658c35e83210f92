"""Asks `cuda-agent` about the work folder that holds this one. Frozen: what it prints decides nothing."""
import json
import os
import pathlib
import subprocess
import sys

WORKDIR = pathlib.Path(__file__).resolve().parent.parent


def ask(command: str, *options: str) -> dict:
    """The verdict as a dict. An error of the machine or of use ends the program with its text and status."""
    program = os.environ.get("CUDA_AGENT", "cuda-agent")
    try:
        run = subprocess.run([program, command, str(WORKDIR), "--json", *options], stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit(f"no program '{program}': put cuda-agent into PATH, or name it in CUDA_AGENT")
    answer = json.loads(run.stdout) if run.stdout.strip() else {}
    if run.returncode > 1 or "status" not in answer:
        error = answer.get("error", {})
        if error:
            print(error.get("text", ""), error.get("hint", ""), sep="\n", file=sys.stderr)
        sys.exit(run.returncode or 1)
    return answer


def refuse(verdict: dict) -> None:
    """Say what is wrong and end, unless it is right."""
    if verdict["status"] in ("pass", "undecided"):
        return
    print(f"[FAIL] {verdict['status']}: {verdict['reason']}")
    if verdict.get("build_log"):
        print(verdict["build_log"])
    sys.exit(1)
