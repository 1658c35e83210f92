#!/usr/bin/env python3
"""Is this page whole, alone and inert? Every element is closed where it was opened; no address, no handler, no element and no
attribute but the few that the writer uses; the one script is ours, and the one that the page's own policy lets run.
usage: page_check.py PAGE [TEXT...] (texts that a reader must see)"""
import base64
import hashlib
import html.parser
import re
import sys

ELEMENTS = set("html head meta title style body header h1 dl div dt dd figure figcaption svg path text g circle rect main p kbd "
               "details summary span b pre table tr th td script".split())
ATTRIBUTES = set("lang charset http-equiv content name class id open data-turn viewbox role aria-label d x y cx cy r width height "
                 "text-anchor".split())
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.scripts, self.styles, self.policy, self.text = [], [], [], [], "", []

    def fault(self, what):
        self.faults.append(f"line {self.getpos()[0]}: {what}")

    def handle_starttag(self, tag, attrs):
        if tag not in ELEMENTS:
            self.fault(f"element {tag}")
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.fault(f"attribute {name} of {tag}")
            if re.search(r"javascript:|data:|//", value or ""):
                self.fault(f"an address in {name}")
        a = dict(attrs)
        if a.get("http-equiv") == "Content-Security-Policy":
            self.policy = a["content"]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.fault(f"</{tag}> closes nothing")

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        (self.scripts if inside == "script" else self.styles if inside == "style" else self.text).append(data)

    def handle_comment(self, data):
        self.fault("a comment")


def main() -> int:
    raw = open(sys.argv[1], "rb").read()
    source, page = raw.decode("utf-8"), Page()
    page.feed(source)
    page.close()
    faults, script = page.faults, "".join(page.scripts)
    if page.open:
        faults.append(f"not closed: {page.open}")
    if source.count("<script") != 1 or source.count("<style") != 1:
        faults.append("not one script and one style")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    if f"script-src 'sha256-{digest}'" not in page.policy or "default-src 'none'" not in page.policy:
        faults.append(f"the policy does not name the script, whose hash is {digest}")
    if re.search(r"url\(|@import|https?:|fetch|XMLHttp|import\(|eval|innerHTML|open\(", script + "".join(page.styles)):
        faults.append("style or script reach out, or make elements of texts")
    if CONTROL.search(source):
        faults.append(f"a character that hides or turns text: {CONTROL.search(source)[0]!r}")
    if len(raw) > 2_000_000:
        faults.append(f"{len(raw)} bytes")
    text = "".join(page.text)
    faults += [f"does not say '{t}'" for t in sys.argv[2:] if t not in text]
    print("\n".join(faults) or f"whole: {len(raw)} bytes")
    return bool(faults)


sys.exit(main())
