/* SPDX-License-Identifier: Apache-2.0 */
/* What roostctl notes of each command that writes. */
#include "lib/model/model.h"
#include "lib/model/record.h"

static const struct field change_fields[] = {
	{ FIELD(history_change, key, "key", text), .check = sentence_check, .required = true },
	{ FIELD(history_change, done, "done", text), .check = word_check },
};
static const struct field change = { ELEMENT_OBJECT(history_change, change_fields) };

static const struct field fields[] = {
	{ FIELD(history_entry, when, "when", time) },
	{ FIELD(history_entry, user, "user", text), .check = word_check },
	{ FIELD(history_entry, host, "host", text), .check = word_check },
	{ FIELD(history_entry, sudo_user, "sudoUser", text), .check = word_check },
	{ FIELD(history_entry, command, "command", text), .check = sentence_check },
	{ LIST(history_entry, changes, "changes", &change) },
};

static const struct record_part parts[] = { RECORD_PART(history_entry, name, text, name) };

const struct record history_record = {
	.kind = KEY_HISTORY,
	.size = sizeof(struct history_entry),
	.parts = parts,
	.n_parts = ARRAY_SIZE(parts),
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
};

RECORD_DEFINE(history_entry, history_record)
