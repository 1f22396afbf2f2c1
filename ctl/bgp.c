/* SPDX-License-Identifier: Apache-2.0 */
/* bgp: the sessions of this node, from its agent, or of all nodes, from etcd. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/bgp_rows.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "lib/model/keys.h"

static const struct out_column columns[] = {
	COLUMN("NODE", "node"),
	COLUMN("SESSION", "session"),
	COLUMN("RECORD", "record"),
	COLUMN("PEER", "peer"),
	COLUMN("AS", "asn"),
	COLUMN("STATE", "state"),
	WIDE("UP", "up"),
	COLUMN("SINCE", "since"),
	COLUMN("IMPORTED", "imported"),
	COLUMN("EXPORTED", "exported"),
	COLUMN("AGE", "age"),
	COLUMN("ERROR", "error"),
	COLUMNS_END,
};

/* --- this node ------------------------------------------------------------------------------ */

static int read_own(struct ctl *ctl, struct json_object *array, struct err *err)
{
	AUTO(json_put) struct json_object *status = NULL;
	struct json_object *node;
	unsigned code = 0;
	int r = ctl_agent(ctl, "GET", "/v1/bgp", NULL, &code, &status, err);

	if (r < 0) {
		struct err said = *err;

		return err_set(err, r, "%s; see roostctl status; bgp --all reads from etcd",
			       said.text);
	}
	node = out_at(status, "node");
	r = bgp_rows(node ? json_object_get_string(node) : ctl->settings->node, status, array);
	return r;
}

/* --- all nodes ------------------------------------------------------------------------------ */

static int add_node(const char *node, const struct ctl_kv *kv, struct json_object *array)
{
	AUTO(json_put) struct json_object *status = NULL;

	/* What is no JSON tells as much as nothing. */
	if (kv)
		json_parse(kv->value, kv->value_len, &status, NULL);
	return bgp_rows(node, status, array);
}

static int read_all(struct ctl *ctl, struct json_object *array, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs nodes = { 0 };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs status = { 0 };
	int r = ctl_read(ctl, KEYS_NODE, &nodes, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_STATUS_NODE, &status, err);
	for (size_t i = 0; r == 0 && i < nodes.n; i++) {
		const char *name = nodes.v[i].key + strlen(KEYS_NODE);
		char key[KEY_TEXT];

		snprintf(key, sizeof(key), "%s%s", KEYS_STATUS_NODE, name);
		if (add_node(name, ctl_find(&status, key), array) < 0)
			r = -ENOMEM;
	}
	return r;
}

/* Of what other nodes reported. */
static int add_ages(struct json_object *array)
{
	const time_t now = time(NULL);

	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *row = json_object_array_get_idx(array, i);
		struct tm t = { 0 };
		char age[32];

		if (!strptime(out_text(row, "reported"), "%Y-%m-%dT%H:%M:%S", &t))
			continue;
		snprintf(age, sizeof(age), "%lld s", (long long)(now - timegm(&t)));
		if (json_object_object_add(row, "age", json_object_new_string(age)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_sessions(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	int r;

	if (!array)
		return -ENOMEM;
	r = ctl->settings->all ? read_all(ctl, array, err) : read_own(ctl, array, err);
	if (r < 0)
		return r;
	if (add_ages(array) < 0)
		return -ENOMEM;
	bgp_rows_sort(array);
	*ret = TAKE(array);
	return 0;
}

const struct command_list bgp_list = {
	.read = read_sessions,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_STATUS_NODE, KEYS_NODE, NULL },
	.none = "There are no nodes: no agent has registered yet.",
};
