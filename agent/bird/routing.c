/* SPDX-License-Identifier: Apache-2.0 */
/* From records to a file that BIRD runs. What BIRD says back is in routing_watch.c. */
#include "agent/bird/routing.h"

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "agent/bird/routing_parts.h"
#include "lib/base/route_protocol.h"
#include "lib/base/secret.h"

#define OPERATORS_TEMPLATES "/etc/roost/templates"
#define SNIPPETS            "/etc/roost/bird.d"

/* --- what is known -------------------------------------------------------------------------- */

/* Arrays of pointers into the records, and what was read for them; all of it released together. */
struct gathered {
	struct bird_input in;
	struct bird_node *nodes;
	const struct peer **peers;
	const struct filter **filters;
	struct bird_extent *extents;
	struct prefixes blocks;
	struct texts files;
	struct bird_password *passwords;
	struct err *reasons;
	struct cluster_config defaults;
};

static void gathered_done(struct gathered *g)
{
	for (size_t i = 0; g->passwords && i < g->files.n; i++)
		secret_free((char *)(uintptr_t)g->passwords[i].text);
	free(g->passwords);
	free(g->reasons);
	free(g->files.v);
	free(g->nodes);
	free(g->peers);
	free(g->filters);
	free(g->extents);
	free(g->blocks.v);
	cluster_config_done(&g->defaults);
}

static int gather_nodes(const struct routing *r, struct gathered *g)
{
	size_t n = route_records_count(r->records, ROUTE_NODE);

	g->nodes = calloc(n ?: 1, sizeof(*g->nodes));
	if (!g->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct node *node = route_record(r->records, ROUTE_NODE, i);

		g->nodes[i] = (struct bird_node){ node, route_record_find(r->records, ROUTE_SPEC,
									  node->name) };
	}
	g->in.nodes = g->nodes;
	g->in.n_nodes = n;
	return 0;
}

static int gather_policy(const struct routing *r, struct gathered *g)
{
	g->in.n_peers = route_records_count(r->records, ROUTE_PEER);
	g->in.n_filters = route_records_count(r->records, ROUTE_FILTER);
	g->peers = calloc(g->in.n_peers ?: 1, sizeof(struct peer *));
	g->filters = calloc(g->in.n_filters ?: 1, sizeof(struct filter *));
	if (!g->peers || !g->filters)
		return -ENOMEM;
	for (size_t i = 0; i < g->in.n_peers; i++)
		g->peers[i] = route_record(r->records, ROUTE_PEER, i);
	for (size_t i = 0; i < g->in.n_filters; i++)
		g->filters[i] = route_record(r->records, ROUTE_FILTER, i);
	g->in.peers = g->peers;
	g->in.filters = g->filters;
	return 0;
}

static int gather_extents(const struct routing *r, struct gathered *g)
{
	size_t n = route_records_count(r->records, ROUTE_EXTENT);

	g->extents = calloc(n ?: 1, sizeof(*g->extents));
	if (!g->extents)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct extent *e = route_record(r->records, ROUTE_EXTENT, i);

		g->extents[i] = (struct bird_extent){
			.extent = e,
			.pool = route_record_find(r->records, ROUTE_POOL, e->pool),
			.silent = r->o.silent(e->pool, r->o.arg),
		};
	}
	g->in.extents = g->extents;
	g->in.n_extents = n;
	return 0;
}

static int gather_config(const struct routing *r, struct gathered *g)
{
	g->in.config = route_record_find(r->records, ROUTE_CONFIG, "");
	if (g->in.config)
		return 0;
	g->in.config = &g->defaults;
	return cluster_config_decode("config", "{}", 2, &g->defaults, NULL);
}

/* A file that cannot be read leaves its session out, with this reason. */
static int gather_passwords(struct gathered *g)
{
	int r = desired_bird_password_files(&g->in, &g->files);

	if (r < 0)
		return r;
	g->passwords = calloc(g->files.n ?: 1, sizeof(*g->passwords));
	g->reasons = calloc(g->files.n ?: 1, sizeof(*g->reasons));
	if (!g->passwords || !g->reasons)
		return -ENOMEM;
	for (size_t i = 0; i < g->files.n; i++) {
		char *text = NULL;

		g->passwords[i] = (struct bird_password){ .path = g->files.v[i] };
		if (secret_read(g->files.v[i], &text, NULL, &g->reasons[i]) < 0)
			g->passwords[i].reason = g->reasons[i].text;
		g->passwords[i].text = text;
	}
	g->in.passwords = g->passwords;
	g->in.n_passwords = g->files.n;
	return 0;
}

static int gather(const struct routing *r, struct gathered *g)
{
	const struct bird_version *version = bird_control_version(bird_step_control(r->step));
	int rc;

	g->in = (struct bird_input){
		.self = r->self.name,
		.ipv4 = r->self.ipv4,
		.ipv6 = r->self.ipv6,
		.router_id = r->self.router_id,
		.spec = route_record_find(r->records, ROUTE_SPEC, r->self.name),
		.version = version ? version->major * 1000 + version->minor : 0,
		.kernel_protocol = route_protocol,
		.snippets = access(SNIPPETS, R_OK | X_OK) == 0 ? SNIPPETS : NULL,
	};
	rc = gather_nodes(r, g);
	rc = rc ?: gather_policy(r, g);
	rc = rc ?: gather_extents(r, g);
	rc = rc ?: gather_config(r, g);
	rc = rc ?: r->o.blocks(&g->blocks, r->o.arg);
	g->in.blocks = g->blocks.v;
	g->in.n_blocks = g->blocks.n;
	return rc ?: gather_passwords(g);
}

/* --- what is meant -------------------------------------------------------------------------- */

int routing_plan(const struct routing *r, struct bird_plan *ret, struct err *err)
{
	AUTO_DONE(gathered_done) struct gathered g = { 0 };
	int rc = gather(r, &g);

	rc = rc ?: desired_bird(&g.in, ret);
	/* First of all: from here on anybody may want to quote a text of it. */
	for (size_t i = 0; rc == 0 && i < ret->secrets.n; i++)
		log_hide(ret->secrets.v[i]);
	return rc < 0 ? err_set(err, rc, "%s", strerror(-rc)) : 0;
}

static void tell_problems(struct routing *r, const struct bird_plan *plan)
{
	for (size_t i = 0; i < plan->problems.n; i++) {
		const struct bird_problem *p = &plan->problems.v[i];
		char part[HEALTH_PART];

		snprintf(part, sizeof(part), "routing/%s", p->record);
		health_set(r->o.health, part,
			   p->level == BIRD_PROBLEM ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s",
			   p->text);
	}
	health_sweep(r->o.health, "routing/");
}

/* Before it happens: whoever watches sessions go down finds here why. */
static void tell_flaps(const struct bird_plan *before, const struct bird_plan *after)
{
	static const char *const words[] = {
		[BIRD_RESTARTS] = "session %s will restart: %s",
		[BIRD_REMOVED] = "session %s goes away: %s",
		[BIRD_WITHDRAWS] = "block %s is withdrawn: %s",
	};
	struct bird_flaps flaps = { 0 };

	if (bird_flaps(before, after, &flaps) < 0)
		return;
	for (size_t i = 0; i < flaps.n && i < FLAPS_TOLD; i++) {
		char line[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(line, sizeof(line), words[flaps.v[i].kind], flaps.v[i].what,
			 flaps.v[i].why);
#pragma GCC diagnostic pop
		log_warning("bird", "%s", line);
	}
	if (flaps.n > FLAPS_TOLD)
		log_warning("bird", "and %zu more sessions or blocks", flaps.n - FLAPS_TOLD);
	bird_flaps_done(&flaps);
}

static int load_templates(struct routing *r)
{
	const char *const folders[] = { OPERATORS_TEMPLATES, r->o.template_dir };
	int rc = 0;

	if (r->templates && !template_dir_changed(r->templates))
		return 0;
	mustache_set_free(TAKE(r->set));
	if (!r->templates)
		rc = template_dir_new(folders, ARRAY_SIZE(folders), &r->templates);
	return rc ?: mustache_set_new(template_dir_load, r->templates, &r->set);
}

int routing_render(struct routing *r, const struct bird_plan *plan, char **ret, size_t *ret_len,
		   struct err *err)
{
	const struct mustache_options options = { .strict = true };
	int rc = load_templates(r);

	if (rc < 0)
		return err_set(err, rc, "templates: %s", strerror(-rc));
	return mustache_render(r->set, "bird.conf", plan->tree, &options, ret, ret_len, err);
}

static int render(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct routing *r = arg;
	int rc;

	r->o.first(r->o.arg);
	rc = routing_plan(r, &plan, err);
	rc = rc ?: routing_render(r, &plan, ret, ret_len, err);
	if (rc < 0)
		return rc;
	/* It holds passwords, and for thousands of peers many megabytes. */
	json_object_put(plan.tree);
	plan.tree = NULL;
	tell_problems(r, &plan);
	if (r->has_meant)
		tell_flaps(&r->meant, &plan);
	bird_plan_done(&r->next);
	r->next = plan;
	r->has_next = true;
	r->next_hash = HASH_TEXTS(*ret);
	plan = (struct bird_plan){ 0 };
	return 0;
}

/* --- outcomes ------------------------------------------------------------------------------- */

static void told(const struct publish_outcome *outcome, void *arg)
{
	struct routing *r = arg;
	bool runs = outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNCHANGED ||
		    outcome->result == PUBLISH_UNHEARD;

	if (publish_failed(outcome->result))
		health_set(r->o.health, "bird-config", LOG_LEVEL_ERROR,
			   "BIRD's configuration: %s: %s; the former one stays in force: "
			   "`roostctl render --diff` shows what was tried",
			   publish_result_name(outcome->result), outcome->reason.text);
	else
		health_clear(r->o.health, "bird-config");
	if (outcome->result == PUBLISH_DONE) {
		log_info("bird", "BIRD runs a new configuration: %zu sessions", r->next.n_sessions);
		malloc_trim(0);
	}
	if (outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNCHANGED) {
		r->accepted = bird_control_version(bird_step_control(r->step)) != NULL;
		r->accepted_hash = r->next_hash;
	}
	if (runs && r->has_next) {
		bird_plan_done(&r->meant);
		r->meant = TAKE_PLAN(r->next);
		r->has_meant = true;
		r->has_next = false;
	}
	if (outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNHEARD ||
	    outcome->result == PUBLISH_NOT_RELOADED)
		routing_asked_again(r);
	r->o.changed(r->o.arg);
}

static bool is_foreign(const char *text, size_t len, void *arg)
{
	return len > 0 && (len < strlen(BIRD_CONFIG_MARK) ||
			   memcmp(text, BIRD_CONFIG_MARK, strlen(BIRD_CONFIG_MARK)) != 0);
}

/* --- events --------------------------------------------------------------------------------- */

static const enum route_kind watched[] = { ROUTE_PEER, ROUTE_FILTER, ROUTE_NODE, ROUTE_SPEC };

static bool all_listed(const struct routing *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		if (!route_records_synced(r->records, watched[i]))
			return false;
	return true;
}

static void changed(struct routing *r)
{
	if (!r->open && r->self.name[0] && all_listed(r) && r->extents_known)
		r->open = true;
	if (r->open)
		publish_changed(r->publish);
}

void routing_set_self(struct routing *r, const struct identity *self)
{
	r->self = *self;
	changed(r);
}

void routing_records_changed(struct routing *r)
{
	changed(r);
}

void routing_inputs_known(struct routing *r)
{
	r->extents_known = true;
	changed(r);
}

void routing_blocks_changed(struct routing *r)
{
	changed(r);
}

void routing_reload(struct routing *r)
{
	changed(r);
}

/* --- life ----------------------------------------------------------------------------------- */

/* BIRD gives up its rights and reads the file again on `configure`. */
static gid_t birds_group(void)
{
	const struct group *g = getgrnam("bird");

	return g ? g->gr_gid : (gid_t)-1;
}

static int open_publish(struct routing *r)
{
	struct publish_options o = {
		.event = r->o.event,
		.target = { r->o.bird_config, 0640, (uid_t)-1, birds_group() },
		.check = bird_step_check(r->step),
		.reload = bird_step_reload(r->step),
		.render = render,
		.is_foreign = is_foreign,
		.told = told,
		.arg = r,
	};

	return publish_new(&o, &r->publish);
}

int routing_new(const struct routing_options *options, struct routing **ret, struct err *err)
{
	AUTO(routing_free) struct routing *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->records = options->records;
	routing_refeed_new(r);
	rc = routing_watch_new(r);
	rc = rc ?: open_publish(r);
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(watched); i++)
		rc = route_records_want(r->records, watched[i], true);
	if (rc < 0)
		return err_set(err, rc, "routing: %s", strerror(-rc));
	*ret = TAKE(r);
	return 0;
}

void routing_free(struct routing *r)
{
	if (!r)
		return;
	publish_free(r->publish);
	routing_refeed_done(r);
	routing_watch_done(r);
	mustache_set_free(r->set);
	template_dir_free(r->templates);
	bird_plan_done(&r->meant);
	bird_plan_done(&r->next);
	free(r);
}
