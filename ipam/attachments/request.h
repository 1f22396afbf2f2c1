/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of the local API (docs/API.md) as structs.
 *
 * Pure. Unknown fields are ignored; a missing, mistyped or senseless one refuses
 * the body with a sentence that names it. Decoders return 0, -ENOMEM, or -EINVAL
 * (-E2BIG) with that sentence, and write *ret only on success.
 */
#pragma once

#include "ipam/attachments/attachments.h"
#include "lib/model/model.h"

/* Of ranges, addresses and the like in one request: ten interfaces have one each. */
#define REQUEST_LIST_MAX 64

/* One range in Whereabouts' words; it binds this request only. */
struct range_request {
	struct prefix range;       /* host bits masked */
	struct address start, end; /* or family 0 */
	struct prefixes exclude;
	const char *network; /* roost network; "default" */
	uint32_t slice_size; /* 0: not given */
	struct address gateway;
};
struct range_requests {
	struct range_request *v;
	size_t n;
};

struct assign_request {
	const char *network, *container, *interface;
	const char *netns;
	const char *namespace, *pod, *uid;
	struct texts pools;
	struct addresses addresses;
	struct prefixes exclude;
	struct range_requests ranges;
	uint64_t netns_inode; /* not in the body: filled in by who can look */
	bool reserved;        /* neither: for the node itself, see struct attachment */
};

struct release_request {
	const char *network, *container, *interface;
	uint64_t boottime; /* of a note in the spool; 0 otherwise */
};

/* A veth pair that a main plugin has made, with what it put into the pod; for check as well. */
struct attach_request {
	const char *network, *container, *interface;
	const char *netns;
	const char *namespace, *pod, *uid;
	const char *link, *ipam;
	struct mac mac;
	bool route_localnet;
	struct addresses addresses;
};

struct check_request {
	const char *network, *container, *interface;
	struct addresses addresses;
};

struct gc_entry {
	const char *container, *interface;
};
struct gc_entries {
	struct gc_entry *v;
	size_t n;
};
struct gc_request {
	const char *network;
	struct gc_entries valid;
};

/* CNI's rule for the name of a network; the container's is container_id_check(). */
name_check_fn cni_network_check;

#define REQUEST(noun)                                                                              \
	int noun##_decode(const char *json, size_t len, struct noun *ret, struct err *err);        \
	void noun##_done(struct noun *request);
REQUEST(assign_request)
REQUEST(release_request)
REQUEST(attach_request)
REQUEST(check_request)
REQUEST(gc_request)

/* The attachment that a request is about. */
#define request_key(r)                                                                             \
	((struct attachment_key){ .network = (r)->network,                                         \
				  .container = (r)->container,                                     \
				  .interface = (r)->interface })
/* Whether gc leaves it alone: another network, listed, a mark, or on its way out already. */
bool gc_keeps(const struct gc_request *r, const struct attachment *a);
/* 0, or 103 and a sentence: the attachment must hold these addresses; attach: and no others. */
unsigned attach_verdict(const struct attach_request *r, const struct attachment *a,
			struct err *err);
unsigned check_verdict(const struct check_request *r, const struct attachment *a, struct err *err);
