/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local API's requests about addresses. A request that needs a block waits
 * in a list until a claim has ended either way; everything else is answered
 * within the handler. The file is written before the reply.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"

#define DEADLINE_MS 8000

/* An assign, and what it waits for. */
struct waiting {
	TAILQ_ENTRY(waiting) entry;
	struct ipam *ipam;
	struct serve_request *request;
	struct assign_request assign;
	bool no_claim;              /* a claim has failed: take what is resting */
	char pool_asked[NAME_TEXT]; /* the pool of a range that is being made */
	struct err why;             /* while etcd is away: what it waits for */
	/* Whose blocks it waits for. */
	char pools[ASSIGN_NEEDS][NAME_TEXT];
	size_t n_pools;
	bool specific; /* the one block of a requested address */
};

/* --- replies -------------------------------------------------------------------------------- */

int ipam_taken(struct serve_request *request, int r, const struct err *err)
{
	if (r == -ENOMEM)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else if (r < 0)
		serve_reply_error(request, 400, CNI_CODE_CONFIG, NULL, "%s", err->text);
	return r;
}

void ipam_reply(struct serve_request *request, struct tree *t)
{
	AUTO(json_put) struct json_object *o = NULL;

	if (tree_end(t, &o) < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else
		serve_reply_json(request, 200, o);
}

void ipam_write_addresses(struct tree *t, const struct attachment *a)
{
	char text[ADDRESS_TEXT];

	tree_open(t, "addresses", '[');
	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct held_address *h = &a->addresses.v[i];

		tree_open(t, NULL, '{');
		tree_address(t, "address", &h->address);
		tree_number(t, "length", h->length);
		tree_text(t, "pool", h->pool);
		tree_text(t, "network", h->network);
		tree_text(t, "gateway", h->gateway.family ? address_print(&h->gateway, text) : "");
		tree_close(t);
	}
	tree_close(t);
}

/* Routes of all pools involved; name service of the first that has one. */
static void write_pools(const struct ipam *m, const struct attachment *a, struct tree *t)
{
	const struct pool *names = NULL;
	char text[ADDRESS_TEXT];

	tree_open(t, "routes", '[');
	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct pool_view *v = pool_views_find(allocator_pools(m->allocator),
							    a->addresses.v[i].pool);

		for (size_t j = 0; v && v->pool && j < v->pool->routes.n; j++) {
			const struct address *gw = &v->pool->routes.v[j].gw;

			tree_open(t, NULL, '{');
			tree_prefix(t, "dst", &v->pool->routes.v[j].dst);
			tree_text(t, "gw", gw->family ? address_print(gw, text) : "");
			tree_close(t);
		}
		if (v && v->pool && v->pool->dns.nameservers.n && !names)
			names = v->pool;
	}
	tree_close(t);
	tree_open(t, "dns", '{');
	if (names) {
		tree_open(t, "nameservers", '[');
		for (size_t i = 0; i < names->dns.nameservers.n; i++)
			tree_address(t, NULL, &names->dns.nameservers.v[i]);
		tree_close(t);
		tree_some_text(t, "domain", names->dns.domain);
		if (names->dns.search.n)
			tree_texts(t, "search", &names->dns.search);
		if (names->dns.options.n)
			tree_texts(t, "options", &names->dns.options);
	}
	tree_close(t);
}

static void reply_assigned(struct ipam *m, struct serve_request *request,
			   const struct attachment *a, bool existing)
{
	struct tree t = tree_new();
	bool encapsulated = false;

	ipam_write_addresses(&t, a);
	write_pools(m, a, &t);
	for (size_t i = 0; i < a->addresses.n; i++)
		encapsulated = encapsulated || ipam_pool_encapsulates(m, a->addresses.v[i].pool);
	tree_number(&t, "mtu", m->o.mtu(encapsulated, m->o.arg));
	tree_bool(&t, "existing", existing);
	ipam_reply(request, &t);
}

static unsigned status_of(enum cni_code code)
{
	switch (code) {
	case CNI_CODE_CONFIG:
		return 400;
	case CNI_CODE_TRY_AGAIN:
		return 503;
	case CNI_CODE_NO_ADDRESS:
		return 507;
	case CNI_CODE_UNKNOWN_CONTAINER:
		return 404;
	case CNI_CODE_ADDRESS_IN_USE:
	case CNI_CODE_OTHER_ADDRESSES:
	case CNI_CODE_FOREIGN_ROUTE:
		return 409;
	default:
		return 500;
	}
}

/* --- refusals ------------------------------------------------------------------------------- */

void ipam_refuse(struct ipam *m, struct serve_request *request, const struct refused_pod *pod,
		 enum cni_code code, bool expected, const char *fmt, ...)
{
	char name[REFUSED_TEXT];
	struct err why = { "" };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why.text, sizeof(why.text), fmt, ap);
	va_end(ap);
	log_line(expected ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "ipam",
		 "pod %s, interface %s was refused: %s; %s", refused_pod_print(pod, name),
		 pod->interface, why.text, refusal_remedy(code));
	if (refusals_add(&m->refused_pods, pod, code, why.text, expected, timers_now(m->o.timers)) <
	    0)
		log_warning("ipam", "out of memory: this refusal is not kept");
	ipam_tell_refused_pods(m);
	serve_reply_error(request, status_of(code), code, NULL, "%s", why.text);
}

void ipam_served(struct ipam *m, const struct refused_pod *pod)
{
	if (refusals_over(&m->refused_pods, pod))
		ipam_tell_refused_pods(m);
}

void ipam_refusals(struct ipam *m, struct serve_request *request)
{
	struct tree t = tree_new();

	refusals_write(&m->refused_pods, serve_query(request, "pod"), &t);
	ipam_reply(request, &t);
}

/* --- pools made from an IPAM config --------------------------------------------------------- */

static void on_pool_made(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;
	struct waiting *w;

	/* Made, or made by another node meanwhile: the watch brings it and wakes who waits. */
	if (reply->err == -ECANCELED)
		return;
	if (reply->err) {
		log_warning("ipam", "making a pool from an IPAM config: %s", reply->text);
		ipam_refused(m, reply->text);
		TAILQ_FOREACH(w, &m->waitings, entry)
			w->pool_asked[0] = '\0';
	} else {
		ipam_accepted(m);
	}
	pass_mark(m->pass);
}

static int make_pool(struct ipam *m, const struct range_pool *make)
{
	struct pool record = range_pool_record(make);
	AUTO(free) char *text = NULL;
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	int r = pool_encode(&record, &text);

	r = r ?: key_pool(relative, make->name);
	r = r ?: key_full(m->o.prefix, relative, key);
	if (r < 0)
		return r;
	log_info("ipam", "pool %s is made from an IPAM config", make->name);
	/* Repeatable: a second time it finds the key there and changes nothing. */
	return store_txn(m->o.store,
			 &(struct store_txn){ TXN_IF(if_absent(key)), TXN_THEN(op_put(key, text)),
					      .repeatable = true },
			 0, on_pool_made, m, NULL);
}

/* --- assign --------------------------------------------------------------------------------- */

static void waiting_free(struct waiting *w)
{
	assign_request_done(&w->assign);
	free(w);
}

static void on_wait_end(struct serve_request *request, enum serve_end why, void *arg)
{
	struct waiting *w = arg;
	struct err reason = { "" };

	TAILQ_REMOVE(&w->ipam->waitings, w, entry);
	if (why == SERVE_LATE) {
		if (w->why.text[0])
			reason = w->why;
		else if (ipam_can_claim(w->ipam, &reason))
			err_set(&reason, 0, "a block could not be claimed in time");
		ipam_refuse(w->ipam, request, REFUSED_POD(&w->assign), CNI_CODE_TRY_AGAIN, false,
			    "no address within %d s: %s", DEADLINE_MS / 1000, reason.text);
	}
	waiting_free(w);
}

static void refuse(struct waiting *w, enum cni_code code, const char *text)
{
	ipam_refuse(w->ipam, w->request, REFUSED_POD(&w->assign), code, false, "%s", text);
	waiting_free(w);
}

static void refuse_expected(struct waiting *w, const char *text)
{
	ipam_refuse(w->ipam, w->request, REFUSED_POD(&w->assign), CNI_CODE_TRY_AGAIN, true, "%s",
		    text);
	waiting_free(w);
}

/*
 * Written before anybody is told; if it cannot be, nothing has happened. What was in use before
 * this call, known by etcd or a route alone, stays in use.
 */
int ipam_keep(struct ipam *m, const struct assign_result *result)
{
	struct attachment_key key = attachment_key(result->attachment);
	/* A repeated ADD may find that an earlier one could not write it. */
	bool write = result->changed || !local_copy_has_attachment(m->copy, &key);
	int r = write ? local_copy_put_attachment(m->copy, result->attachment) : 0;

	if (r < 0) {
		if (!result->existing)
			allocator_undo(m->allocator, &key, ipam_now());
		return r;
	}
	if (result->changed && ipam_wants_keys(m, result->attachment, true) < 0)
		log_warning("ipam", "out of memory: etcd gets no record of a new address");
	return 0;
}

static void assigned(struct waiting *w, const struct assign_result *result)
{
	struct ipam *m = w->ipam;
	struct attachment_key key = attachment_key(result->attachment);
	struct err why = { "" };
	int r = ipam_keep(m, result);

	if (r < 0) {
		ipam_refuse(m, w->request, REFUSED_POD(&w->assign), CNI_CODE_IO, false,
			    "writing the attachment's file: %s", strerror(-r));
	} else if (!ipam_ready(m, &why)) {
		/* Writing the file took so long, or this process was stopped there. */
		if (!result->existing && ipam_free_addresses(m, &key, NULL, &why) < 0)
			log_error("ipam", "%s", why.text);
		ipam_refuse(m, w->request, REFUSED_POD(&w->assign), CNI_CODE_TRY_AGAIN, false,
			    "the agent cannot give addresses: %s", why.text);
	} else {
		if (result->note.text[0])
			log_debug("ipam", "%s", result->note.text);
		/* Most likely it will be attached in a moment. */
		reaper_adding(m->o.reaper);
		ipam_served(m, REFUSED_POD(&w->assign));
		reply_assigned(m, w->request, result->attachment, result->existing);
	}
	waiting_free(w);
	m->o.changed(m->o.arg);
	/* The pass tells etcd: after this reply is out, and of all that came together at once. */
	pass_mark(m->pass);
}

static bool start_claims(struct waiting *w, const struct assign_result *result)
{
	bool all = true;

	w->specific = false;
	w->n_pools = result->n_needs;
	for (size_t i = 0; i < result->n_needs; i++) {
		const struct block_need *need = &result->needs[i];

		memcpy(w->pools[i], need->pool, sizeof(need->pool));
		w->specific = w->specific || need->specific;
		all = ipam_claim(w->ipam, need) == 0 && all;
	}
	return all;
}

/* One attempt. true: answered and gone; false: it waits for something. */
static bool attempt(struct waiting *w)
{
	AUTO_DONE(assign_result_done) struct assign_result result = { 0 };
	struct ipam *m = w->ipam;
	struct assign_options options = { .may_claim = !w->no_claim };
	const struct attachment_key key = request_key(&w->assign);
	struct err why = { "" };
	int r;

	w->why.text[0] = '\0';
	/* Asked again after every wait: the agent may have been stopped meanwhile. Who has no block
	 * has nothing to give without a claim; over leases only a new one brings another proof. */
	if (!ipam_ready(m, &why) && !(m->owned.n == 0 && ipam_is_proving(m))) {
		err_set(&w->why, 0, "the agent cannot give addresses: %s", why.text);
		if (ipam_is_proving(m)) {
			m->prove = true;
			pass_mark(m->pass);
			return false;
		}
		refuse(w, CNI_CODE_TRY_AGAIN, w->why.text);
		return true;
	}
	/* podman stops and starts one container: its old link must be gone first. */
	if (ipam_link_doomed(m, w->assign.container, w->assign.interface)) {
		err_set(&w->why, 0, "its former link is still being destroyed");
		return false;
	}
	/* The repetition of an ADD gives nothing new. */
	if (ipam_drained(m) && !allocator_find(m->allocator, &key)) {
		refuse_expected(w, ipam_drained_text(m, &why));
		return true;
	}
	if (options.may_claim && !ipam_can_claim(m, &why)) {
		options.may_claim = false;
		options.why_not = why.text;
	}
	r = allocator_assign(m->allocator, &w->assign, &options, ipam_now(), &result);
	if (r < 0) {
		refuse(w, CNI_CODE_IO, "out of memory");
		return true;
	}
	switch (result.verdict) {
	case ASSIGN_DONE:
		assigned(w, &result);
		return true;
	case ASSIGN_REFUSED:
		/* Only etcd is missing: that may be a matter of a moment. */
		if (result.code == CNI_CODE_TRY_AGAIN && options.why_not) {
			w->why = result.why;
			return false;
		}
		refuse(w, result.code, result.why.text);
		return true;
	case ASSIGN_NEED_BLOCK:
		if (start_claims(w, &result))
			return false;
		w->no_claim = true;
		return attempt(w);
	case ASSIGN_NEED_POOL:
		/* Asked for again only when the watch has brought something new. */
		if (strcmp(w->pool_asked, result.make.name) == 0)
			return false;
		if (make_pool(m, &result.make) < 0) {
			refuse(w, CNI_CODE_TRY_AGAIN, "the pool of this range could not be made");
			return true;
		}
		memcpy(w->pool_asked, result.make.name, sizeof(w->pool_asked));
		return false;
	case ASSIGN_WAIT:
		return false;
	}
	return false;
}

static bool waits_for(const struct waiting *w, const char *pool)
{
	for (size_t i = 0; pool && i < w->n_pools; i++)
		if (strcmp(w->pools[i], pool) == 0)
			return true;
	return false;
}

void ipam_retry_waiting(struct ipam *m, const char *pool, const char *failed)
{
	struct waiting_list again = TAILQ_HEAD_INITIALIZER(again);
	struct waiting *w;

	if (TAILQ_EMPTY(&m->waitings) || ipam_configure(m) < 0)
		return;
	/* Each is looked at once, in its order, and stays in it if it waits on. */
	TAILQ_CONCAT(&again, &m->waitings, entry);
	while ((w = TAILQ_FIRST(&again))) {
		TAILQ_REMOVE(&again, w, entry);
		if (failed && waits_for(w, pool)) {
			w->no_claim = true;
			if (w->specific) {
				refuse(w, CNI_CODE_ADDRESS_IN_USE, failed);
				continue;
			}
		}
		if (!attempt(w))
			TAILQ_INSERT_TAIL(&m->waitings, w, entry);
	}
}

void ipam_assign(struct ipam *m, struct serve_request *request)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w) {
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
		return;
	}
	if (ipam_take(request, assign_request_decode, &w->assign) < 0) {
		free(w);
		return;
	}
	w->ipam = m;
	w->request = request;
	w->assign.netns_inode = ipam_netns_inode(w->assign.netns);
	if (ipam_configure(m) < 0) {
		refuse(w, CNI_CODE_IO, "out of memory");
		return;
	}
	if (attempt(w))
		return;
	if (serve_wait(request, DEADLINE_MS, on_wait_end, w) < 0)
		waiting_free(w);
	else
		TAILQ_INSERT_TAIL(&m->waitings, w, entry);
}

void ipam_waiting_done(struct ipam *m)
{
	struct waiting *w;

	while ((w = TAILQ_FIRST(&m->waitings))) {
		TAILQ_REMOVE(&m->waitings, w, entry);
		refuse_expected(w, "the agent is stopping");
	}
}

/* --- release -------------------------------------------------------------------------------- */

/* A DEL overtakes the ADD that it belongs to. */
static void cancel_waiting(struct ipam *m, const struct attachment_key *key)
{
	struct waiting *w, *next;

	for (w = TAILQ_FIRST(&m->waitings); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (strcmp(w->assign.container, key->container) != 0 ||
		    strcmp(w->assign.interface, key->interface) != 0 ||
		    strcmp(w->assign.network, key->network) != 0)
			continue;
		TAILQ_REMOVE(&m->waitings, w, entry);
		refuse_expected(w, "a DEL of the same attachment came while this ADD was waiting");
	}
}

static void list_addresses(struct tree *t, const struct attachment *a)
{
	for (size_t i = 0; t && i < a->addresses.n; i++)
		tree_address(t, NULL, &a->addresses.v[i].address);
}

int ipam_free_addresses(struct ipam *m, const struct attachment_key *key, struct tree *ret,
			struct err *err)
{
	AUTO(attachment_free) struct attachment *gone = NULL; /* key may lie in it */
	const struct attachment *held = allocator_find(m->allocator, key);
	struct attachment *a;
	int r;

	if (held)
		ipam_released_note(m, held);
	/* First the file: an address that is free in memory must not come back by a restart. */
	r = local_copy_remove_attachment(m->copy, key);
	if (r < 0)
		return err_set(err, r, "removing the attachment's file: %s", strerror(-r));
	/* The attachment, and a mark that etcd or the kernel left of it. */
	while ((a = allocator_release(m->allocator, key, ipam_now()))) {
		list_addresses(ret, a);
		ipam_wants_keys(m, a, false);
		if (gone)
			attachment_free(a);
		else
			gone = a;
		m->o.changed(m->o.arg);
		pass_mark(m->pass);
	}
	return 0;
}

int ipam_drop(struct ipam *m, const struct attachment_key *key, struct tree *ret, struct err *err)
{
	const struct attachment *held;

	cancel_waiting(m, key);
	held = allocator_find(m->allocator, key);
	/* Not a pod's: it goes with the overlay. */
	if (held && held->reserved)
		return 0;
	if (!held || !ipam_held_by_link(m, held))
		return ipam_free_addresses(m, key, ret, err);
	list_addresses(ret, held);
	return 0;
}

/* The addresses of all that was dropped, or why not. */
static void reply_released(struct serve_request *request, struct tree *t, int r,
			   const struct err *err)
{
	AUTO(json_put) struct json_object *dropped = NULL;

	if (r == 0) {
		ipam_reply(request, t);
		return;
	}
	tree_end(t, &dropped);
	serve_reply_error(request, 500, CNI_CODE_IO, NULL, "%s", err->text);
}

static void release(struct ipam *m, struct serve_request *request, bool link)
{
	AUTO_DONE(release_request_done) struct release_request q = { 0 };
	struct attachment_key key;
	struct tree t;
	struct err err = { "" };
	int r;

	if (ipam_take(request, release_request_decode, &q) < 0)
		return;
	key = request_key(&q);
	/* A link whose attachment nobody remembers goes too. */
	if (link && !allocator_find(m->allocator, &key))
		ipam_unplug(m, (struct kernel_pod){ 0 }, key.container, key.interface);
	t = tree_new();
	tree_open(&t, "released", '[');
	r = ipam_drop(m, &key, &t, &err);
	reply_released(request, &t, r, &err);
}

void ipam_release(struct ipam *m, struct serve_request *request)
{
	release(m, request, false);
}

void ipam_detach(struct ipam *m, struct serve_request *request)
{
	release(m, request, true);
}

/* --- check, gc, status ---------------------------------------------------------------------- */

void ipam_check(struct ipam *m, struct serve_request *request)
{
	AUTO_DONE(check_request_done) struct check_request q = { 0 };
	const struct attachment *a;
	struct tree t;
	struct err err = { "" };

	if (ipam_take(request, check_request_decode, &q) < 0)
		return;
	a = allocator_find(m->allocator, &request_key(&q));
	if (!a) {
		serve_reply_error(
			request, 404, CNI_CODE_UNKNOWN_CONTAINER, NULL,
			"no addresses are held for container %s, interface %s on network %s",
			q.container, q.interface, q.network);
		return;
	}
	if (check_verdict(&q, a, &err)) {
		serve_reply_error(request, 409, CNI_CODE_OTHER_ADDRESSES, NULL, "%s", err.text);
		return;
	}
	t = tree_new();
	ipam_write_addresses(&t, a);
	ipam_reply(request, &t);
}

/* The next attachment that gc does not keep; each drop changes the table. */
static const struct attachment *next_stale(const struct ipam *m, const struct gc_request *q)
{
	const struct attachments *all = allocator_attachments(m->allocator);

	for (size_t i = 0; i < all->n; i++)
		if (!gc_keeps(q, all->v[i]))
			return all->v[i];
	return NULL;
}

void ipam_gc(struct ipam *m, struct serve_request *request)
{
	AUTO_DONE(gc_request_done) struct gc_request q = { 0 };
	const struct attachment *a;
	struct tree t;
	struct err err = { "" };
	int r = 0;

	if (ipam_take(request, gc_request_decode, &q) < 0)
		return;
	t = tree_new();
	tree_open(&t, "released", '[');
	while (r == 0 && (a = next_stale(m, &q))) {
		const struct attachment_key key = attachment_key(a);

		log_info("ipam",
			 "garbage: container %s, interface %s (pod %s/%s) is not valid any more",
			 a->container, a->interface, a->namespace, a->pod);
		r = ipam_drop(m, &key, &t, &err);
	}
	reply_released(request, &t, r, &err);
}

bool ipam_resuming(const struct ipam *m)
{
	return ipam_now() < m->resuming;
}

/*
 * What the plugin's STATUS asks: does the network of this node work? The kubelet makes a node
 * NotReady by it and evicts what runs there, so neither a drain nor a restart is a reason.
 */
void ipam_status(struct ipam *m, struct serve_request *request)
{
	struct choices choices = { 0 };
	struct err why = { "" };
	int r = ipam_configure(m);
	bool ready = ipam_ready(m, &why);

	if (ipam_drained(m) || (!ready && ipam_resuming(m))) {
		serve_reply(request, 200, "{}");
		return;
	}
	if (!ready) {
		serve_reply_error(request, 503, CNI_CODE_UNAVAILABLE, NULL,
				  "the agent cannot give addresses: %s", why.text);
		return;
	}
	r = r
		    ?: choose_pools(allocator_pools(m->allocator), &(struct texts){ 0 }, "",
				    &choices, &why);
	choices_done(&choices);
	if (r < 0)
		serve_reply_error(request, 503, CNI_CODE_UNAVAILABLE, NULL, "%s", why.text);
	else
		serve_reply(request, 200, "{}");
}

/* The same for the plugin that makes links: routes of running pods may be missing. */
void ipam_link_status(struct ipam *m, struct serve_request *request)
{
	const char *refused = m->o.refuses(false, m->o.arg);
	struct err why = { "" };

	if (refused)
		serve_reply_error(request, 503, CNI_CODE_IMPAIRED, NULL, "%s", refused);
	else if (kernel_ready(m->o.kernel, &why) || ipam_resuming(m))
		ipam_status(m, request);
	else
		serve_reply_error(request, 503, CNI_CODE_IMPAIRED, NULL, "%s", why.text);
}
