/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the Mustache engine share.
 *
 * A template is its text and a flat array of nodes that point into it. Names are cut in place: the
 * byte behind a name, which belongs to its tag, becomes NUL, as do the dots inside. Whatever has
 * an inside (sections, parents, blocks) is followed by it and by a MUSTACHE_END, whose index is
 * its .end; nothing is linked otherwise.
 *
 * Lines and indentation are settled while parsing. A piece of text whose first byte begins a line
 * says so (.line_start); a line that begins with a tag has an empty piece there for the same
 * purpose. To render with an indentation is to put it before each such place, and an
 * indentation is taken away there too (see mustache_indent.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "confd/mustache/mustache.h"

#define MUSTACHE_MAX_TEMPLATE (16U * 1024 * 1024)
#define MUSTACHE_NONE         UINT32_MAX

enum mustache_kind {
	MUSTACHE_NOTHING, /* a piece of text that fell to its standalone tag */
	MUSTACHE_TEXT,
	MUSTACHE_VARIABLE,
	MUSTACHE_RAW,
	MUSTACHE_SECTION,
	MUSTACHE_INVERTED,
	MUSTACHE_PARTIAL,
	MUSTACHE_PARENT,
	MUSTACHE_BLOCK,
	MUSTACHE_END,
};

/* A piece of a template's text, not ended by NUL. */
struct piece {
	const char *text;
	size_t len;
};

struct mustache_node {
	enum mustache_kind kind;
	uint32_t line, column;
	uint32_t end;    /* index of the MUSTACHE_END; while parsing, of the next outer one that is
			    open; of a MUSTACHE_END, what it ends */
	uint32_t parts;  /* of the name, 0 for the implicit iterator */
	bool line_start; /* text: its first byte begins a line */
	bool dynamic;    /* partial, parent: the name is that of a variable */
	bool fresh;      /* parent: nothing but white space before it in its line */
	bool alone;      /* partial, parent, opening of a block: standalone */
	bool own_lines;  /* block: both of its tags are */
	bool from_next_line; /* block: its content begins on the line below the tag */
	bool absent;         /* static partial: looked for, not there */
	struct piece name;   /* text: the text itself */
	struct piece indent; /* put before each line of what is expanded here */
	struct piece strip;  /* block: taken from each of its lines when it is expanded elsewhere */
	struct piece newline;             /* block with own_lines: how its last line ends */
	struct mustache_template *target; /* static partial or parent, once found */
};

struct mustache_template {
	char *name;
	char *text;
	size_t len;
	struct mustache_node *nodes;
	uint32_t n, room;
	unsigned wanted, checked; /* by which run of mustache_check() */
};

struct mustache_set {
	mustache_load_fn *load;
	void *arg;
	struct mustache_template **v;
	size_t n;
	unsigned run;
};

/* --- mustache_parse.c, mustache_lines.c ------------------------------------------------------- */

/* Nodes of t, whose text is there. 0, -ENOMEM or -EINVAL. */
int mustache_parse(struct mustache_template *t, struct err *err);

struct mustache_parser {
	struct mustache_template *t;
	struct err *err;
	char *at, *end;
	struct piece open, close; /* the delimiters */
	uint32_t outer;           /* the innermost that is open */

	/* Where we are in the current line. */
	bool line_start; /* nothing of it was read yet */
	bool fresh;      /* nothing but white space, in the last node, and now comes a tag */
	bool candidate;  /* one tag that may be standalone, nothing else */
	bool pair;       /* it is a block with its end */
	uint32_t pad;    /* the white space before it */
	uint32_t tag;    /* its node or MUSTACHE_NONE */

	/* Position of a byte that was reached. */
	const char *counted;
	uint32_t line, column;
};

int mustache_node_add(struct mustache_parser *p, const struct mustache_node *node);
/* Moves .line and .column on to a byte further down. */
void mustache_count_to(struct mustache_parser *p, const char *to);
bool mustache_is_blank(const char *text, size_t len); /* spaces and tabs only */
/* The text from .at up to a tag or the end of the template. */
int mustache_lines_text(struct mustache_parser *p, char *to);
/* A tag that can be standalone was read; node is NONE for those that leave none. */
void mustache_lines_tag(struct mustache_parser *p, uint32_t node);
void mustache_lines_other_tag(struct mustache_parser *p); /* one that cannot */
void mustache_lines_open(struct mustache_parser *p, uint32_t node);
void mustache_lines_close(struct mustache_parser *p, uint32_t open, uint32_t end,
			  const char *end_tag);

/* --- mustache_set.c --------------------------------------------------------------------------- */

/* Loads and parses it if it is new. -ENOENT without a sentence: there is none. */
int mustache_set_get(struct mustache_set *s, const char *name, struct mustache_template **ret,
		     struct err *err);
/* The template that a static partial or parent names; *ret NULL: there is none. */
int mustache_set_target(struct mustache_set *s, struct mustache_node *node,
			struct mustache_template **ret, struct err *err);

/* --- mustache_names.c ------------------------------------------------------------------------- */

/* The context stack. */
struct mustache_context {
	struct json_object *value; /* NULL: null */
	const struct mustache_context *up;
};

/* How many parts of the name resolve: all of them if it is found, and only then *ret is set. */
bool mustache_find(const struct mustache_context *top, const struct mustache_node *node,
		   struct json_object **ret, uint32_t *ret_resolved);
bool mustache_is_true(struct json_object *value);
bool mustache_name_is(const struct mustache_node *node, const char *name, size_t len);

#define MUSTACHE_NAME_TEXT 72
/* The name as in the template, fit for a message: cut, and harmless. Returns text. */
const char *mustache_name_show(const struct mustache_node *node, char *text);
/* The same for its first n parts, or for part n alone. */
const char *mustache_parts_show(const struct mustache_node *node, uint32_t n, char *text);
const char *mustache_part_show(const struct mustache_node *node, uint32_t n, char *text);

/* code, with "template:line:column: sentence". */
int mustache_wrong(struct err *err, int code, const struct mustache_template *t, uint32_t line,
		   uint32_t column, const char *fmt, ...) PRINTF_LIKE(6, 7);

/* --- mustache_out.c --------------------------------------------------------------------------- */

struct mustache_out {
	char *text;
	size_t len, room, max;
};

/* 0, -ENOMEM, -EFBIG. */
int mustache_out_add(struct mustache_out *out, const char *text, size_t len);
int mustache_out_html(struct mustache_out *out, const char *text, size_t len);
/* A scalar as it is printed, in room (MUSTACHE_NUMBER_TEXT) or in the value itself. */
#define MUSTACHE_NUMBER_TEXT 64
struct piece mustache_scalar(struct json_object *value, char *room);
