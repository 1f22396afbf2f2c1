/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/mirror.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/json/json.h"
#include "lib/model/model.h"

void mirror_done(struct mirror *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i]);
	array_done(m);
	m->revision = 0;
}

/* --- what is kept of a value ---------------------------------------------------------------- */

#define FULL "pool-full/"

/* What the agent says of pools in its health: [{"part": "pool-full/web", ...}]. */
static char *full_pools(const char *value, size_t len)
{
	AUTO(json_put) struct json_object *status = NULL;
	struct json_object *health = NULL, *part;
	AUTO(free) char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (json_parse(value, len, &status, NULL) < 0 ||
	    !json_object_object_get_ex(status, "health", &health) ||
	    !json_object_is_type(health, json_type_array))
		return strdup("");
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; i < json_object_array_length(health); i++) {
		struct json_object *entry = json_object_array_get_idx(health, i);
		const char *name;

		if (!json_object_is_type(entry, json_type_object) ||
		    !json_object_object_get_ex(entry, "part", &part))
			continue;
		name = json_object_get_string(part);
		if (name && strncmp(name, FULL, strlen(FULL)) == 0)
			fprintf(out, "%s ", name + strlen(FULL));
	}
	return fclose(out) == 0 ? TAKE(text) : NULL;
}

static int short_address(const char *key, const struct store_kv *kv, char **ret)
{
	AUTO_DONE(address_record_done) struct address_record record = { 0 };
	struct address_record kept;
	int r = address_record_decode(key, kv->value, kv->value_len, &record, NULL);

	/* As it is: whoever looks at it says what is wrong with it. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	kept = (struct address_record){ .boot = record.boot, .reserved = record.reserved };
	return address_record_encode(&kept, ret);
}

static int owner_of(const char *key, const struct store_kv *kv, char **ret)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	int r = block_decode(key, kv->value, kv->value_len, &block, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	*ret = strdup(block.node);
	return *ret ? 0 : -ENOMEM;
}

/* Of a report on a static route: "applied", "error", or neither. */
static int short_report(const char *key, const struct store_kv *kv, char **ret_value,
			char **ret_note)
{
	AUTO_DONE(static_route_status_done) struct static_route_status status = { 0 };
	int r = static_route_status_decode(key, kv->value, kv->value_len, &status, NULL);
	bool wrong = r < 0;

	if (r == -ENOMEM)
		return r;
	*ret_note = strdup(wrong || status.error[0]       ? "error"
			   : status.subnet.address.family ? "applied"
							  : "");
	/* As it is: whoever looks at it says what is wrong with it. */
	if (!wrong)
		*ret_value = strdup("{}");
	return *ret_note && (wrong || *ret_value) ? 0 : -ENOMEM;
}

static int shorten(const char *key, enum key_kind kind, const struct store_kv *kv, char **ret_value,
		   char **ret_note)
{
	switch (kind) {
	case KEY_ADDRESS:
		return short_address(key, kv, ret_value);
	case KEY_BLOCK:
		return owner_of(key, kv, ret_note);
	case KEY_STATUS_NODE:
		*ret_value = strdup("{}");
		*ret_note = full_pools(kv->value, kv->value_len);
		return *ret_value && *ret_note ? 0 : -ENOMEM;
	case KEY_STATUS_STATIC_ROUTE:
		return short_report(key, kv, ret_value, ret_note);
	default:
		return 0;
	}
}

static int make(const char *key, const struct store_kv *kv, struct mirrored **ret)
{
	AUTO(free) char *value = NULL, *note = NULL;
	struct mirrored *e;
	struct key parsed;
	enum key_kind kind = key_parse(key, &parsed) < 0 ? KEY_KINDS : parsed.kind;
	size_t key_size = strlen(key) + 1, value_len, note_size;
	int r = shorten(key, kind, kv, &value, &note);

	if (r < 0)
		return r;
	value_len = value ? strlen(value) : kv->value_len;
	note_size = note ? strlen(note) + 1 : 0;
	e = malloc(sizeof(*e) + key_size + value_len + 1 + note_size);
	if (!e)
		return -ENOMEM;
	e->kv = *kv;
	e->kind = kind;
	e->kv.key = memcpy(e->text, key, key_size);
	e->kv.value = memcpy(e->text + key_size, value ?: kv->value, value_len);
	e->text[key_size + value_len] = '\0';
	e->kv.value_len = value_len;
	e->note = note ? memcpy(e->text + key_size + value_len + 1, note, note_size) : NULL;
	*ret = e;
	return 0;
}

/* --- the table ------------------------------------------------------------------------------ */

size_t mirror_from(const struct mirror *m, const char *key)
{
	/* Lists come in order. */
	if (m->n && strcmp(m->v[m->n - 1]->kv.key, key) < 0)
		return m->n;
	return array_place(m->v, m->n, e, strcmp((*e)->kv.key, key));
}

const struct mirrored *mirror_at(const struct mirror *m, size_t i, const char *beginning)
{
	return i < m->n && strncmp(m->v[i]->kv.key, beginning, strlen(beginning)) == 0 ? m->v[i]
										       : NULL;
}

size_t mirror_count(const struct mirror *m, const char *beginning)
{
	size_t first = mirror_from(m, beginning), i = first;

	while (mirror_at(m, i, beginning))
		i++;
	return i - first;
}

static bool is_at(const struct mirror *m, size_t i, const char *key)
{
	return i < m->n && strcmp(m->v[i]->kv.key, key) == 0;
}

const struct mirrored *mirror_find(const struct mirror *m, const char *key)
{
	size_t i = mirror_from(m, key);

	return is_at(m, i, key) ? m->v[i] : NULL;
}

int mirror_put(struct mirror *m, const char *key, const struct store_kv *kv)
{
	struct mirrored *e = NULL;
	size_t i = mirror_from(m, key);
	int r = make(key, kv, &e);

	if (r < 0)
		return r;
	if (is_at(m, i, key)) {
		free(m->v[i]);
	} else if (!array_insert(m, i)) {
		free(e);
		return -ENOMEM;
	}
	m->v[i] = e;
	return 0;
}

void mirror_delete(struct mirror *m, const char *key)
{
	size_t i = mirror_from(m, key);

	if (!is_at(m, i, key))
		return;
	free(m->v[i]);
	array_remove(m, i);
}

int mirror_kvs(const struct mirror *m, struct store_kv **ret)
{
	struct store_kv *v = calloc(m->n ?: 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		v[i] = m->v[i]->kv;
	*ret = v;
	return 0;
}

const char *mirrored_name(const struct mirrored *e)
{
	return strrchr(e->kv.key, '/') + 1;
}
