# SPDX-License-Identifier: Apache-2.0
"""The control-socket client against real BIRDs: the installed one and Debian 13's two."""

import re
import socket
import threading

from lab import wait_until
from lab.bird import CONFIG, CONTROL

HEAD = """
log stderr { warning, error, fatal, bug };
router id 192.168.50.%d;
protocol device { scan time 10; }
"""
# Static routes are easily counted.
STATIC = """
protocol static s4 { ipv4; %s }
"""
LIVELY = """
protocol bfd bfd1 { interface "eth*" { min rx interval 200 ms; min tx interval 200 ms; }; }
protocol ospf v2 ospf4 { ipv4 { import all; export none; };
  area 0 { interface "eth*" { type broadcast; hello 1; dead 4; wait 2; }; }; }
"""
PEER = """
protocol bgp n_peer { local 192.168.50.%d as 6451%d; neighbor 192.168.50.%d as 6451%d;
  bfd on; connect delay time 1; connect retry time 5; error wait time 1, 10;
  ipv4 { import all; export where source = RTS_STATIC; }; }
"""
GONE = """
protocol bgp n_gone_%d { local as 64512; neighbor 192.168.50.%d as 64513;
  ipv4 { import none; export none; }; }
"""


def routes(n):
    return "".join(f"route 10.1.{i}.0/26 blackhole; " for i in range(n))


def base(n_routes=1):
    return HEAD % 1 + STATIC % routes(n_routes)


def protocols(driver, command="show protocols"):
    return {p["name"]: p for p in driver.show(command)}


def counts(driver):
    return {c["table"]: c["routes"] for c in driver.show("show route count")}


def test_all_of_birds_state_is_read(lab, bird_program, bird_driver):
    n1, n2 = lab.nodes(2)
    lab.switch([n1, n2])
    for me, other, node in (1, 2, n1), (2, 1, n2):
        lab.bird(node, HEAD % me + STATIC % f"route 10.2.0.{me}/32 blackhole;" + LIVELY
                 + PEER % (me, me, other, other), bird_program)
    driver = bird_driver(n1)
    version = driver.wait_event("connected")
    if bird_program != "bird":
        assert version.startswith(f"{bird_program.parts[-4]}."), version

    status = driver.show("show status")
    assert status["router_id"] == "192.168.50.1"
    assert status["state"] == "Daemon is up and running"

    def established():
        peer = protocols(driver, "show protocols all")["n_peer"]
        channel = peer["channels"][0]
        return peer["bgp_state"] == "Established" and channel["imported"] == 1 and peer
    peer = wait_until(established, 60, "the session")
    assert (peer["neighbor"], peer["neighbor_as"]) == ("192.168.50.2", 64512)
    assert peer["channels"][0]["name"] == "ipv4" and peer["channels"][0]["state"] == "UP"
    assert {"device1", "s4", "bfd1", "ospf4", "n_peer"} == set(protocols(driver))

    wait_until(lambda: [r[:4] for r in driver.show("show bfd sessions")]
               == [["bfd1", "192.168.50.2", "eth0", "Up"]], 60, "BFD")
    wait_until(lambda: [(r[0], r[1], r[3].split("/")[0], r[6])
                        for r in driver.show("show ospf neighbors")]
               == [("ospf4", "192.168.50.2", "Full", "192.168.50.2")], 60, "OSPF")
    assert counts(driver)["master4"] >= 2
    assert driver.events("disconnected") == []


def test_a_table_of_a_protocol_that_does_not_run_is_empty(node, lab, bird_program, bird_driver):
    lab.bird(node, base(), bird_program)
    driver = bird_driver(node)
    driver.wait_event("connected")
    assert driver.show("show bfd sessions") == []
    assert driver.show("show ospf neighbors") == []
    refused = driver.ask("command show protocols all nonesuch")
    assert refused["code"] == 9001 and refused["err"] == ""
    assert driver.ask("command " + "x" * 513)["err"] == "E2BIG"
    assert driver.ask("command " + "x" * 512)["code"] == 9001
    assert counts(driver)["master4"] == 1


def test_what_became_of_configure(node, lab, bird_program, bird_driver):
    bird = lab.bird(node, base(1), bird_program)
    driver = bird_driver(node)
    driver.wait_event("connected")

    assert driver.ask("configure")["outcome"] == "done"
    bird.write(base(3) + LIVELY + GONE % (7, 7))
    assert driver.ask("configure")["outcome"] == "done"
    assert counts(driver)["master4"] == 3
    # Nothing changes: BIRD 3 is in progress for a moment all the same. Then much goes away.
    assert driver.ask("configure")["outcome"] == "done"
    bird.write(base(2))
    assert driver.ask("configure")["outcome"] == "done"
    assert set(protocols(driver)) == {"device1", "s4"}

    bird.write(base(2) + "\nprotocol nonsense { }\n")
    refused = driver.ask("configure")
    assert refused["outcome"] == "refused"
    assert re.match(r"/etc/bird/bird\.conf:\d+:\d+ ", refused["words"]), refused
    node.path(CONFIG).unlink()
    refused = driver.ask("configure")
    assert refused["outcome"] == "refused" and CONFIG in refused["words"]
    assert counts(driver)["master4"] == 2, "the old configuration stays"

    bird.write(base(4))
    assert driver.ask("configure")["outcome"] == "done"
    assert counts(driver)["master4"] == 4
    assert driver.ask("command restrict")["code"] == 16
    assert driver.ask("configure") == {"id": driver.messages[-1]["id"], "outcome": "denied",
                                       "words": "Access denied"}
    assert driver.events("disconnected") == []


class Tap:
    """Stands between the client and BIRD and writes down who said which line, in order."""

    def __init__(self, node, path):
        self.lines, self._node = [], node
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(node.path(path)))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        client, _ = self._listener.accept()
        bird = socket.socket(socket.AF_UNIX)
        bird.connect(str(self._node.path(CONTROL)))
        threading.Thread(target=self._pass, args=(client, bird, ">"), daemon=True).start()
        self._pass(bird, client, "<")

    def _pass(self, a, b, mark):
        rest = b""
        while data := a.recv(65536):
            *lines, rest = (rest + data).split(b"\n")
            # Before it is handed on: so the order written is the order of causes.
            self.lines += [(mark, line.decode()) for line in lines]
            b.sendall(data)

    def close(self):
        self._listener.close()


def test_configures_asked_for_at_once_never_overlap(node, lab, bird_program, bird_driver):
    bird = lab.bird(node, base(1) + LIVELY, bird_program)
    tap = Tap(node, "/run/bird/tap.ctl")
    driver = bird_driver(node, socket="/run/bird/tap.ctl")
    driver.wait_event("connected")
    for i in range(12):
        # Sessions come and go, which takes BIRD a while.
        bird.write(base(1 + i % 3) + LIVELY + "".join(GONE % (k, 10 + k) for k in range(i % 4)))
        sent = tap.lines.count((">", "configure"))
        asked = [driver.start("configure") for _ in range(3)]
        wait_until(lambda: tap.lines.count((">", "configure")) > sent, 60, "a configure")
        # And one more while that is on the wire, or just over.
        asked.append(driver.start("configure"))
        assert {driver.answer(id)["outcome"] for id in asked} == {"done"}
    assert bird.process.alive and driver.events("disconnected") == []
    assert counts(driver)["master4"] == 1 + 11 % 3
    tap.close()

    running, configures, slow = False, 0, 0
    for who, line in tap.lines:
        if (who, line) == (">", "configure"):
            assert not running, "a configure before the last one was done"
            running, configures = True, configures + 1
        elif who == "<" and re.match(r"000[45] ", line):
            slow += 1
        elif who == "<" and re.match(r"0003[ -]", line):
            running = False
    assert 12 <= configures <= 4 * 12
    assert not any("undo" in line or "check" in line for who, line in tap.lines if who == ">")
    if bird_program != "bird" and bird_program.parts[-4] == "3.1":
        assert slow > 0, "BIRD 3 takes its time, so there was something to follow"


def test_bird_comes_and_goes(node, lab, bird_program, bird_driver):
    driver = bird_driver(node)
    assert driver.wait_event("disconnected") == \
        f"{CONTROL} does not exist: BIRD does not run, or its socket is elsewhere"
    bird = lab.bird(node, base(), bird_program)
    driver.wait_event("connected")

    now = len(driver.messages)
    bird.kill()
    driver.wait_event("disconnected", "closed the connection", now)
    driver.wait_event("disconnected", "left over from a BIRD that crashed", now)
    assert driver.ask("configure")["err"] == "ENOTCONN"
    bird.start()
    driver.wait_event("connected", since=now)

    now = len(driver.messages)
    bird.stop()
    driver.wait_event("disconnected", "does not exist", now)
    bird.start()
    driver.wait_event("connected", since=now)

    # The connection outlives the name of the socket; what comes after is found again.
    now = len(driver.messages)
    node.path(CONTROL).unlink()
    assert driver.show("show status")["state"] == "Daemon is up and running"
    bird.kill()
    driver.wait_event("disconnected", "does not exist", now)
    bird.start()
    driver.wait_event("connected", since=now)
    bird.write(base(5))
    assert driver.ask("configure")["outcome"] == "done"
    assert counts(driver)["master4"] == 5


def test_a_bird_that_hangs_is_told_and_found_again(node, lab, bird_driver):
    bird = lab.bird(node, base())
    driver = bird_driver(node)
    driver.wait_event("connected")
    now = len(driver.messages)
    bird.process.pause()
    assert driver.ask("command show status")["err"] == "ETIMEDOUT"
    driver.wait_event("disconnected", 'BIRD did not answer "show status" within 5 s', now)
    bird.process.resume()
    driver.wait_event("connected", since=now)
    assert driver.show("show status")["state"] == "Daemon is up and running"


def test_bird_killed_while_it_reads_its_configuration(node, lab, bird_driver):
    bird = lab.bird(node, base())
    driver = bird_driver(node)
    driver.wait_event("connected")
    now = len(driver.messages)
    bird.process.pause()
    asked = driver.start("configure")
    # Lines are taken in order: once this one is refused, the one before is under way.
    assert driver.ask("command " + "x" * 513)["err"] == "E2BIG"
    bird.kill()
    lost = driver.answer(asked)
    assert lost["outcome"] == "lost" and "closed the connection" in lost["words"]
    bird.start()
    driver.wait_event("connected", since=now)
    assert driver.ask("configure")["outcome"] == "done"


def test_five_thousand_peers_fit(node, lab, bird_driver):
    bird = lab.bird(node, base())
    driver = bird_driver(node)
    driver.wait_event("connected")
    bird.write(base() + "template bgp t { local as 64512; passive; multihop; "
               "ipv4 { import none; export none; }; }\n"
               + "".join(f"protocol bgp n_{i} from t {{ neighbor 10.9.{i // 250}.{i % 250 + 2} "
                         "as 64513; }\n" for i in range(5000)))
    assert driver.ask("configure")["outcome"] == "done"
    peers = driver.show("show protocols all")
    assert sum(p["bgp_state"] == "Passive" for p in peers) == 5000
    assert driver.ask("command show protocols all")["bytes"] > 1_000_000
    bird.write(base())
    assert driver.ask("configure")["outcome"] == "done"
    assert len(driver.show("show protocols")) == 2
    assert driver.events("disconnected") == []


def test_a_file_is_checked_in_a_child(node, lab, bird_program, bird_driver):
    driver = bird_driver(node)

    def check(text):
        node.write("/etc/bird/candidate.conf", text)
        return driver.ask(f"check {bird_program} /etc/bird/candidate.conf")

    assert check(base()) == {"id": 1, "err": "", "words": ""}
    bad = check(base() + "protocol nonsense {}\n")
    assert bad["err"] == "EINVAL"
    assert re.match(r"/etc/bird/candidate\.conf:\d+:\d+ ", bad["words"]), bad
    # A long string kills BIRD's parser: by a signal, which must not count as good.
    dead = check(base() + f'protocol static s6 {{ description "{"x" * 5000}"; ipv6; }}\n')
    assert dead["err"] == "EINVAL" and "killed by SIG" in dead["words"], dead
    node.path("/etc/bird/candidate.conf").unlink()
    absent = driver.ask(f"check {bird_program} /etc/bird/candidate.conf")
    assert absent["err"] == "EINVAL" and "No such file" in absent["words"]
    children = node.run(["pgrep", "-c", "-P", driver.pid], check=False).stdout.strip()
    assert children == "0", "every child is reaped"
