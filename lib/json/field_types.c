/* SPDX-License-Identifier: Apache-2.0 */
/* The plain types of fields.h: how each is read, written, compared and released. */
#include <errno.h>
#include <string.h>

#include "lib/json/fields.h"

static int text_value(const char *text, struct json_object **ret)
{
	*ret = json_object_new_string(text);
	return *ret ? 0 : -ENOMEM;
}

/* --- text ----------------------------------------------------------------------------------- */

static int text_replace(void *at, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*(char **)at);
	*(char **)at = copy;
	return 0;
}

static int text_init(const struct field *f, void *at)
{
	return text_replace(at, f->initial_text ?: "");
}

static int text_read(const struct field *f, struct json_at in, void *at)
{
	const char *text;
	struct err why;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	if (f->check && f->check(text, &why) < 0)
		return json_wrong(in, "%s", why.text);
	return text_replace(at, text);
}

/* A record made by hand may leave a text out. */
static const char *text_of(const void *at)
{
	return *(const char *const *)at ?: "";
}

static int text_write(const struct field *f, const void *at, const void *usual,
		      struct json_object **ret)
{
	return text_value(text_of(at), ret);
}

static bool text_equal(const struct field *f, const void *a, const void *b)
{
	return strcmp(text_of(a), text_of(b)) == 0;
}

static void text_done(const struct field *f, void *at)
{
	free(*(char **)at);
	*(char **)at = NULL;
}

const struct field_type field_text = {
	.blank_is_absent = true,
	.init = text_init,
	.read = text_read,
	.write = text_write,
	.equal = text_equal,
	.done = text_done,
};

static int borrowed_read(const struct field *f, struct json_at in, void *at)
{
	const char *text;
	struct err why;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	if (f->check && f->check(text, &why) < 0)
		return json_wrong(in, "%s", why.text);
	*(const char **)at = text;
	return 0;
}

const struct field_type field_borrowed = { .blank_is_absent = true, .read = borrowed_read };

/* --- an object that is not ours to understand --------------------------------------------------
 */

static int json_field_read(const struct field *f, struct json_at in, void *at)
{
	AUTO(free) char *text = NULL;
	int r = json_read_object(in);

	if (r < 0)
		return r;
	r = json_print(in.value, &text);
	if (r < 0)
		return r;
	if (f->max && strlen(text) > f->max)
		return json_wrong(in, "is longer than %u bytes", f->max);
	return text_replace(at, text);
}

static int json_field_write(const struct field *f, const void *at, const void *usual,
			    struct json_object **ret)
{
	const char *text = text_of(at);

	return json_parse(text, strlen(text), ret, NULL);
}

const struct field_type field_json = {
	.blank_is_absent = true,
	.init = text_init,
	.read = json_field_read,
	.write = json_field_write,
	.equal = text_equal,
	.done = text_done,
};

/* --- number, revision, flag, choice --------------------------------------------------------- */

static int number_init(const struct field *f, void *at)
{
	*(uint32_t *)at = f->initial;
	return 0;
}

static int number_read(const struct field *f, struct json_at in, void *at)
{
	int64_t i;
	int r = json_read_integer(in, f->or_zero ? 0 : f->min, f->max, &i);

	if (r < 0)
		return r;
	if (f->or_zero && i != 0 && i < f->min)
		return json_refuse(in, "is neither 0 nor between %u and %u", f->min, f->max);
	*(uint32_t *)at = (uint32_t)i;
	return 0;
}

static int number_write(const struct field *f, const void *at, const void *usual,
			struct json_object **ret)
{
	*ret = json_object_new_int64(*(const uint32_t *)at);
	return *ret ? 0 : -ENOMEM;
}

static bool number_equal(const struct field *f, const void *a, const void *b)
{
	return *(const uint32_t *)a == *(const uint32_t *)b;
}

const struct field_type field_number = {
	.init = number_init,
	.read = number_read,
	.write = number_write,
	.equal = number_equal,
};

static int revision_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_integer(in, 0, INT64_MAX, at);

	return r < 0 ? r : 0;
}

static int revision_write(const struct field *f, const void *at, const void *usual,
			  struct json_object **ret)
{
	*ret = json_object_new_int64(*(const int64_t *)at);
	return *ret ? 0 : -ENOMEM;
}

static bool revision_equal(const struct field *f, const void *a, const void *b)
{
	return *(const int64_t *)a == *(const int64_t *)b;
}

const struct field_type field_revision = {
	.read = revision_read,
	.write = revision_write,
	.equal = revision_equal,
};

static int flag_init(const struct field *f, void *at)
{
	*(bool *)at = f->initial;
	return 0;
}

static int flag_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_bool(in, at);

	return r < 0 ? r : 0;
}

static int flag_write(const struct field *f, const void *at, const void *usual,
		      struct json_object **ret)
{
	*ret = json_object_new_boolean(*(const bool *)at);
	return *ret ? 0 : -ENOMEM;
}

static bool flag_equal(const struct field *f, const void *a, const void *b)
{
	return *(const bool *)a == *(const bool *)b;
}

const struct field_type field_flag = {
	.init = flag_init,
	.read = flag_read,
	.write = flag_write,
	.equal = flag_equal,
};

/* "bgp, ospf, rip, none" */
static const char *list_choices(const struct field *f, char *text, size_t room)
{
	size_t n = 0;

	text[0] = '\0';
	for (const char *const *c = f->choices; *c && n < room; c++)
		n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "", *c);
	return text;
}

static int choice_read(const struct field *f, struct json_at in, void *at)
{
	char list[128];
	const char *text;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	for (unsigned i = 0; f->choices[i]; i++)
		if (strcmp(f->choices[i], text) == 0) {
			*(unsigned *)at = i;
			return 0;
		}
	return json_refuse(in, "is not one of %s", list_choices(f, list, sizeof(list)));
}

static int choice_write(const struct field *f, const void *at, const void *usual,
			struct json_object **ret)
{
	return text_value(f->choices[*(const unsigned *)at], ret);
}

const struct field_type field_choice = {
	.init = number_init,
	.read = choice_read,
	.write = choice_write,
	.equal = number_equal,
};

/* --- time ----------------------------------------------------------------------------------- */

static int time_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_time(in, at);

	return r < 0 ? r : 0;
}

static int time_write(const struct field *f, const void *at, const void *usual,
		      struct json_object **ret)
{
	return text_value(at, ret);
}

static bool time_equal(const struct field *f, const void *a, const void *b)
{
	return strcmp(a, b) == 0;
}

const struct field_type field_time = {
	.blank_is_absent = true,
	.read = time_read,
	.write = time_write,
	.equal = time_equal,
};
