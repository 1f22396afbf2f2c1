/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/names.h"
#include "lib/json/json.h"

#define MAX_DEPTH 24

struct reader {
	yaml_parser_t parser;
	struct err *err;
};

static int refuse(const struct reader *r, yaml_mark_t mark, const char *why)
{
	/* The codes are spelt out for the static analyser, which sees one file at a time. */
	err_set(r->err, -EINVAL, "line %zu, column %zu: %s", mark.line + 1, mark.column + 1, why);
	return -EINVAL;
}

static int next_event(struct reader *r, yaml_event_t *ret)
{
	const yaml_parser_t *p = &r->parser;
	char shown[SHOW_TEXT];

	if (yaml_parser_parse(&r->parser, ret))
		return 0;
	if (p->error == YAML_MEMORY_ERROR) {
		err_set(r->err, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	/* The reader's own errors (not UTF-8) come without a mark. */
	return refuse(r, p->error == YAML_READER_ERROR ? p->mark : p->problem_mark,
		      text_show(p->problem ?: "not YAML", shown));
}

/* --- scalars -------------------------------------------------------------------------------- */

static bool one_of(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(text, *list) == 0)
			return true;
	return false;
}

static int scalar(struct reader *r, const yaml_event_t *e, struct json_object **ret)
{
	static const char *const nothing[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const yes[] = { "true", "True", "TRUE", NULL };
	static const char *const no[] = { "false", "False", "FALSE", NULL };
	const char *text = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (e->data.scalar.anchor || e->data.scalar.tag)
		return refuse(r, e->start_mark, "anchors and tags are not supported");
	if (len > INT32_MAX || strlen(text) != len)
		return refuse(r, e->start_mark, "the text contains a NUL");
	*ret = NULL;
	if (plain && one_of(text, nothing))
		return 0;
	if (plain && (one_of(text, yes) || one_of(text, no)))
		*ret = json_object_new_boolean(one_of(text, yes));
	else
		*ret = json_object_new_string_len(text, (int)len);
	return *ret ? 0 : err_set(r->err, -ENOMEM, "out of memory");
}

/* --- the tree ------------------------------------------------------------------------------- */

static int value(struct reader *r, const yaml_event_t *e, unsigned depth, struct json_object **ret);

static int sequence(struct reader *r, unsigned depth, struct json_object **ret)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();

	while (array) {
		struct json_object *element = NULL;
		yaml_event_t e;
		int got = next_event(r, &e);

		if (got < 0)
			return got;
		if (e.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&e);
			*ret = TAKE(array);
			return 0;
		}
		got = value(r, &e, depth, &element);
		yaml_event_delete(&e);
		if (got < 0)
			return got;
		if (json_object_array_add(array, element) < 0) {
			json_object_put(element);
			break;
		}
	}
	return err_set(r->err, -ENOMEM, "out of memory");
}

static int member_name(struct reader *r, const yaml_event_t *e, struct json_object *object,
		       char **ret)
{
	if (e->type != YAML_SCALAR_EVENT || e->data.scalar.anchor || e->data.scalar.tag ||
	    strlen((const char *)e->data.scalar.value) != e->data.scalar.length)
		return refuse(r, e->start_mark, "a name must be a text");
	if (json_object_object_get_ex(object, (const char *)e->data.scalar.value, NULL))
		return refuse(r, e->start_mark, "the name appears twice");
	*ret = strdup((const char *)e->data.scalar.value);
	return *ret ? 0 : err_set(r->err, -ENOMEM, "out of memory");
}

/* 1: one more member, 0: the end. */
static int member(struct reader *r, unsigned depth, struct json_object *object)
{
	AUTO(json_put) struct json_object *child = NULL;
	AUTO(free) char *name = NULL;
	yaml_event_t e;
	int got = next_event(r, &e);
	bool end;

	if (got < 0)
		return got;
	end = e.type == YAML_MAPPING_END_EVENT;
	if (!end)
		got = member_name(r, &e, object, &name);
	yaml_event_delete(&e);
	if (end || got < 0)
		return got;

	got = next_event(r, &e);
	if (got < 0)
		return got;
	got = value(r, &e, depth, &child);
	yaml_event_delete(&e);
	if (got < 0)
		return got;
	if (json_object_object_add(object, name, child) < 0)
		return err_set(r->err, -ENOMEM, "out of memory");
	child = NULL;
	return 1;
}

static int mapping(struct reader *r, unsigned depth, struct json_object **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	int got = object ? 1 : err_set(r->err, -ENOMEM, "out of memory");

	while (got > 0)
		got = member(r, depth, object);
	if (got == 0)
		*ret = TAKE(object);
	return got;
}

static int value(struct reader *r, const yaml_event_t *e, unsigned depth, struct json_object **ret)
{
	bool is_mapping = e->type == YAML_MAPPING_START_EVENT;
	bool is_sequence = e->type == YAML_SEQUENCE_START_EVENT;

	if (depth >= MAX_DEPTH)
		return refuse(r, e->start_mark, "nested too deeplylyly");
	if ((is_mapping && (e->data.mapping_start.anchor || e->data.mapping_start.tag)) ||
	    (is_sequence && (e->data.sequence_start.anchor || e->data.sequence_start.tag)) ||
	    e->type == YAML_ALIAS_EVENT)
		return refuse(r, e->start_mark, "anchors, aliases and tags are not supported");
	if (is_mapping)
		return mapping(r, depth + 1, ret);
	if (is_sequence)
		return sequence(r, depth + 1, ret);
	if (e->type == YAML_SCALAR_EVENT)
		return scalar(r, e, ret);
	return refuse(r, e->start_mark, "not a value");
}

/* --- the document --------------------------------------------------------------------------- */

static int expect(struct reader *r, yaml_event_type_t type, const char *otherwise)
{
	yaml_event_t e;
	int got = next_event(r, &e);

	if (got < 0)
		return got;
	if (e.type != type)
		got = refuse(r, e.start_mark, otherwise);
	yaml_event_delete(&e);
	return got;
}

static int document(struct reader *r, struct json_object **ret)
{
	AUTO(json_put) struct json_object *object = NULL;
	yaml_event_t e;
	int got = expect(r, YAML_STREAM_START_EVENT, "not YAML");

	got = got ?: expect(r, YAML_DOCUMENT_START_EVENT, "the document is empty");
	got = got ?: next_event(r, &e);
	if (got < 0)
		return got;
	if (e.type == YAML_MAPPING_START_EVENT)
		got = value(r, &e, 0, &object);
	else
		got = refuse(r, e.start_mark, "not a mapping of names to values");
	yaml_event_delete(&e);
	got = got ?: expect(r, YAML_DOCUMENT_END_EVENT, "not YAML");
	got = got ?: expect(r, YAML_STREAM_END_EVENT, "a second document");
	if (got == 0)
		*ret = TAKE(object);
	return got;
}

int kube_yaml_parse(const char *text, size_t len, struct json_object **ret, struct err *err)
{
	struct reader r = { .err = err };
	int got;

	if (!yaml_parser_initialize(&r.parser))
		return err_set(err, -ENOMEM, "out of memory");
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	got = document(&r, ret);
	yaml_parser_delete(&r.parser);
	return got;
}
