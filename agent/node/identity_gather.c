/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine says about itself: ids, addresses, default routes, the way to etcd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netlink/attr.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "agent/node/identity.h"
#include "lib/base/hash.h"
#include "lib/netlink/request.h"

#define MACHINE_ID_FILE "/etc/machine-id"
#define BOOT_ID_FILE    "/proc/sys/kernel/random/boot_id"
#define BOARD_ID_FILE   "/sys/class/dmi/id/product_uuid"

/* --- ids ------------------------------------------------------------------------------------ */

static int read_id(const char *given, const char *path, char *ret, struct err *err)
{
	AUTO(close) int fd = -1;
	char text[ID_TEXT + 1];
	ssize_t n;

	if (given && *given) {
		if (id_check(given, err) < 0)
			return -EINVAL;
		snprintf(ret, ID_TEXT, "%s", given);
		return 0;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	/* systemd writes "uninitialized" there while a machine is first set up. */
	if (id_check(text, err) < 0 || strcmp(text, "uninitialized") == 0)
		return err_set(err, -EINVAL, "%s holds no id", path);
	snprintf(ret, ID_TEXT, "%.*s", ID_TEXT - 1, text);
	return 0;
}

int identity_ids(const char *node, const char *machine_id, const char *boot_id,
		 struct identity *ret, struct err *err)
{
	struct utsname host;
	int r;

	if (uname(&host) < 0)
		return err_set(err, -errno, "uname: %s", strerror(errno));
	r = identity_name(node, host.nodename, ret->name, err);
	r = r ?: read_id(machine_id, MACHINE_ID_FILE, ret->machine, err);
	return r ?: read_id(boot_id, BOOT_ID_FILE, ret->boot, err);
}

/* --- the kernel's dumps --------------------------------------------------------------------- */

/* Virtual links have no permanent address, so those of pods do not count. */
static int on_link(const struct nlmsghdr *hdr, void *arg)
{
	static const uint8_t none[6];
	struct identity *id = arg;
	struct nlattr *attrs[IFLA_MAX + 1];
	const uint8_t *b;

	if (hdr->nlmsg_type != RTM_NEWLINK || id->n_hardware == HARDWARE_MAX - 1 ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)hdr, sizeof(struct ifinfomsg), attrs,
			IFLA_MAX, NULL) < 0 ||
	    !attrs[IFLA_PERM_ADDRESS] || nla_len(attrs[IFLA_PERM_ADDRESS]) != sizeof(none))
		return 0;
	b = nla_data(attrs[IFLA_PERM_ADDRESS]);
	if (memcmp(b, none, sizeof(none)) == 0)
		return 0;
	snprintf(id->hardware[id->n_hardware++], HARDWARE_TEXT, "mac:%02x:%02x:%02x:%02x:%02x:%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5]);
	return 0;
}

/* Not as it is: it is readable by root alone for a reason. */
static void add_board(struct identity *id)
{
	char uuid[ID_TEXT], text[HASH_TEXT];

	if (read_id("", BOARD_ID_FILE, uuid, NULL) == 0)
		snprintf(id->hardware[id->n_hardware++], HARDWARE_TEXT, "dmi:%s",
			 hash_print(HASH_TEXTS("board", uuid), text));
}

static void forget_macs(void *arg)
{
	((struct identity *)arg)->n_hardware = 0;
}

void identity_hardware(struct identity *id)
{
	AUTO(netlink_close) struct netlink *k = NULL;

	id->n_hardware = 0;
	if (netlink_open(NETLINK_ROUTE, &k) == 0 &&
	    netlink_dump(k, ask_link(0, NULL), forget_macs, on_link, id, NULL) < 0)
		id->n_hardware = 0;
	add_board(id);
}

static bool take_address(struct nlattr *attr, sa_family_t family, struct address *ret)
{
	size_t n = family == AF_INET ? 4 : 16;

	if (!attr || (size_t)nla_len(attr) != n)
		return false;
	*ret = (struct address){ .family = family };
	memcpy(ret->bytes, nla_data(attr), n);
	return true;
}

static int on_address(const struct nlmsghdr *hdr, void *arg)
{
	const uint32_t lesser = IFA_F_SECONDARY | IFA_F_TEMPORARY | IFA_F_DEPRECATED;
	struct identity_candidates *c = arg;
	const struct ifaddrmsg *body = nlmsg_data(hdr);
	struct nlattr *attrs[IFA_MAX + 1];
	struct identity_local local = { .link = body->ifa_index };
	uint32_t flags = body->ifa_flags;

	if (hdr->nlmsg_type != RTM_NEWADDR ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)hdr, sizeof(*body), attrs, IFA_MAX, NULL) < 0)
		return 0;
	if (attrs[IFA_FLAGS])
		flags = nla_get_u32(attrs[IFA_FLAGS]);
	/* On a point-to-point link ADDRESS is the other end; LOCAL is always ours. */
	if ((flags & IFA_F_DADFAILED) || !take_address(attrs[IFA_LOCAL] ?: attrs[IFA_ADDRESS],
						       body->ifa_family, &local.address.address))
		return 0;
	local.address.length = body->ifa_prefixlen;
	local.second_rate = flags & lesser;
	local.tentative = flags & IFA_F_TENTATIVE;
	if (!if_indextoname(local.link, local.link_name))
		snprintf(local.link_name, sizeof(local.link_name), "%u", local.link);
	return array_append(&c->locals, local);
}

static int on_route(const struct nlmsghdr *hdr, void *arg)
{
	struct identity_candidates *c = arg;
	const struct rtmsg *body = nlmsg_data(hdr);
	struct nlattr *attrs[RTA_MAX + 1];
	struct identity_default d = { .family = body->rtm_family };

	if (hdr->nlmsg_type != RTM_NEWROUTE || body->rtm_dst_len != 0 ||
	    body->rtm_type != RTN_UNICAST || body->rtm_table != RT_TABLE_MAIN ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)hdr, sizeof(*body), attrs, RTA_MAX, NULL) < 0)
		return 0;
	if (attrs[RTA_OIF]) {
		d.link = nla_get_u32(attrs[RTA_OIF]);
	} else if (attrs[RTA_MULTIPATH] &&
		   nla_len(attrs[RTA_MULTIPATH]) >= (int)sizeof(struct rtnexthop)) {
		/* Of several ways the first; they lead to the same world. */
		const struct rtnexthop *hop = nla_data(attrs[RTA_MULTIPATH]);

		d.link = (unsigned)hop->rtnh_ifindex;
	}
	if (attrs[RTA_PRIORITY])
		d.metric = nla_get_u32(attrs[RTA_PRIORITY]);
	take_address(attrs[RTA_PREFSRC], d.family, &d.source);
	if (!d.link)
		return 0;
	return array_append(&c->defaults, d);
}

static void forget_addresses(void *arg)
{
	struct identity_candidates *c = arg;

	array_done(&c->locals);
}

static void forget_routes(void *arg)
{
	struct identity_candidates *c = arg;

	array_done(&c->defaults);
}

static int gather_kernel(struct identity_candidates *c, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r = netlink_open(NETLINK_ROUTE, &k);

	if (r < 0)
		return err_set(err, r, "netlink: %s", strerror(-r));
	r = netlink_dump(k, ask_addresses(AF_UNSPEC, 0), forget_addresses, on_address, c, err);
	r = r ?: netlink_dump(k, ask_routes(AF_UNSPEC, 0, 0, 0), forget_routes, on_route, c, err);
	return r < 0 ? err_wrap(err, r, "addresses and routes of this machine") : 0;
}

/* --- the way to etcd ------------------------------------------------------------------------ */

/* "https://[fd00::1]:2379" into host and port; false for a unix socket or what is no endpoint. */
static bool split_endpoint(const char *text, size_t len, char *host, char *port)
{
	const char *end = text + len, *p = memmem(text, len, "://", 3), *stop;

	if (!p || strncmp(text, "http", 4) != 0)
		return false;
	p += 3;
	if (p >= end)
		return false;
	if (*p == '[') {
		stop = memchr(p, ']', (size_t)(end - p));
		if (!stop)
			return false;
		p++;
	} else {
		stop = memchr(p, ':', (size_t)(end - p)) ?: end;
	}
	if (stop == p || stop - p >= NI_MAXHOST)
		return false;
	sprintf(host, "%.*s", (int)(stop - p), p);
	stop += stop < end && *stop == ']';
	snprintf(port, NI_MAXSERV, "%.*s", stop < end ? (int)(end - stop - 1) : 4,
		 stop < end ? stop + 1 : "2379");
	return true;
}

/* Connecting a datagram socket sends nothing; the kernel just picks route and source. */
static bool source_towards(const struct addrinfo *to, struct address *ret)
{
	AUTO(close) int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(own);

	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &len) < 0)
		return false;
	*ret = (struct address){ .family = own.ss_family };
	if (own.ss_family == AF_INET)
		memcpy(ret->bytes, &((struct sockaddr_in *)&own)->sin_addr, 4);
	else
		memcpy(ret->bytes, &((struct sockaddr_in6 *)&own)->sin6_addr, 16);
	return true;
}

static int gather_endpoint(const char *text, size_t len, struct identity_candidates *c)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct addrinfo *list = NULL;
	int r = 0;

	if (!split_endpoint(text, len, host, port) || getaddrinfo(host, port, &hints, &list) != 0)
		return 0;
	for (const struct addrinfo *a = list; a && r == 0; a = a->ai_next) {
		struct identity_source s;

		if (!source_towards(a, &s.address))
			continue;
		snprintf(s.endpoint, sizeof(s.endpoint), "%.63s", host);
		r = array_append(&c->sources, s);
	}
	freeaddrinfo(list);
	return r;
}

int identity_gather(const char *endpoints, struct identity_candidates *c, struct err *err)
{
	int r = gather_kernel(c, err);

	for (const char *p = endpoints; r == 0 && *p;) {
		size_t len = strcspn(p, ",");

		r = gather_endpoint(p, len, c);
		if (r < 0)
			err_set(err, r, "out of memory");
		p += len + (p[len] == ',');
	}
	return r;
}

int identity_endpoints(const char *endpoints, struct prefixes *ret)
{
	ARRAY(struct prefix) list = { 0 };

	for (const char *p = endpoints; *p;) {
		size_t len = strcspn(p, ",");
		char host[NI_MAXHOST], port[NI_MAXSERV];
		struct address a;

		if (split_endpoint(p, len, host, port) && address_parse(host, &a) == 0 &&
		    array_append(&list, ((struct prefix){ a, (uint8_t)address_bits(&a) })) < 0) {
			array_done(&list);
			return -ENOMEM;
		}
		p += len + (p[len] == ',');
	}
	*ret = (struct prefixes){ list.v, list.n };
	return 0;
}
