"""python3 -m utils.verification [options of cuda-agent verify]: is the candidate right?"""
import sys

from .examiner import ask, refuse


def main() -> None:
    verdict = ask("verify", *sys.argv[1:])
    refuse(verdict)
    for i, check in enumerate(verdict["checks"]):
        print(f"[PASS] check {i + 1}/{len(verdict['checks'])}: {check['output']} on '{check['family']}' inputs")
    print("[PASS] verify success")


if __name__ == "__main__":
    main()
