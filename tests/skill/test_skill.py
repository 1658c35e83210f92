#!/usr/bin/env python3
"""The skills under skills/ keep the rules of the Agent Skills specification, and their scripts work from anywhere.

Ends with `N passed, N failed`. Standard library only; cuda-agent is played by a stub.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "fast-cuda-kernels"
KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
STUB = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["STUB_SAID"], "w") as f:
    json.dump(sys.argv[1:], f)
print(os.environ["STUB_ANSWER"])
sys.exit(int(os.environ["STUB_STATUS"]))
"""
ARM = {"lo": 1.0, "hi": 1.0, "windows": 11, "void": 0}
PASS = {
    "schema": "cuda-agent/verdict/1", "status": "pass", "reason": "", "precision": {"class": "tf32", "rel_l2": 3.0e-4}, "checks": [],
    "time_us": {"candidate": {**ARM, "median": 100.0}, "eager": {**ARM, "median": 300.0}, "compile": {**ARM, "median": 150.0},
                "best": {**ARM, "median": 140.0, "name": "graph(compile)"}},
    "span_us": 99.0, "alone_us": 104.0,
    "speedup": {k: {"median": m, "lo": m - 0.01, "hi": m + 0.01} for k, m in (("vs_eager", 3.0), ("vs_compile", 1.5), ("vs_best", 1.4))},
    "reward": {"milestone": 3, "against": "best", "speedup": 1.5}, "floor": {"us": 95.0, "share": 0.95}, "notes": ["one note"],
}
WRONG = {**PASS, "status": "wrong", "reason": "out: 3 misses", "time_us": {}, "speedup": {}, "floor": {"us": None, "share": None},
         "precision": {"class": "none", "rel_l2": None}, "span_us": None, "alone_us": None, "notes": [],
         "checks": [{"family": "own", "misses": 0}, {"family": "wide", "misses": 3}]}


def front_matter(text):
    """The keys of a front matter, which is kept to plain and double-quoted scalars and one level of nesting."""
    lines = text.split("\n")
    if lines[0] != "---":
        raise ValueError("does not begin with ---")
    keys, last = {}, None
    for line in lines[1:lines.index("---", 1)]:
        nested = re.fullmatch(r"  ([\w-]+): (.+)", line)
        plain = re.fullmatch(r"([a-z-]+):(?: (.+))?", line)
        if nested and isinstance(keys.get(last), dict):
            keys[last][nested[1]] = scalar(nested[2])
        elif plain and plain[1] not in keys:
            last = plain[1]
            keys[last] = scalar(plain[2]) if plain[2] else {}
        else:
            raise ValueError(f"not understood: {line}")
    return keys


def scalar(text):
    if text.startswith('"'):
        return json.loads(text)
    if re.search(r": |^[\[{&*!|>'%@`#-]| #", text):
        raise ValueError(f"to be quoted: {text}")
    return text


def links(text):
    """Targets of Markdown links outside of code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    return [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", t)]


class Specification(unittest.TestCase):
    def setUp(self):
        self.text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
        self.keys = front_matter(self.text)

    def test_keys_are_those_of_the_specification(self):
        self.assertLessEqual(set(self.keys), KEYS)

    def test_name_is_the_folders(self):
        self.assertEqual(self.keys["name"], SKILL.name)
        self.assertRegex(self.keys["name"], r"\A[a-z0-9]+(-[a-z0-9]+)*\Z")
        self.assertLessEqual(len(self.keys["name"]), 64)

    def test_description_says_what_and_when(self):
        self.assertTrue(0 < len(self.keys["description"]) < 1024)
        self.assertIn("Use when", self.keys["description"])

    def test_other_values_keep_their_limits(self):
        self.assertIn("license", self.keys)
        self.assertLessEqual(len(self.keys.get("compatibility", "x")), 500)
        for key, value in self.keys.get("metadata", {}).items():
            self.assertIsInstance(value, str, key)

    def test_body_is_short(self):
        self.assertLess(self.text.count("\n"), 350)
        self.assertLess(len(self.text), 20000)  # about 5,000 tokens

    def test_a_front_matter_that_is_wrong_is_refused(self):
        for bad in ("name: x\n", "---\nname: a: b\n---\n", "---\nname: x\nname: y\n---\n", "---\n- x\n---\n"):
            with self.assertRaises(ValueError):
                front_matter(bad)


class Contents(unittest.TestCase):
    def test_links_resolve_inside_the_skill(self):
        for page in SKILL.rglob("*.md"):
            for target in links(page.read_text(encoding="utf-8")):
                found = (page.parent / target).resolve()
                self.assertTrue(found.exists(), f"{page.name}: {target}")
                self.assertIn(SKILL, found.parents, f"{page.name}: {target} leaves the skill")

    def test_every_file_is_named_by_a_page(self):
        pages = "".join(p.read_text(encoding="utf-8") for p in SKILL.rglob("*.md"))
        for f in SKILL.rglob("*"):
            if f.is_file() and f.name not in ("SKILL.md", "ask.py") and "__pycache__" not in f.parts:
                self.assertIn(f.name, pages)

    def test_no_path_of_a_machine_and_no_root(self):
        for f in SKILL.rglob("*"):
            if f.is_file() and "__pycache__" not in f.parts:
                text = f.read_text(encoding="utf-8")
                self.assertNotRegex(text, r"\bsudo\b|/home/|/root/|/tmp/|/usr/local", f.name)
                self.assertIn("Apache-2.0", text, f.name)

    def test_recipes_are_candidates(self):
        recipes = list((SKILL / "references" / "recipes").glob("*.cu"))
        self.assertGreaterEqual(len(recipes), 8)
        for f in recipes:
            text = f.read_text(encoding="utf-8")
            self.assertIn('#include "cuda_agent.h"', text, f.name)
            self.assertIn("\nint ca_forward(const struct ca_call *call)\n", text, f.name)
            self.assertRegex(text, r"(?s)^/\*.*?in 0.*?out 0.*?\*/", f.name)
            self.assertIn("call->stream", text, f.name)

    def test_the_figures_have_a_source(self):
        text = (SKILL / "references" / "hopper.md").read_text(encoding="utf-8")
        for source in ("**M**", "**G**", "**D**", "**W**"):
            self.assertIn(source, text)


class Scripts(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = pathlib.Path(room.name)
        # As another agent has it: a copy with a space in its path, called from elsewhere.
        self.skill = self.room / "their skills" / SKILL.name
        shutil.copytree(SKILL, self.skill)
        self.work = self.room / "work folder"
        self.work.mkdir()
        (self.work / "model.py").write_text("")
        self.stub = self.room / "cuda-agent"
        self.stub.write_text(STUB)
        self.stub.chmod(0o755)

    def call(self, script, *args, answer=PASS, status=0, agent=None, path=None):
        env = {"PATH": path or os.environ["PATH"], "STUB_SAID": str(self.room / "said"), "STUB_STATUS": str(status),
               "STUB_ANSWER": answer if isinstance(answer, str) else json.dumps(answer, indent=1)}
        if agent != "":
            env["CUDA_AGENT"] = str(agent or self.stub)
        done = subprocess.run([str(self.skill / "scripts" / script), *args], cwd=self.room, env=env, capture_output=True, text=True)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout + done.stderr)
        return done.returncode, json.loads(done.stdout)

    def said(self):
        return json.loads((self.room / "said").read_text())

    def test_they_can_be_run(self):
        for f in (SKILL / "scripts").iterdir():
            if f.is_file():
                self.assertTrue(os.access(f, os.X_OK), f.name)
                self.assertTrue(f.read_text().startswith(("#!/bin/sh\n", "#!/usr/bin/env python3\n")), f.name)

    def test_profile_tells_what_decides(self):
        status, line = self.call("profile.sh", "--workdir", str(self.work))
        self.assertEqual((status, self.said()), (0, ["profile", str(self.work), "--json"]))
        for key, value in {"status": "pass", "us": 100.0, "compile_us": 150.0, "best": "graph(compile)", "share": 0.95,
                           "milestone": 3, "class": "tf32", "notes": ["one note"], "vs_compile": [1.5, 1.49, 1.51]}.items():
            self.assertEqual(line[key], value, key)
        self.assertIn("floor", line["hint"])

    def test_check_names_the_family(self):
        status, line = self.call("check.sh", "--workdir=" + str(self.work), answer=WRONG, status=1)
        self.assertEqual((status, self.said()[0], line["status"], line["family"]), (1, "verify", "wrong", "wide"))
        self.assertNotIn("us", line)

    def test_compile_only_and_options_go_through(self):
        self.call("check.sh", "--workdir", str(self.work), "--compile", "--target", "cpu", "--no-store")
        self.assertEqual(self.said(), ["compile", str(self.work), "--json", "--target", "cpu", "--no-store"])

    def test_full_is_the_whole_verdict(self):
        self.assertEqual(self.call("profile.sh", "--workdir", str(self.work), "--full"), (0, PASS))

    def test_a_note_is_kept(self):
        for text in ("first", "größer"):
            self.call("profile.sh", "--workdir", str(self.work), "--note", text)
        lines = [json.loads(t) for t in (self.work / "attempts.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual([(t["note"], t["us"]) for t in lines], [("first", 100.0), ("größer", 100.0)])

    def test_an_error_is_no_verdict(self):
        error = {"schema": "cuda-agent/error/1", "error": {"code": "device", "text": "busy", "hint": "wait"}}
        self.assertEqual(self.call("check.sh", "--workdir", str(self.work), answer=error, status=9),
                         (9, {"error": "device", "text": "busy", "hint": "wait"}))

    def test_an_answer_that_is_no_json(self):
        for answer, status, want in (("oops", 4, 4), ("", 0, 5), ("[1]", 0, 5)):
            code, line = self.call("check.sh", "--workdir", str(self.work), answer=answer, status=status)
            self.assertEqual((code, line["error"]), (want, "protocol"))

    def test_infinite_and_absent_numbers(self):
        odd = {**PASS, "floor": {"us": "inf", "share": None}, "speedup": {"vs_compile": {"median": "inf", "lo": 1.0, "hi": None}}}
        status, line = self.call("profile.sh", "--workdir", str(self.work), answer=odd)
        self.assertEqual((status, line["vs_compile"]), (0, ["inf", 1.0, None]))

    def test_usage_and_missing(self):
        status, line = self.call("check.sh", "--workdir", str(self.room / "nowhere"))
        self.assertEqual((status, line["error"]), (2, "usage"))
        self.assertEqual(self.call("check.sh", "--workdir")[0], 2)
        status, line = self.call("check.sh", "--workdir", str(self.work), agent=self.room / "nothing")
        self.assertEqual((status, line["error"]), (11, "missing"))

    def test_found_in_path_and_as_packed(self):
        path = os.environ["PATH"]
        self.assertEqual(self.call("check.sh", "--workdir", str(self.work), agent="", path=f"{self.room}:{path}")[0], 0)
        packed = self.room / "product" / "share" / "skills"
        shutil.copytree(self.skill, packed / SKILL.name)
        (self.room / "product" / "bin").mkdir()
        shutil.copy(self.stub, self.room / "product" / "bin" / "cuda-agent")
        self.skill = packed / SKILL.name
        python = self.room / "only python"
        python.mkdir()
        (python / "python3").symlink_to(sys.executable)
        status, _ = self.call("check.sh", "--workdir", str(self.work), agent="", path=f"{python}:/usr/bin:/bin")
        self.assertEqual(status, 0)

    def test_through_a_link(self):
        (self.room / "linked").symlink_to(self.skill)
        self.skill = self.room / "linked"
        self.assertEqual(self.call("profile.sh", "--workdir", str(self.work))[0], 0)


if __name__ == "__main__":
    outcome = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - bad} passed, {bad} failed")
    sys.exit(bool(bad))
