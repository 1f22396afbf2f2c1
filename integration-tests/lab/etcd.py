# SPDX-License-Identifier: Apache-2.0
"""A real etcd of one or more members, each on its own node, all on one switch.

Data lies on the node's tmpfs and is not synced: a test is interested in what etcd says,
not in the disk. It outlives the process (kill, restart) and goes with the lab.
"""

import collections
import itertools
import json
import os
import subprocess
import time

from .gateway import PORT, EtcdError, Gateway, b64, prefix_end, unb64
from .wait import wait_until

KeyValue = collections.namedtuple("KeyValue", "key value create mod version lease")
Event = collections.namedtuple("Event", "revision type key value")
USER, PASSWORD = "roost", "roost-password"
ROOT_PASSWORD = "root-password"
# Set: every etcd of the lab has TLS and asks for a login, and each program has the role that
# `roostctl etcd roles` gives it. ROOST_SECURE=1 make check-integration K=...
SECURE = bool(os.environ.get("ROOST_SECURE"))

# 14 unavailable, 1 and 4 cancelled and late, 2 "context deadline exceeded" without a quorum.
_TRY_AGAIN = (1, 2, 4, 14)


class Member:
    """One etcd process and its node."""

    def __init__(self, cluster, index, switch):
        self.cluster, self.name = cluster, f"m{index}"
        self.node = cluster.lab.node(f"etcd-{self.name}")
        self.address = switch.add(self.node)
        self.peer_url = f"http://{self.address}:2380"
        self.process = self.gateway = None
        self.paused = False
        self.data = (str(cluster.lab.dir / f"etcd-{self.name}") if cluster.disk
                     else "/run/etcd/data")
        self.node.run(["mkdir", "-p", "/run/etcd"])

    def __repr__(self):
        return f"<etcd {self.name} {self.address}>"

    @property
    def url(self):
        """What a client is given."""
        return f"{self.cluster.scheme}://{self.address}:{PORT}"

    @property
    def socket(self):
        """With unix=True: the path of its unix socket, for any process on this host."""
        # etcd makes a file of the URL's host part in its working folder.
        return self.node.path("/run/etcd/localhost:2379")

    @property
    def alive(self):
        return self.process is not None and self.process.alive

    def launch(self):
        """Start the process; the cluster's wait_healthy says when it serves."""
        self.gateway.close()  # a kept connection belongs to the former process
        if self.cluster.unix:  # etcd does not replace what a killed one left
            self.node.run(["rm", "-f", "/run/etcd/localhost:2379"])
        # env(1) changes the folder inside the namespace and becomes etcd, pid and all.
        self.process = self.node.spawn("etcd", ["env", "--chdir=/run/etcd", "etcd",
                                                *self.cluster.arguments(self)])
        self.paused = False

    def start(self):
        """Start and wait until it serves (which needs a quorum)."""
        self.launch()
        self.wait_healthy()
        return self

    def stop(self):
        """SIGTERM: it hands over leadership and tells its clients."""
        return self.process.stop(30)

    def kill(self):
        """SIGKILL: as if the machine lost power."""
        return self.process.kill()

    def pause(self):
        """SIGSTOP: connections stay, answers do not come."""
        self.process.pause()
        self.paused = True

    def resume(self):
        self.process.resume()
        self.paused = False

    def restart(self, how="stop"):
        """how: "stop" or "kill"."""
        getattr(self, how)()
        return self.start()

    def wipe(self):
        """Remove all data; the process must not run."""
        assert not self.alive
        self.node.run(["rm", "-rf", self.data])

    def healthy(self):
        """Whether it sees a leader and can read through it."""
        try:
            return self.gateway.request("/health", timeout=1).get("health") == "true"
        except (OSError, EtcdError):
            return False

    def wait_healthy(self, timeout=30):
        def served():
            assert self.alive, f"etcd {self.name} ended: {self.process.log}"
            return self.healthy()
        wait_until(served, timeout, f"etcd {self.name} to serve")

    def status(self):
        return self.cluster.call("/v3/maintenance/status", {}, member=self)


class EtcdCluster:
    """Members, and helpers that work as root through any member that runs."""

    def __init__(self, lab, members=1, switch=None, subnet="10.250.0.0/24", tls=False, auth=False,
                 unix=False, disk=False, quick=True, extra_args=()):
        """switch: put members there, not on a switch of their own with this subnet.
        tls: server certificate, and a client certificate is required.
        auth: users root and `roost`; the latter may do everything below /roost/.
        unix: each member listens on a unix socket too. disk: data on disk, synced.
        quick: short election times; False for etcd's own (a lease lives 2 s or more then).
        """
        tls, auth = tls or SECURE, auth or SECURE
        self.lab, self.tls, self.auth, self.unix = lab, tls, auth, unix
        self._roles = {}
        self.disk, self.quick, self.extra_args = disk, quick, list(extra_args)
        self.switch = switch or lab.switch(subnet=subnet)
        self.scheme = "https" if tls else "http"
        self._token_number, self._tokens = 1, {}
        self.members = [Member(self, i, self.switch) for i in range(1, members + 1)]
        if tls:
            self.authority = lab.authority
            self.server_certificate = self.authority.issue(
                "etcd-server", addresses=[m.address for m in self.members] + ["127.0.0.1"],
                dns=["localhost"])
            self.client_certificate = self.authority.issue("etcd-client", usage="clientAuth")
        for m in self.members:
            m.gateway = Gateway(m.node, m.address,
                                (self.authority, self.client_certificate) if tls else None)

    # --- running it -----------------------------------------------------------------------------

    @property
    def initial_cluster(self):
        return ",".join(f"{m.name}={m.peer_url}" for m in self.members)

    @property
    def token(self):
        """Another token makes another cluster id."""
        return f"lab-{self._token_number}"

    def arguments(self, member):
        unix = ",unix://localhost:2379" if self.unix else ""
        args = ["--name", member.name, "--data-dir", member.data,
                "--listen-client-urls", member.url + unix, "--advertise-client-urls", member.url,
                "--listen-peer-urls", member.peer_url,
                "--initial-advertise-peer-urls", member.peer_url,
                "--initial-cluster", self.initial_cluster, "--initial-cluster-token", self.token,
                "--logger", "zap", "--log-outputs", "stderr", "--log-level", "warn",
                "--bcrypt-cost", "4"]
        if not self.disk:
            args.append("--unsafe-no-fsync")
        if self.quick:
            # A single member elects itself; three on a busy machine need some room.
            beat, election = (10, 100) if len(self.members) == 1 else (50, 500)
            args += ["--heartbeat-interval", str(beat), "--election-timeout", str(election)]
        if self.tls:
            args += ["--cert-file", self.server_certificate.cert,
                     "--key-file", self.server_certificate.key,
                     "--trusted-ca-file", self.authority.cert, "--client-cert-auth"]
        return args + self.extra_args

    def start(self):
        """Start all members that do not run; returns when all serve."""
        first = not any(m.process for m in self.members)
        for m in self.members:
            if not m.alive:
                m.launch()
        self.wait_healthy()
        if first and self.auth:
            self._enable_auth()
        return self

    def stop(self):
        for m in self.members:
            if m.alive:
                m.stop()

    def kill(self):
        for m in self.members:
            if m.alive:
                m.kill()

    def wait_healthy(self, timeout=30):
        """Until every member that should run serves."""
        for m in self.members:
            if m.process and not m.paused:
                m.wait_healthy(timeout)

    def leader(self):
        """The member that leads, as one that runs sees it."""
        def seen():
            ids = {s["header"]["member_id"]: (m, s.get("leader"))
                   for m, s in ((m, m.status()) for m in self.members if m.alive and not m.paused)}
            return next((ids[led][0] for _, led in ids.values() if led in ids), None)
        return wait_until(seen, 30, "a leader", errors=(EtcdError, OSError))

    def followers(self):
        leader = self.leader()
        return [m for m in self.members if m is not leader]

    def join(self, node):
        """Plug a client's node into etcd's switch; returns its address."""
        return self.switch.add(node)

    # --- for programs under test ----------------------------------------------------------------

    @property
    def endpoints(self):
        """All client URLs, with commas: what --etcd wants."""
        return ",".join(m.url for m in self.members)

    def flags(self, program=None):
        """The --etcd... flags by which the programs under test reach this cluster.

        program: "node NAME", "controller", "operator", "viewer": which role it has where etcd is
        secure; without one it may do everything of ours.
        """
        flags = ["--etcd", self.endpoints]
        if self.tls:
            flags += ["--etcd-cacert", self.authority.cert,
                      "--etcd-cert", self.client_certificate.cert,
                      "--etcd-key", self.client_certificate.key]
        else:
            flags += ["--etcd-insecure"]
        if self.auth:
            password = self.lab.dir / "etcd-password"
            password.write_text(PASSWORD + "\n")
            password.chmod(0o600)
            user = self._role(program) if SECURE and program else USER
            flags += ["--etcd-user", user, "--etcd-password-file", password]
        return flags

    def _role(self, program):
        """The user of that program, made when it is asked for first, as roostctl says."""
        if program not in self._roles:
            node = program.split()[1] if program.startswith("node ") else "none"
            said = subprocess.run([os.path.join(os.environ["ROOST_BUILD"], "roostctl"), "etcd", "roles",
                                   node, "-o", "json"], check=True, capture_output=True, text=True)
            name = "roost-" + program.replace(" ", "-")
            role = next(r for r in json.loads(said.stdout) if r["role"] == name)
            self._add_user(name, PASSWORD)
            for p in role["permissions"]:
                key = p.get("prefix") or p["key"]
                self.call("/v3/auth/role/grant", {"name": name, "perm": {
                    "permType": p["permission"].upper(), "key": b64(key),
                    **({"range_end": b64(prefix_end(key))} if "prefix" in p else {})}})
            self._roles[program] = name
        return self._roles[program]

    # --- reading and writing --------------------------------------------------------------------

    def call(self, path, body, member=None, timeout=20):
        """One request as root. Asks one member after the other until one can answer.

        While members die a write may so be applied twice, as with any careless client.
        """
        deadline = time.monotonic() + timeout
        for m in itertools.cycle([member] if member else self.members):
            try:
                if m.alive and not m.paused:
                    return m.gateway.request(path, body, self._login(m))
                error = ConnectionError(f"{m} does not run")
            except OSError as e:
                error = e
            except EtcdError as e:
                if e.code == 16:  # tokens are known to one member and die with it
                    self._tokens.pop(m, None)
                elif e.code not in _TRY_AGAIN:
                    raise
                error = e
            if time.monotonic() > deadline:
                raise error
            time.sleep(0.005)

    def put(self, key, value, lease=0):
        """Returns the store's revision after it."""
        reply = self.call("/v3/kv/put", {"key": b64(key), "value": b64(value), "lease": str(lease)})
        return int(reply["header"]["revision"])

    def put_many(self, pairs):
        """Up to 128 (key, value), all in one transaction."""
        self.call("/v3/kv/txn", {"success": [
            {"requestPut": {"key": b64(k), "value": b64(v)}} for k, v in pairs]})

    def get(self, key, revision=0):
        """The value of a key, or None."""
        found = self._range(key, None, revision)
        return found[0].value if found else None

    def list(self, prefix="", revision=0):
        """[KeyValue] of all keys that begin with prefix."""
        return self._range(prefix or "\0", prefix_end(prefix), revision)

    def dump(self, prefix=""):
        """{key: value}."""
        return {kv.key: kv.value for kv in self.list(prefix)}

    def delete(self, key, prefix=False):
        """Returns how many keys went."""
        body = {"key": b64(key)}
        if prefix:
            body = {"key": b64(key or "\0"), "range_end": b64(prefix_end(key))}
        return int(self.call("/v3/kv/deleterange", body).get("deleted", 0))

    def revision(self):
        reply = self.call("/v3/kv/range", {"key": b64("\0"), "count_only": True})
        return int(reply["header"]["revision"])

    def cluster_id(self):
        reply = self.call("/v3/kv/range", {"key": b64("\0"), "count_only": True})
        return int(reply["header"]["cluster_id"])

    def history(self, prefix="", since=1):
        """[Event] of everything that ever happened below prefix, as far as not compacted."""
        last = self.revision()
        member = next(m for m in self.members if m.alive and not m.paused)
        while since <= last:
            # Every revision is somebody's change, so over all keys the last one must turn up.
            body = {"create_request": {"key": b64("\0"), "range_end": b64("\0"),
                                       "start_revision": str(since)}}
            events, compacted = [], None
            for message in member.gateway.stream("/v3/watch", body, self._login(member)):
                compacted = int(message.get("compact_revision", 0))
                events += [_event(e) for e in message.get("events", ())]
                if compacted or events and events[-1].revision >= last:
                    break
            if not compacted:
                return [e for e in events if e.key.startswith(prefix)]
            since = compacted + 1
        return []

    def _range(self, key, end, revision):
        body = {"key": b64(key), "revision": str(revision)}
        if end is not None:
            body["range_end"] = b64(end)
        found = self.call("/v3/kv/range", body).get("kvs", ())
        return [KeyValue(unb64(kv["key"]), unb64(kv.get("value")), int(kv["create_revision"]),
                         int(kv["mod_revision"]), int(kv["version"]), int(kv.get("lease", 0)))
                for kv in found]

    # --- maintenance ----------------------------------------------------------------------------

    def ctl(self, *args, check=True, timeout=30, member=None):
        """etcdctl as root on a member's node; returns what it printed."""
        member = member or next(m for m in self.members if m.alive and not m.paused)
        env = {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": member.url}
        if self.tls:
            env.update(ETCDCTL_CACERT=self.authority.cert,
                       ETCDCTL_CERT=self.client_certificate.cert,
                       ETCDCTL_KEY=self.client_certificate.key)
        if self.auth and self._auth_on:
            env.update(ETCDCTL_USER=f"root:{ROOT_PASSWORD}")
        return member.node.run(["etcdctl", *args], env=env, check=check, timeout=timeout).stdout

    def compact(self, revision=None):
        """Forget what was before a revision (before now); returns it."""
        revision = revision or self.revision()
        self.call("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def defrag(self):
        for m in self.members:
            if m.alive and not m.paused:
                self.call("/v3/maintenance/defragment", {}, member=m)

    def save(self, name="snapshot"):
        """Save a snapshot; returns its file."""
        path = self.lab.dir / f"{name}.db"
        self.ctl("snapshot", "save", path)
        return path

    def restore(self, path, new_id=True):
        """Stop everything and come back with an old snapshot, as after a disaster."""
        self.stop()
        self._token_number += new_id
        for m in self.members:
            m.wipe()
            m.node.run(["etcdctl", "snapshot", "restore", path, "--data-dir", m.data,
                        "--name", m.name, "--initial-cluster", self.initial_cluster,
                        "--initial-cluster-token", self.token,
                        "--initial-advertise-peer-urls", m.peer_url], env={"ETCDCTL_API": "3"})
        return self.start()

    def wipe(self, new_id=False):
        """Stop everything and come back empty. The cluster id follows from the members'
        addresses and a token, so it is the same again unless new_id."""
        self.stop()
        self._token_number += new_id
        for m in self.members:
            m.wipe()
        self._tokens, self._auth_on = {}, False
        self.start()
        if self.auth:
            self._enable_auth()
        # An operator sets the roles again.
        programs, self._roles = list(self._roles), {}
        for program in programs:
            self._role(program)
        return self

    # --- users ----------------------------------------------------------------------------------

    _auth_on = False

    def _add_user(self, name, password):
        self.call("/v3/auth/user/add", {"name": name, "password": password})
        self.call("/v3/auth/role/add", {"name": name})
        self.call("/v3/auth/user/grant", {"user": name, "role": name})

    def _enable_auth(self):
        self._add_user(USER, PASSWORD)
        self.call("/v3/auth/role/grant", {"name": USER, "perm": {
            "permType": "READWRITE", "key": b64("/roost/"), "range_end": b64("/roost0")}})
        self.require_login()

    def require_login(self):
        """From now on every request needs a user; root is added."""
        self._add_user("root", ROOT_PASSWORD)
        self.call("/v3/auth/enable", {})
        self._auth_on = True

    def as_user(self, name, password_file):
        """The same cluster for programs that log in so."""
        return _AsUser(self, name, password_file)

    def _login(self, member):
        """root's token at a member, or None without authentication."""
        if not self._auth_on:
            return None
        if member not in self._tokens:
            self._tokens[member] = member.gateway.request(
                "/v3/auth/authenticate", {"name": "root", "password": ROOT_PASSWORD})["token"]
        return self._tokens[member]


class _AsUser:
    def __init__(self, etcd, name, password_file):
        self._etcd, self._login = etcd, ["--etcd-user", name, "--etcd-password-file", password_file]

    def __getattr__(self, name):
        return getattr(self._etcd, name)

    def flags(self, program=None):
        return [*self._etcd.flags(), *self._login]


def _event(event):
    kv = event["kv"]
    return Event(int(kv["mod_revision"]), event.get("type", "PUT"), unb64(kv["key"]),
                 unb64(kv.get("value")))
