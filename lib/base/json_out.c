/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/json_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

static void put(struct json_out *out, const char *text, size_t len)
{
	if (out->failed || array_make_room(&out->text, out->len, &out->room, 1, len + 1) < 0) {
		out->failed = true;
		return;
	}
	memcpy(out->text + out->len, text, len);
	out->len += len;
	out->text[out->len] = '\0';
}

static void put_quoted(struct json_out *out, const char *text)
{
	static const char controls[] = "\b\t\n\f\r", letters[] = "btnfr";
	char escaped[8];

	put(out, "\"", 1);
	while (*text) {
		size_t plain = 0;

		while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
		       text[plain] != '\\')
			plain++;
		put(out, text, plain);
		text += plain;
		if (!*text)
			break;
		if (*text == '"' || *text == '\\')
			snprintf(escaped, sizeof(escaped), "\\%c", *text);
		else if (strchr(controls, *text))
			snprintf(escaped, sizeof(escaped), "\\%c",
				 letters[strchr(controls, *text) - controls]);
		else
			snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned char)*text);
		put(out, escaped, strlen(escaped));
		text++;
	}
	put(out, "\"", 1);
}

/* What comes before every value: a comma unless it is the first here, and the name. */
static void begin(struct json_out *out, const char *name)
{
	if (out->len > 0 && out->text[out->len - 1] != '{' && out->text[out->len - 1] != '[')
		put(out, ",", 1);
	if (name) {
		put_quoted(out, name);
		put(out, ":", 1);
	}
}

void json_out_open(struct json_out *out, const char *name, char bracket)
{
	begin(out, name);
	put(out, &bracket, 1);
}

void json_out_close(struct json_out *out, char bracket)
{
	put(out, &bracket, 1);
}

void json_out_text(struct json_out *out, const char *name, const char *text)
{
	begin(out, name);
	put_quoted(out, text);
}

void json_out_some_text(struct json_out *out, const char *name, const char *text)
{
	if (text && *text)
		json_out_text(out, name, text);
}

void json_out_number(struct json_out *out, const char *name, int64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRId64, number);

	begin(out, name);
	put(out, text, (size_t)n);
}

void json_out_bool(struct json_out *out, const char *name, bool value)
{
	const char *text = value ? "true" : "false";

	begin(out, name);
	put(out, text, strlen(text));
}

void json_out_address(struct json_out *out, const char *name, const struct address *a)
{
	char text[ADDRESS_TEXT];

	json_out_text(out, name, address_print(a, text));
}

void json_out_some_address(struct json_out *out, const char *name, const struct address *a)
{
	if (a->family)
		json_out_address(out, name, a);
}

void json_out_prefix(struct json_out *out, const char *name, const struct prefix *p)
{
	char text[PREFIX_TEXT];

	json_out_text(out, name, prefix_print(p, text));
}

int json_out_take(struct json_out *out, char **ret)
{
	struct json_out done = *out;

	*out = (struct json_out){ 0 };
	if (done.failed || !done.text) {
		free(done.text);
		return -ENOMEM;
	}
	*ret = done.text;
	return 0;
}
