# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole-system tests. The lab itself is in lab/; its docstring shows how."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from lab import cni, process
from lab.agent import Agent, pool
from lab.bird_driver import BirdDriver
from lab.cluster import Member
from lab.driver import StoreDriver
from lab.fake_agent import FakeAgent
from lab.session import Session
from lab.site import Site

_LAB = pytest.StashKey()


@pytest.fixture(scope="session", autouse=True)
def lab_session():
    """What all labs of this process share; its end checks that nothing is left."""
    if os.geteuid() != 0:
        pytest.exit("the integration tests make network namespaces, so they need root: make check-integration asks sudo for it", 1)
    if "PYTEST_XDIST_WORKER" in os.environ:
        process.die_with_parent()
    session = Session()
    yield session
    session.close()


@pytest.fixture
def make_lab(request, lab_session):
    """For tests that need more than one lab: call it for each."""
    labs = request.node.stash.setdefault(_LAB, [])

    def make():
        labs.append(lab_session.lab())
        return labs[-1]
    yield make
    wrong = []
    for lab in labs:
        try:
            lab.close()
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def lab(make_lab):
    """The lab of this test."""
    return make_lab()


@pytest.fixture
def etcd(lab):
    """A running etcd of one member."""
    return lab.etcd()


@pytest.fixture
def bird(lab):
    """bird(node, config) starts a BIRD."""
    return lab.bird


@pytest.fixture(scope="session")
def bird_versions(build):
    """The folder with Debian 13's BIRDs, or the reason why there is none."""
    dest = build / "bird-versions"
    script = pathlib.Path(__file__).resolve().parent.parent / ".ci/bird-versions"
    done = subprocess.run([script, dest], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return (dest, "") if done.returncode == 0 else (None, done.stderr.strip())


@pytest.fixture(params=["installed", "2.17", "3.1"])
def bird_program(request, bird_versions):
    """The test runs once for each version of BIRD: the program's path, for lab.bird()."""
    if request.param == "installed":
        return "bird"
    folder, reason = bird_versions
    if not folder:
        pytest.skip(reason)
    return folder / request.param / "usr/sbin/bird"


@pytest.fixture
def bird_driver(sanitized):
    """bird_driver(node): a control-socket client (lab/bird_driver.py); it must end well."""
    program = sanitized / "bird-driver"
    started = []

    def start(node, **kwargs):
        started.append(BirdDriver(node, program, **kwargs))
        return started[-1]
    yield start
    for d in started:
        d.close()


@pytest.fixture(scope="session")
def build():
    """The folder with the programs under test."""
    default = pathlib.Path(__file__).resolve().parent.parent / "build"
    return pathlib.Path(os.environ.get("ROOST_BUILD", default)).resolve()


@pytest.fixture(scope="session")
def sanitized(build):
    """The same programs with ASan and UBSan; those under test if there are no others."""
    return pathlib.Path(os.environ.get("ROOST_BUILD_SANITIZE", build)).resolve()


@pytest.fixture
def store_driver(lab, build):
    """store_driver(etcd, node=n1) starts a store under test (lab/driver.py); it must end well."""
    started = []

    def start(etcd=None, node=None, flags=None, program=build / "store-driver", **kwargs):
        started.append(StoreDriver(lab, program, flags or etcd.flags(), node, **kwargs))
        return started[-1]
    yield start
    wrong = []
    for d in started:
        try:
            d.close()
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def node(lab):
    """For tests that need just one machine."""
    return lab.node()


@pytest.fixture
def fake_agent(node):
    """fake_agent(**kwargs): an agent as lab/fake_agent.py plays it, at the node's usual socket."""
    made = []

    def make(*args, **kwargs):
        made.append(FakeAgent(node.path("/run/roost/agent.sock"), *args, node=node, **kwargs))
        return made[-1]
    yield make
    for agent in made:
        agent.close()


@pytest.fixture
def ipam(node, build):
    """ipam(verb, conf, ...) runs roost-ipam on the node, as lab/cni.py says."""
    def call(verb, conf, **kwargs):
        return cni.call(node, build / "roost-ipam", verb, conf, **kwargs)
    return call


@pytest.fixture
def roost(node, build):
    """roost(verb, conf, pod, ...) runs the main plugin; ours and Debian's are in CNI_PATH."""
    def call(verb, conf, pod=None, program=build / "roost", **kwargs):
        if pod:
            kwargs["netns"] = pod.netns
        kwargs.setdefault("path", f"{build}:/usr/lib/cni")
        return cni.call(node, program, verb, conf, **kwargs)
    return call


@pytest.fixture
def agents(lab, etcd, build):
    """agents(*flags, node=None): another agent (lab/agent.py) on a node of its own, not started."""
    made = []

    def make(*flags, node=None):
        made.append(Agent(node or lab.node(f"n{1 + len(made)}"), build, etcd, *flags))
        return made[-1]
    return make


@pytest.fixture
def dual_etcd(lab):
    """A running etcd on a switch of both families, where members of a site peer too."""
    return lab.etcd(switch=lab.switch(subnet="10.250.0.0/24", subnet6="fd50::/64"))


@pytest.fixture
def dual_site(lab, dual_etcd, build):
    """A site (lab/site.py) with a pool of each family."""
    site = Site(lab, build, dual_etcd)
    site.dual_pools()
    return site


@pytest.fixture
def agent(agents):
    """An agent that serves."""
    return agents().start()


@pytest.fixture
def cluster(lab, etcd, build):
    """cluster(n, *flags): nodes that can run pods (lab/cluster.py), with a pool of addresses."""
    def make(n=1, *flags):
        pool(etcd)
        return [Member(lab.node(f"n{i + 1}"), build, etcd, *flags).start() for i in range(n)]
    return make


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what its processes said last, and leaves all of it in ROOST_LOGS."""
    report = (yield).get_result()
    labs = item.stash.get(_LAB, ())
    if report.failed:
        for lab in labs:
            for name, text in lab.tails():
                report.sections.append((f"log of {name}", text))
            if "ROOST_LOGS" in os.environ:
                lab.copy_logs(pathlib.Path(os.environ["ROOST_LOGS"], item.name.replace("/", "_")))
    if report.when == "teardown":
        for lab in labs:
            lab.remove_files()


def pytest_collection_modifyitems(items):
    """The longest first, so that none of them is what everybody waits for in the end."""
    def seconds(item):
        mark = item.get_closest_marker("slow")
        return mark.args[0] if mark else 0
    items.sort(key=seconds, reverse=True)


def pytest_runtest_setup(item):
    mark = item.get_closest_marker("plain")
    build, sanitized = (os.environ.get(f"ROOST_BUILD{s}") for s in ("", "_SANITIZE"))
    if mark and build and build == sanitized:
        pytest.skip(f"not on the sanitizer build: {mark.args[0]}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that hangs is ended, so that the others still run."""
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] if mark else 120

    def hung(signum, frame):
        # No Exception: neither wait_until nor a test's own `except` shall swallow it.
        pytest.fail(f"still running after {seconds} s")
    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_terminal_summary(terminalreporter):
    """Show what tests told by record_property("told", ...); write "passed failed skipped" for
    .ci/sum to add up."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.write_line(value)
    path = os.environ.get("ROOST_RESULTS")
    if path:
        def count(*outcomes):
            return sum(len(terminalreporter.stats.get(o, ())) for o in outcomes)
        pathlib.Path(path).write_text(f"{count('passed')} {count('failed', 'error', 'xpassed')} "
                                      f"{count('skipped', 'xfailed')}\n")
        # Without the group that xdist has added.
        wrong = {re.sub(r"@\w+$", "", r.nodeid) for o in ("failed", "error") for r in terminalreporter.stats.get(o, ())}
        pathlib.Path(path + ".failed").write_text("".join(f"{w}\n" for w in sorted(wrong)))
