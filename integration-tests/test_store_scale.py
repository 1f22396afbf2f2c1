# SPDX-License-Identifier: Apache-2.0
"""Large ranges: what a list and a watch of 50,000 keys cost the client in memory."""

import pytest

from lab.gateway import b64

KEYS = 50_000
VALUE = "v" * 300


def fill(etcd):
    for start in range(0, KEYS, 125):
        etcd.call("/v3/kv/txn", {"success": [
            {"request_put": {"key": b64(f"/scale/{n:06d}"), "value": b64(VALUE)}}
            for n in range(start, start + 125)]})


@pytest.mark.plain("it measures memory")
def test_fifty_thousand_keys_are_listed_and_watched_in_little_memory(lab, store_driver):
    etcd = lab.etcd()
    node = lab.node("client")
    etcd.join(node)
    fill(etcd)

    lister = store_driver(etcd, node=node, name="lister")
    reply = lister.call("list", key="/scale/", quiet=True, timeout=60000, wait=60).must()
    assert reply["keys"] == KEYS
    list_rss = lister.stats()["peak_rss_kib"]

    watcher = store_driver(etcd, node=node, name="watcher")
    watch = watcher.watch("/scale/", quiet=True)
    assert watch.wait_sync(timeout=60).puts == KEYS
    watch_rss = watcher.stats()["peak_rss_kib"]

    print(f"list: {list_rss / 1024:.1f} MB in {reply.seconds:.2f} s; watch: {watch_rss / 1024:.1f} MB")
    assert list_rss < 40 * 1024 and watch_rss < 40 * 1024
