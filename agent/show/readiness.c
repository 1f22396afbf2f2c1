/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/readiness.h"

#include <errno.h>
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

static void put(struct json_object *o, const char *name, struct json_object *value)
{
	if (!value || json_object_object_add(o, name, value) < 0)
		json_object_put(value);
}

static void put_text(struct json_object *o, const char *name, const char *text)
{
	put(o, name, json_object_new_string(text));
}

struct json_object *readiness_inputs(const struct readiness *r)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < r->n; i++) {
		const struct ready_part *p = &r->v[i];
		struct json_object *o = json_object_new_object();

		put_text(o, "name", p->name);
		put(o, "ready", json_object_new_boolean(!p->reason.text[0]));
		put(o, "needed", json_object_new_boolean(p->needed));
		put_text(o, "reason", p->reason.text);
		json_object_array_add(list, o);
	}
	return list;
}

struct json_object *readiness_names(const struct readiness *r)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < r->n; i++)
		if (r->v[i].reason.text[0])
			json_object_array_add(list, json_object_new_string(r->v[i].name));
	return list;
}

static struct json_object *peer_object(const struct status_session *s, const struct health *health)
{
	struct json_object *o = json_object_new_object();
	char part[HEALTH_PART], text[256];
	const char *reason;

	snprintf(part, sizeof(part), "session/%s", s->name);
	reason = health_reason(health, part);
	if (!reason && !s->up) {
		snprintf(text, sizeof(text), "%s%s%s", s->state, s->error[0] ? ": " : "", s->error);
		reason = text;
	}
	put_text(o, "name", s->name);
	put_text(o, "peer", s->peer);
	put(o, "ready", json_object_new_boolean(s->up));
	put_text(o, "reason", s->up ? "" : reason);
	return o;
}

int readiness_json(const struct readiness *r, const struct status_bird *bird,
		   const struct health *health, struct json_object **ret)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	struct json_object *peers = json_object_new_array();
	struct err why = { "" };
	bool ready = readiness_is_ready(r, &why);

	if (!o || !peers) {
		json_object_put(peers);
		return -ENOMEM;
	}
	put(o, "ready", json_object_new_boolean(ready));
	put_text(o, "reason", why.text);
	put(o, "inputs", readiness_inputs(r));
	for (size_t i = 0; i < bird->n_sessions; i++)
		json_object_array_add(peers, peer_object(&bird->sessions[i], health));
	put(o, "peers", peers);
	*ret = TAKE(o);
	return 0;
}
