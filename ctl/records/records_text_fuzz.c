/* SPDX-License-Identifier: Apache-2.0 */
/* The text of apply, and each of its lines as FIELD=VALUE of a record. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/records/assign.h"
#include "ctl/records/records_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int see(const struct kind *kind, const char *name, struct json_object *fields, void *arg,
	       struct err *err)
{
	char key[KEY_TEXT], field[128];

	kind_key(kind, name, key, err);
	if (assign_unknown(record_of(kind->key), fields, field))
		assign_refuse_unknown(record_of(kind->key), field, err);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct record *const types[] = { &pool_record, &config_record, &spec_record,
						      &filter_record };
	AUTO(json_put) struct json_object *object = json_object_new_object();
	AUTO(free) char *text = malloc(size + 1);
	struct err err = { "" };
	char *rest = text;

	if (!text || !object)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	records_text(text, size, see, NULL, &err);
	for (char *word; (word = strsep(&rest, "\n"));)
		assign(types[size % ARRAY_SIZE(types)], word, object, &err);
	return 0;
}
