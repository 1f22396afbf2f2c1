# SPDX-License-Identifier: Apache-2.0
"""Runs a CNI plugin as a container runtime does: environment, stdin, one JSON value back."""

import json


class CniError(AssertionError):
    """The plugin failed by the rules: non-zero, and an error object on stdout."""

    def __init__(self, error):
        self.code, self.msg, self.details = error["code"], error["msg"], error.get("details")
        self.version = error.get("cniVersion")
        super().__init__(f"code {self.code}: {self.msg}; {self.details}")


def environment(verb, container="c1", ifname="eth0", netns="/run/netns/none", path="/usr/lib/cni",
                args="", **more):
    """Like libcni: what is not used is set and empty."""
    return {"CNI_COMMAND": verb, "CNI_CONTAINERID": container, "CNI_IFNAME": ifname,
            "CNI_NETNS": netns, "CNI_PATH": path, "CNI_ARGS": args, **more}


def conf(version, type, ipam=None, **fields):
    """A network configuration with our IPAM plugin."""
    return {"cniVersion": version, "name": "pods", "type": type,
            "ipam": {"type": "roost-ipam", **(ipam or {})}, **fields}


def failure(fn, *args, **kwargs):
    """The CniError that the call must end with."""
    try:
        got = fn(*args, **kwargs)
    except CniError as e:
        return e
    raise AssertionError(f"did not fail but said {got}")


def outcome(returncode, stdout, stderr, quiet=True):
    """The result, None if there is none; raises CniError. quiet: insist on a silent stderr."""
    if returncode == 0:
        assert not quiet or stderr == "", f"said on success: {stderr}"
        return json.loads(stdout) if stdout else None
    error = json.loads(stdout)
    assert isinstance(error["code"], int) and error["msg"], error
    assert "not found" not in error["msg"], "go-cni would take that for a success of DEL"
    raise CniError(error)


def call(node, program, verb, conf, quiet=True, timeout=30, **env):
    """Run one verb on a node. conf: an object, or a text as it is."""
    done = node.run([program], input=conf if isinstance(conf, str) else json.dumps(conf),
                    check=False, timeout=timeout, env=environment(verb, **env))
    return outcome(done.returncode, done.stdout, done.stderr, quiet)
