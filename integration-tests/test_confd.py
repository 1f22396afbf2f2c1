# SPDX-License-Identifier: Apache-2.0
"""roost-confd: etcd's keys through a template into a file, checked and reloaded."""

import json
import os
import pathlib
import random
import re
import stat
import time

import pytest

from lab import wait_until
from lab.agent import check_metrics
from lab.confd import OUT, PORT, PREFIX, RESOURCES, Confd
from lab.gateway import b64

pytestmark = pytest.mark.quick

NODES = "{{#node.@list}}\n{{@name}} {{ip}}\n{{/node.@list}}\n"
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
LOG = f"echo reloaded >> {OUT}/log"


@pytest.fixture
def confd(etcd, node, build):
    return Confd(node, build, etcd)


@pytest.fixture
def alone(node, build):
    """Without etcd."""
    return Confd(node, build, None)


def wait_out(confd, text, name="web"):
    wait_until(lambda: confd.out(name) == text, 20, f"{text!r} in {name}")


# --- watching ------------------------------------------------------------------------------------


def test_a_key_that_is_written_is_in_the_file_a_moment_later(confd):
    confd.resource(text=NODES, reload=LOG, mode="0604")
    confd.put("node/n1", {"ip": "10.0.0.1"})
    confd.start()
    wait_out(confd, "n1 10.0.0.1\n")
    assert stat.S_IMODE(confd.path().stat().st_mode) == 0o604
    confd.put("node/n0", {"ip": "10.0.0.0"})
    wait_out(confd, "n0 10.0.0.0\nn1 10.0.0.1\n")
    confd.etcd.delete(PREFIX + "node/", prefix=True)
    wait_out(confd, "")
    wait_until(lambda: confd.out("log") == "reloaded\n" * 3, 20, "three reloads")
    wait_until(lambda: confd.files() == ["log", "web"], 20, "nothing else in the folder")


def test_what_changes_nothing_is_no_reload(confd):
    confd.resource(text="{{a}}\n", prefix="/app/", prefixes=[], keys=["a", "b"], reload=LOG)
    confd.etcd.put("/app/a", "1")
    confd.start()
    wait_out(confd, "1\n")
    for i in range(20):
        confd.etcd.put("/app/b", str(i))
        confd.etcd.put("/app/c", str(i))  # nobody asked for it
    confd.etcd.put("/app/a", "2")
    wait_out(confd, "2\n")
    wait_until(lambda: confd.out("log") == "reloaded\n" * 2, 20, "two reloads")


def test_a_burst_of_writes_is_few_reloads_and_the_last_state_wins(confd):
    confd.resource(text=NODES, reload=LOG)
    confd.start()
    wait_out(confd, "")
    began = time.monotonic()
    for i in range(0, 1000, 50):
        puts = [{"requestPut": {"key": b64(f"{PREFIX}node/n{k:04}"), "value": b64('{"ip":"%d"}' % k)}}
                for k in range(i, i + 50)]
        confd.etcd.call("/v3/kv/txn", {"success": puts})
    wait_out(confd, "".join(f"n{k:04} {k}\n" for k in range(1000)))
    # At once, then four a second; one before the burst.
    allowed = 3 + (time.monotonic() - began) / 0.25
    assert confd.out("log").count("reloaded") <= allowed


def test_nothing_is_rendered_before_all_keys_are_known(confd, etcd):
    """The old file stays while etcd is away, and is not touched by half of the truth."""
    confd.resource(text="{{#a.@list}}{{@name}} {{/a.@list}}{{#b.@list}}{{@name}} {{/b.@list}}\n",
                   prefixes=["a/", "b/"], keys=["c"], reload=f"cat {OUT}/web >> {OUT}/log")
    confd.node.write(f"{OUT}/web", "old\n", 0o640)
    for key in "a/1", "a/2", "b/1", "c":
        confd.put(key, "x")
    etcd.stop()
    confd.start()
    confd.process.wait_log("warning etcd: .*listing")
    confd.reload()
    confd.process.wait_log("reload: 1 resources")
    assert confd.out() == "old\n"
    etcd.start()
    wait_until(lambda: confd.out("log"), 60, "the reload")
    assert confd.out("log") == "1 2 1 \n"


def test_the_file_outlives_an_outage_of_etcd(confd, etcd):
    confd.resource(text=NODES)
    confd.put("node/n1", {"ip": "1"})
    confd.start()
    wait_out(confd, "n1 1\n")
    etcd.stop()
    confd.process.wait_log("warning etcd: ")
    assert confd.out() == "n1 1\n"
    etcd.start()
    confd.put("node/n2", {"ip": "2"})
    wait_out(confd, "n1 1\nn2 2\n")


# --- what goes wrong -----------------------------------------------------------------------------


def test_a_check_that_refuses_leaves_the_old_file_and_its_words_are_logged(confd):
    confd.resource(text="{{a}}\n", check="! grep -n bad {}", reload=LOG)
    confd.put("a", "good")
    confd.start()
    wait_out(confd, "good\n")
    confd.put("a", "bad")
    confd.process.wait_log(f"error confd: web: {OUT}/web is left unchanged, the check rejected the new one: "
                           "exit 1: 1:bad")
    confd.put("b", "1")  # tried again, told no second time
    assert confd.out() == "good\n"
    confd.put("a", "better")
    wait_out(confd, "better\n")
    wait_until(lambda: confd.out("log") == "reloaded\n" * 2, 20, "two reloads")
    assert confd.process.log.count("rejected the new one") == 1
    wait_until(lambda: confd.files() == ["log", "web"], 20, "nothing else in the folder")


def test_a_reload_that_fails_brings_the_old_file_back(confd):
    confd.resource(text="{{a}}\n", reload=f"! grep bad {OUT}/web")
    confd.put("a", "good")
    confd.start()
    wait_out(confd, "good\n")
    confd.put("a", "bad")
    confd.process.wait_log("error confd: web: .* the reload failed: exit 1: bad")
    wait_out(confd, "good\n")  # it is tried again, so the new one is there for moments
    confd.put("a", "better")
    wait_out(confd, "better\n")
    wait_until(lambda: confd.files() == ["web"], 20, "nothing else in the folder")


def test_a_reload_that_failed_is_tried_again(confd):
    """Nothing changes in etcd; the daemon that is reloaded just comes back."""
    confd.resource(text="{{a}}\n", reload=f"test -e {OUT}/daemon && cp {OUT}/web {OUT}/daemon")
    confd.put("a", "1")
    confd.start()
    confd.process.wait_log("error confd: web: .* the reload failed: exit 1")
    confd.node.write(f"{OUT}/daemon", "")
    wait_until(lambda: confd.out("daemon") == "1\n", 30, "the reload")
    wait_out(confd, "1\n")
    confd.process.wait_log(f"info confd: web: {OUT}/web is published")
    assert confd.process.log.count("the reload failed") == 1


# --- an etcd that went back ----------------------------------------------------------------------

KEEPS = f"error confd: web: {OUT}/web is left unchanged: etcd was restored, emptied or replaced"
TWO = "n1 1\nn2 2\n"


def two_nodes(confd):
    confd.resource(text=NODES, reload=LOG)
    confd.put("node/n1", {"ip": "1"})
    confd.put("node/n2", {"ip": "2"})
    confd.start("--metrics", str(PORT))
    confd.process.wait_log(f"info confd: web: {OUT}/web is published")  # so the reload has ended
    assert (confd.out(), confd.out("log")) == (TWO, "reloaded\n")


@pytest.mark.parametrize("new_id", [False, True], ids=["same-id", "new-id"])
def test_the_file_outlives_a_wiped_etcd_until_its_keys_return(confd, etcd, new_id):
    two_nodes(confd)
    kept = 'roost_confd_resource_kept{resource="web"}'
    assert confd.metrics()[kept] == 0
    etcd.wipe(new_id)
    confd.process.wait_log(KEEPS + f", and 2 keys such as {PREFIX}node/n. are missing or older", 60)
    confd.put("node/n3", {"ip": "3"})
    confd.put("node/n1", {"ip": "1"})
    confd.process.wait_log("and 1 keys such as", 60)
    confd.reload()  # neither this nor a new start makes it believe what is left
    confd.process.wait_log("reload: 1 resources")
    assert (confd.out(), confd.out("log")) == (TWO, "reloaded\n")
    assert confd.metrics()[kept] == confd.metrics()['roost_confd_resource_failed{resource="web"}'] == 1
    status, text = confd.get("/readyz")
    problem, = json.loads(text)["problems"]
    assert status == 200 and problem["part"] == "web" and "is left unchanged" in problem["reason"]
    confd.put("node/n2", {"ip": "22"})
    wait_out(confd, "n1 1\nn2 22\nn3 3\n")
    wait_until(lambda: confd.out("log") == "reloaded\n" * 2, 20, "the reload")
    wait_until(lambda: confd.metrics()[kept] == 0, 20, "nothing to be kept")
    assert json.loads(confd.get("/readyz")[1])["problems"] == []
    now, text = confd.metrics(), confd.get("/metrics")[1]
    check_metrics(text)
    assert now['roost_confd_publications_total{resource="web",result="published"}'] == 2
    assert now['roost_confd_reloads_total{resource="web",outcome="accepted"}'] == 2
    documented = "".join((DOCS / name).read_text() for name in ("CONFD.md", "METRICS.md"))
    assert not [n for n in re.findall(r"^# TYPE (roost_\S+)", text, re.M) if f"`{n}`" not in documented]


def test_the_file_outlives_an_older_snapshot(confd, etcd):
    two_nodes(confd)
    snapshot = etcd.save()
    confd.put("node/n2", {"ip": "22"})
    confd.put("node/n3", {"ip": "3"})
    wait_out(confd, "n1 1\nn2 22\nn3 3\n")
    etcd.restore(snapshot)
    confd.process.wait_log(KEEPS + ", and 2 keys such as", 60)
    confd.etcd.delete(PREFIX + "node/n2")  # somebody means it
    confd.process.wait_log(f"and 1 keys such as {PREFIX}node/n3", 60)
    assert confd.out() == "n1 1\nn2 22\nn3 3\n"
    confd.put("node/n3", {"ip": "3"})
    wait_out(confd, "n1 1\nn3 3\n")


def test_an_etcd_that_was_wiped_while_nobody_watched(confd, etcd):
    """A start finds it, and every further start, until somebody accepts what is there now."""
    two_nodes(confd)
    assert confd.process.stop() == 0
    for i in range(20):
        confd.put("other", str(i))
    assert confd.run("--once").returncode == 0
    etcd.wipe()
    confd.put("node/n3", {"ip": "3"})
    done = confd.run("--once")
    assert done.returncode == 1 and KEEPS + " since it was written" in done.stderr, done.stderr
    confd.start()
    confd.process.wait_log(KEEPS + " since it was written", 60)
    for i in range(30):  # a revision beyond the former one proves nothing
        confd.put("other", str(i))
    confd.process.stop()
    confd.start()
    confd.process.wait_log(KEEPS, 60)
    assert (confd.out(), confd.out("log")) == (TWO, "reloaded\n")
    diff = confd.run("--dry-run")
    assert diff.returncode == 2 and "-n1 1\n-n2 2\n+n3 3\n" in diff.stdout
    done = confd.run("--once", "--accept", "--resource", "web")
    assert done.returncode == 0, done.stderr
    assert (confd.out(), confd.out("log")) == ("n3 3\n", "reloaded\n" * 2)
    # The one that runs finds that the file is what the keys say.
    confd.reload()
    confd.process.wait_log(f"info confd: web: {OUT}/web is up to date again", 60)
    confd.put("node/n4", {"ip": "4"})
    wait_out(confd, "n3 3\nn4 4\n")


def test_where_there_is_no_file_there_is_nothing_to_keep(confd, etcd):
    confd.resource(text=NODES)
    confd.put("node/n1", {"ip": "1"})
    confd.put("other", "1")
    assert confd.run("--once").returncode == 0
    etcd.wipe()
    assert confd.run("--once").returncode == 1 and confd.out() == "n1 1\n"
    confd.path().unlink()
    assert confd.run("--once").returncode == 0 and confd.out() == ""
    confd.put("node/n2", {"ip": "2"})
    assert confd.run("--once").returncode == 0 and confd.out() == "n2 2\n"


def test_one_bad_resource_among_three_stops_no_other(confd):
    confd.resource("one", "{{a}}\n")
    confd.resource("three", "{{a}} and {{a}}\n")
    confd.put("a", "x")
    confd.node.write(f"{RESOURCES}/two.json", '{"template": "two", "dest": "/run/out/two", }')
    confd.start()
    wait_out(confd, "x\n", "one")
    wait_out(confd, "x and x\n", "three")
    confd.process.wait_log(f"error confd: {RESOURCES}/two.json: not valid JSON at byte ")
    # Mended, it joins the others; a file that breaks now goes on as it was.
    confd.resource("two", "two: {{a}}\n")
    confd.node.write(f"{RESOURCES}/one.json", '{"template": "one", "destination": "x"}')
    confd.reload()
    wait_out(confd, "two: x\n", "two")
    confd.process.wait_log(f'{RESOURCES}/one.json: unknown field "destination"')
    confd.put("a", "y")
    wait_out(confd, "y\n", "one")


@pytest.mark.parametrize("template, words", [
    ("{{#a}}", "web"),
    ("{{missing}}", "missing"),
    ("{{> ../../etc/passwd}}", "etc/passwd"),
    ("{{> nowhere}}", "nowhere"),
    (None, "web"),
])
def test_a_template_that_is_wrong_is_named_and_the_file_stays(alone, template, words):
    alone.resource(text=template)
    alone.node.write(f"{OUT}/web", "old\n", 0o640)
    done = alone.run("--data", "-", input='{"a": 1}')
    assert done.returncode == 1 and words in done.stderr, done.stderr
    assert "cannot be rendered and is left unchanged" in done.stderr
    assert alone.out() == "old\n" and alone.files() == ["web"]


def test_without_strict_what_is_missing_is_empty(alone):
    alone.resource(text="<{{missing}}>\n", strict=False)
    assert alone.run("--data", "-", input="{}").returncode == 0
    assert alone.out() == "<>\n"


def test_a_target_that_is_a_link_is_left_alone(alone):
    alone.resource(text="x\n")
    alone.node.write(f"{OUT}/real", "real\n")
    os.symlink("real", alone.path())
    done = alone.run("--data", "-", input="{}")
    assert done.returncode == 1 and "is a symbolic link and is not replaced" in done.stderr
    assert alone.out("real") == "real\n"


# --- hostile values ------------------------------------------------------------------------------

HOSTILE = ["{{a}}", "{{/node.@list}}", "{{> ../../etc/passwd}}", "$(touch /run/out/owned)", "`id`", "';--",
           '"; protocol bgp x {}', "\n\nnewlines\n", "{}", "\\", "%s%n", "x" * 5000, "\u2028\u202e"]


def test_hostile_values_stay_values(confd):
    """They come out byte for byte, and nothing of them is ever executed or looked up."""
    confd.resource(text="{{#v.@list}}\n[{{text}}]\n{{/v.@list}}\n", check="cat {} > /dev/null",
                   reload=["cat", "{}"])
    for i, text in enumerate(HOSTILE):
        confd.put(f"v/{i:02}", {"text": text})
    confd.start()
    wait_out(confd, "".join(f"[{text}]\n" for text in HOSTILE))
    wait_until(lambda: confd.files() == ["web"], 20, "nothing else in the folder")


def test_hostile_keys_do_no_harm(confd):
    confd.resource(text="{{#a.@list}}{{@name}};{{/a.@list}}\n")
    for name in ["../../x", "/" * 3000, "@list", "@name/@last", "{{x}}", "a b", "."]:
        confd.etcd.put(f"{PREFIX}a/{name}", "v")
    confd.put("a/last", "v")
    confd.start()
    wait_until(lambda: "last;" in (confd.out() or ""), 20, "the file")
    confd.put("a/zzz", "v")
    wait_until(lambda: "zzz;" in (confd.out() or ""), 20, "the file again")


def test_html_is_escaped_where_it_is_asked_for(alone):
    alone.resource(text="{{a}} {{{a}}}\n", escape="html")
    alone.run("--data", "-", input='{"a": "<&>"}')
    assert alone.out() == "&lt;&amp;&gt; <&>\n"


# --- BIRD ----------------------------------------------------------------------------------------

BIRD = 'router id 192.0.2.1;\nprotocol device {}\nprotocol static s{{n}} { ipv4; {{{more}}} }\n'


def bird_resource(confd, **fields):
    confd.resource("bird", BIRD, dest="/etc/bird/bird.conf", reload={"bird": "/run/bird/bird.ctl"},
                   prefixes=["n", "more"], **fields)
    confd.put("n", 1)
    confd.put("more", "")


def test_bird_is_checked_and_reloaded_through_its_socket(confd, bird):
    bird_resource(confd)
    daemon = bird(confd.node, "protocol device {}\n")
    confd.start()
    wait_until(lambda: "s1" in daemon.birdc("show protocols"), 20, "s1 in BIRD")
    confd.put("n", 2)
    wait_until(lambda: "s2" in daemon.birdc("show protocols"), 20, "s2 in BIRD")
    before = confd.node.read("/etc/bird/bird.conf")
    confd.put("more", "nonsense;")
    confd.process.wait_log("error confd: bird: .* the check rejected the new one: .*bird.conf.*syntax error")
    assert confd.node.read("/etc/bird/bird.conf") == before
    assert "s2" in daemon.birdc("show protocols")


def test_what_bird_refuses_is_put_back(confd, bird):
    bird_resource(confd, check="true")
    daemon = bird(confd.node, "protocol device {}\n")
    confd.start()
    wait_until(lambda: "s1" in daemon.birdc("show protocols"), 20, "s1 in BIRD")
    before = confd.node.read("/etc/bird/bird.conf")
    confd.put("more", "nonsense;")
    confd.process.wait_log("error confd: bird: .* the reload failed: .*syntax error")
    wait_until(lambda: confd.node.read("/etc/bird/bird.conf") == before, 20, "the old file")
    assert "s1" in daemon.birdc("show protocols")


def test_bird_may_start_later(confd, bird):
    """The file is there for its start; that it runs it is made sure of."""
    bird_resource(confd)
    confd.start()
    confd.process.wait_log("error confd: bird: .* is written, but not reloaded yet: ")
    text = confd.node.read("/etc/bird/bird.conf")
    assert "s1" in text
    daemon = bird(confd.node, text)
    confd.process.wait_log("info confd: bird: .* is published")
    confd.put("n", 2)
    wait_until(lambda: "s2" in daemon.birdc("show protocols"), 20, "s2 in BIRD")


# --- once, dry run, data -------------------------------------------------------------------------


def test_once_ends_with_zero_when_all_is_well(confd):
    confd.resource(text=NODES, reload=LOG)
    confd.put("node/n1", {"ip": "1"})
    for _ in range(2):
        done = confd.run("--once")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert confd.out() == "n1 1\n" and confd.out("log") == "reloaded\n"


def test_once_tries_everything_and_then_fails(confd):
    confd.resource("a", "{{missing}}")
    confd.resource("b", "b\n", check=["/no/such/program"])
    confd.resource("c", "c\n", reload="exit 7")
    confd.resource("d", "d\n", owner="no-such-user")
    confd.resource("e", "e\n")
    confd.node.write(f"{RESOURCES}/f.json", "[]")
    confd.resource("g", "g\n", dest=f"{OUT}/e")
    done = confd.run("--once")
    assert done.returncode == 1
    for words in ("missing", "/no/such/program: No such file", "exit 7", 'no user "no-such-user"',
                  "f.json: not a JSON object", f"{OUT}/e is already the file of e"):
        assert words in done.stderr, words
    assert confd.files() == ["e"] and confd.out("e") == "e\n"
    assert confd.run("--once", "--resource", "e").returncode == 0
    assert "has no resource" in confd.run("--once", "--resource", "x").stderr


@pytest.mark.slow(10)
def test_once_gives_up_when_etcd_does_not_answer(confd, etcd):
    confd.resource(text=NODES)
    etcd.stop()
    done = confd.run("--once", timeout=100)
    assert done.returncode == 1 and "error etcd: " in done.stderr
    assert confd.files() == []


def test_a_dry_run_prints_a_diff_and_changes_nothing(confd):
    confd.resource(text=NODES, check="touch /run/out/checked", reload=LOG)
    confd.put("node/n1", {"ip": "1"})
    done = confd.run("--dry-run")
    assert (done.returncode, confd.files()) == (2, [])
    assert done.stdout == f"--- /dev/null\n+++ {OUT}/web\n@@ -0,0 +1 @@\n+n1 1\n"
    assert confd.run("--once", "--resource", "web").returncode == 0
    confd.path("log").unlink()
    confd.path("checked").unlink()
    done = confd.run("--dry-run")
    assert (done.returncode, done.stdout) == (0, "")
    confd.put("node/n2", {"ip": "2"})
    done = confd.run("--dry-run")
    assert (done.returncode, done.stdout) == (2, f"--- {OUT}/web\n+++ {OUT}/web\n@@ -1 +1,2 @@\n n1 1\n+n2 2\n")
    confd.resource("bad", "{{missing}}")
    done = confd.run("--dry-run")
    assert done.returncode == 1 and "+n2 2" in done.stdout and "missing" in done.stderr
    assert confd.files() == ["web"] and confd.out() == "n1 1\n"


def test_data_from_a_file_or_standard_input_needs_no_etcd(alone):
    alone.resource(text="{{a.b}}\n", owner="65534", group="0")
    alone.node.write("/run/data.json", '{"a": {"b": 5}}')
    assert alone.run("--data", "/run/data.json").returncode == 0
    assert alone.out() == "5\n" and alone.path().stat().st_uid == 65534
    assert alone.run("--data", "-", "--dry-run", input='{"a": {"b": 6}}').returncode == 2
    for text in "[]", "{", '{"a":', "":
        done = alone.run("--data", "-", input=text)
        assert done.returncode == 1 and "standard input: " in done.stderr, done.stderr
    assert "No such file" in alone.run("--data", "/none").stderr
    assert alone.run("--data", "-", "--watch", input="{}").returncode == 1


def test_a_template_may_lie_anywhere_with_its_partials_beside_it(alone):
    alone.node.write("/run/t/main.mustache", "{{> part}}!\n")
    alone.node.write("/run/t/part.mustache", "hello")
    alone.resource(template="/run/t/main.mustache")
    assert alone.run("--data", "-", input="{}").returncode == 0
    assert alone.out() == "hello!\n"


# --- life ----------------------------------------------------------------------------------------


def test_sighup_takes_up_edited_templates_and_resources(confd):
    confd.resource(text="one {{a}}\n")
    confd.resource("old", "old\n")
    confd.put("a", "x")
    confd.start()
    wait_out(confd, "one x\n")
    wait_out(confd, "old\n", "old")
    confd.template("web", "two {{a}}\n")
    confd.resource("new", "new {{a}}\n")
    confd.node.path(f"{RESOURCES}/old.json").unlink()
    confd.reload()
    wait_out(confd, "two x\n")
    wait_out(confd, "new x\n", "new")
    confd.process.wait_log("reload: 2 resources, 0 of them")
    assert confd.out("old") == "old\n"  # it is no longer ours, nor anybody's to remove
    confd.template("web", "three {{a}}\n")
    confd.put("a", "y")  # the next rendering sees it too
    wait_out(confd, "three y\n")


def test_it_starts_without_resources_and_waits_for_them(confd):
    confd.start()
    confd.process.wait_log("has no resources")
    confd.resource(text="x\n")
    confd.reload()
    wait_out(confd, "x\n")


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(confd):
    """And the next start reloads what was not known to be reloaded."""
    # Large, so that there are moments in between; the daemon's state is what it read last.
    confd.resource(text="{{#lines}}\n{{v}} {{.}}\n{{/lines}}\n", check="true {}", reload=f"cp {OUT}/web {OUT}/running")
    confd.put("lines", list(range(20000)))
    whole = {f"v{i}": "".join(f"v{i} {n}\n" for n in range(20000)) for i in range(12)}
    confd.put("v", "v0")
    assert confd.run("--once").returncode == 0
    chance = random.Random(7)
    for i in range(1, 12):
        confd.put("v", f"v{i}")
        process = confd.node.spawn(f"confd{i}", [confd.program, *confd.etcd.flags()])
        time.sleep(chance.uniform(0, 0.15))  # no event to wait for: any moment is meant
        process.kill()
        assert confd.out() in (whole[f"v{i - 1}"], whole[f"v{i}"])
        assert confd.run("--once").returncode == 0
        assert confd.out() == whole[f"v{i}"]
        # A command of the killed one may still be at it.
        wait_until(lambda: confd.out("running") == whole[f"v{i}"], 20, "what was published to run")
        assert confd.files() == ["running", "web"]


def test_help_and_version_and_mistakes(alone):
    assert "--dry-run\n" in alone.run("--help").stdout
    assert alone.run("--version").stdout.startswith("roost-confd ")
    done = alone.run("--onse")
    assert done.returncode == 1 and "--once" in done.stderr
    done = alone.run("--once", "--watch")
    assert done.returncode == 1 and "--watch does not end" in done.stderr
    assert alone.run("--once", "--resource-dir", "/none").returncode == 1
