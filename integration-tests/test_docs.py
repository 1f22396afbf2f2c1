# SPDX-License-Identifier: Apache-2.0
"""What the documentation says is so: links, man pages, flags, commands.

A block of commands that is meant to be run by this test has <!-- run --> on the line before it, with
an empty line between for a block by indentation. It is run by a shell on n1 of a cluster of two nodes,
block by block in the order of the files; every line must succeed. --watch is left out of it.
"""

import html
import pathlib
import re

import pytest

from lab import wait_until
from lab.ctl import Ctl
from lab.site import Site

pytestmark = pytest.mark.quick

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MAN = sorted((ROOT / "docs/man").glob("*.8"))
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def anchor(title):
    """As it is made from a heading."""
    return re.sub(r"[^\w -]", "", html.unescape(title).strip().lower()).replace(" ", "-")


def test_every_link_leads_somewhere():
    wrong = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match("https?:", target):
                continue
            path, _, place = target.partition("#")
            file = page.parent / path if path else page
            if not file.exists():
                wrong.append(f"{page.name}: {target}")
            elif place and place not in map(anchor, re.findall("^#+ (.*)", file.read_text(), re.M)):
                wrong.append(f"{page.name}: no such heading: {target}")
    assert not wrong


def test_every_page_is_named_by_another():
    text = "\n".join(p.read_text() for p in PAGES)
    assert [p.name for p in PAGES[1:] if not re.search(rf"\]\([^)]*{re.escape(p.name)}", text)] == []


# --- words ---------------------------------------------------------------------------------------

# docs/CONTRIBUTING.md, "Writing": an operator whose first language is not English reads these twice.
UNCLEAR = re.compile(r"\b(anew|somebody|whoever|(is|was)\s+told|of\s+its\s+own\s+accord|in\s+the\s+way|"
                     r"see\s+to|is\s+well\s+again)\b", re.I)


def unclear(file, text):
    """Where text has such words."""
    return [f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]}"
            for m in UNCLEAR.finditer(text)]


def test_documents_use_plain_words():
    files = [*PAGES, *MAN, *(ROOT / "docs/kubernetes").iterdir(), ROOT / "SECURITY.md",
             ROOT / "CHANGELOG.md"]
    assert [w for f in files for w in unclear(f, f.read_text())] == []


def texts(source):
    """The strings of a C file, those that the compiler joins as one."""
    for found in re.finditer(r"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\])'|("(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*)""",
                             source, re.S):
        if found[1]:
            yield "".join(re.findall(r'"((?:\\.|[^"\\])*)"', found[1]))


def test_messages_use_plain_words():
    sources = [f for room in ("agent", "cni", "confd", "controller", "ctl", "ipam", "lib")
               for f in sorted((ROOT / room).rglob("*.[ch]"))
               if not re.search(r"_(test|fuzz|lab|world)\.[ch]$", f.name)]
    messages = [(f, text) for f in sources for text in texts(f.read_text())]
    assert len(messages) > 5000, "the strings were not found"
    script = ROOT / "cni/roost-install"
    assert [f"{f.relative_to(ROOT)}: {text}" for f, text in [*messages, (script, script.read_text())]
            if UNCLEAR.search(text)] == []


# --- man pages ------------------------------------------------------------------------------------

def man(lab, page):
    done = lab.run(["env", "MANWIDTH=200", "LANG=C", "man", "--warnings", "-l", page])
    assert done.stderr == "", f"{page.name}: {done.stderr}"
    # A flag at the end of a line may be broken behind any of its dashes.
    return re.sub(r"-\n\s+", "-", done.stdout)


def help_of(lab, build, program):
    """All that --help says to operators; of roostctl also for each command."""
    said = lab.run([build / program, "--help"]).stdout.split("\nFor tests:\n")[0]
    if program == "roostctl":
        for line in re.findall(r"^  ([a-z]+(?: [a-z]+)?)(?: |$)", said, re.M):
            said += lab.run([build / program, *line.split(), "--help"]).stdout
    return said


def test_man_pages_render_and_have_every_flag(lab, build):
    for page in MAN:
        text = man(lab, page)
        if page.stem not in ("roostd", "roost-confd", "roost-controller", "roostctl"):
            continue
        # A flag is described where it begins a line; others' flags may be mentioned anywhere.
        said = help_of(lab, build, page.stem)
        known = {f for line in re.findall(r"^  +(-.*)", said, re.M)
                 for f in FLAG.findall(line.split("  ")[0])} | {"--help", "--version"}
        described = {f for line in re.findall(r"^ +(-.*)", text, re.M) for f in FLAG.findall(line)}
        assert described == known, f"{page.name}: {described ^ known}"


# --- commands -------------------------------------------------------------------------------------

def mentioned(program):
    """(page, words) of every command in code, in a line or a block of its own."""
    for page in PAGES:
        text = page.read_text()
        inline = re.findall(rf"`{program} ([^`]+)`", text)
        for line in inline + re.findall(rf"^(?:    )?(?:\$ |sudo )?{program} (.*)", text, re.M):
            yield page.name, re.split(r"\s+#|\s*[|;]", line)[0]


def test_every_roostctl_that_is_mentioned_exists(lab, build):
    program = build / "roostctl"
    common = lab.run([program, "--help"]).stdout
    commands = set(re.findall(r"^  ([a-z]+(?: [a-z]+)?)(?: |$)", common, re.M))
    helps, wrong = {}, []
    for page, line in mentioned("roostctl"):
        words = re.findall(r"^[a-z]+(?: [a-z]+)?", line)
        command = next((w for c in words for w in (c, c.split()[0]) if w in commands), None)
        # `roostctl node` alone may stand for all of its verbs.
        if not command and not any(c.startswith(f"{line} ") for c in commands) \
                and not line.startswith("-"):
            wrong.append(f"{page}: roostctl {line}")
            continue
        if command and command not in helps:
            helps[command] = lab.run([program, *command.split(), "--help"]).stdout
        for flag in FLAG.findall(line):
            if flag not in FLAG.findall(common + helps.get(command, "")):
                wrong.append(f"{page}: {flag} of roostctl {line}")
    assert helps and not wrong


def blocks(page):
    """The text of each block that is marked."""
    for found in re.finditer(r"^<!-- run -->\n(?:```\w*\n(.*?)^```$|\n((?:    [^\n]*\n|\n)+))",
                             page.read_text(), re.M | re.S):
        yield found[1] or re.sub("^    ", "", found[2], flags=re.M)


def run_block(node, script, env, page):
    """Again while what the block before has written is not yet in force: status and render --diff
    rightly complain then. All that is run here can be run twice."""
    last = None

    def works():
        nonlocal last
        last = node.run(["bash", "-e", "-c", script], check=False, env=env, timeout=60)
        return last.returncode == 0
    try:
        wait_until(works, 60, poll=0.5)
    except AssertionError:
        raise AssertionError(f"{page}: {script}{last.stdout}{last.stderr}") from None


@pytest.mark.limit(180)
def test_commands_of_the_documentation_work(lab, etcd, build):
    site = Site(lab, build, etcd)
    site.put("pool/web", cidr="10.1.0.0/16")
    a, b = site.start(2)
    a.pod("p1"), b.pod("p2")
    site.settle()
    ctl = Ctl(a.node, build, etcd)
    env = {"ROOST_ETCD": etcd.endpoints, "ETCDCTL_ENDPOINTS": etcd.endpoints, "ETCDCTL_API": "3"}
    n = 0
    for page in PAGES:
        for block in blocks(page):
            n += 1
            script = "".join(line + "\n" for line in block.splitlines() if "--watch" not in line)
            run_block(a.node, f'PATH="{ctl.program.parent}:$PATH"\n' + script, env, page.name)
    assert n >= 4, "the marks are gone"
    # Records that were written by hand there are such as agents take.
    for kind in ("peer", "filter", "spec", "config"):
        text = ctl(f"get {kind} -o json")
        ctl("apply -f -", input=text)


# --- settings -------------------------------------------------------------------------------------

def test_configuration_has_every_flag_and_every_field(lab, build):
    """CONFIGURATION.md says what each setting does; --help and KEYS.md say which there are."""
    page = (ROOT / "docs/CONFIGURATION.md").read_text()
    flags = {f for program in ("roostd", "roost-confd", "roost-controller")
             for f in re.findall(r"^  (--[a-z0-9-]+)", lab.run([build / program, "--help"]).stdout, re.M)}
    keys = (ROOT / "docs/KEYS.md").read_text()
    fields = {f for record in ("config", "pool/", "spec/", "peer/", "static-route/")
              for row in re.findall(r"^\| (`.*?) \|", keys.split(f"\n## {record}")[1].split("\n## ")[0], re.M)
              for f in re.findall(r"`([^`]+)`", row)}
    assert len(flags) > 20 and len(fields) > 70, "nothing was found to look for"
    assert sorted(x for x in flags - {"--help", "--version"} | fields if f"`{x}`" not in page) == []
