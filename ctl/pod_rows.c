/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pod_rows.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/frame/out.h"
#include "lib/json/tree.h"

static PRINTF_LIKE(4, 5) int add(struct json_object *array, const char *part, const char *state,
				 const char *fmt, ...)
{
	AUTO(free) char *text = NULL;
	struct tree t = tree_new();
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	t.failed |= !text;
	tree_text(&t, "part", part);
	tree_text(&t, "state", state);
	tree_text(&t, "about", text);
	return tree_end_in(&t, array);
}

static size_t length(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static int add_addresses(struct json_object *x, struct json_object *array)
{
	struct json_object *all = out_at(x, "addresses");
	int r = 0;

	for (size_t i = 0; r == 0 && i < length(all); i++) {
		struct json_object *a = json_object_array_get_idx(all, i);

		r = add(array, "address", "ok", "%s of pool %s, given by %s at %s to container %s",
			out_text(a, "address"), out_text(a, "pool"), out_text(x, "ipam"),
			out_text(x, "since"), out_text(x, "container"));
	}
	return r;
}

static int add_link(struct json_object *x, struct json_object *array)
{
	const char *state = out_text(x, "state"), *link = out_text(x, "link");
	const char *lacks = out_text(x, "kernel");
	int r;

	if (strcmp(state, "attached") != 0)
		return add(array, "link", "warning", "interface %s is %s: %s",
			   out_text(x, "interface"), state,
			   strcmp(state, "releasing") == 0
				   ? "its link is being destroyed"
				   : "it has an address, but its plugin has not reported a link");
	r = add(array, "link", "ok", "interface %s, %s on this node", out_text(x, "interface"),
		link);
	if (r < 0)
		return r;
	if (*lacks)
		return add(array, "kernel", "error",
			   "%s; the agent repairs it within 90 s, see `roostctl status`", lacks);
	return add(array, "kernel", "ok", "routes, neighbours and settings of the link are set");
}

static int add_block(struct json_object *b, struct json_object *array)
{
	const char *block = out_text(b, "block"), *protocol = out_text(b, "protocol");
	long long up = out_number(b, "established"), n = out_number(b, "sessions");

	if (strcmp(out_text(b, "state"), "owned") != 0)
		return add(array, "announcement", "warning",
			   "block %s is %s: see `roostctl status`", block, out_text(b, "state"));
	if (!json_object_get_boolean(out_at(b, "managed")))
		return add(array, "announcement", "info",
			   "block %s: the agent does not manage BIRD", block);
	if (!json_object_get_boolean(out_at(b, "announced")))
		return add(array, "announcement", "info",
			   "block %s is not announced: its pool is not routed, has announce=false, "
			   "or another network",
			   block);
	if (strcmp(protocol, "bgp") != 0)
		return add(array, "announcement", "ok", "block %s is announced by %s", block,
			   protocol);
	return add(array, "announcement",
		   !n        ? "info"
		   : up == n ? "ok"
		   : up      ? "warning"
			     : "error",
		   "block %s is announced; %lld of %lld BGP sessions up%s", block, up, n,
		   up == n ? "" : ": `roostctl bgp`");
}

static int add_refusal(struct json_object *f, struct json_object *array)
{
	bool over = json_object_get_boolean(out_at(f, "over"));

	return add(array, "refusal", over ? "info" : "error", "%s, container %s: %s; %s%s",
		   out_text(f, "time"), out_text(f, "container"), out_text(f, "reason"),
		   out_text(f, "remedy"), over ? " (over)" : "");
}

int pod_rows(struct json_object *said, struct json_object *array)
{
	struct json_object *all = out_at(said, "attachments"), *refusals = out_at(said, "refusals");
	int r = 0;

	for (size_t i = 0; r == 0 && i < length(all); i++) {
		struct json_object *x = json_object_array_get_idx(all, i);
		struct json_object *blocks = out_at(x, "blocks");

		r = add_addresses(x, array);
		r = r ?: add_link(x, array);
		for (size_t k = 0; r == 0 && k < length(blocks); k++)
			r = add_block(json_object_array_get_idx(blocks, k), array);
	}
	for (size_t i = 0; r == 0 && i < length(refusals); i++)
		r = add_refusal(json_object_array_get_idx(refusals, i), array);
	return r;
}

static bool is_pod(struct json_object *row, const char *pod)
{
	const char *namespace = out_text(row, "namespace");
	const size_t n = strlen(namespace);

	return strcmp(out_text(row, "container"), pod) == 0 ||
	       (strncmp(namespace, pod, n) == 0 && pod[n] == '/' &&
		strcmp(out_text(row, "pod"), pod + n + 1) == 0);
}

int pod_rows_elsewhere(const char *pod, const char *self, struct json_object *rows,
		       struct json_object *array)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		const char *node = out_text(row, "node");

		if (is_pod(row, pod) && strcmp(node, self ?: "") != 0)
			r = add(array, "address", "info",
				"%s of pool %s is on node %s: run this command there",
				out_text(row, "address"), out_text(row, "pool"), node);
	}
	return r;
}
