/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/clean.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/bird/routing.h"
#include "agent/firewall/firewall_child.h"
#include "agent/firewall/firewall_netlink.h"
#include "agent/kernel/kernel.h"
#include "agent/node/lock.h"
#include "confd/target.h"
#include "lib/base/files.h"
#include "lib/base/log.h"
#include "lib/netlink/request.h"

AUTO_DEFINE(sd_event *, sd_event_unref)

/* --- BIRD ----------------------------------------------------------------------------------- */

/* A socket's path as it was bound, by whichever process: BIRD may run in another container. */
static bool is_bound(const char *path)
{
	AUTO(fclose) FILE *f = fopen("/proc/net/unix", "re");
	AUTO(free) char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		const char *at = strchr(line, '/');

		if (!at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(at, path) == 0)
			return true;
	}
	return false;
}

/* Whether the file is there and ours; it holds the place of BIRD's routes. */
static bool open_config(const struct settings *s, struct target *ret)
{
	const struct target_rules rules = { .path = s->bird_config };
	struct err err = { "" };

	if (!settings_bird(s) || target_open(&rules, ret, &err) < 0)
		return false;
	if (ret->exists && strncmp(ret->text, BIRD_CONFIG_MARK, strlen(BIRD_CONFIG_MARK)) == 0)
		return true;
	target_done(ret);
	return false;
}

/* By prefix, table, metric and protocol: whatever ways out it has. */
static struct nl_msg *delete_route(const struct kroute *r)
{
	struct nl_msg *m = nlmsg_alloc_simple(RTM_DELROUTE, 0);
	struct rtmsg body = {
		.rtm_family = (unsigned char)r->dst.address.family,
		.rtm_dst_len = r->dst.length,
		.rtm_tos = r->tos,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BIRD,
		.rtm_scope = RT_SCOPE_NOWHERE,
	};

	if (m && nlmsg_append(m, &body, sizeof(body), NLMSG_ALIGNTO) == 0 &&
	    nla_put(m, RTA_DST, (int)address_bits(&r->dst.address) / 8, r->dst.address.bytes) ==
		    0 &&
	    (!r->metric || nla_put_u32(m, RTA_PRIORITY, r->metric) == 0))
		return m;
	nlmsg_free(m);
	return NULL;
}

struct found {
	struct kroute *v;
	size_t n;
};

static int find_route(const struct nlmsghdr *hdr, void *arg)
{
	struct found *f = arg;
	struct kroute r, *grown;

	if (hdr->nlmsg_type != RTM_NEWROUTE || kroute_read(hdr, &r) < 0 ||
	    r.protocol != RTPROT_BIRD || r.table != RT_TABLE_MAIN)
		return 0;
	grown = reallocarray(f->v, f->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->v = grown;
	f->v[f->n++] = r;
	return 0;
}

static int clean_bird_routes(struct netlink *k, sa_family_t family, struct err *err)
{
	struct found f = { 0 };
	int r = netlink_dump(k, ask_routes(family, RTPROT_BIRD, RT_TABLE_MAIN, 0), NULL, find_route,
			     &f, err);

	for (size_t i = 0; r == 0 && i < f.n; i++) {
		r = netlink_request(k, delete_route(&f.v[i]), err);
		/* Of an IPv6 route the dump shows each way out as one, and all go together. */
		if (r == -ESRCH)
			r = 0;
	}
	if (r == 0 && f.n)
		log_info("clean", "removed %zu routes of BIRD (IPv%d)", f.n,
			 family == AF_INET ? 4 : 6);
	free(f.v);
	return r;
}

/* What was there before us, or nothing. */
static int restore_config(struct target *t, struct err *err)
{
	const char *what = "restored";
	int r = renameat(t->dir, t->kept, t->dir, t->base);

	if (r < 0 && errno == ENOENT) {
		what = "removed";
		r = unlinkat(t->dir, t->base, 0);
	}
	if (r < 0)
		return err_set(err, -errno, "%s: %m", t->rules.path);
	file_remove(t->dir, t->candidate);
	file_remove(t->dir, t->previous);
	log_info("clean", "%s %s", what, t->rules.path);
	return 0;
}

static int clean_bird(const struct settings *s, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct target t = { 0 };
	int r;

	if (!open_config(s, &t))
		return 0;
	r = netlink_open(NETLINK_ROUTE, &k);
	r = r ?: clean_bird_routes(k, AF_INET, err);
	r = r ?: clean_bird_routes(k, AF_INET6, err);
	r = r ?: restore_config(&t, err);
	target_done(&t);
	return r;
}

static int check_bird(const struct settings *s, struct err *err)
{
	struct target t = { 0 };

	if (!is_bound(s->bird_socket) || !open_config(s, &t))
		return 0;
	target_done(&t);
	return err_set(err, -EBUSY,
		       "BIRD runs on %s and would keep its routes in the kernel; stop it: "
		       "birdc -s %s down",
		       s->bird_config, s->bird_socket);
}

/* --- the kernel ----------------------------------------------------------------------------- */

static void nothing(void *arg)
{
}

static int clean_kernel(struct err *err)
{
	AUTO(sd_event_unref) sd_event *event = NULL;
	AUTO(timers_loop_free) struct timers *timers = NULL;
	AUTO(health_free) struct health *health = NULL;
	AUTO(kernel_free) struct kernel *kernel = NULL;
	struct kernel_options o = { .minute = 60000 };
	int r = sd_event_new(&event);

	r = r < 0 ? r : timers_loop_new(event, &timers);
	r = r < 0 ? r : health_new(nothing, NULL, &health);
	if (r < 0)
		return r;
	o.event = event;
	o.timers = timers;
	o.health = health;
	r = kernel_new(&o, &kernel, err);
	return r ?: kernel_clear(kernel, err);
}

static int clean_firewall(const char *library, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	/* A kernel without netfilter has no table. */
	int r = netlink_open(NETLINK_NETFILTER, &k) < 0 ? 0 : firewall_table_there(k, err);

	if (r > 0)
		r = firewall_drop(library, err);
	if (r > 0)
		log_info("clean", "removed the table inet " FIREWALL_TABLE " of nftables");
	return r < 0 ? err_wrap(err, r, "the table inet " FIREWALL_TABLE " of nftables") : 0;
}

/* --- settings of the host ------------------------------------------------------------------- */

static int switch_off(int run, const char *mark, const char *path, struct err *err)
{
	AUTO(close) int fd = -1;

	if (faccessat(run, mark, F_OK, 0) < 0)
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		return err_set(err, -errno, "%s: %m", path);
	log_info("clean", "%s is 0 again, as the agent had found it", path);
	return file_remove(run, mark);
}

static int clean_settings(const char *run_dir, struct err *err)
{
	AUTO(close) int run = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (run < 0)
		return 0;
	r = switch_off(run, CLEAN_FORWARDING4, "/proc/sys/net/ipv4/ip_forward", err);
	return r
		       ?: switch_off(run, CLEAN_FORWARDING6,
				     "/proc/sys/net/ipv6/conf/all/forwarding", err);
}

int clean(const struct settings *s, struct err *err)
{
	AUTO_DONE(lock_drop) struct lock lock = LOCK_NONE;
	int r = lock_take(s->run_dir, NULL, &lock, err);

	r = r ?: check_bird(s, err);
	r = r ?: clean_kernel(err);
	r = r ?: clean_firewall(s->nftables_library, err);
	r = r ?: clean_bird(s, err);
	r = r ?: clean_settings(s->run_dir, err);
	return r < 0 && !err->text[0] ? err_set(err, r, "%s", strerror(-r)) : r;
}
