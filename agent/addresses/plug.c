/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/plug.h"

#include <errno.h>
#include <string.h>

#include "lib/cni/pod_link.h"

#define AGAIN_MS 1000

struct plug {
	struct plug_options o;
	struct kernel *kernel;
	struct reaper *reaper;
	struct ipam *ipam;
	struct timer again;
};

/* --- for the addresses' part ---------------------------------------------------------------- */

static bool take_out(struct plug *p, const struct kernel_pod *pod)
{
	struct err err = { "" };
	int r = kernel_detach(p->kernel, pod, &err);

	if (r == -ENODEV)
		return false;
	if (r < 0) {
		/* Whether the link is there is not known: then its address stays in use. */
		health_set(p->o.health, "links", LOG_LEVEL_ERROR,
			   "link %s cannot be taken out of routing: %s; it is tried again",
			   pod->link, err.text[0] ? err.text : strerror(-r));
		timer_set(p->o.timers, &p->again, AGAIN_MS, AGAIN_MS);
	}
	reaper_kick(p->reaper);
	return true;
}

bool plug_unplug(struct plug *p, const struct attachment *a)
{
	AUTO(free) struct address *room = calloc(a->addresses.n ?: 1, sizeof(*room));
	struct kernel_pod pod;
	char link[IF_NAME_TEXT];

	/* Without the addresses the routes go with the link. */
	if (room)
		pod = kernel_pod_of(a, room);
	else
		pod = (struct kernel_pod){ 0 };
	/* It follows from the key, also where no attach has told it yet. */
	pod.link = pod_link_name(a->container, a->interface, link);
	return take_out(p, &pod);
}

void plug_routes_changed(struct plug *p, bool soon)
{
	if (!p->kernel)
		return;
	if (soon)
		kernel_soon(p->kernel);
	else
		kernel_mark(p->kernel);
}

void plug_now(struct plug *p)
{
	kernel_now(p->kernel);
}

uint32_t plug_mtu(struct plug *p, const struct address *node)
{
	return kernel_uplink_mtu(p->kernel, node);
}

static void on_again(void *arg)
{
	struct plug *p = arg;

	health_clear(p->o.health, "links");
	ipam_unplug_again(p->ipam);
}

/* --- for the kernel's part ------------------------------------------------------------------ */

static int desire(struct kernel_wants *ret, void *arg)
{
	struct plug *p = arg;
	int r = ipam_desire(p->ipam, ret);

	r = r ?: p->o.overlay(ret, p->o.arg);
	return r ?: p->o.statics(ret, p->o.arg);
}

static void restored(const struct kroute *r, void *arg)
{
	struct plug *p = arg;

	p->o.restored(r, p->o.arg);
}

static void bird_lost(const struct prefix *dst, uint32_t port, void *arg)
{
	struct plug *p = arg;

	p->o.bird_lost(dst, port, p->o.arg);
}

static void forwards(sa_family_t family, void *arg)
{
	struct plug *p = arg;

	p->o.forwards(family, p->o.arg);
}

static void passed(void *arg)
{
	struct plug *p = arg;

	p->o.passed(p->o.arg);
}

static int protect(struct prefixes *ret, void *arg)
{
	struct plug *p = arg;

	return p->o.protect(ret, p->o.arg);
}

static void link_gone(const char *name, void *arg)
{
	struct plug *p = arg;

	if (p->ipam)
		ipam_link_gone(p->ipam, name);
}

static void changed(void *arg)
{
	struct plug *p = arg;

	p->o.changed(p->o.arg);
}

/* --- the local API -------------------------------------------------------------------------- */

static int take_request(struct serve_request *request, struct attach_request *ret)
{
	struct err err = { "" };
	size_t len;
	const char *body = serve_body(request, &len);
	int r = attach_request_decode(body, len, ret, &err);

	if (r == -ENOMEM)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else if (r < 0)
		serve_reply_error(request, 400, CNI_CODE_CONFIG, NULL, "%s", err.text);
	return r;
}

static struct kernel_pod pod_of(const struct attach_request *q)
{
	return (struct kernel_pod){
		.link = q->link,
		.mac = q->mac,
		.addresses = q->addresses.v,
		.n_addresses = q->addresses.n,
		.route_localnet = q->route_localnet,
	};
}

static void attach(struct plug *p, struct serve_request *request)
{
	AUTO_DONE(attach_request_done) struct attach_request q = { 0 };
	struct attachment_key key;
	struct ipam_refusal no = { 0 };
	const struct attachment *before;
	struct kernel_pod pod;
	struct err err = { "" };
	bool again;
	int r;

	if (take_request(request, &q) < 0)
		return;
	key = attach_request_key(&q);
	before = ipam_find(p->ipam, &key);
	/* A pod that is attached already stays so, whatever becomes of this call. */
	again = before && before->state == ATTACHMENT_ATTACHED;
	/* The file first: after a crash the pod is there, and the pass makes what is missing. */
	if (ipam_attach(p->ipam, &q, &no) < 0) {
		serve_reply_error(request, no.status, no.code, NULL, "%s", no.why.text);
		return;
	}
	pod = pod_of(&q);
	r = kernel_attach(p->kernel, &pod, &err);
	if (r == 0) {
		serve_reply(request, 200, "{}");
		return;
	}
	if (!again)
		ipam_attach_undo(p->ipam, &key);
	serve_reply_error(request, r == -EEXIST ? 409 : 500,
			  r == -EEXIST ? CNI_CODE_FOREIGN_ROUTE : CNI_CODE_IO, NULL, "%s",
			  err.text[0] ? err.text : strerror(-r));
}

void plug_adding(struct plug *p)
{
	reaper_adding(p->reaper);
}

void plug_attach(struct plug *p, struct serve_request *request)
{
	attach(p, request);
	reaper_added(p->reaper);
}

/* A link whose attachment nobody remembers goes too. */
static void take_out_by_name(struct plug *p, struct serve_request *request)
{
	AUTO_DONE(release_request_done) struct release_request q = { 0 };
	struct attachment_key key;
	char link[IF_NAME_TEXT];
	size_t len;
	const char *body = serve_body(request, &len);

	if (release_request_decode(body, len, &q, NULL) < 0)
		return;
	key = release_request_key(&q);
	if (!ipam_find(p->ipam, &key))
		take_out(p, &(struct kernel_pod){
				    .link = pod_link_name(key.container, key.interface, link) });
}

void plug_detach(struct plug *p, struct serve_request *request)
{
	take_out_by_name(p, request);
	ipam_release(p->ipam, request);
}

void plug_check(struct plug *p, struct serve_request *request)
{
	AUTO_DONE(attach_request_done) struct attach_request q = { 0 };
	const struct attachment *a;
	struct attachment_key key;
	struct kernel_pod pod;
	struct err err = { "" };
	int r;

	if (take_request(request, &q) < 0)
		return;
	key = attach_request_key(&q);
	a = ipam_find(p->ipam, &key);
	pod = pod_of(&q);
	if (!a) {
		serve_reply_error(request, 404, CNI_CODE_UNKNOWN_CONTAINER, NULL,
				  "container %s, interface %s is not attached to network %s",
				  q.container, q.interface, q.network);
		return;
	}
	if (attach_verdict(&q, a, &err)) {
		serve_reply_error(request, 409, CNI_CODE_OTHER_ADDRESSES, NULL, "%s", err.text);
		return;
	}
	r = kernel_check(p->kernel, &pod, &err);
	if (r == 0)
		serve_reply(request, 200, "{}");
	else
		serve_reply_error(request, r == -ENOENT ? 409 : 500,
				  r == -ENOENT ? CNI_CODE_OTHER_ADDRESSES : CNI_CODE_IO, NULL, "%s",
				  err.text[0] ? err.text : strerror(-r));
}

void plug_ready(struct plug *p, struct serve_request *request)
{
	struct err why = { "" };

	/* Routes of running pods may be missing. */
	if (!kernel_ready(p->kernel, &why) && !ipam_resuming(p->ipam)) {
		serve_reply_error(request, 503, CNI_CODE_IMPAIRED, NULL, "%s", why.text);
		return;
	}
	ipam_status(p->ipam, request);
}

/* --- life ----------------------------------------------------------------------------------- */

int plug_new(const struct plug_options *options, struct reaper *reaper, struct plug **ret,
	     struct err *err)
{
	AUTO(plug_free) struct plug *p = calloc(1, sizeof(*p));
	struct kernel_options kernel = {
		.event = options->event,
		.timers = options->timers,
		.health = options->health,
		.minute = options->minute,
		.desire = desire,
		.protect = protect,
		.link_gone = link_gone,
		.changed = changed,
		.restored = restored,
		.passed = passed,
		.bird_lost = bird_lost,
		.forwards = forwards,
	};
	int r;

	if (!p) {
		reaper_free(reaper);
		return -ENOMEM;
	}
	p->o = *options;
	p->reaper = reaper;
	p->again = (struct timer){ .fn = on_again, .arg = p };
	kernel.arg = p;
	r = reaper_start(reaper, options->event, options->timers, options->health);
	r = r ?: kernel_new(&kernel, &p->kernel, err);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

void plug_set_ipam(struct plug *p, struct ipam *ipam)
{
	p->ipam = ipam;
	ipam_unplug_again(ipam);
	kernel_start(p->kernel);
}

void plug_open(struct plug *p)
{
	kernel_open(p->kernel);
}

void plug_free(struct plug *p)
{
	if (!p)
		return;
	timer_clear(p->o.timers, &p->again);
	kernel_free(p->kernel);
	reaper_free(p->reaper);
	free(p);
}

struct kernel *plug_kernel(const struct plug *p)
{
	return p->kernel;
}

struct reaper_stats plug_reaped(const struct plug *p)
{
	return reaper_stats(p->reaper);
}
