/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be seen of a node when its agent does not answer: the socket, etcd, BIRD, the kernel.
 *
 * Each look is independent: one that fails says so and the next is taken.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "confd/bird/bird_control.h"
#include "ctl/frame/ctl.h"
#include "ctl/status_alone.h"
#include "lib/base/route_protocol.h"
#include "lib/netlink/kern.h"

#define BIRD_WAIT_US (2U * 1000U * 1000U)

/* --- the agent ------------------------------------------------------------------------------ */

static void look_at_socket(const struct ctl *ctl, const struct err *why, struct status_view *v)
{
	const char *path = ctl->settings->socket;
	struct stat st;
	bool missing = lstat(path, &st) < 0 && errno == ENOENT;

	status_part(v, "agent", "down", "%s", why->text);
	if (missing)
		status_problem(v, "error", "", "agent",
			       "there is no socket %s: roostd has not been started since the boot, "
			       "or has another --run-dir; pods that run go on, new ones cannot be "
			       "started: `systemctl start roostd`, then `journalctl -u roostd`",
			       path);
	else
		status_problem(
			v, "error", "", "agent",
			"nobody answers on %s: roostd has stopped, or hangs; pods that run go "
			"on, new ones cannot be started: `systemctl status roostd`, "
			"`journalctl -u roostd`",
			path);
}

/* --- etcd ----------------------------------------------------------------------------------- */

static void look_at_etcd(struct ctl *ctl, struct status_view *v)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const char *endpoints = ctl->settings->etcd.endpoints;
	struct err err = { "" };

	ctl->timeout_ms = 2000;
	if (ctl_read_one(ctl, "config", &kvs, &err) == 0) {
		status_part(v, "etcd", "ok", "%s answers", endpoints);
		return;
	}
	status_part(v, "etcd", "down", "%s does not answer", endpoints);
	status_problem(v, "error", "", "etcd", "%s", err.text);
}

/* --- BIRD ----------------------------------------------------------------------------------- */

static void on_disconnected(const char *reason, void *arg)
{
	*(bool *)arg = reason != NULL;
}

static void wait_for_bird(sd_event *event, const struct bird_control *bird, const bool *refused)
{
	int r = 1;

	while (r > 0 && !*refused && !bird_control_version(bird))
		r = sd_event_run(event, BIRD_WAIT_US);
}

static void look_at_bird(struct ctl *ctl, struct status_view *v)
{
	static const struct bird_control_handlers handlers = { .on_disconnected = on_disconnected };
	const char *path = ctl->settings->bird_socket;
	AUTO(bird_control_free) struct bird_control *bird = NULL;
	const struct bird_version *version;
	bool refused = false;

	if (sd_event_default(&ctl->event) < 0 ||
	    bird_control_new(ctl->event, path, &handlers, &refused, &bird) < 0)
		return;
	wait_for_bird(ctl->event, bird, &refused);
	version = bird_control_version(bird);
	if (version) {
		status_part(v, "bird", "ok", "BIRD %u.%u.%u answers on %s", version->major,
			    version->minor, version->patch, path);
		return;
	}
	status_part(v, "bird", "down", "nobody answers on %s", path);
	status_problem(v, "warning", "", "bird",
		       "%s; unless roostd has --bird-config none, see `systemctl status bird`",
		       bird_control_problem(bird));
}

/* --- the kernel ----------------------------------------------------------------------------- */

static int count_route(const struct nlmsghdr *hdr, void *arg)
{
	const struct rtmsg *m = nlmsg_data(hdr);

	if (hdr->nlmsg_type == RTM_NEWROUTE && m->rtm_protocol == route_protocol)
		(*(unsigned *)arg)++;
	return 0;
}

static void begin_again(void *arg)
{
	*(unsigned *)arg = 0;
}

static int count_routes(struct kern *k, unsigned char family, unsigned *ret, struct err *err)
{
	struct rtmsg body = { .rtm_family = family, .rtm_protocol = route_protocol };
	AUTO(nlmsg_free) struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, 0);

	if (!msg || nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return kern_dump(k, msg, begin_again, count_route, ret, err);
}

static void look_at_kernel(struct status_view *v)
{
	AUTO(kern_close) struct kern *k = NULL;
	struct err err = { "" };
	unsigned four = 0, six = 0;
	int r = kern_open(NETLINK_ROUTE, &k);

	if (r < 0)
		err_set(&err, r, "%s", strerrordesc_np(-r));
	r = r < 0 ? r : count_routes(k, AF_INET, &four, &err);
	r = r < 0 ? r : count_routes(k, AF_INET6, &six, &err);
	if (r < 0)
		status_part(v, "kernel", "unknown", "its routes cannot be read: %s", err.text);
	else
		status_part(v, "kernel", "ok",
			    "%u IPv4 and %u IPv6 routes of protocol %d (roost) stay as they are",
			    four, six, route_protocol);
}

void status_alone(struct ctl *ctl, const struct err *why, struct status_view *v)
{
	look_at_socket(ctl, why, v);
	look_at_etcd(ctl, v);
	look_at_kernel(v);
	look_at_bird(ctl, v);
}
