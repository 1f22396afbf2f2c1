/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/pin.h"

#include <errno.h>
#include <string.h>

#include "lib/base/files.h"
#include "lib/json/fields.h"

#define PIN_SIZE_MAX 4096

/* --- the text, pure -------------------------------------------------------------------------- */

/* A struct of its own, because fields.h wants texts as pointers. */
struct pinned {
	const char *name, *boot, *reason;
	struct prefix ipv4, ipv6;
	struct address router_id;
};

static int reason_check(const char *text, struct err *err)
{
	return strlen(text) < REASON_TEXT ? 0 : err_set(err, -EINVAL, "the reason is too long");
}

static const struct field pin_fields[] = {
	{ FIELD(pinned, name, "name", text), .required = true, .check = node_name_check },
	{ FIELD(pinned, boot, "boot", text), .required = true, .check = id_check },
	{ FIELD(pinned, ipv4, "ipv4", host_prefix), .family = AF_INET },
	{ FIELD(pinned, ipv6, "ipv6", host_prefix), .family = AF_INET6 },
	{ FIELD(pinned, router_id, "routerId", address), .required = true, .family = AF_INET },
	{ FIELD(pinned, reason, "reason", text), .check = reason_check },
};
#define N_FIELDS ARRAY_SIZE(pin_fields)

static void pinned_done_auto(struct pinned *p)
{
	fields_done(pin_fields, N_FIELDS, p);
}

static int check(const struct pinned *p, struct err *err)
{
	if (!p->ipv4.address.family && !p->ipv6.address.family)
		return err_set(err, -EINVAL, "it names no address");
	if (address_is_unspecified(&p->router_id))
		return err_set(err, -EINVAL, "field \"routerId\": 0.0.0.0 is none");
	return 0;
}

int pin_decode(const char *text, size_t len, struct identity *ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO(pinned_done) struct pinned p = { 0 };
	struct json_at root;
	int r = json_parse(text, len, &object, err);

	if (r < 0)
		return r;
	root = json_root(object, err);
	r = fields_init(pin_fields, N_FIELDS, &p);
	r = r ?: fields_read(pin_fields, N_FIELDS, &root, &p);
	r = r ?: check(&p, err);
	if (r < 0)
		return r;
	snprintf(ret->name, sizeof(ret->name), "%s", p.name);
	snprintf(ret->boot, sizeof(ret->boot), "%s", p.boot);
	snprintf(ret->reason, sizeof(ret->reason), "%s", p.reason ?: "");
	ret->ipv4 = p.ipv4;
	ret->ipv6 = p.ipv6;
	ret->router_id = p.router_id;
	return 0;
}

int pin_encode(const struct identity *id, char **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	static const struct pinned usual;
	const struct pinned p = { .name = id->name,
				  .boot = id->boot,
				  .reason = id->reason,
				  .ipv4 = id->ipv4,
				  .ipv6 = id->ipv6,
				  .router_id = id->router_id };
	int r;

	if (!object)
		return -ENOMEM;
	r = fields_write(pin_fields, N_FIELDS, &p, &usual, object);
	return r < 0 ? r : json_print(object, ret);
}

/* --- the file -------------------------------------------------------------------------------- */

int pin_read(const char *run_dir, struct identity *id, struct err *err)
{
	AUTO(close) int dir = dir_open(run_dir);
	struct identity found = *id;
	AUTO(free) char *text = NULL;
	size_t len;
	int r = dir < 0 ? dir : file_read(dir, PIN_FILE, PIN_SIZE_MAX, &text, &len);

	if (r == -ENOENT)
		return 0;
	/* Neither a file nor a small one: it is not what we wrote. */
	if (r == -EFBIG || r == -ELOOP)
		r = -EINVAL;
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", run_dir, PIN_FILE,
			       r == -EINVAL ? "is not the file we wrote" : strerror(-r));
	r = pin_decode(text, len, &found, err);
	if (r < 0)
		return err_wrap(err, r, "%s/%s is damaged", run_dir, PIN_FILE);
	if (strcmp(found.boot, id->boot) != 0)
		return 0;
	*id = found;
	return 1;
}

int pin_write(const char *run_dir, const struct identity *id, struct err *err)
{
	AUTO(close) int dir = dir_open(run_dir);
	AUTO(free) char *text = NULL;
	int r = dir < 0 ? dir : pin_encode(id, &text);

	if (r == 0)
		r = file_publish(dir, PIN_FILE, 0600, text, strlen(text));
	return r < 0 ? err_set(err, r, "%s/%s: %s", run_dir, PIN_FILE, strerror(-r)) : 0;
}
