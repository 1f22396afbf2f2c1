# SPDX-License-Identifier: Apache-2.0
"""The container runtimes of the lab, with Debian's own plugins: they work, and leave nothing."""

import json

import pytest

from lab import cgroups, containerd, image, podman, process, wait_until
from lab.containerd import Containerd, Cri, Ctr
from lab.podman import Podman

CONFLIST = {"cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.94.0.0/24",
                             "routes": [{"dst": "0.0.0.0/0"}]}}]}

MISSING = podman.missing() or containerd.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def test_a_lab_ends_with_everything_that_its_runtimes_started(make_lab):
    lab = make_lab()
    node = lab.node()
    node.run("sh -c 'ln -s /usr/lib/cni/* /opt/cni/bin/'")
    node.write("/etc/cni/net.d/10-test.conflist", json.dumps(CONFLIST))
    server = Containerd(node).start()
    pods = [runtime.start(f"c{i}")
            for i, runtime in enumerate([Podman(node), Cri(server), Ctr(server)])]
    for pod in pods:
        wait_until(lambda: node.run(["curl", "-sm", "5", f"http://{pod.address}:{image.PORT}/"],
                                    check=False).stdout == image.PAGE, 20, "the page")
    assert len(process.marked(lab.id)) > 2 * len(pods) and cgroups.found(lab.id)
    lab.close()
    assert process.marked(lab.id) == [] and cgroups.found(lab.id) == []
