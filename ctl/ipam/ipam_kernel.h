/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of this node holds that looks like ours: pod links, routes by their protocol. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/names.h"
#include "lib/base/prefix.h"

struct kernel_link {
	char name[IF_NAME_TEXT];
	uint32_t index;
};
struct kernel_route {
	struct prefix dst;
	char link[IF_NAME_TEXT]; /* "": it leads nowhere */
};

struct ipam_kernel {
	struct kernel_link *links; /* but those that somebody is destroying */
	size_t n_links;
	struct kernel_route *routes;
	size_t n_routes;
};
void ipam_kernel_done(struct ipam_kernel *k);

/* 0 or a negative errno with a sentence; -ENXIO: the agent is not in our network namespace. */
int ipam_kernel_read(struct ipam_kernel *ret, struct err *err);
/* Whether a route leads to this link, other than those that the kernel makes by itself. */
bool ipam_kernel_is_used(uint32_t link);
/* 0, or what the kernel says. */
int ipam_kernel_delete_link(uint32_t link, struct err *err);
