/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type of fields.h that holds a selector. It is a text of the one grammar; the list form that
 * Kubernetes has for it, [{"key", "operator", "values"}], becomes such a text when it is read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/fields.h"

/* --- the list form -------------------------------------------------------------------------- */

enum requires { REQUIRES_IN, REQUIRES_NOT_IN, REQUIRES_EXISTS, REQUIRES_ABSENT };
static const char *const operators[] = { "In", "NotIn", "Exists", "DoesNotExist", NULL };

struct requirement {
	const char *key;
	enum requires operator;
	struct texts values;
};
struct requirements {
	struct requirement *v;
	size_t n;
};

static int key_check(const char *text, struct err *err)
{
	char shown[SHOW_TEXT];

	if (label_key_valid(text))
		return 0;
	return err_set(err, -EINVAL, "\"%s\" is not 1 to 317 of A-Z, a-z, 0-9, '.', '/', '_', '-'",
		       text_show(text, shown));
}

static int value_check(const char *text, struct err *err)
{
	char shown[SHOW_TEXT];

	if (label_value_valid(text))
		return 0;
	return err_set(err, -EINVAL, "\"%s\" is not up to 63 of A-Z, a-z, 0-9, '.', '_', '-'",
		       text_show(text, shown));
}

static const struct field value = { ELEMENT(text), .check = value_check };

static const struct field requirement_fields[] = {
	{ FIELD(requirement, key, "key", text), .check = key_check, .required = true },
	{ FIELD(requirement, operator, "operator", choice), .choices = operators,
	  .required = true },
	{ LIST(requirement, values, "values", &value) },
};
static const struct field requirement = { ELEMENT_OBJECT(requirement, requirement_fields) };
static const struct field requirements = { .type = &field_list,
					   .fields = &requirement,
					   .size = sizeof(struct requirement) };

/* As Kubernetes has it: a set needs members, and what asks for a key alone has none. */
static int values_fit(struct json_at in, const struct requirements *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct requirement *r = &list->v[i];
		bool set = r->operator== REQUIRES_IN || r->operator== REQUIRES_NOT_IN;
		struct json_at element = json_element(&in, i);

		if (set == (r->values.n > 0))
			continue;
		return json_wrong(json_member(&element, "values"), "%s %s",
				  operators[r->operator], set ? "needs some" : "has none");
	}
	return 0;
}

static void print_requirement(FILE *out, const struct requirement *r)
{
	if (r->operator== REQUIRES_EXISTS || r->operator== REQUIRES_ABSENT) {
		fprintf(out, "%shas(%s)", r->operator== REQUIRES_ABSENT ? "!" : "", r->key);
		return;
	}
	fprintf(out, "%s %s {", r->key, r->operator== REQUIRES_IN ? "in" : "not in");
	for (size_t i = 0; i < r->values.n; i++)
		fprintf(out, "%s'%s'", i ? "," : "", r->values.v[i]);
	fprintf(out, "}");
}

static int print_requirements(const struct requirements *list, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++) {
		if (i)
			fprintf(out, " && ");
		print_requirement(out, &list->v[i]);
	}
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

static int read_list(struct json_at in, char **ret)
{
	struct requirements list = { 0 };
	int r = field_list.read(&requirements, in, &list);

	if (r == 0)
		r = values_fit(in, &list);
	if (r == 0)
		r = print_requirements(&list, ret);
	field_list.done(&requirements, &list);
	return r;
}

static int read_text(struct json_at in, char **ret)
{
	const char *text;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r < 0)
		return r;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

/* --- the field ------------------------------------------------------------------------------ */

static int selector_init(const struct field *f, void *at)
{
	return field_text.init(f, &((struct selector_text *)at)->text);
}

static void selector_done(const struct field *f, void *at)
{
	struct selector_text *s = at;

	field_text.done(f, &s->text);
	selector_free(s->parsed);
	s->parsed = NULL;
}

static int selector_read(const struct field *f, struct json_at in, void *at)
{
	AUTO(selector_free) struct selector *parsed = NULL;
	AUTO(free) char *text = NULL;
	struct err why;
	int r = json_object_is_type(in.value, json_type_array) ? read_list(in, &text)
							       : read_text(in, &text);

	if (r < 0)
		return r;
	r = selector_parse(text, &parsed, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return json_wrong(in, "%s", why.text);
	selector_done(f, at);
	*(struct selector_text *)at = (struct selector_text){ TAKE(text), TAKE(parsed) };
	return 0;
}

static int selector_write(const struct field *f, const void *at, const void *usual,
			  struct json_object **ret)
{
	return field_text.write(f, &((const struct selector_text *)at)->text, usual, ret);
}

static bool selector_equal(const struct field *f, const void *a, const void *b)
{
	const struct selector_text *x = a, *y = b;

	return field_text.equal(f, &x->text, &y->text);
}

const struct field_type field_selector = {
	.blank_is_absent = true,
	.init = selector_init,
	.read = selector_read,
	.write = selector_write,
	.equal = selector_equal,
	.done = selector_done,
};
