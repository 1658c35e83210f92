"""python3 -m utils.profiling [options of cuda-agent grade]: how fast is it, beside eager and torch.compile?"""
import sys

from .examiner import ask, refuse


def main() -> None:
    verdict = ask("grade", *sys.argv[1:])
    refuse(verdict)
    us = {arm: (t or {}).get("median", float("nan")) for arm, t in verdict["time_us"].items()}
    print(f"Torch Baseline: {us['eager']:.3f}us, Torch Compile: {us['compile']:.3f}us, CUDA Extension: {us['candidate']:.3f}us")
    print(f"reward: {verdict['reward']['milestone']}")
    for note in verdict["notes"]:
        print(f"note: {note}")


if __name__ == "__main__":
    main()
