/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed template, between mustache_parse.c and mustache_render.c.
 *
 * A template is its text and a flat array of nodes that point into it. Names are cut in place: the
 * byte behind a name, which belongs to its tag, becomes NUL, as do the dots inside. Whatever has
 * an inside (sections, parents, blocks) is followed by it and by a MUSTACHE_END, whose index is
 * its .end; nothing is linked otherwise.
 *
 * Lines and indentation are settled while parsing. A piece of text whose first byte begins a line
 * says so (.line_start); a line that begins with a tag has an empty piece there for the same
 * purpose. To render with an indentation is to put it before each such place, and an
 * indentation is taken away there too.
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

/* Nodes of t, whose text is there. 0, -ENOMEM or -EINVAL. */
int mustache_parse(struct mustache_template *t, struct err *err);

#define MUSTACHE_NAME_TEXT 72
/* The name as in the template, fit for a message: cut, and harmless. Returns text. */
const char *mustache_name_show(const struct mustache_node *node, char *text);
/* The same for a part of it. */
const char *mustache_part_show(const char *from, size_t len, char *text);

/* code, with "template:line:column: sentence". */
int mustache_wrong(struct err *err, int code, const struct mustache_template *t, uint32_t line,
		   uint32_t column, const char *fmt, ...) PRINTF_LIKE(6, 7);
