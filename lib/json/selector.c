/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text becomes a list of steps in postfix order, so that evaluation is one
 * loop over a small stack: it needs neither recursion nor memory. One
 * allocation holds the steps and a copy of the text, into which they point.
 * "a == 'x'" is the set of one, "!=" and "not in" are the set and a negation:
 * so an absent label, which is in no set, comes out right without a case of
 * its own.
 */
#include "lib/json/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define KEY_MAX    317
#define VALUE_MAX  63
#define LENGTH_MAX 4096
#define DEPTH_MAX  64

#define VALUE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define KEY_CHARS   VALUE_CHARS "/"
#define BLANKS      " \t\r\n"

/* Each level may hold a left side of "||" and one of "&&" while its right side is worked on. */
#define STACK_MAX (2 * (DEPTH_MAX + 1) + 1)

enum op {
	OP_ALL,
	OP_HAS,   /* text is the key */
	OP_IN,    /* text is the key; n_values OP_VALUE follow */
	OP_VALUE, /* belongs to the OP_IN before it */
	OP_NOT,
	OP_AND,
	OP_OR,
};

struct step {
	uint16_t at, length;
	uint16_t n_values;
	uint16_t op;
};

struct selector {
	const char *text;
	size_t n_steps;
	struct step steps[];
};

bool label_key_valid(const char *key)
{
	size_t n = strspn(key, KEY_CHARS);

	return n >= 1 && n <= KEY_MAX && !key[n];
}

bool label_value_valid(const char *value)
{
	size_t n = strspn(value, VALUE_CHARS);

	return n <= VALUE_MAX && !value[n];
}

/* --- tokens --------------------------------------------------------------------------------- */

enum token_kind {
	TOKEN_END,
	TOKEN_WORD,
	TOKEN_STRING,
	TOKEN_EQUAL,
	TOKEN_UNEQUAL,
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_NOT,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_SET_OPEN,
	TOKEN_SET_CLOSE,
	TOKEN_COMMA,
	TOKEN_STRANGE, /* one byte that begins nothing */
};

/* The longer ones first: "!=" is never "!" and something. */
static const struct {
	const char *text;
	enum token_kind kind;
} symbols[] = {
	{ "==", TOKEN_EQUAL }, { "!=", TOKEN_UNEQUAL }, { "&&", TOKEN_AND },
	{ "||", TOKEN_OR },    { "!", TOKEN_NOT },      { "(", TOKEN_OPEN },
	{ ")", TOKEN_CLOSE },  { "{", TOKEN_SET_OPEN }, { "}", TOKEN_SET_CLOSE },
	{ ",", TOKEN_COMMA },
};

struct token {
	enum token_kind kind;
	size_t at, length;
};

struct parser {
	struct selector *out;
	struct err *err;
	struct token token; /* the one to be looked at */
	unsigned depth;
};

static int expected(const struct parser *p, const struct token *found, const char *what)
{
	const char *text = p->out->text + found->at;
	/* Strings bring their own quotes. */
	const char *quote = found->kind == TOKEN_STRING ? "" : "\"";
	size_t column = found->at + 1;

	if (found->kind == TOKEN_END)
		return err_set(p->err, -EINVAL, "column %zu: expected %s, found end of text",
			       column, what);
	if (!isprint((unsigned char)*text))
		return err_set(p->err, -EINVAL, "column %zu: expected %s, found byte 0x%02x",
			       column, what, (unsigned char)*text);
	return err_set(p->err, -EINVAL, "column %zu: expected %s, found %s%.*s%s", column, what,
		       quote, (int)found->length, text, quote);
}

static int too_long(const struct parser *p, size_t at, const char *what, size_t max)
{
	return err_set(p->err, -EINVAL, "column %zu: %s longer than %zu bytes", at + 1, what, max);
}

static int scan_word(struct parser *p, size_t at)
{
	size_t n = strspn(p->out->text + at, KEY_CHARS);

	if (n > KEY_MAX)
		return too_long(p, at, "key", KEY_MAX);
	p->token = (struct token){ TOKEN_WORD, at, n };
	return 0;
}

static int scan_string(struct parser *p, size_t at)
{
	const char *text = p->out->text + at;
	size_t n = strspn(text + 1, VALUE_CHARS);
	char end = text[1 + n];

	if (end != text[0])
		return expected(p,
				&(struct token){ end ? TOKEN_STRANGE : TOKEN_END, at + 1 + n, 1 },
				"[A-Za-z0-9._-] or the closing quote");
	if (n > VALUE_MAX)
		return too_long(p, at, "string", VALUE_MAX);
	p->token = (struct token){ TOKEN_STRING, at, n + 2 };
	return 0;
}

static void scan_symbol(struct parser *p, size_t at)
{
	const char *text = p->out->text + at;

	p->token = (struct token){ *text ? TOKEN_STRANGE : TOKEN_END, at, *text ? 1 : 0 };
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		size_t n = strlen(symbols[i].text);

		if (strncmp(text, symbols[i].text, n) == 0) {
			p->token = (struct token){ symbols[i].kind, at, n };
			return;
		}
	}
}

static int advance(struct parser *p)
{
	size_t at = p->token.at + p->token.length;

	at += strspn(p->out->text + at, BLANKS);
	if (p->out->text[at] == '\'' || p->out->text[at] == '"')
		return scan_string(p, at);
	if (p->out->text[at] && strchr(KEY_CHARS, p->out->text[at]))
		return scan_word(p, at);
	scan_symbol(p, at);
	return 0;
}

static bool is_word(const struct parser *p, const struct token *t, const char *word)
{
	return t->kind == TOKEN_WORD && t->length == strlen(word) &&
	       memcmp(p->out->text + t->at, word, t->length) == 0;
}

static int take(struct parser *p, enum token_kind kind, const char *what)
{
	return p->token.kind == kind ? advance(p) : expected(p, &p->token, what);
}

/* --- grammar: every function starts at p->token and leaves it behind what it took ----------- */

static int parse_or(struct parser *p);

/* There is always room: no step comes from less than one byte of text. */
static struct step *emit(struct parser *p, enum op op, const struct token *key)
{
	struct step *s = &p->out->steps[p->out->n_steps++];

	*s = (struct step){ .op = (uint16_t)op };
	if (key) {
		s->at = (uint16_t)key->at;
		s->length = (uint16_t)key->length;
	}
	return s;
}

static int parse_value(struct parser *p, struct step *in, const char *what)
{
	struct step *value;

	if (p->token.kind != TOKEN_STRING)
		return expected(p, &p->token, what);
	value = emit(p, OP_VALUE, &p->token);
	value->at += 1; /* without the quotes */
	value->length -= 2;
	in->n_values++;
	return advance(p);
}

static int parse_set(struct parser *p, struct step *in)
{
	int r = take(p, TOKEN_SET_OPEN, "\"{\"");

	if (r < 0)
		return r;
	if (p->token.kind == TOKEN_SET_CLOSE)
		return advance(p);

	r = parse_value(p, in, "a string in quotes or \"}\"");
	while (r == 0 && p->token.kind == TOKEN_COMMA) {
		r = advance(p);
		if (r == 0)
			r = parse_value(p, in, "a string in quotes");
	}
	return r < 0 ? r : take(p, TOKEN_SET_CLOSE, "\",\" or \"}\"");
}

static int parse_in(struct parser *p, const struct token *key)
{
	if (!is_word(p, &p->token, "in"))
		return expected(p, &p->token, "\"in\"");
	if (advance(p) < 0)
		return -EINVAL;
	return parse_set(p, emit(p, OP_IN, key));
}

static int parse_comparison(struct parser *p, const struct token *key)
{
	bool negate = p->token.kind == TOKEN_UNEQUAL || is_word(p, &p->token, "not");
	int r;

	if (p->token.kind == TOKEN_EQUAL || p->token.kind == TOKEN_UNEQUAL) {
		r = advance(p);
		if (r == 0)
			r = parse_value(p, emit(p, OP_IN, key), "a string in quotes");
	} else if (negate) {
		r = advance(p);
		if (r == 0)
			r = parse_in(p, key);
	} else if (is_word(p, &p->token, "in")) {
		r = parse_in(p, key);
	} else {
		r = expected(p, &p->token, "\"==\", \"!=\", \"in\" or \"not in\"");
	}
	if (r == 0 && negate)
		emit(p, OP_NOT, NULL);
	return r;
}

static int parse_has(struct parser *p)
{
	int r = advance(p); /* over the "(" */

	if (r < 0)
		return r;
	emit(p, OP_HAS, &p->token);
	r = take(p, TOKEN_WORD, "a key");
	return r < 0 ? r : take(p, TOKEN_CLOSE, "\")\"");
}

static int parse_all(struct parser *p)
{
	int r = advance(p); /* over the "(" */

	emit(p, OP_ALL, NULL);
	return r < 0 ? r : take(p, TOKEN_CLOSE, "\")\"");
}

static int parse_term(struct parser *p)
{
	struct token word = p->token;
	int r = take(p, TOKEN_WORD, "a key, \"!\" or \"(\"");

	if (r < 0)
		return r;
	if (p->token.kind == TOKEN_OPEN && is_word(p, &word, "has"))
		return parse_has(p);
	if (p->token.kind == TOKEN_OPEN && is_word(p, &word, "all"))
		return parse_all(p);
	return parse_comparison(p, &word);
}

static int parse_unary(struct parser *p)
{
	bool negate = p->token.kind == TOKEN_NOT;
	int r;

	if (!negate && p->token.kind != TOKEN_OPEN)
		return parse_term(p);
	if (p->depth == DEPTH_MAX)
		return err_set(p->err, -EINVAL, "column %zu: nested deeper than %d",
			       p->token.at + 1, DEPTH_MAX);

	p->depth++;
	r = advance(p);
	if (r == 0)
		r = negate ? parse_unary(p) : parse_or(p);
	if (r == 0 && negate)
		emit(p, OP_NOT, NULL);
	if (r == 0 && !negate)
		r = take(p, TOKEN_CLOSE, "\"&&\", \"||\" or \")\"");
	p->depth--;
	return r;
}

static int parse_and(struct parser *p)
{
	int r = parse_unary(p);

	while (r == 0 && p->token.kind == TOKEN_AND) {
		r = advance(p);
		if (r == 0)
			r = parse_unary(p);
		if (r == 0)
			emit(p, OP_AND, NULL);
	}
	return r;
}

static int parse_or(struct parser *p)
{
	int r = parse_and(p);

	while (r == 0 && p->token.kind == TOKEN_OR) {
		r = advance(p);
		if (r == 0)
			r = parse_and(p);
		if (r == 0)
			emit(p, OP_OR, NULL);
	}
	return r;
}

static int parse_whole(struct parser *p)
{
	int r = advance(p);

	if (r < 0)
		return r;
	if (p->token.kind == TOKEN_END) {
		emit(p, OP_ALL, NULL);
		return 0;
	}
	r = parse_or(p);
	return r < 0 ? r : take(p, TOKEN_END, "\"&&\", \"||\" or end of text");
}

static struct selector *selector_new(const char *text, size_t length)
{
	/* One step per byte at most, and one for the empty text. */
	size_t steps = (length + 1) * sizeof(struct step);
	struct selector *s = malloc(sizeof(*s) + steps + length + 1);
	char *copy;

	if (!s)
		return NULL;
	copy = (char *)s->steps + steps;
	memcpy(copy, text, length + 1);
	*s = (struct selector){ .text = copy };
	return s;
}

int selector_parse(const char *text, struct selector **ret, struct err *err)
{
	AUTO(selector_free) struct selector *s = NULL;
	size_t length = strnlen(text, LENGTH_MAX + 1);
	struct parser p = { .err = err };
	int r;

	if (length > LENGTH_MAX)
		return err_set(err, -EINVAL, "column %d: selector longer than %d bytes",
			       LENGTH_MAX + 1, LENGTH_MAX);
	s = p.out = selector_new(text, length);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	r = parse_whole(&p);
	if (r == 0)
		*ret = TAKE(s);
	return r;
}

void selector_free(struct selector *s)
{
	free(s);
}

/* --- evaluation ----------------------------------------------------------------------------- */

static bool is_text(const struct selector *s, const struct step *step, const char *text)
{
	return strncmp(s->text + step->at, text, step->length) == 0 && !text[step->length];
}

/* What a selector is asked about. */
struct subject {
	const struct labels *labels;
	const char *node; /* NULL: none */
};

static const char *label_value(const struct selector *s, const struct step *key,
			       const struct subject *of)
{
	if (of->node && is_text(s, key, LABEL_HOSTNAME))
		return of->node;
	for (size_t i = 0; i < of->labels->n; i++)
		if (is_text(s, key, of->labels->v[i].key))
			return of->labels->v[i].value;
	return NULL;
}

static bool in_set(const struct selector *s, const struct step *in, const struct subject *of)
{
	const char *value = label_value(s, in, of);

	for (unsigned i = 1; value && i <= in->n_values; i++)
		if (is_text(s, in + i, value))
			return true;
	return false;
}

static bool evaluate(const struct selector *s, const struct subject *of)
{
	bool stack[STACK_MAX] = { false };
	size_t n = 0;

	if (!s)
		return true;
	for (const struct step *step = s->steps; step < s->steps + s->n_steps; step++) {
		switch ((enum op)step->op) {
		case OP_ALL:
			stack[n++] = true;
			break;
		case OP_HAS:
			stack[n++] = label_value(s, step, of) != NULL;
			break;
		case OP_IN:
			stack[n++] = in_set(s, step, of);
			break;
		case OP_VALUE:
			break;
		case OP_NOT:
			stack[n - 1] = !stack[n - 1];
			break;
		case OP_AND:
			n--;
			stack[n - 1] = stack[n - 1] && stack[n];
			break;
		case OP_OR:
			n--;
			stack[n - 1] = stack[n - 1] || stack[n];
			break;
		}
	}
	return stack[0];
}

bool selector_matches(const struct selector *s, const struct labels *labels)
{
	return evaluate(s, &(struct subject){ .labels = labels });
}

bool selector_selects(const struct selector *s, const struct labels *labels, const char *node)
{
	return evaluate(s, &(struct subject){ .labels = labels, .node = node });
}
