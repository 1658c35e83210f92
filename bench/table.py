"""One Markdown table from the JSON that `cuda-agent optimize --json` prints, one file a task."""
import json
import pathlib
import sys


def cell(verdict: dict, arm: str) -> str:
    time = (verdict.get("time_us") or {}).get(arm) or {}
    return f"{time['median']:.1f}" if time.get("median") else "-"


def ratio(verdict: dict, arm: str) -> str:
    r = (verdict.get("speedup") or {}).get(f"vs_{arm}") or {}
    return f"{r['median']:.2f} [{r['lo']:.2f}, {r['hi']:.2f}]" if r.get("median") else "-"


def find_verdict(result: dict) -> dict:
    """The best verified candidate's verdict, wherever this version of the result keeps it."""
    return result.get("verdict") or (result.get("best") or {}).get("verdict") or {}


def row(path: pathlib.Path) -> list[str]:
    try:
        result = json.loads(path.read_text())
    except ValueError:
        return [path.stem, "no result (see its log)"] + ["-"] * 10
    if "error" in result:
        return [path.stem, "error: " + result["error"]["text"][:60]] + ["-"] * 10
    v = find_verdict(result)
    share = (v.get("floor") or {}).get("share")
    best = ((v.get("time_us") or {}).get("best") or {}).get("name", "")
    return [path.stem, v.get("status", "none"), (v.get("precision") or {}).get("class", "-"),
            cell(v, "candidate"), cell(v, "eager"), cell(v, "compile"), cell(v, "best") + (f" {best}" if best else ""),
            ratio(v, "eager"), ratio(v, "compile"), ratio(v, "best"),
            f"{share:.0%}" if share else "-", str((v.get("reward") or {}).get("milestone", "-"))]


def main() -> None:
    head = ["task", "verdict", "class", "candidate us", "eager us", "compile us", "best us", "vs eager", "vs compile",
            "vs best", "of floor", "milestone"]
    rows = [row(pathlib.Path(p)) for p in sys.argv[1:]]
    for line in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(line) + " |")


main()
