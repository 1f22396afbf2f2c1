/* SPDX-License-Identifier: Apache-2.0 */
/* What the addresses' part tells about itself: the list, metrics, readiness, and two kinds of
 * health. */
#include "agent/addresses/ipam_state.h"

#include <errno.h>
#include <string.h>

/* --- the list ------------------------------------------------------------------------------- */

/* Its object stays open. */
static void begin_attachment(struct tree *t, const struct attachment *a)
{
	static const struct mac none;
	const uint8_t *b = a->mac.bytes;
	char mac[18] = "", time[TIME_TEXT] = "";

	if (memcmp(&a->mac, &none, sizeof(none)) != 0)
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
			 b[4], b[5]);
	tree_open(t, NULL, '{');
	tree_text(t, "network", a->network);
	tree_text(t, "container", a->container);
	tree_text(t, "interface", a->interface);
	tree_text(t, "namespace", a->namespace);
	tree_text(t, "pod", a->pod);
	tree_text(t, "netns", a->netns);
	tree_text(t, "link", a->link);
	tree_text(t, "mac", mac);
	tree_text(t, "ipam", a->ipam);
	tree_text(t, "state", attachment_state_name(a->state));
	tree_text(t, "since", a->assigned ? clock_utc_of_boottime(a->assigned, time) : "");
	tree_bool(t, "reserved", a->reserved);
	/* No file says so, only a route or a key in etcd. */
	tree_bool(t, "mark", attachment_is_mark(a));
	ipam_write_addresses(t, a);
}

static uint64_t small(address_count n)
{
	return n > INT64_MAX ? INT64_MAX : (uint64_t)n;
}

void ipam_list(struct ipam *m, struct serve_request *request)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	const struct blocks *own = allocator_blocks(m->allocator);
	struct tree t = tree_new();

	if (ipam_configure(m) < 0)
		log_warning("ipam", "out of memory: the list shows the pools as they were before");
	tree_open(&t, "attachments", '[');
	for (size_t i = 0; i < all->n; i++) {
		begin_attachment(&t, all->v[i]);
		tree_close(&t);
	}
	tree_close(&t);
	tree_open(&t, "blocks", '[');
	for (size_t i = 0; i < own->n; i++) {
		const struct own_block *b = own->v[i];
		struct address_counts n = allocator_block_counts(m->allocator, b, ipam_now());

		tree_open(&t, NULL, '{');
		tree_text(&t, "network", b->network);
		tree_prefix(&t, "block", &b->prefix);
		tree_text(&t, "pool", b->pool);
		tree_text(&t, "state", block_state_name(b->state));
		tree_number(&t, "used", (int64_t)small(n.used));
		tree_number(&t, "free", (int64_t)small(n.free));
		tree_number(&t, "resting", (int64_t)small(n.resting));
		tree_close(&t);
	}
	ipam_reply(request, &t);
}

/* --- a pod ---------------------------------------------------------------------------------- */

/* What the kernel lacks of it; "": nothing. */
static void check_in_kernel(struct ipam *m, const struct attachment *a, struct err *ret)
{
	AUTO(free) struct address *room = calloc(a->addresses.n ?: 1, sizeof(*room));
	struct kernel_pod pod = room ? ipam_kernel_pod(a, room) : (struct kernel_pod){ 0 };
	int r = room ? kernel_check(m->o.kernel, &pod, ret) : -ENOMEM;

	if (r == 0)
		ret->text[0] = '\0';
	else if (!ret->text[0])
		err_set(ret, r, "%s", strerrordesc_np(-r));
}

static void write_blocks(struct ipam *m, const struct attachment *a, struct tree *t,
			 ipam_block_fn *more, void *arg)
{
	tree_open(t, "blocks", '[');
	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct held_address *h = &a->addresses.v[i];
		const struct own_block *b = blocks_with(allocator_blocks(m->allocator), h->network,
							&h->address);

		if (!b)
			continue;
		tree_open(t, NULL, '{');
		tree_prefix(t, "block", &b->prefix);
		tree_text(t, "pool", b->pool);
		tree_text(t, "state", block_state_name(b->state));
		more(&b->prefix, t, arg);
		tree_close(t);
	}
	tree_close(t);
}

static bool is_pod(const struct attachment *a, const char *name)
{
	const size_t n = strlen(a->namespace);

	return strcmp(a->container, name) == 0 ||
	       (a->pod[0] && strncmp(a->namespace, name, n) == 0 && name[n] == '/' &&
		strcmp(a->pod, name + n + 1) == 0);
}

void ipam_show_pod(struct ipam *m, struct serve_request *request, ipam_block_fn *more, void *arg)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	const char *name = serve_query(request, "pod");
	struct tree t;

	if (!name || !*name) {
		serve_reply_error(request, 400, CNI_CODE_CONFIG, NULL,
				  "pod=NAMESPACE/POD, or pod=CONTAINER, is missing");
		return;
	}
	t = tree_new();
	tree_text(&t, "pod", name);
	tree_text(&t, "node", m->o.node);
	tree_open(&t, "attachments", '[');
	for (size_t i = 0; i < all->n; i++) {
		const struct attachment *a = all->v[i];
		struct err lacks = { "" };

		if (!is_pod(a, name))
			continue;
		begin_attachment(&t, a);
		if (a->state == ATTACHMENT_ATTACHED)
			check_in_kernel(m, a, &lacks);
		tree_text(&t, "kernel", lacks.text);
		write_blocks(m, a, &t, more, arg);
		tree_close(&t);
	}
	tree_close(&t);
	refusals_write(&m->refused_pods, name, &t);
	ipam_reply(request, &t);
}

/* --- drained, full -------------------------------------------------------------------------- */

size_t ipam_attachments(const struct ipam *m)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += !attachment_is_mark(all->v[i]) && !all->v[i]->reserved &&
		     all->v[i]->state != ATTACHMENT_RELEASING;
	return n;
}

static bool is_marked(const struct ipam *m)
{
	return m->o.marked && m->o.marked(m->o.arg);
}

bool ipam_drained(const struct ipam *m)
{
	return (m->inputs.spec && m->inputs.spec->drain) || is_marked(m);
}

void ipam_mark_changed(struct ipam *m)
{
	pass_mark(m->pass);
	m->o.changed(m->o.arg);
}

/* What ends the drain. */
static const char *undrain_text(const struct ipam *m, struct err *ret)
{
	if (is_marked(m))
		err_set(ret, 0,
			"it is being removed: `roost-install install`, or removing the file "
			"%s/" DRAIN_MARK ", ends that",
			m->o.run_dir);
	else
		err_set(ret, 0, "`roostctl node undrain %s` ends that", m->o.node);
	return ret->text;
}

const char *ipam_drained_text(const struct ipam *m, struct err *ret)
{
	struct err how = { "" };

	err_set(ret, 0, "node %s is drained and gives no new addresses; %s", m->o.node,
		undrain_text(m, &how));
	return ret->text;
}

static void tell_drain(struct ipam *m)
{
	size_t n = ipam_attachments(m);
	struct err how = { "" };

	if (!ipam_drained(m))
		health_clear(m->o.health, "drain");
	else
		health_set(m->o.health, "drain", LOG_LEVEL_INFO,
			   "node %s is drained: it gives no new addresses, %zu pod%s left; %s",
			   m->o.node, n, n == 1 ? " is" : "s are", undrain_text(m, &how));
}

/* Nothing more can be had here of a pool: "" or the sentence. */
static void full_text(const struct ipam *m, const struct pool_view *v, struct err *ret)
{
	uint32_t limit = v->pool->max_blocks_per_node;
	char shown[POOL_SHOW_TEXT];
	struct pool_counts c;

	/* Counting costs more than these. */
	if (!v->full_until && !limit)
		return;
	c = allocator_pool_counts(m->allocator, v->name, ipam_now());
	if (c.addresses.free + c.addresses.resting > 0)
		return;
	if (limit && c.blocks >= limit)
		err_set(ret, 0,
			"%s: all addresses of the %zu blocks that this node may have are in use; "
			"raise the pool's maxBlocksPerNode, or have pods on other nodes",
			pool_view_show(v, shown), c.blocks);
	else if (v->full_until)
		err_set(ret, 0,
			"%s is full: every block has an owner, and on this node no address of it "
			"is "
			"free; `roostctl ipam show --blocks` shows their owners: delete pods or "
			"nodes that are gone, or add a pool",
			pool_view_show(v, shown));
}

static void tell_full(struct ipam *m)
{
	const struct pool_views *views = allocator_pools(m->allocator);

	for (size_t i = 0; i < views->n; i++) {
		char part[HEALTH_PART];
		struct err text = { "" };

		if (!pool_view_serves(&views->v[i]))
			continue;
		full_text(m, &views->v[i], &text);
		snprintf(part, sizeof(part), "pool-full/%s", views->v[i].name);
		if (text.text[0])
			health_set(m->o.health, part, LOG_LEVEL_ERROR, "%s", text.text);
	}
	health_sweep(m->o.health, "pool-full/");
}

/* Until it went well, or nothing is wanted of etcd any more. */
static void tell_refused(struct ipam *m)
{
	if (!m->refused.set && !claims_busy(m->claims) && !m->answering && !m->recovery.call)
		m->refusal.text[0] = '\0';
	if (!behind_pending(m->behind))
		health_clear(m->o.health, "address-records");
	if (m->refusal.text[0])
		health_set(m->o.health, "blocks", LOG_LEVEL_ERROR,
			   "no block can be claimed or given back: %s", m->refusal.text);
	else
		health_clear(m->o.health, "blocks");
}

/* In minutes: as long as a runtime may need to try again. */
#define REFUSED_RECENTLY 5

void ipam_tell_refused_pods(struct ipam *m)
{
	const uint64_t window = (uint64_t)m->o.minute * REFUSED_RECENTLY,
		       now = timers_now(m->o.timers);
	char name[REFUSED_TEXT], others[64] = "";
	size_t pods;
	const struct refusal *f = refusals_recent(&m->refused_pods, now, window, &pods);

	if (!f) {
		timer_clear(m->o.timers, &m->refused_old);
		health_clear(m->o.health, "refused-pods");
		return;
	}
	refused_pod_print(&(struct refused_pod){ f->who[0], f->who[1], f->who[2], f->who[3] },
			  name);
	if (pods > 1)
		snprintf(others, sizeof(others), " (and %zu more)", pods - 1);
	health_set(m->o.health, "refused-pods", LOG_LEVEL_WARNING,
		   "pod %s%s was refused and has no address yet: %s; %s; `roostctl pod why %s`",
		   name, others, f->reason, refusal_remedy(f->code),
		   f->who[1][0] ? name : f->who[2]);
	timer_set(m->o.timers, &m->refused_old, f->at + window + 1 - now, 1000);
}

void ipam_on_refused_old(void *arg)
{
	ipam_tell_refused_pods(arg);
}

void ipam_tell(struct ipam *m)
{
	tell_drain(m);
	tell_full(m);
	tell_refused(m);
}

/* --- readiness ------------------------------------------------------------------------------ */

void ipam_readiness(struct ipam *m, struct readiness *ret)
{
	static const char *const names[INPUTS] = {
		[INPUT_POOLS] = "watch/pool",  [INPUT_EXTENTS] = "watch/extent",
		[INPUT_SPEC] = "watch/spec",   [INPUT_CONFIG] = "watch/config",
		[INPUT_HOST] = "watch/host",   [INPUT_RECOVERY] = "watch/recovery",
		[INPUT_NODES] = "watch/nodes",
	};
	struct err why = { "" };

	for (size_t i = 0; i < INPUTS; i++)
		readiness_add(ret, names[i], false,
			      records_in_sync(m->wants[i]) ? ""
							   : "etcd has not told all of it yet");
	readiness_add(ret, "files", false, health_reason(m->o.health, "files"));
	readiness_add(ret, "addresses", true, ipam_ready(m, &why) ? "" : why.text);
}

/* --- metrics -------------------------------------------------------------------------------- */

/* Addresses of this pool whose links are being destroyed; they count as used until then. */
static uint64_t releasing(const struct ipam *m, const char *pool)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	uint64_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < all->v[i]->addresses.n; k++)
			n += all->v[i]->state == ATTACHMENT_RELEASING &&
			     strcmp(all->v[i]->addresses.v[k].pool, pool) == 0;
	return n;
}

static void address_metrics(const struct ipam *m, struct metrics *ret)
{
	const struct pool_views *views = allocator_pools(m->allocator);

	metrics_family(ret, "roost_addresses", METRIC_GAUGE,
		       "Addresses of this node's blocks, by pool and state.");
	for (size_t i = 0; i < views->n; i++) {
		const char *pool = views->v[i].name;
		struct pool_counts c = allocator_pool_counts(m->allocator, pool, ipam_now());
		double gone = (double)releasing(m, pool);

		metrics_number(ret, LABELS({ "pool", pool }, { "state", "used" }),
			       (double)c.addresses.used - gone);
		metrics_number(ret, LABELS({ "pool", pool }, { "state", "releasing" }), gone);
		metrics_number(ret, LABELS({ "pool", pool }, { "state", "free" }),
			       (double)c.addresses.free);
		metrics_number(ret, LABELS({ "pool", pool }, { "state", "resting" }),
			       (double)c.addresses.resting);
	}
}

static void block_metrics(const struct ipam *m, struct metrics *ret)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	const struct blocks *own = allocator_blocks(m->allocator);

	metrics_family(ret, "roost_blocks", METRIC_GAUGE,
		       "Blocks that this node has or is not sure about, by pool and state.");
	for (size_t i = 0; i < views->n; i++) {
		uint64_t n[BLOCK_LOST + 1] = { 0 };

		for (size_t k = 0; k < own->n; k++)
			if (strcmp(own->v[k]->pool, views->v[i].name) == 0)
				n[own->v[k]->state]++;
		for (unsigned state = 0; state < ARRAY_SIZE(n); state++)
			metrics_count(ret,
				      LABELS({ "pool", views->v[i].name },
					     { "state", block_state_name(state) }),
				      n[state]);
	}
}

static void attachment_metrics(const struct ipam *m, struct metrics *ret)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	uint64_t n[ATTACHMENT_RELEASING + 1] = { 0 }, marks = 0;

	for (size_t i = 0; i < all->n; i++)
		if (attachment_is_mark(all->v[i]))
			marks++;
		else
			n[all->v[i]->state]++;
	metrics_family(ret, "roost_attachments", METRIC_GAUGE,
		       "Interfaces of pods that hold addresses, by state.");
	for (unsigned state = 0; state < ARRAY_SIZE(n); state++)
		metrics_count(ret, LABELS({ "state", attachment_state_name(state) }), n[state]);
	metrics_count(ret, LABELS({ "state", "marked" }), marks);
}

void ipam_metrics(struct ipam *m, struct metrics *ret)
{
	if (ipam_configure(m) < 0)
		ret->err = ret->err ?: -ENOMEM;
	address_metrics(m, ret);
	block_metrics(m, ret);
	attachment_metrics(m, ret);
	metrics_one(
		ret, "roost_address_authority_seconds", METRIC_GAUGE,
		"For how long addresses may be given without another proof that the node's blocks "
		"are its own.",
		(double)ipam_authority_left(m) / 1e9);
	metrics_one(ret, "roost_recovery_open", METRIC_GAUGE,
		    "1 while etcd went back and no block may change hands.",
		    m->recovery.noticed || ipam_recovery_id(m)[0]);
	metrics_one(ret, "roost_drained", METRIC_GAUGE,
		    "1 while the operator wants no new pods on this node.", ipam_drained(m));
}

struct pass_stats ipam_passes(const struct ipam *m)
{
	return pass_stats(m->pass);
}

/* --- status --------------------------------------------------------------------------------- */

int ipam_pool_status(struct ipam *m, struct status_pool **ret, size_t *ret_n)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	struct status_pool *v = calloc(views->n ?: 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++) {
		struct pool_counts counts = allocator_pool_counts(m->allocator, views->v[i].name,
								  ipam_now());

		v[i] = (struct status_pool){
			.name = views->v[i].name,
			.blocks = counts.blocks,
			.used = small(counts.addresses.used),
			.free = small(counts.addresses.free + counts.addresses.resting),
		};
	}
	*ret = v;
	*ret_n = views->n;
	return 0;
}
