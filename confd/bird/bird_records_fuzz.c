/* SPDX-License-Identifier: Apache-2.0 */
/* Any reply, to every parser: whatever is taken is whole and can be walked. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "confd/bird/bird_reply.h"

static size_t walked;

static void walk(const char *text)
{
	walked += strlen(text);
}

static void try_protocols(const struct bird_reply *reply)
{
	AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
	size_t channels = 0;

	if (bird_protocols_parse(reply, &list) < 0)
		return;
	for (size_t k = 0; k < list.n; k++) {
		const struct bird_protocol *p = &list.v[k];
		const char *const texts[] = { p->name,      p->proto,      p->table,
					      p->state,     p->since,      p->info,
					      p->neighbor,  p->source,     p->description,
					      p->bgp_state, p->last_error, p->neighbor_id };
		const struct bird_channel *c = bird_protocol_channels(&list, p);

		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			walk(texts[i]);
		if (p->first_channel != channels || !p->since[0])
			abort();
		channels += p->n_channels;
		for (size_t i = 0; i < p->n_channels; i++) {
			walk(c[i].name);
			walk(c[i].state);
			walk(c[i].table);
		}
	}
	if (channels != list.n_channels)
		abort();
}

static void try_tables(const struct bird_reply *reply)
{
	AUTO_DONE(bird_table_done) struct bird_table t = { 0 };
	AUTO_DONE(bird_counts_done) struct bird_counts c = { 0 };

	if (bird_table_parse(reply, &t) == 0)
		for (size_t i = 0; i < t.n; i++) {
			walk(t.v[i].protocol);
			for (size_t k = 0; k < BIRD_COLUMNS; k++)
				if (!t.v[i].cell[k][0])
					abort();
		}
	if (bird_counts_parse(reply, &c) == 0)
		for (size_t i = 0; i < c.n; i++)
			walk(c.v[i].table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
	struct bird_status status;
	struct bird_reply reply;
	size_t used;
	int e;

	/* What comes after a first reply is lost; a closing line makes more inputs whole. */
	e = bird_reader_feed(&r, (const char *)data, size, &used, &reply);
	if (e == 0)
		e = bird_reader_feed(&r, "\n0000 \n", 7, &used, &reply);
	if (e != 1)
		return 0;
	try_protocols(&reply);
	try_tables(&reply);
	if (bird_status_parse(&reply, &status) == 0)
		walk(status.state);
	bird_configure_parse(&reply);
	bird_configure_status_parse(&reply);
	return 0;
}
