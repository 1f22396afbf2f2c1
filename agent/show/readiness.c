/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/readiness.h"

#include <string.h>

void readiness_add(struct readiness *r, const char *name, bool needed, const char *reason)
{
	struct ready_part *p;

	if (r->n == READINESS_MAX)
		return;
	p = &r->v[r->n++];
	p->name = name;
	p->needed = needed;
	err_set(&p->reason, 0, "%s", reason ?: "");
}

bool readiness_is_ready(const struct readiness *r, struct err *why)
{
	for (size_t i = 0; i < r->n; i++) {
		if (!r->v[i].needed || !r->v[i].reason.text[0])
			continue;
		err_set(why, 0, "%s: %s", r->v[i].name, r->v[i].reason.text);
		return false;
	}
	return true;
}

void readiness_inputs(const struct readiness *r, struct tree *t)
{
	tree_open(t, "inputs", '[');
	for (size_t i = 0; i < r->n; i++) {
		const struct ready_part *p = &r->v[i];

		tree_open(t, NULL, '{');
		tree_text(t, "name", p->name);
		tree_bool(t, "ready", !p->reason.text[0]);
		tree_bool(t, "needed", p->needed);
		tree_text(t, "reason", p->reason.text);
		tree_close(t);
	}
	tree_close(t);
}

void readiness_names(const struct readiness *r, struct tree *t)
{
	tree_open(t, "notReady", '[');
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].reason.text[0])
			tree_text(t, NULL, r->v[i].name);
	tree_close(t);
}

static void add_peer(struct tree *t, const struct status_session *s, const struct health *health)
{
	char part[HEALTH_PART];
	const char *reason;

	snprintf(part, sizeof(part), "session/%s", s->name);
	reason = health_reason(health, part);
	tree_open(t, NULL, '{');
	tree_text(t, "name", s->name);
	tree_text(t, "peer", s->peer);
	tree_bool(t, "ready", s->up);
	if (s->up || reason)
		tree_text(t, "reason", s->up ? "" : reason);
	else
		tree_printf(t, "reason", "%s%s%s", s->state, s->error[0] ? ": " : "", s->error);
	tree_close(t);
}

int readiness_json(const struct readiness *r, const struct status_bird *bird,
		   const struct health *health, struct json_object **ret)
{
	struct tree t = tree_new();
	struct err why = { "" };

	tree_bool(&t, "ready", readiness_is_ready(r, &why));
	tree_text(&t, "reason", why.text);
	readiness_inputs(r, &t);
	tree_open(&t, "peers", '[');
	for (size_t i = 0; i < bird->n_sessions; i++)
		add_peer(&t, &bird->sessions[i], health);
	tree_close(&t);
	return tree_end(&t, ret);
}
