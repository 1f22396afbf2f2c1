/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file of any bytes is taken or refused with a sentence, and nothing leaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/daemon/options.h"

struct told {
	struct etcd_settings etcd;
	enum log_level log_level;
	unsigned log_format;
	uint32_t workers;
};

static const struct option_def defs[] = {
	OPTIONS_ETCD(told),
	OPTIONS_LOG(told),
	{ OPTION(told, workers, "workers", NUMBER), .initial = "1", .min = 1, .max = 64 },
};
static const struct option_table table = { .program = "fuzz",
					   .config_path = "/f",
					   .defs = defs,
					   .n = ARRAY_SIZE(defs),
					   .size = sizeof(struct told) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *const argv[] = { (char *)(uintptr_t) "fuzz", NULL };
	const struct option_sources from = { .argc = 1,
					     .argv = argv,
					     .file = (const char *)data,
					     .file_len = size,
					     .file_name = "f" };
	enum options_verb verb;
	struct err err = { "" };
	struct told t;
	int r = options_parse(&table, &from, &t, &verb, &err);

	if (r < 0 && !err.text[0])
		abort();
	if (r == 0 && (!t.etcd.endpoints || t.workers < 1 || t.workers > 64))
		abort();
	options_done(&table, &t);
	return 0;
}
