# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole-system tests. The lab itself is in lab/; its docstring shows how."""

import os
import pathlib
import signal

import pytest

from lab import cni, process
from lab.agent import Agent
from lab.driver import StoreDriver
from lab.fake_agent import FakeAgent
from lab.session import Session

_LAB = pytest.StashKey()


@pytest.fixture(scope="session", autouse=True)
def lab_session():
    """What all labs of this process share; its end checks that nothing is left."""
    if os.geteuid() != 0:
        pytest.exit("the integration tests make namespaces and need root", 1)
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
def build():
    """The folder with the programs under test."""
    default = pathlib.Path(__file__).resolve().parent.parent / "build"
    return pathlib.Path(os.environ.get("ROOST_BUILD", default)).resolve()


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
        made.append(FakeAgent(node.path("/run/roost/agent.sock"), *args, **kwargs))
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
def agents(lab, etcd, build):
    """agents(*flags, node=None): another agent (lab/agent.py) on a node of its own, not started."""
    made = []

    def make(*flags, node=None):
        made.append(Agent(node or lab.node(f"n{1 + len(made)}"), build, etcd, *flags))
        return made[-1]
    return make


@pytest.fixture
def agent(agents):
    """An agent that serves."""
    return agents().start()


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
    """Write "passed failed skipped" for .ci/sum to add up."""
    path = os.environ.get("ROOST_RESULTS")
    if path:
        def count(*outcomes):
            return sum(len(terminalreporter.stats.get(o, ())) for o in outcomes)
        pathlib.Path(path).write_text(f"{count('passed')} {count('failed', 'error', 'xpassed')} "
                                      f"{count('skipped', 'xfailed')}\n")
