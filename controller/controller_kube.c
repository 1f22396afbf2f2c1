/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' Nodes for the keeper, while this controller leads. */
#include <string.h>

#include "controller/controller.h"
#include "lib/base/log.h"

#define PART "kubernetes"

static void changed(struct controller *c, int r)
{
	if (r < 0)
		log_error(PART, "%s", strerror(-r));
	keeper_look(c->keeper);
}

static void on_node(const struct kube_node *node, void *arg)
{
	struct controller *c = arg;

	changed(c, kube_nodes_put(&c->kube_nodes, node));
}

static void on_gone(const char *name, const char *uid, void *arg)
{
	struct controller *c = arg;

	log_info(PART, "Node %s with UID %s is gone", name, uid);
	changed(c, kube_nodes_gone(&c->kube_nodes, name, uid, timers_now(c->timers)));
}

static void on_in_sync(void *arg)
{
	struct controller *c = arg;

	c->kube_nodes.in_sync = true;
	changed(c, 0);
}

static void on_trouble(const char *text, void *arg)
{
	struct controller *c = arg;

	if (text[0])
		health_set(c->health, PART, LOG_LEVEL_WARNING,
			   "%s; no node is removed until this is solved", text);
	else
		health_clear(c->health, PART);
}

static int open_client(struct controller *c, struct err *err)
{
	static const struct kube_handlers handlers = { on_node, on_gone, on_in_sync, on_trouble };
	const struct kube_options options = { .kubeconfig = c->settings->kubeconfig,
					      .context = c->settings->kube_context,
					      .insecure = c->settings->kubernetes_insecure,
					      .past = &c->kube_past };

	return kube_new(c->event, &options, &handlers, c, &c->kube, err);
}

static void try_open(void *arg)
{
	struct controller *c = arg;
	struct err err = { "" };

	if (open_client(c, &err) == 0) {
		/* From here on the client speaks, and it knows nothing of that sentence. */
		health_clear(c->health, PART);
		return;
	}
	health_set(c->health, PART, LOG_LEVEL_ERROR, "%s; no node is removed until this is solved",
		   err.text);
	timer_set(c->timers, &c->kube_again, c->settings->minute, c->settings->minute / 4);
}

void controller_kube_start(struct controller *c)
{
	if (!c->settings->kubernetes)
		return;
	controller_kube_stop(c);
	c->kube_nodes.pod_cidrs = c->settings->pod_cidrs;
	c->kube_again = (struct timer){ .fn = try_open, .arg = c };
	try_open(c);
}

void controller_kube_stop(struct controller *c)
{
	timer_clear(c->timers, &c->kube_again);
	if (c->kube)
		kube_stats(c->kube, &c->kube_past);
	kube_free(TAKE(c->kube));
	kube_nodes_done(&c->kube_nodes);
	/* The next client begins without a problem and would never clear this one's. */
	health_clear(c->health, PART);
}

void controller_kube_stats(const struct controller *c, struct kube_stats *ret)
{
	*ret = c->kube_past;
	if (c->kube)
		kube_stats(c->kube, ret);
}

int controller_kube_check(struct controller *c, struct err *err)
{
	int r = c->settings->kubernetes ? open_client(c, err) : 0;

	kube_free(TAKE(c->kube));
	return r;
}

void controller_kube_expect(const char *name, const char *uid, void *arg)
{
	struct controller *c = arg;

	if (c->kube && kube_expect(c->kube, name, uid) < 0)
		log_error(PART, "out of memory");
}
