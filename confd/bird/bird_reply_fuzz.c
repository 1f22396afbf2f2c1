/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte is the size of the pieces. Pieces or not, the replies are the same, their
 * lines lie within, and the last line's code is the reply's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "confd/bird/bird_reply.h"

#define MAX 4096

static void check(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };
	const char *last = NULL;

	while (bird_line_next(reply, &line)) {
		if (line.text < reply->data ||
		    line.text + strlen(line.text) >= reply->data + reply->len)
			abort();
		last = line.text;
	}
	if (last != reply->text || line.code != reply->code)
		abort();
}

/* A sum over everything that came out. */
static uint32_t read_all(const uint8_t *data, size_t size, size_t piece)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { .max = MAX };
	uint32_t sum = 0;

	for (size_t at = 0; at < size;) {
		size_t n = piece < size - at ? piece : size - at, used;
		struct bird_reply reply;
		int e = bird_reader_feed(&r, (const char *)data + at, n, &used, &reply);

		if (used > n || (e == 0 && used != n))
			abort();
		at += used;
		if (e < 0)
			return sum;
		if (e == 0)
			continue;
		check(&reply);
		for (size_t i = 0; i < reply.len; i++)
			sum = sum * 31 + (uint8_t)reply.data[i];
		bird_reader_next(&r);
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (read_all(data + 1, size - 1, data[0] + 1U) != read_all(data + 1, size - 1, size))
		abort();
	return 0;
}
