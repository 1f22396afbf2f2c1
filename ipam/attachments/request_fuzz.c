/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte picks the body. An assign that decodes is also asked of an allocator with a few
 * pools and blocks: it must answer, and whatever it gives must lie in a block and be released.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipam/allocator/allocator.h"

static struct allocator *world;
static struct pool pools[3];
static struct pool_input input[3];

static void must(int r)
{
	if (r < 0)
		abort();
}

static void open_world(void)
{
	static const char *const json[] = {
		"{\"cidr\":\"10.1.0.0/24\",\"exclude\":[\"10.1.0.3\"]}",
		"{\"cidr\":\"fd00:1::/64\",\"blockSize\":80}",
		"{\"cidr\":\"10.5.0.0/24\",\"origin\":\"ipam-config\",\"prefix\":\"pool\"}",
	};
	static const char *const keys[] = { "pool/a", "pool/b", "pool/c" };
	static const char *const blocks[] = { "10.1.0.0/26", "fd00:1::/80", "10.5.0.64/26" };
	struct pools_input in = { .pools = input, .n_pools = 3, .node = "n1" };
	struct prefix p;

	world = allocator_new();
	for (size_t i = 0; i < 3; i++) {
		must(pool_decode(keys[i], json[i], strlen(json[i]), &pools[i], NULL));
		input[i] = (struct pool_input){ .name = pools[i].name, .pool = &pools[i] };
	}
	must(allocator_configure(world, &in));
	for (size_t i = 0; i < 3; i++) {
		must(prefix_parse(blocks[i], &p));
		must(allocator_block_set(world, "default", pools[i].name, &p, BLOCK_OWNED, 0,
					 NULL));
	}
}

static void ask(const struct assign_request *q, bool may_claim)
{
	const struct assign_options options = { .may_claim = may_claim };
	const struct attachment_key key = request_key(q);
	AUTO_DONE(assign_result_done) struct assign_result r = { 0 };
	struct attachment *x;

	must(allocator_assign(world, q, &options, 1, &r));
	if (r.verdict == ASSIGN_REFUSED && !r.why.text[0])
		abort();
	if (r.verdict == ASSIGN_NEED_POOL && name_check(r.make.name, NULL) < 0)
		abort();
	x = allocator_release(world, &key, 2);
	if ((r.verdict == ASSIGN_DONE) != (x != NULL) || (x && x->addresses.n == 0))
		abort();
	attachment_free(x);
	for (size_t i = 0; i < allocator_blocks(world)->n; i++)
		if (allocator_blocks(world)->v[i]->stock.used.n)
			abort();
}

#define TRY(noun, then)                                                                            \
	static void try_##noun(const char *json, size_t len)                                       \
	{                                                                                          \
		AUTO_DONE(noun##_done) struct noun r = { 0 };                                      \
		struct err err = { "" };                                                           \
                                                                                                   \
		if (noun##_decode(json, len, &r, &err) < 0) {                                      \
			if (!err.text[0])                                                          \
				abort();                                                           \
			return;                                                                    \
		}                                                                                  \
		then;                                                                              \
	}

TRY(assign_request, (ask(&r, true), ask(&r, false)))
TRY(release_request, (void)0)
TRY(check_request, (void)0)
TRY(gc_request, (void)0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const char *, size_t) = {
		try_assign_request,
		try_release_request,
		try_check_request,
		try_gc_request,
	};

	if (!world)
		open_world();
	if (size > 0)
		tries[data[0] % ARRAY_SIZE(tries)]((const char *)data + 1, size - 1);
	return 0;
}
