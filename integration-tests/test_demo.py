# SPDX-License-Identifier: Apache-2.0
"""`make demo` as people meet it: the whole story, kept and ended, interrupted, failing."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from lab import process, wait_until

DEMO = pathlib.Path(__file__).resolve().parent / "demo"
pytestmark = pytest.mark.limit(300)


@pytest.fixture
def demo(build, tmp_path):
    """demo(program, *args): a program of demo/, with a folder of its own beside other demos."""
    env = {**os.environ, "ROOST_DEMO": str(tmp_path / "demo"), "TMPDIR": str(tmp_path)}
    started = []

    def start(program, *args, **more):
        started.append(subprocess.Popen([DEMO / program, *args], env={**env, **more}, text=True,
                                        start_new_session=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return started[-1]
    start.folder = tmp_path
    yield start
    subprocess.run([DEMO / "stop"], env=env, check=False)
    for p in started:
        p.kill()
        p.wait()
        p.stdout.close()


def finish(p, code=0):
    said = p.communicate(timeout=100)[0]
    assert p.returncode == code, said
    return said


def left(demo):
    """Folders of sessions and processes with their marks; each demo's lie in its own TMPDIR."""
    sessions = [p.name for p in demo.folder.glob("roost-lab-*")]
    return sessions, [pid for s in sessions for pid in process.marked(s)], (demo.folder / "demo").exists()


NOTHING = ([], [], False)


@pytest.mark.slow(15)
@pytest.mark.quick
def test_the_story_is_told_whole_and_true(demo, build):
    said = finish(demo("run", build))
    assert "\033" not in said, "colours are for terminals"
    for step in ("a top-of-rack router", "the operator", "BIRD and roostd start", "pods start",
                 "the router has learned", "pings: pod to pod", "is killed while a ping runs",
                 "the agent starts again", "another program flushes", "behind the router is a VPN",
                 "another program removes it", "etcd is killed", "etcd starts again",
                 "the pool becomes an overlay", "and back: the tunnels go",
                 "a hostile pod sends as another pod", "as a host of the internet", "its node's loopback",
                 "into the overlay of another", "a BGP session with its node", "by BFD", "two controllers: the leader",
                 "nothing of this is left"):
        assert re.search(rf"^\[ *\d+\.\d s\] .*{step}", said, re.M), f"{step!r} is missing in\n{said}"
    # The router's table: three blocks, each by another node.
    table = re.search(r"tor# ip route show proto bird.*\n((?:    .*\n)+)", said)[1]
    assert len(set(re.findall(r"/26 via (\S+)", table))) == 3, table
    losses = re.findall(r"(\d+) packets transmitted, (\d+) received, 0% packet loss", said)
    assert len(re.findall(r"nft list counter .*\n\s+packets [1-9]\d* bytes", said)) == 6, said
    assert len(losses) == 9 and all(int(a) == int(b) > 0 for a, b in losses), losses
    assert int(losses[5][0]) >= 20, "the ping over the agent's absence was a short one"
    assert "Couldn't connect to server" in said
    assert re.search(r'CNI_CONTAINERID=late.*\n    "ips":', said)
    assert "is unhealthy" in said
    for words in ("pool create web", "node list", "ipam show", "status", "bgp --all", "overlay", "ipam check"):
        assert f"# roostctl {words}" in said, f"roostctl {words} is missing"
    assert "All is well." in said and "Nothing found" in said
    assert left(demo) == NOTHING


@pytest.mark.slow(15)
def test_a_kept_demo_is_entered_and_ended(demo, build):
    said = finish(demo("run", build, KEEP="1"))
    assert "demo/enter n1" in said and "demo-stop" in said
    assert "10.1." in finish(demo("enter", "tor", "ip", "route", "show", "proto", "bird"))
    finish(demo("enter", "n2", "nsenter", "--net=/run/netns/web2", "ping", "-c", "1", "10.250.0.2"))
    by_hand = re.search(r"nsenter --target=\d+ --net --mount --uts", said)[0].split()
    assert subprocess.run([*by_hand, "hostname"], capture_output=True, text=True).stdout == "n1\n"
    assert "enter one of etcd-m1, tor, n1, n2, n3" in finish(demo("enter", "n9"), 1)
    assert "make demo-stop" in finish(demo("run", build), 1), "a second one beside it"
    assert "has ended" in finish(demo("stop"))
    assert left(demo) == NOTHING
    assert "No demo runs" in finish(demo("stop"))
    assert "No demo is kept" in finish(demo("enter", "n1"), 1)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_demo_leaves_nothing(demo, build, sign):
    p = demo("run", build)
    for line in p.stdout:
        if "pods start" in line:
            break
    if sign == signal.SIGKILL:  # the one who owns it all, too
        os.kill(int((demo.folder / "demo/lock").read_text()), sign)
    os.killpg(p.pid, sign)
    finish(p, 130 if sign == signal.SIGINT else -sign)
    wait_until(lambda: left(demo)[:2] == ([], []), 30, "all of it to go")
    assert "No demo runs" in finish(demo("stop"))
    assert left(demo) == NOTHING


def test_a_step_that_fails_fails_the_demo(demo, tmp_path, build):
    """A build whose plugin does nothing."""
    broken = tmp_path / "build"
    broken.mkdir()
    for p in ("roostd", "roost-ipam"):
        (broken / p).symlink_to(build / p)
    (broken / "roost").symlink_to("/bin/true")
    said = finish(demo("run", broken), 1)
    assert "The demo failed" in said and "pings: pod to pod" not in said
    assert left(demo) == NOTHING
    assert any((broken / "logs/demo").iterdir())
