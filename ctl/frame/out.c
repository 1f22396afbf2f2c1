/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/out.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lib/json/tree.h"

struct out out_make(FILE *to, const struct ctl_settings *s)
{
	const char *no_color = getenv("NO_COLOR");

	return (struct out){
		.to = to,
		.format = s->output,
		.dry_run = s->dry_run,
		.colour = !s->no_color && !(no_color && *no_color) && isatty(fileno(to)),
	};
}

struct json_object *out_at(struct json_object *object, const char *field)
{
	size_t n = strcspn(field, ".");
	struct json_object *value = NULL;
	char name[64];

	if (n >= sizeof(name) || !json_object_is_type(object, json_type_object))
		return NULL;
	memcpy(name, field, n);
	name[n] = '\0';
	json_object_object_get_ex(object, name, &value);
	return field[n] && value ? out_at(value, field + n + 1) : value;
}

const char *out_text(struct json_object *object, const char *field)
{
	struct json_object *value = out_at(object, field);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

long long out_number(struct json_object *object, const char *field)
{
	return json_object_get_int64(out_at(object, field));
}

/* --- one cell ------------------------------------------------------------------------------- */

static void print_cell(FILE *out, struct json_object *value);

static void print_array(FILE *out, struct json_object *array)
{
	size_t n = json_object_array_length(array);

	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", out);
		print_cell(out, json_object_array_get_idx(array, i));
	}
	fputs(n ? "" : "-", out);
}

static void print_object(FILE *out, struct json_object *object)
{
	const char *comma = "";

	json_object_object_foreach(object, name, value) {
		fprintf(out, "%s%s=", comma, name);
		print_cell(out, value);
		comma = ",";
	}
	fputs(*comma ? "" : "-", out);
}

/* Records come from etcd: nothing in them may steer a terminal. */
static void print_text(FILE *out, const char *text)
{
	fputs(*text ? "" : "-", out);
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static void print_cell(FILE *out, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		fputc('-', out);
		break;
	case json_type_boolean:
		fputs(json_object_get_boolean(value) ? "yes" : "no", out);
		break;
	case json_type_array:
		print_array(out, value);
		break;
	case json_type_object:
		print_object(out, value);
		break;
	case json_type_int:
		/* The most that fits stands for all that is more: addresses of an IPv6 pool. */
		if (json_object_get_int64(value) == INT64_MAX) {
			fputs(">9.2e18", out);
			break;
		}
		/* fall through */
	default:
		print_text(out, json_object_get_string(value));
	}
}

char *out_cell(struct json_object *value)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	print_cell(out, value);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

const char *out_colour_of(const char *word)
{
	static const char *const good[] = { "ok",    "alive", "up",     "Established",
					    "owned", "yes",   "applied" },
				 *const bad[] = { "silent",  "down",   "lost",
						  "invalid", "failed", "error" },
				 *const doubtful[] = { "drained",    "removed", "disabled",
						       "differs",    "full",    "deleted",
						       "warning",    "pending", "deleting",
						       "withdrawing" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (strcmp(good[i], word) == 0)
			return "\033[32m";
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (strcmp(bad[i], word) == 0)
			return "\033[31m";
	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++)
		if (strcmp(doubtful[i], word) == 0)
			return "\033[33m";
	return "";
}

/* --- JSON, and small things ----------------------------------------------------------------- */

static int print_json(const struct out *out, struct json_object *value, int how)
{
	const char *text = json_object_to_json_string_ext(value,
							  how | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!text)
		return -ENOMEM;
	fprintf(out->to, "%s\n", text);
	return 0;
}

int out_json(const struct out *out, struct json_object *value)
{
	/* json-c would put the brackets of an empty one on two lines. */
	if (json_object_is_type(value, json_type_array) && json_object_array_length(value) == 0)
		return print_json(out, value, JSON_C_TO_STRING_PLAIN);
	return print_json(out, value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

int out_json_line(const struct out *out, struct json_object *value)
{
	return print_json(out, value, JSON_C_TO_STRING_PLAIN);
}

int out_done(const struct out *out, const char *kind, const char *name, const char *done)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct tree t = tree_new();
	int r;

	tree_text(&t, "kind", kind);
	tree_some_text(&t, "name", name);
	tree_text(&t, "done", done);
	if (out->dry_run)
		tree_bool(&t, "dryRun", true);
	r = tree_end(&t, &object);
	if (r < 0 || out->format == OUT_JSON)
		return r < 0 ? r : out_json(out, object);
	fprintf(out->to, "%s%s%s %s%s\n", kind, *name ? " " : "", name, done,
		out->dry_run ? " (dry run)" : "");
	return 0;
}

void out_say(const struct out *out, const char *fmt, ...)
{
	va_list args;

	if (out->format == OUT_JSON)
		return;
	va_start(args, fmt);
	vfprintf(out->to, fmt, args);
	va_end(args);
	fputc('\n', out->to);
}
