/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server says: refused, or leases with subnets that have no host bits. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/auto.h"
#include "lib/lease/lease_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void look_at(const struct lease *l)
{
	MUST(l->subnet.address.family == AF_INET || l->subnet.address.family == AF_INET6);
	MUST(!prefix_has_host_bits(&l->subnet));
	MUST(l->expires >= 0);
	MUST(!(l->mac.bytes[0] & 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(lease_changes_done) struct lease_changes changes = { 0 };
	const char *text = (const char *)data;
	struct lease_network network;
	struct err err = { "" };
	struct lease lease;

	if (lease_network_read(text, size, &network, &err) == 0)
		MUST(network.subnet_len >= network.cidr.length);
	if (lease_read(text, size, &lease, &err) == 0)
		look_at(&lease);
	if (lease_changes_read(text, size, &changes, &err) == 0)
		for (size_t i = 0; i < changes.n; i++)
			look_at(&changes.v[i].lease);
	return 0;
}
