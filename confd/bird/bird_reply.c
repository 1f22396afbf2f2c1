/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KEEP_ROOM 65536

/* --- lines ---------------------------------------------------------------------------------- */

/* The code that a line starts with, or -1. */
static int code_of(const char *line)
{
	int code = 0;

	for (int i = 0; i < 4; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		code = code * 10 + (line[i] - '0');
	}
	return line[4] == '-' || line[4] == ' ' ? code : -1;
}

bool bird_line_next(const struct bird_reply *reply, struct bird_line *line)
{
	const char *start = reply->data + line->next;
	int code;

	if (line->next >= reply->len)
		return false;
	line->next += strlen(start) + 1;
	code = code_of(start);
	if (code >= 0)
		line->code = code;
	line->text = start + (code >= 0 ? 5 : 1);
	return true;
}

/* --- reader --------------------------------------------------------------------------------- */

static int make_room(struct bird_reader *r, size_t n)
{
	size_t room = r->room ?: 4096, max = r->max ?: BIRD_REPLY_MAX;
	char *grown;

	if (n > max - r->len)
		return -EMSGSIZE;
	if (r->len + n <= r->room)
		return 0;
	while (room < r->len + n)
		room *= 2;
	grown = realloc(r->data, room);
	if (!grown)
		return -ENOMEM;
	r->data = grown;
	r->room = room;
	return 0;
}

/* NULs end lines here, so one that came from outside is shown instead. */
static void append(struct bird_reader *r, const char *bytes, size_t n)
{
	char *to = r->data + r->len;

	memcpy(to, bytes, n);
	for (char *nul = memchr(to, '\0', n); nul; nul = memchr(nul, '\0', (size_t)(to + n - nul)))
		*nul = '?';
	r->len += n;
}

/* The line at r->line is whole, its LF a NUL. 1: it is the last one of its reply. */
static int take_line(struct bird_reader *r)
{
	const char *line = r->data + r->line;
	int code;

	if (line[0] == '+') {
		r->len = r->line;
		return 0;
	}
	if (line[0] == ' ') {
		if (!r->started)
			return -EBADMSG;
		r->line = r->len;
		return 0;
	}
	code = code_of(line);
	if (code < 0)
		return -EBADMSG;
	r->started = true;
	r->code = code;
	if (line[4] == ' ')
		return 1;
	r->line = r->len;
	return 0;
}

int bird_reader_feed(struct bird_reader *r, const char *bytes, size_t n, size_t *used,
		     struct bird_reply *ret)
{
	*used = 0;
	while (*used < n) {
		const char *from = bytes + *used;
		const char *lf = memchr(from, '\n', n - *used);
		size_t part = lf ? (size_t)(lf - from) + 1 : n - *used;
		int e = make_room(r, part);

		if (e < 0)
			return e;
		append(r, from, part);
		*used += part;
		if (!lf)
			return 0;
		r->data[r->len - 1] = '\0';
		e = take_line(r);
		if (e < 0)
			return e;
		if (e == 0)
			continue;
		*ret = (struct bird_reply){
			.code = r->code,
			.text = r->data + r->line + 5,
			.data = r->data,
			.len = r->len,
		};
		return 1;
	}
	return 0;
}

void bird_reader_next(struct bird_reader *r)
{
	if (r->room > KEEP_ROOM)
		bird_reader_done(r);
	r->len = r->line = 0;
	r->started = false;
	r->code = 0;
}

bool bird_reader_pending(const struct bird_reader *r)
{
	return r->len > 0;
}

void bird_reader_done(struct bird_reader *r)
{
	free(r->data);
	*r = (struct bird_reader){ .max = r->max };
}

/* --- words of a row, cut in place ----------------------------------------------------------- */

static const char blanks[] = " \t\r";

/* The next word of *rest, ended by a NUL; "" at the end. *rest moves behind it. */
static char *take_word(char **rest)
{
	char *word = *rest + strspn(*rest, blanks);
	char *end = word + strcspn(word, blanks);

	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

/* What is left, without blanks at either end. */
static char *trim(char *rest)
{
	size_t n;

	rest += strspn(rest, blanks);
	n = strlen(rest);
	while (n && strchr(blanks, rest[n - 1]))
		n--;
	rest[n] = '\0';
	return rest;
}

/* form has '0' for any digit. */
static bool starts_like(const char *word, const char *form)
{
	for (; *form; word++, form++)
		if (*form == '0' ? *word < '0' || *word > '9' : *word != *form)
			return false;
	return true;
}

/* "00:37:24.345", "2026-11-16", and "2026-11-16 00:37:24.345" in spite of its blank. */
static char *take_time(char **rest)
{
	char *word = take_word(rest);
	char *next = *rest;

	if (strlen(word) != 10 || !starts_like(word, "0000-00-00") ||
	    !starts_like(next, "00:00:00"))
		return word;
	take_word(rest);
	next[-1] = ' ';
	return word;
}

/* --- version -------------------------------------------------------------------------------- */

/* At most six digits: no version has more, and nothing overflows. */
static bool take_number(const char **text, unsigned *ret)
{
	unsigned n = 0, digits = 0;

	for (; **text >= '0' && **text <= '9' && digits < 6; (*text)++, digits++)
		n = n * 10 + (unsigned)(**text - '0');
	if (digits)
		*ret = n;
	return digits > 0;
}

int bird_version_parse(const char *text, struct bird_version *ret)
{
	struct bird_version v = { 0 };
	unsigned *const parts[] = { &v.major, &v.minor, &v.patch };

	if (strncmp(text, "BIRD ", 5) != 0)
		return -EBADMSG;
	text += 5;
	text += *text == 'v';
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!take_number(&text, parts[i]))
			return -EBADMSG;
		if (*text != '.')
			break;
		text++;
	}
	*ret = v;
	return 0;
}

/* --- show status ---------------------------------------------------------------------------- */

static void copy(char *to, const char *text)
{
	snprintf(to, BIRD_STATUS_TEXT, "%s", text);
}

static void take_fact(const char *text, struct bird_status *s)
{
	const struct {
		const char *start;
		char *to;
	} facts[] = {
		{ "Router ID is ", s->router_id },
		{ "Hostname is ", s->hostname },
		{ "Current server time is ", s->server_time },
		{ "Last reboot on ", s->last_reboot },
		{ "Last reconfiguration on ", s->last_reconfiguration },
	};

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		if (strncmp(text, facts[i].start, strlen(facts[i].start)) == 0)
			copy(facts[i].to, text + strlen(facts[i].start));
}

static void take_recovery(const char *text, struct bird_status *s)
{
	static const char waiting[] = "Waiting for ";

	s->recovering = true;
	text += strspn(text, " ");
	if (strncmp(text, waiting, strlen(waiting)) == 0) {
		text += strlen(waiting);
		take_number(&text, &s->waiting_for);
	}
}

int bird_status_parse(const struct bird_reply *reply, struct bird_status *ret)
{
	struct bird_status s = { .state = "" };
	struct bird_line line = { 0 };
	bool version = false;

	while (bird_line_next(reply, &line)) {
		switch (line.code) {
		case 1000:
			version = bird_version_parse(line.text, &s.version) == 0;
			break;
		case 1011:
			take_fact(line.text, &s);
			break;
		case 24:
			take_recovery(line.text, &s);
			break;
		case 13:
			copy(s.state, line.text);
			break;
		}
	}
	if (!version || !s.state[0])
		return -EBADMSG;
	*ret = s;
	return 0;
}

static int time_ms(const char *text, int64_t *ret)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
	unsigned ms = 0;

	if (!end)
		return -EBADMSG;
	if (*end == '.') {
		const char *digits = ++end;

		if (!take_number(&end, &ms) || end != digits + 3)
			return -EBADMSG;
	}
	*ret = (int64_t)timegm(&tm) * 1000 + ms;
	return *end ? -EBADMSG : 0;
}

int bird_status_age_ms(const struct bird_status *s, int64_t *ret)
{
	int64_t now, then;

	if (time_ms(s->server_time, &now) < 0 || time_ms(s->last_reconfiguration, &then) < 0)
		return -EBADMSG;
	*ret = now - then;
	return 0;
}

/* --- configure ------------------------------------------------------------------------------ */

const char *bird_progress_name(enum bird_progress p)
{
	static const char *const names[] = {
		[BIRD_PROGRESS_DONE] = "done",       [BIRD_PROGRESS_RUNNING] = "running",
		[BIRD_PROGRESS_QUEUED] = "queued",   [BIRD_PROGRESS_SHUTDOWN] = "shutdown",
		[BIRD_PROGRESS_REFUSED] = "refused", [BIRD_PROGRESS_DENIED] = "denied",
		[BIRD_PROGRESS_UNKNOWN] = "unknown",
	};

	return names[p];
}

static enum bird_progress progress_of(int code)
{
	switch (code) {
	case BIRD_RECONFIGURED:
		return BIRD_PROGRESS_DONE;
	case BIRD_IN_PROGRESS:
		return BIRD_PROGRESS_RUNNING;
	case BIRD_QUEUED:
		return BIRD_PROGRESS_QUEUED;
	case BIRD_SHUTTING_DOWN:
		return BIRD_PROGRESS_SHUTDOWN;
	case BIRD_REFUSED:
		return BIRD_PROGRESS_REFUSED;
	case BIRD_DENIED:
		return BIRD_PROGRESS_DENIED;
	default:
		return BIRD_PROGRESS_UNKNOWN;
	}
}

enum bird_progress bird_configure_parse(const struct bird_reply *reply)
{
	return progress_of(reply->code);
}

enum bird_progress bird_configure_status_parse(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };

	/* "0003-Daemon is up and running", then perhaps an unconfirmed undo, then "0000 ". */
	return bird_line_next(reply, &line) ? progress_of(line.code) : BIRD_PROGRESS_UNKNOWN;
}

/* --- show protocols ------------------------------------------------------------------------- */

enum { PROTOCOL_ROW = 1002, PROTOCOL_DETAIL = 1006 };

static char nothing[] = "";

/* Room for one more; the arrays double at the powers of two. */
static int grow(void **v, size_t n, size_t size)
{
	void *grown;

	if (n & (n - 1))
		return 0;
	grown = reallocarray(*v, n ? 2 * n : 1, size);
	if (!grown)
		return -ENOMEM;
	*v = grown;
	return 0;
}

static int add_protocol(struct bird_protocols *list, const struct bird_protocol *p)
{
	void *v = list->v;
	int r = grow(&v, list->n, sizeof(*p));

	if (r < 0)
		return r;
	list->v = v;
	list->v[list->n++] = *p;
	return 0;
}

static int add_channel(struct bird_protocols *list, const char *name)
{
	void *v = list->channels;
	int r = grow(&v, list->n_channels, sizeof(*list->channels));

	if (r < 0)
		return r;
	list->channels = v;
	list->channels[list->n_channels++] = (struct bird_channel){ .name = name,
								    .state = nothing,
								    .table = nothing };
	list->v[list->n - 1].n_channels++;
	return 0;
}

/* BGP's info begins with the session's state, then perhaps comes the last error. */
static const char *state_in(const char *info)
{
	static const char *const states[] = { "Established", "Passive", "Active",
					      "Connect",     "Idle",    "OpenSent",
					      "OpenConfirm", "Close",   "Down" };
	size_t n = strcspn(info, " ");

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (strlen(states[i]) == n && strncmp(info, states[i], n) == 0)
			return states[i];
	return nothing;
}

static int take_row(struct bird_protocols *list, char *row)
{
	struct bird_protocol p = {
		.description = nothing,
		.neighbor = nothing,
		.neighbor_id = nothing,
		.source = nothing,
		.last_error = nothing,
		.first_channel = list->n_channels,
	};

	p.name = take_word(&row);
	p.proto = take_word(&row);
	p.table = take_word(&row);
	p.state = take_word(&row);
	p.since = take_time(&row);
	p.info = trim(row);
	if (!p.since[0])
		return -EBADMSG;
	p.bgp_state = strcmp(p.proto, "BGP") == 0 ? state_in(p.info) : nothing;
	return add_protocol(list, &p);
}

static uint32_t number_of(const char *text)
{
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9' && n <= UINT32_MAX; text++)
		n = n * 10 + (unsigned)(*text - '0');
	return n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void take_protocol_detail(struct bird_protocol *p, const char *key, const char *value)
{
	const struct {
		const char *key;
		const char **text;
		uint32_t *number;
	} known[] = {
		{ "Description", &p->description, NULL },
		{ "BGP state", &p->bgp_state, NULL },
		{ "Neighbor address", &p->neighbor, NULL },
		{ "Neighbor range", &p->neighbor, NULL },
		{ "Neighbor ID", &p->neighbor_id, NULL },
		{ "Source address", &p->source, NULL },
		{ "Last error", &p->last_error, NULL },
		{ "Neighbor AS", NULL, &p->neighbor_as },
		{ "Local AS", NULL, &p->local_as },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(key, known[i].key) != 0)
			continue;
		if (known[i].text)
			*known[i].text = value;
		else
			*known[i].number = number_of(value);
	}
}

/* "4 imported, 3 filtered, 5 exported, 2 preferred" */
static void take_counts(struct bird_channel *c, char *value)
{
	const struct {
		const char *name;
		uint64_t *to;
	} known[] = {
		{ "imported", &c->imported },
		{ "filtered", &c->filtered },
		{ "exported", &c->exported },
		{ "preferred", &c->preferred },
	};

	for (const char *number = take_word(&value); *number; number = take_word(&value)) {
		char *name = take_word(&value);

		name[strcspn(name, ",")] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			if (strcmp(name, known[i].name) == 0)
				*known[i].to = number_of(number);
	}
	c->counted = true;
}

static void take_channel_detail(struct bird_channel *c, const char *key, char *value)
{
	if (strcmp(key, "State") == 0)
		c->state = value;
	else if (strcmp(key, "Table") == 0)
		c->table = value;
	else if (strcmp(key, "Routes") == 0)
		take_counts(c, value);
}

static int take_detail(struct bird_protocols *list, char *text)
{
	static const char channel[] = "  Channel ";
	struct bird_protocol *p;
	char *colon;

	if (!list->n)
		return -EBADMSG;
	p = &list->v[list->n - 1];
	if (strncmp(text, channel, strlen(channel)) == 0)
		return add_channel(list, trim(text + strlen(channel)));
	colon = strchr(text, ':');
	if (!colon)
		return 0;
	*colon = '\0';
	if (p->n_channels)
		take_channel_detail(&list->channels[list->n_channels - 1], trim(text),
				    trim(colon + 1));
	else
		take_protocol_detail(p, trim(text), trim(colon + 1));
	return 0;
}

static int take_protocol_line(struct bird_protocols *list, int code, char *text)
{
	switch (code) {
	case PROTOCOL_ROW:
		return take_row(list, text);
	case PROTOCOL_DETAIL:
		return take_detail(list, text);
	case BIRD_LINE_OVERFLOW:
		list->overflows++;
		return 0;
	default:
		return 0;
	}
}

int bird_protocols_parse(const struct bird_reply *reply, struct bird_protocols *ret)
{
	AUTO_DONE(bird_protocols_done)
	struct bird_protocols list = { .text = malloc(reply->len + 1) };
	struct bird_reply copy = *reply;
	struct bird_line line = { 0 };

	if (!list.text)
		return -ENOMEM;
	if (bird_reply_failed(reply))
		return -EBADMSG;
	memcpy(list.text, reply->data, reply->len);
	copy.data = list.text;
	while (bird_line_next(&copy, &line)) {
		int r = take_protocol_line(&list, line.code, list.text + (line.text - list.text));

		if (r < 0)
			return r;
	}
	*ret = list;
	list = (struct bird_protocols){ 0 };
	return 0;
}

void bird_protocols_done(struct bird_protocols *p)
{
	free(p->v);
	free(p->channels);
	free(p->text);
	*p = (struct bird_protocols){ 0 };
}

const struct bird_protocol *bird_protocols_find(const struct bird_protocols *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->v[i].name, name) == 0)
			return &p->v[i];
	return NULL;
}

/* --- tables: six words to a row ------------------------------------------------------------- */

enum { BFD_ROW = 1020, OSPF_ROW = 1013, ROUTE_COUNT = 1007 };

/* Room for a record to each line, and one. */
static size_t count_lines(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };
	size_t n = 1;

	while (bird_line_next(reply, &line))
		n++;
	return n;
}

/* "bfd1:" begins a section, "bfd1: is not up" is all of one. NULL: neither. */
static char *section_of(char *text)
{
	size_t n;

	if (text[0] == ' ' || text[0] == '\t')
		return NULL;
	n = strcspn(text, " \t");
	if (n < 2 || text[n - 1] != ':')
		return NULL;
	if (text[n] && strcmp(text + n, " is not up") != 0)
		return NULL;
	text[n - 1] = '\0';
	return text;
}

static int take_table_row(struct bird_table *t, const char *protocol, char *text)
{
	struct bird_row row = { .protocol = protocol };

	for (size_t i = 0; i < BIRD_COLUMNS; i++)
		row.cell[i] = i == BIRD_BFD_SINCE ? take_time(&text) : take_word(&text);
	if (!row.cell[BIRD_COLUMNS - 1][0] || *trim(text))
		return -EBADMSG;
	t->v[t->n++] = row;
	return 0;
}

static int take_table(struct bird_table *t, const struct bird_reply *copy)
{
	struct bird_line line = { 0 };
	const char *protocol = NULL;
	bool heading = false;

	while (bird_line_next(copy, &line)) {
		char *text = t->text + (line.text - t->text), *section;

		if ((line.code != BFD_ROW && line.code != OSPF_ROW) || !text[strspn(text, " \t")])
			continue;
		section = section_of(text);
		if (section) {
			protocol = section;
			heading = true;
		} else if (heading) {
			heading = false;
		} else if (!protocol || take_table_row(t, protocol, text) < 0) {
			return -EBADMSG;
		}
	}
	return 0;
}

static bool says_none_runs(const struct bird_reply *reply)
{
	return strncmp(reply->text, "There is no ", 12) == 0 &&
	       strstr(reply->text, " protocol running");
}

int bird_table_parse(const struct bird_reply *reply, struct bird_table *ret)
{
	AUTO_DONE(bird_table_done)
	struct bird_table t = {
		.v = calloc(count_lines(reply), sizeof(*t.v)),
		.text = malloc(reply->len + 1),
	};
	struct bird_reply copy = *reply;
	int r;

	if (!t.v || !t.text)
		return -ENOMEM;
	if (bird_reply_failed(reply) && !says_none_runs(reply))
		return -EBADMSG;
	memcpy(t.text, reply->data, reply->len);
	copy.data = t.text;
	r = take_table(&t, &copy);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct bird_table){ 0 };
	return 0;
}

void bird_table_done(struct bird_table *t)
{
	free(t->v);
	free(t->text);
	*t = (struct bird_table){ 0 };
}

/* --- show route count ----------------------------------------------------------------------- */

static int take_count(struct bird_counts *c, const char *text)
{
	struct bird_count *to = &c->v[c->n];
	int end = 0;

	if (sscanf(text, "%*u of %" SCNu64 " routes for %" SCNu64 " networks in table %71s%n",
		   &to->routes, &to->networks, to->table, &end) != 3 ||
	    text[end])
		return -EBADMSG;
	c->n++;
	return 0;
}

int bird_counts_parse(const struct bird_reply *reply, struct bird_counts *ret)
{
	AUTO_DONE(bird_counts_done)
	struct bird_counts c = {
		.v = calloc(count_lines(reply), sizeof(*c.v)),
	};
	struct bird_line line = { 0 };

	if (!c.v)
		return -ENOMEM;
	if (bird_reply_failed(reply))
		return -EBADMSG;
	while (bird_line_next(reply, &line))
		if (line.code == ROUTE_COUNT && take_count(&c, line.text) < 0)
			return -EBADMSG;
	*ret = c;
	c = (struct bird_counts){ 0 };
	return 0;
}

void bird_counts_done(struct bird_counts *c)
{
	free(c->v);
	*c = (struct bird_counts){ 0 };
}
