/* SPDX-License-Identifier: Apache-2.0 */
/* pod why: all that is known of a pod, from the agent of its node; of another node's, where it is. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "ctl/addresses.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/pod_rows.h"

static const struct out_column columns[] = {
	COLUMN("PART", "part"),
	COLUMN("STATE", "state"),
	COLUMN("ABOUT", "about"),
	COLUMNS_END,
};

/* In the path of a request: what is neither letter, digit nor one of a few goes as %XX. */
static void put_escaped(char *to, size_t size, const char *text)
{
	size_t n = strlen(to);

	for (; *text && n + 4 < size; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._/", *text))
			to[n++] = *text;
		else
			n += (size_t)snprintf(to + n, size - n, "%%%02X", (unsigned char)*text);
	}
	to[n] = '\0';
}

/* Its address records in etcd name the node. Without etcd this node's word is all there is. */
static int find_elsewhere(struct ctl *ctl, const char *pod, struct json_object *array)
{
	AUTO(json_put) struct json_object *rows = NULL;
	struct err err = { "" };

	ctl->timeout_ms = 2000;
	if (addresses_read(ctl, NULL, NULL, &rows, &err) < 0)
		return 0;
	return pod_rows_elsewhere(pod, ctl->settings->node, rows, array);
}

static int read_pod(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO(json_put) struct json_object *said = NULL;
	char path[1024] = "/v1/pod?pod=";
	int r;

	put_escaped(path, sizeof(path), ctl->args[0]);
	r = array ? ctl_agent(ctl, "GET", path, NULL, NULL, &said, err) : -ENOMEM;
	r = r < 0 ? r : pod_rows(said, array);
	if (r == 0 && !json_object_array_length(out_at(said, "attachments")))
		r = find_elsewhere(ctl, ctl->args[0], array);
	if (r < 0)
		return r;
	*ret = TAKE(array);
	return 0;
}

const struct command_list pod_why = {
	.read = read_pod,
	.columns = columns,
	.none = "Nothing is known of this pod: it has no address on this node, was not refused "
		"lately, and etcd has no address of it. Has its runtime called roost at all? "
		"`kubectl describe pod`, `journalctl -u kubelet`",
};
