/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of random steps against a model that is too simple to be wrong: an array entry for
 * each address. After every step all that can be seen of the allocator must agree with it.
 */
#include "ipam/allocator/fixture_test.h"

#include <errno.h>

#define LANES  3  /* default IPv4, lan IPv4, default IPv6 */
#define SIZE   64 /* addresses in each lane */
#define BLOCK  8  /* of these in a block */
#define PODS   60
#define STEPS  8000
#define COOLED SECONDS(60)

static const char *const lane_pool[LANES] = { "four", "lan", "six" };
static const char *const lane_network[LANES] = { "default", "lan", "default" };
static const char *const lane_base[LANES] = { "10.1.0.0", "10.1.0.0", "fd00::" };

struct model_address {
	unsigned holders;
	int64_t released; /* NEVER_USED */
};

struct model_pod {
	bool live;
	unsigned n;
	struct {
		unsigned lanes, i; /* a bit for each lane in which it counts */
	} held[4];
};

static struct model {
	struct model_address v[LANES][SIZE];
	int block[LANES][SIZE / BLOCK]; /* enum block_state, or -1 */
	struct model_pod pods[PODS];
	uint64_t seed;
} m;
static struct world w;

static unsigned chance(unsigned n)
{
	m.seed ^= m.seed << 13;
	m.seed ^= m.seed >> 7;
	m.seed ^= m.seed << 17;
	return (unsigned)(m.seed >> 33) % n;
}

static struct address address_at(unsigned lane, unsigned i)
{
	struct address a = address_from(lane_base[lane]), at;

	assert_int_equal(address_add(&a, i, &at), 0);
	return at;
}

static struct prefix block_at(unsigned lane, unsigned b)
{
	const struct address a = address_at(lane, b * BLOCK);

	return prefix_of(&a, a.family == AF_INET ? 29 : 125);
}

static const char *pod_name(unsigned pod)
{
	static char text[16];

	snprintf(text, sizeof(text), "c%u", pod);
	return text;
}

/* The pools exclude the third address of all. */
static bool allowed(unsigned i)
{
	return i != 3;
}

/* --- the model's own steps ------------------------------------------------------------------ */

static void hold(struct model_pod *p, unsigned lanes, unsigned i)
{
	p->held[p->n].lanes = lanes;
	p->held[p->n++].i = i;
	for (unsigned lane = 0; lane < LANES; lane++)
		if (lanes & 1U << lane)
			m.v[lane][i].holders++;
}

static void release(struct model_pod *p, const int64_t *at)
{
	for (unsigned h = 0; h < p->n; h++)
		for (unsigned lane = 0; lane < LANES; lane++) {
			struct model_address *a = &m.v[lane][p->held[h].i];

			if (!(p->held[h].lanes & 1U << lane))
				continue;
			if (--a->holders == 0)
				a->released = at ? at[h] : w.now;
		}
	*p = (struct model_pod){ 0 };
}

static bool rested(unsigned lane, unsigned i)
{
	return m.v[lane][i].released <= w.now - COOLED;
}

static bool is_free(unsigned lane, unsigned i, bool resting_too)
{
	return m.block[lane][i / BLOCK] == BLOCK_OWNED && allowed(i) && !m.v[lane][i].holders &&
	       (resting_too || rested(lane, i));
}

/* --- comparing ------------------------------------------------------------------------------ */

static void compare_block(unsigned lane, unsigned b)
{
	const struct prefix p = block_at(lane, b);
	const struct own_block *own = allocator_block(w.a, lane_network[lane], &p);
	struct address_counts got;
	unsigned used = 0, free = 0, resting = 0;

	if (m.block[lane][b] < 0) {
		assert_null(own);
		return;
	}
	assert_non_null(own);
	assert_int_equal(own->state, m.block[lane][b]);
	for (unsigned i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
		used += m.v[lane][i].holders > 0;
		free += is_free(lane, i, false);
		resting += is_free(lane, i, true) && !rested(lane, i);
	}
	got = allocator_block_counts(w.a, own, w.now);
	assert_int_equal(got.used, used);
	assert_int_equal(got.free, free);
	assert_int_equal(got.resting, resting);
}

static void compare(void)
{
	const struct attachments *t = allocator_attachments(w.a);
	size_t pods = 0, held = 0;

	for (unsigned i = 0; i < PODS; i++) {
		const struct attachment_key key = { "pods", pod_name(i), "eth0" };
		const struct attachment *x = allocator_find(w.a, &key);

		assert_int_equal(x != NULL, m.pods[i].live);
		if (!x)
			continue;
		pods++;
		held += m.pods[i].n;
		assert_int_equal(x->addresses.n, m.pods[i].n);
	}
	assert_int_equal(t->n, pods);
	assert_int_equal(t->held.n, held);
	for (size_t i = 1; i < t->held.n; i++)
		assert_true(
			address_compare(&t->held.v[i - 1]
						 .attachment->addresses.v[t->held.v[i - 1].index]
						 .address,
					&t->held.v[i]
						 .attachment->addresses.v[t->held.v[i].index]
						 .address) <= 0);
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned b = 0; b < SIZE / BLOCK; b++)
			compare_block(lane, b);
}

/* --- steps ---------------------------------------------------------------------------------- */

static unsigned lane_of(const struct held_address *h)
{
	if (h->address.family == AF_INET6)
		return 2;
	return strcmp(h->network, "lan") == 0;
}

static unsigned index_of(const struct held_address *h)
{
	return h->address.bytes[h->address.family == AF_INET6 ? 15 : 3];
}

/* It was free, and in its block nobody else has been free for longer. */
static void check_given(unsigned lane, unsigned i, bool certain, bool may_claim)
{
	const unsigned b = i / BLOCK;

	assert_true(is_free(lane, i, true));
	if (certain)
		return;
	/* One that rests only when nothing can be claimed. */
	if (may_claim && !rested(lane, i))
		for (unsigned k = 0; k < SIZE / BLOCK; k++)
			assert_true(m.block[lane][k] >= 0);
	for (unsigned j = b * BLOCK; j < (b + 1) * BLOCK; j++) {
		if (j == i || !is_free(lane, j, true))
			continue;
		assert_true(m.v[lane][j].released >= m.v[lane][i].released);
		if (m.v[lane][j].released == NEVER_USED)
			assert_true(j > i);
	}
	if (!rested(lane, i))
		for (unsigned j = 0; j < SIZE; j++)
			assert_false(is_free(lane, j, false));
}

/* A refusal or a need: then one of the lanes really has nothing. */
static void check_not_given(const unsigned *lanes, unsigned n, bool may_claim)
{
	bool lacking = false;

	for (unsigned l = 0; l < n; l++) {
		bool some = false;

		for (unsigned i = 0; i < SIZE; i++)
			some |= is_free(lanes[l], i, !may_claim);
		lacking |= !some;
	}
	assert_true(lacking);
}

static void step_assign(unsigned pod)
{
	const bool may_claim = chance(2), lan = chance(3) == 0, certain = chance(6) == 0;
	const unsigned lanes[] = { lan ? 1 : 0, 2 };
	const unsigned wanted = chance(SIZE);
	const struct assign_options options = { .may_claim = may_claim };
	const char *pools[] = { "lan" };
	struct address address = address_at(lanes[0], wanted);
	const struct assign_request q = {
		.network = "pods",
		.container = pod_name(pod),
		.interface = "eth0",
		.netns = "",
		.namespace = "",
		.pod = "",
		.uid = "",
		.pools = { pools, lan ? 1 : 0 },
		.addresses = { &address, certain ? 1 : 0 },
	};
	struct model_pod *p = &m.pods[pod];
	struct assign_result r;
	int64_t was[4] = { 0 };

	assert_int_equal(allocator_assign(w.a, &q, &options, w.now, &r), 0);
	assert_int_equal(r.verdict == ASSIGN_DONE && r.existing, p->live);
	if (r.verdict != ASSIGN_DONE && certain)
		assert_false(is_free(lanes[0], wanted, true));
	else if (r.verdict != ASSIGN_DONE)
		check_not_given(lanes, lan ? 1 : 2, may_claim);
	if (r.verdict == ASSIGN_DONE && !r.existing) {
		p->live = true;
		for (size_t i = 0; i < r.attachment->addresses.n; i++) {
			const struct held_address *h = &r.attachment->addresses.v[i];

			check_given(lane_of(h), index_of(h), certain, may_claim);
			was[i] = m.v[lane_of(h)][index_of(h)].released;
			assert_true(was[i] == h->was);
		}
		for (size_t i = 0; i < r.attachment->addresses.n; i++) {
			const struct held_address *h = &r.attachment->addresses.v[i];

			hold(p, 1U << lane_of(h), index_of(h));
		}
		assert_int_equal(p->n, lan || certain ? 1 : 2);
		if (chance(8) == 0) {
			const struct attachment_key key = { "pods", q.container, "eth0" };

			allocator_undo(w.a, &key, w.now);
			release(p, was);
		}
	}
	assign_result_done(&r);
}

static void step_release(unsigned pod)
{
	const struct attachment_key key = { "pods", pod_name(pod), "eth0" };
	struct attachment *x = allocator_release(w.a, &key, w.now);

	assert_int_equal(x != NULL, m.pods[pod].live);
	attachment_free(x);
	release(&m.pods[pod], NULL);
}

/* A file with whatever addresses, held by others or not, in a block or not. */
static void step_restore(unsigned pod)
{
	struct held_address v[2] = { { .pool = "x" }, { .pool = "x" } };
	const struct attachment like = { .network = "pods",
					 .container = pod_name(pod),
					 .interface = "eth0",
					 .addresses = { v, 1 + chance(2) } };
	struct model_pod *p = &m.pods[pod];
	struct attachment *x;
	unsigned wanted[2], bits[2];

	if (p->live)
		return;
	for (size_t i = 0; i < like.addresses.n; i++) {
		/* The second is always IPv6, so that no attachment holds one twice. */
		const unsigned lane = i ? 2 : chance(2);
		const bool any = chance(5) == 0;

		wanted[i] = chance(SIZE);
		bits[i] = lane == 2 ? 4 : any ? 3 : 1U << lane;
		v[i].address = address_at(lane, wanted[i]);
		v[i].network = any ? "" : lane_network[lane];
	}
	x = attachment_copy(&like);
	assert_non_null(x);
	assert_true(allocator_restore(w.a, x, NULL) >= 0);
	p->live = true;
	for (size_t i = 0; i < like.addresses.n; i++)
		hold(p, bits[i], wanted[i]);
}

static void forget_rest(unsigned lane, unsigned b)
{
	for (unsigned i = b * BLOCK; i < (b + 1) * BLOCK; i++)
		m.v[lane][i].released = NEVER_USED;
}

static void step_block(void)
{
	const unsigned lane = chance(LANES), b = chance(SIZE / BLOCK);
	const enum block_state state = chance(4) ? BLOCK_OWNED : chance(4);
	const struct prefix p = block_at(lane, b);
	bool used = false;
	int r;

	for (unsigned i = b * BLOCK; i < (b + 1) * BLOCK; i++)
		used |= m.v[lane][i].holders > 0;
	if (chance(3)) {
		if (m.block[lane][b] < 0)
			forget_rest(lane, b);
		assert_int_equal(allocator_block_set(w.a, lane_network[lane], lane_pool[lane], &p,
						     state, w.now, NULL),
				 0);
		m.block[lane][b] = (int)state;
		return;
	}
	r = allocator_block_remove(w.a, lane_network[lane], &p);
	assert_int_equal(r, m.block[lane][b] < 0 ? -ENOENT : used ? -EBUSY : 0);
	if (r == 0)
		m.block[lane][b] = -1;
}

/* Files and blocks survive, how long addresses have rested does not. */
static void step_restart(void)
{
	const struct attachments *t = allocator_attachments(w.a);
	struct attachment *files[PODS];
	const size_t n = t->n;

	for (size_t i = 0; i < n; i++)
		assert_non_null(files[i] = attachment_copy(t->v[i]));
	allocator_free(w.a);
	w.a = allocator_new();
	world_configure(&w);
	for (size_t i = 0; i < n / 2; i++)
		assert_true(allocator_restore(w.a, files[i], NULL) >= 0);
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned b = 0; b < SIZE / BLOCK; b++) {
			const struct prefix p = block_at(lane, b);

			forget_rest(lane, b);
			if (m.block[lane][b] >= 0)
				allocator_block_set(w.a, lane_network[lane], lane_pool[lane], &p,
						    (enum block_state)m.block[lane][b], w.now,
						    NULL);
		}
	for (size_t i = n / 2; i < n; i++)
		assert_true(allocator_restore(w.a, files[i], NULL) >= 0);
}

static void step(void)
{
	const unsigned pod = chance(PODS), kind = chance(100);

	if (kind < 50)
		step_assign(pod);
	else if (kind < 85)
		step_release(pod);
	else if (kind < 88)
		step_restore(pod);
	else if (kind < 99)
		step_block();
	else if (chance(4) == 0)
		step_restart();
	w.now += SECONDS(chance(20) ? chance(3) : chance(90));
}

static void random_steps_agree_with_the_model(void **unused)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		memset(&m, 0, sizeof(m));
		m.seed = seed * 0x9e3779b97f4a7c15;
		memset(m.block, -1, sizeof(m.block));
		for (unsigned lane = 0; lane < LANES; lane++)
			for (unsigned b = 0; b < SIZE / BLOCK; b++)
				forget_rest(lane, b);
		world_open(&w);
		world_pool(
			&w, "four",
			"{\"cidr\":\"10.1.0.0/26\",\"blockSize\":29,\"exclude\":[\"10.1.0.3\"]}");
		world_pool(&w, "lan",
			   "{\"cidr\":\"10.1.0.0/26\",\"blockSize\":29,\"exclude\":[\"10.1.0.3\"],"
			   "\"network\":\"lan\"}");
		world_pool(&w, "six",
			   "{\"cidr\":\"fd00::/122\",\"blockSize\":125,\"exclude\":[\"fd00::3\"]}");
		for (int i = 0; i < STEPS; i++) {
			step();
			compare();
		}
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_steps_agree_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
