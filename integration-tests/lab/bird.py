# SPDX-License-Identifier: Apache-2.0
"""BIRD on a node, and its control socket."""

import re
import signal
import socket

from .wait import wait_until

CONFIG, CONTROL = "/etc/bird/bird.conf", "/run/bird/bird.ctl"


def _seconds(text):
    h, m, s = re.search(r"(\d+):(\d+):([\d.]+)", text).groups()
    return int(h) * 3600 + int(m) * 60 + float(s)


class BirdError(AssertionError):
    """BIRD answered with an error (a code of 8xxx or 9xxx)."""


class Bird:
    """One BIRD; configuration and socket lie where Debian's package has them."""

    def __init__(self, node, config, name="bird", program="bird"):
        """program: another version's, see conftest's bird_program."""
        self.node, self.name, self.program, self.process = node, name, program, None
        self.write(config)

    def write(self, config):
        """A new configuration file; say birdc("configure") to use it."""
        self.node.write(CONFIG, config)

    def start(self, *args):
        """Start in the foreground; returns when the socket answers. args: say "-R"."""
        self.process = self.node.spawn(self.name,
                                       [self.program, "-f", "-c", CONFIG, "-s", CONTROL, *args])
        self.wait_ready()
        return self

    def wait_ready(self, timeout=10):
        def ready():
            assert self.process.alive, f"BIRD ended: {self.process.log}"
            return self.birdc("show status")
        wait_until(ready, timeout, "BIRD's control socket", errors=OSError)

    def birdc(self, command, timeout=10):
        """Reply to one command, as text without the codes. Faster than a birdc process."""
        lines = []
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(str(self.node.path(CONTROL)))
            with s.makefile("rw", encoding="utf-8", errors="replace") as f:
                f.readline()  # the greeting
                f.write(command + "\n")
                f.flush()
                for line in f:
                    line = line.rstrip("\n")
                    if line.startswith("+"):
                        continue  # asynchronous, no part of the reply
                    code = re.match(r"(\d{4})([- ])", line)
                    lines.append(line[5:] if code else line[1:])
                    if code and code[2] == " ":
                        break
                else:
                    raise ConnectionResetError("BIRD hung up")
        text = "\n".join(lines).strip("\n")
        if code[1][0] in "89":
            raise BirdError(f"{command}: {code[1]} {text}")
        return text

    def protocols(self):
        """{name: the words after it in `show protocols`}."""
        rows = [line.split(None, 1) for line in self.birdc("show protocols").splitlines()[1:]]
        return {name: rest for name, rest in (r for r in rows if len(r) == 2)}

    # BIRD works times out from the wall clock of the moment: the same one differs by a millisecond
    # from call to call. Compare with pytest.approx(abs=0.2).

    def reconfigured(self):
        """When it last took a configuration, in seconds of the day."""
        return _seconds(re.search("Last reconfiguration on (.*)", self.birdc("show status"))[1])

    def up_since(self):
        """{name: seconds of the day} of the protocols that are up."""
        rows = {name: words.split() for name, words in self.protocols().items()}
        return {name: _seconds(words[3]) for name, words in rows.items() if words[2] == "up"}

    def wait_up(self, protocol, timeout=30):
        """Wait until a BGP session is established."""
        wait_until(lambda: "Established" in self.protocols().get(protocol, ""),
                   timeout, f"{protocol} of {self.node.name} to be established")

    def stop(self):
        """SIGTERM: says good-bye to its neighbours and removes its routes."""
        return self.process.stop()

    def kill(self):
        return self.process.kill()

    def restart(self, *args, how="stop"):
        """how: "stop", or "kill" as in a crash."""
        getattr(self, how)()
        return self.start(*args)

    def reconfigure_by_signal(self):
        self.process.signal(signal.SIGHUP)
