/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/records_text.h"

#include <errno.h>
#include <string.h>

#include "lib/json/json_comments.h"

AUTO_DEFINE(struct json_tokener *, json_tokener_free)

struct walk {
	records_text_fn *fn;
	void *arg;
	struct err *err;
	unsigned number; /* of the record, from 1 */
};

static int one_record(struct walk *w, struct json_object *object)
{
	struct json_at root = json_root(object, w->err), kind_at, name_at;
	const char *kind_text = "", *name = "";
	const struct kind *kind;

	if (!json_object_is_type(object, json_type_object))
		return err_set(w->err, -EINVAL, "is not a JSON object");
	kind_at = json_need(&root, "kind");
	if (json_read_text(kind_at, JSON_STRING_MAX, &kind_text) < 0 ||
	    kind_need(kind_text, &kind, w->err) < 0)
		return -EINVAL;
	if (!kind->written)
		return err_set(w->err, -EINVAL, "kind \"%s\" is written by agents only",
			       kind->name);
	name_at = kind_is_single(kind) ? json_member(&root, "name") : json_need(&root, "name");
	if (json_read_text(name_at, JSON_STRING_MAX, &name) < 0)
		return -EINVAL;
	if (kind_is_single(kind) && *name)
		return err_set(w->err, -EINVAL, "%s has no name: there is only one", kind->name);
	return 0;
}

static int give(struct walk *w, struct json_object *object)
{
	AUTO(free) char *name = NULL;
	const struct kind *kind;
	int r;

	w->number++;
	r = one_record(w, object);
	if (r < 0)
		return err_wrap(w->err, r, "record %u", w->number);
	kind = kind_find(json_object_get_string(json_object_object_get(object, "kind")));
	name = strdup(json_object_get_string(json_object_object_get(object, "name")) ?: "");
	if (!name)
		return -ENOMEM;
	json_object_object_del(object, "kind");
	json_object_object_del(object, "name");
	return w->fn(kind, name, object, w->arg, w->err);
}

static int value(struct walk *w, struct json_object *v)
{
	int r = 0;

	if (!json_object_is_type(v, json_type_array))
		return give(w, v);
	for (size_t i = 0; r == 0 && i < json_object_array_length(v); i++)
		r = give(w, json_object_array_get_idx(v, i));
	return r;
}

static size_t blanks(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] && strchr(" \t\r\n", text[n]))
		n++;
	return n;
}

/* All values of a text without comments. */
static int values(struct walk *w, const char *text, size_t len)
{
	AUTO(json_tokener_free) struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	size_t at = blanks(text, len);
	int r = 0;

	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_VALIDATE_UTF8 | JSON_TOKENER_STRICT |
					    JSON_TOKENER_ALLOW_TRAILING_CHARS);
	while (r == 0 && at < len) {
		AUTO(json_put) struct json_object *v = NULL;
		enum json_tokener_error why;

		json_tokener_reset(tok);
		v = json_tokener_parse_ex(tok, text + at, (int)(len - at));
		why = json_tokener_get_error(tok);
		at += json_tokener_get_parse_end(tok);
		if (why == json_tokener_continue)
			return err_set(w->err, -EINVAL, "ends inside a record");
		if (why != json_tokener_success)
			return err_set(w->err, -EINVAL, "not valid JSON at byte %zu: %s", at + 1,
				       json_tokener_error_desc(why));
		r = value(w, v);
		at += blanks(text + at, len - at);
	}
	return r;
}

int records_text(const char *text, size_t len, records_text_fn *fn, void *arg, struct err *err)
{
	struct walk w = { fn, arg, err, 0 };
	AUTO(free) char *copy = NULL;
	int r;

	if (len > JSON_SIZE_MAX)
		return err_set(err, -E2BIG, "%zu bytes are more than %u", len, JSON_SIZE_MAX);
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\0';
	r = json_blank_comments(copy, len, err);
	r = r < 0 ? r : values(&w, copy, len);
	if (r == 0 && w.number == 0)
		return err_set(err, -EINVAL, "it contains no record");
	return r;
}
