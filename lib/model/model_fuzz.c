/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte picks the record. Whatever decodes must encode, and decode again to an equal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model/model.h"

#define TRY(noun, key)                                                                             \
	static void try_##noun(const char *json, size_t len)                                       \
	{                                                                                          \
		AUTO_DONE(noun##_done) struct noun a = { 0 }, b = { 0 };                           \
		AUTO(free) char *text = NULL;                                                      \
		struct err err = { "" };                                                           \
                                                                                                   \
		if (noun##_decode(key, json, len, &a, &err) < 0) {                                 \
			if (!err.text[0])                                                          \
				abort();                                                           \
			return;                                                                    \
		}                                                                                  \
		if (noun##_encode(&a, &text) < 0 ||                                                \
		    noun##_decode(key, text, strlen(text), &b, &err) < 0 || !noun##_equal(&a, &b)) \
			abort();                                                                   \
	}

TRY(cluster_config, "config")
TRY(pool, "pool/web")
TRY(extent, "extent/default/web")
TRY(node, "node/n1")
TRY(node_spec, "spec/n1")
TRY(node_removed, "removed/n1")
TRY(leader, "leader/controller")
TRY(recovery, "recovery")
TRY(pool_status, "status/pool/web")
TRY(block, "block/default/10.1.0.64-26")
TRY(host_block, "host/n1/ipv6/block/default/fd00:1::40-122")
TRY(address_record, "host/n1/address/default/10.1.0.5")
TRY(peer, "peer/tor")
TRY(filter, "filter/in")
TRY(static_route, "static-route/vpn")
TRY(static_route_status, "status/static-route/vpn/n1")

/* What is a whole record has a head, and the head says the same. */
static void try_static_route_and_head(const char *json, size_t len)
{
	AUTO_DONE(static_route_done) struct static_route route = { 0 };
	AUTO_DONE(static_route_head_done) struct static_route_head head = { 0 };
	struct err err = { "" };
	int r = static_route_head_decode("static-route/vpn", json, len, &head, &err);

	if (r < 0 && !err.text[0])
		abort();
	try_static_route(json, len);
	if (static_route_decode("static-route/vpn", json, len, &route, &err) == 0 &&
	    (r < 0 || !head.selector_known || strcmp(head.deleting, route.deleting) != 0 ||
	     strcmp(head.node_selector.text, route.node_selector.text) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const char *, size_t) = {
		try_cluster_config,
		try_pool,
		try_extent,
		try_node,
		try_node_spec,
		try_node_removed,
		try_leader,
		try_recovery,
		try_pool_status,
		try_block,
		try_host_block,
		try_address_record,
		try_peer,
		try_filter,
		try_static_route_and_head,
		try_static_route_status,
	};

	if (size > 0)
		tries[data[0] % ARRAY_SIZE(tries)]((const char *)data + 1, size - 1);
	return 0;
}
