/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_reply.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/json_stream.h"

#define MAX_STATUS (64 * 1024)

/* Cut to fit, and without what a terminal might act on. */
static void copy_text(struct json_object *object, const char *name, char *to, size_t size)
{
	struct json_object *value;
	const char *text = "";
	size_t n = 0;

	if (json_object_object_get_ex(object, name, &value) &&
	    json_object_is_type(value, json_type_string))
		text = json_object_get_string(value);
	for (; n < size - 1 && text[n]; n++)
		to[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	to[n] = '\0';
}

void kube_status_read(struct json_object *object, struct kube_status *ret)
{
	struct json_object *value;
	char kind[8];

	*ret = (struct kube_status){ 0 };
	if (!json_object_is_type(object, json_type_object))
		return;
	copy_text(object, "kind", kind, sizeof(kind));
	if (strcmp(kind, "Status") != 0)
		return;
	ret->is_status = true;
	if (json_object_object_get_ex(object, "code", &value) &&
	    json_object_is_type(value, json_type_int))
		ret->code = (long)json_object_get_int64(value);
	copy_text(object, "reason", ret->reason, sizeof(ret->reason));
	copy_text(object, "message", ret->message, sizeof(ret->message));
	if (json_object_object_get_ex(object, "details", &value) &&
	    json_object_is_type(value, json_type_object)) {
		copy_text(value, "kind", ret->kind, sizeof(ret->kind));
		copy_text(value, "name", ret->name, sizeof(ret->name));
	}
}

void kube_status_parse(const char *body, size_t len, struct kube_status *ret)
{
	AUTO(json_put) struct json_object *object = NULL;

	*ret = (struct kube_status){ 0 };
	if (json_stream_single(MAX_STATUS, body, len, &object, NULL) == 0)
		kube_status_read(object, ret);
}

static bool names(const struct kube_status *s, const char *node)
{
	return s->is_status && s->code == 404 && node && strcmp(s->reason, "NotFound") == 0 &&
	       strcmp(s->kind, "nodes") == 0 && strcmp(s->name, node) == 0;
}

static const char *colon(const struct kube_status *s)
{
	return s->message[0] ? ": " : "";
}

enum kube_verdict kube_judge(const char *verb, const char *node, long http,
			     const struct kube_status *s, struct err *text)
{
	long code = http ?: s->code;
	const char *of = node ? " " : "", *whom = node ?: "";

	if (code == 200)
		return KUBE_OK;
	if (code == 410) {
		err_set(text, 0, "the %s's resource version has expired (410%s%s)", verb, colon(s),
			s->message);
		return KUBE_EXPIRED;
	}
	if (code == 401) {
		err_set(text, 0,
			"the API server refuses our credentials (401%s%s): check the token or the "
			"client certificate",
			colon(s), s->message);
		return KUBE_UNAUTHORIZED;
	}
	if (code == 403) {
		err_set(text, 0,
			"the API server forbids us to %s nodes (403%s%s): allow get, list and "
			"watch on nodes, as in docs/kubernetes/controller.yaml",
			verb, colon(s), s->message);
		return KUBE_FORBIDDEN;
	}
	if (code == 404 && names(s, node)) {
		err_set(text, 0, "there is no node %s", whom);
		return KUBE_NOT_FOUND;
	}
	if (code == 404) {
		err_set(text, 0,
			"%s nodes%s%s: 404%s%s, but no API server reports a deleted node in this "
			"form: check the server's address",
			verb, of, whom, colon(s), s->message);
		return KUBE_FAILED;
	}
	err_set(text, 0, "%s nodes%s%s: the API server answers %ld%s%s", verb, of, whom, code,
		colon(s), s->message);
	return KUBE_FAILED;
}
