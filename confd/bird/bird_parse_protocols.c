/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_parse_protocols.h"

#include <errno.h>
#include <string.h>

#include "confd/bird/bird_words.h"

enum { ROW = 1002, DETAIL = 1006 };

static char nothing[] = "";

/* --- growing -------------------------------------------------------------------------------- */

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

/* --- rows ----------------------------------------------------------------------------------- */

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

	p.name = bird_word(&row);
	p.proto = bird_word(&row);
	p.table = bird_word(&row);
	p.state = bird_word(&row);
	p.since = bird_time(&row);
	p.info = bird_rest(row);
	if (!p.since[0])
		return -EBADMSG;
	p.bgp_state = strcmp(p.proto, "BGP") == 0 ? state_in(p.info) : nothing;
	return add_protocol(list, &p);
}

/* --- details -------------------------------------------------------------------------------- */

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

	for (const char *number = bird_word(&value); *number; number = bird_word(&value)) {
		char *name = bird_word(&value);

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
		return add_channel(list, bird_rest(text + strlen(channel)));
	colon = strchr(text, ':');
	if (!colon)
		return 0;
	*colon = '\0';
	if (p->n_channels)
		take_channel_detail(&list->channels[list->n_channels - 1], bird_rest(text),
				    bird_rest(colon + 1));
	else
		take_protocol_detail(p, bird_rest(text), bird_rest(colon + 1));
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

static int take_line(struct bird_protocols *list, int code, char *text)
{
	switch (code) {
	case ROW:
		return take_row(list, text);
	case DETAIL:
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
		int r = take_line(&list, line.code, list.text + (line.text - list.text));

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
