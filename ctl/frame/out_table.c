/* SPDX-License-Identifier: Apache-2.0 */
/* For people: aligned columns, and "field: value" lines. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/out.h"

#define COLUMNS_MAX 24

struct grid {
	size_t n_columns, n_rows;
	const char *titles[COLUMNS_MAX];
	const char *fields[COLUMNS_MAX];
	size_t width[COLUMNS_MAX];
	bool number[COLUMNS_MAX], other[COLUMNS_MAX]; /* numbers alone are right-aligned */
	char **cells;                                 /* n_rows * n_columns */
};

/* What a terminal shows of UTF-8: continuation bytes take no room of their own. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void grid_done(struct grid *g)
{
	for (size_t i = 0; g->cells && i < g->n_rows * g->n_columns; i++)
		free(g->cells[i]);
	free(g->cells);
}

static void grid_column(struct grid *g, const char *title, const char *field)
{
	if (g->n_columns == COLUMNS_MAX)
		return;
	g->titles[g->n_columns] = title;
	g->fields[g->n_columns] = field;
	g->width[g->n_columns] = width_of(title);
	g->n_columns++;
}

static int grid_fill(struct grid *g, struct json_object *array)
{
	size_t n = json_object_array_length(array), at = 0;

	g->cells = calloc(n * g->n_columns + 1, sizeof(*g->cells));
	if (!g->cells)
		return -ENOMEM;
	g->n_rows = n;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < g->n_columns; j++) {
			struct json_object *value = out_at(json_object_array_get_idx(array, i),
							   g->fields[j]);
			size_t width;

			g->cells[at] = out_cell(value);
			if (!g->cells[at])
				return -ENOMEM;
			width = width_of(g->cells[at++]);
			g->width[j] = width > g->width[j] ? width : g->width[j];
			g->number[j] = g->number[j] || json_object_is_type(value, json_type_int);
			g->other[j] = g->other[j] ||
				      (value && !json_object_is_type(value, json_type_int));
		}
	return 0;
}

static void print_cell(const struct out *out, const struct grid *g, size_t column, const char *text,
		       const char *colour)
{
	int pad = (int)(g->width[column] - width_of(text));
	bool number = g->number[column] && !g->other[column];
	bool last = column + 1 == g->n_columns;

	if (number)
		fprintf(out->to, "%*s", pad, "");
	fprintf(out->to, "%s%s%s", colour, text, *colour ? "\033[0m" : "");
	if (!last)
		fprintf(out->to, "%*s", number ? 2 : pad + 2, "");
}

static void grid_print(const struct out *out, const struct grid *g, int indent)
{
	const char *bold = out->colour ? "\033[1m" : "";

	fprintf(out->to, "%*s", indent, "");
	for (size_t j = 0; j < g->n_columns; j++)
		print_cell(out, g, j, g->titles[j], bold);
	fputc('\n', out->to);
	for (size_t i = 0; i < g->n_rows; i++) {
		fprintf(out->to, "%*s", indent, "");
		for (size_t j = 0; j < g->n_columns; j++) {
			const char *text = g->cells[i * g->n_columns + j];

			print_cell(out, g, j, text, out->colour ? out_colour_of(text) : "");
		}
		fputc('\n', out->to);
	}
}

int out_list(const struct out *out, struct json_object *array, const struct out_column *columns,
	     const char *none)
{
	struct grid g = { 0 };
	int r;

	if (out->format == OUT_JSON)
		return out_json(out, array);
	if (none && json_object_array_length(array) == 0) {
		fprintf(out->to, "%s\n", none);
		return 0;
	}
	for (const struct out_column *c = columns; c->title; c++)
		if (!c->wide || out->format == OUT_WIDE)
			grid_column(&g, c->title, c->field);
	r = grid_fill(&g, array);
	if (r == 0)
		grid_print(out, &g, 0);
	grid_done(&g);
	return r;
}

/* --- show ----------------------------------------------------------------------------------- */

static bool has_objects(struct json_object *value)
{
	return json_object_is_type(value, json_type_array) && json_object_array_length(value) &&
	       json_object_is_type(json_object_array_get_idx(value, 0), json_type_object);
}

/* Objects in an array become rows; the columns are the fields that appear, in that order. */
static int show_rows(const struct out *out, struct json_object *array, int indent)
{
	struct grid g = { 0 };
	int r;

	for (size_t i = 0; i < json_object_array_length(array); i++) {
		json_object_object_foreach(json_object_array_get_idx(array, i), name, value) {
			bool known = false;

			for (size_t j = 0; j < g.n_columns; j++)
				known = known || strcmp(g.fields[j], name) == 0;
			if (!known)
				grid_column(&g, name, name);
		}
	}
	r = grid_fill(&g, array);
	if (r == 0)
		grid_print(out, &g, indent);
	grid_done(&g);
	return r;
}

static int show_object(const struct out *out, struct json_object *object, int indent)
{
	int width = 0, r = 0;

	json_object_object_foreach(object, label, ignored) {
		width = (int)strlen(label) > width ? (int)strlen(label) : width;
	}
	json_object_object_foreach(object, name, value) {
		AUTO(free) char *cell = NULL;
		bool rows = has_objects(value);

		if (rows || (json_object_is_type(value, json_type_object) &&
			     json_object_object_length(value) > 0)) {
			fprintf(out->to, "%*s%s:\n", indent, "", name);
			r = rows ? show_rows(out, value, indent + 2)
				 : show_object(out, value, indent + 2);
		} else {
			cell = out_cell(value);
			if (!cell)
				return -ENOMEM;
			fprintf(out->to, "%*s%s:%*s%s%s%s\n", indent, "", name,
				width - (int)strlen(name) + 2, "",
				out->colour ? out_colour_of(cell) : "", cell,
				out->colour && *out_colour_of(cell) ? "\033[0m" : "");
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int out_show(const struct out *out, struct json_object *object)
{
	return out->format == OUT_JSON ? out_json(out, object) : show_object(out, object, 0);
}
