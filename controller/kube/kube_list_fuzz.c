/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes, whole and in pieces, must come out as the same items, envelope and failure; what
 * comes out is read as Nodes and as a Status. The first byte seeds the pieces.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/kube/kube_list.h"
#include "controller/kube/kube_node.h"
#include "controller/kube/kube_reply.h"
#include "lib/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	size_t items, nodes;
	struct hash sum;
	int result;
};

static int on_item(struct json_object *item, void *arg)
{
	struct outcome *o = arg;
	struct kube_node node;
	struct err err = { "" };

	o->items++;
	if (kube_node_read(item, &node, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	o->nodes++;
	if (kube_node_digest(&node, &o->sum) < 0)
		abort();
	kube_node_done(&node);
	return 0;
}

static struct outcome split(const char *data, size_t size, unsigned seed)
{
	AUTO(json_put) struct json_object *envelope = NULL;
	AUTO(kube_list_free) struct kube_list *l = NULL;
	struct outcome o = { 0 };
	struct kube_status status;
	struct err err = { "" };

	if (kube_list_new(2000, on_item, &o, &l) < 0)
		abort();
	for (size_t i = 0; i < size && o.result == 0;) {
		size_t n = seed ? 1 + (seed = seed * 1103515245 + 12345) / 65536 % 9 : size;

		if (n > size - i)
			n = size - i;
		o.result = kube_list_feed(l, data + i, n, &err);
		i += n;
	}
	o.result = o.result ?: kube_list_end(l, &envelope, &err);
	if (o.result < 0 && !err.text[0])
		abort();
	kube_status_read(envelope, &status);
	kube_judge("get", "a", 0, &status, &err);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces;

	if (!size)
		return 0;
	whole = split((const char *)data + 1, size - 1, 0);
	pieces = split((const char *)data + 1, size - 1, data[0] + 1u);
	if (whole.items != pieces.items || whole.nodes != pieces.nodes ||
	    whole.sum.low != pieces.sum.low || whole.result != pieces.result)
		abort();
	return 0;
}
