/* SPDX-License-Identifier: Apache-2.0 */
/* Any messages in any order: the view stays whole, and something can be decided from it. */
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/delta_kernel.h"

struct count {
	size_t routes, neighbours, fdb;
};

static void decide(struct kernel_view *v)
{
	const struct address a = { AF_INET, { 10, 1, 0, 5 } };
	struct kernel_pod pod = { .link = "roost0123456789", .addresses = &a, .n_addresses = 1 };
	struct kernel_block block = { .block = prefix_of(&a, 26) };
	const struct address b = { AF_INET6, { 0xfd } };
	struct kernel_tunnel tunnels[] = {
		{ .local = a, .vni = 4096, .port = 4789, .addresses = { a, b }, .n_addresses = 2 },
		{ .local = b, .vni = 4096, .port = 4789 },
	};
	struct kernel_remote remotes[] = {
		{ .underlay = a, .mac = { { 2 } }, .node = { a, b } },
		{ .underlay = { AF_INET, { 10, 2, 0, 1 } }, .mac = { { 2 } }, .node = { a, b } }
	};
	struct kernel_remote_block remote_blocks[] = {
		{ .block = prefix_of(&b, 122), .remote = 1, .may_be_direct = true },
		{ .block = prefix_of(&a, 24), .remote = 1 },
	};
	struct kernel_wants state = { .pods = &pod,
				      .n_pods = 1,
				      .blocks = &block,
				      .n_blocks = 1,
				      .tunnels = tunnels,
				      .n_tunnels = 2,
				      .remotes = remotes,
				      .n_remotes = 2,
				      .remote_blocks = remote_blocks,
				      .n_remote_blocks = 2 };
	struct changes c = { 0 };
	struct desired_kernel d;

	if (desired_kernel(&state, v, NULL, &d) < 0)
		abort();
	if (delta_missing(&d, v, 1, &c) < 0 || delta_surplus(&d, v, &c) < 0)
		abort();
	delta_confirm(&d, v);
	changes_done(&c);
	desired_kernel_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_view v = { .own_port = 1 };
	struct count count = { 0 };

	/* One byte says what follows or what is done; each message is copied to its exact size. */
	while (size > 1) {
		uint8_t what = *data++;
		size_t length = *data % 128 + NLMSG_HDRLEN;
		struct nlmsghdr *hdr;

		size--;
		if (what % 8 == 7) {
			kernel_view_begin(&v, what / 8 % VIEW_PARTS);
			kernel_view_end(&v, what / 8 % VIEW_PARTS);
			kernel_view_settle(&v);
			decide(&v);
			continue;
		}
		length = length < size ? length : size;
		hdr = calloc(1, length < NLMSG_HDRLEN ? NLMSG_HDRLEN : length);
		if (!hdr)
			break;
		memcpy(hdr, data, length);
		hdr->nlmsg_len = (uint32_t)(length < NLMSG_HDRLEN ? NLMSG_HDRLEN : length);
		if (what % 8 != 6)
			hdr->nlmsg_type = (uint16_t)(RTM_BASE + what % 48);
		kernel_view_take(&v, hdr);
		kernel_view_take_gateway(&v, hdr);
		free(hdr);
		data += length;
		size -= length;
	}
	for (size_t i = 0; i < v.routes.n; i++)
		count.routes += v.routes.v[i]->h.held;
	for (size_t i = 0; i < v.neighbours.n; i++)
		*(v.neighbours.v[i]->neighbour.fdb
			  ? &count.fdb
			  : &count.neighbours) += v.neighbours.v[i]->h.held;
	if (count.routes != v.n_routes || count.neighbours != v.n_neighbours ||
	    count.fdb != v.n_fdb)
		abort();
	kernel_view_done(&v);
	return 0;
}
