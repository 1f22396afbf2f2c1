/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/status_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "ctl/frame/out.h"
#include "lib/json/tree.h"

#define SETTLING "settling"

struct status_view status_view_new(void)
{
	struct status_view v = { json_object_new_array(), json_object_new_array(), false };

	v.failed = !v.parts || !v.problems;
	return v;
}

void status_view_done(struct status_view *v)
{
	json_object_put(v->parts);
	json_object_put(v->problems);
	*v = (struct status_view){ 0 };
}

/* The last member is the printed text; then the row is whole. */
static PRINTF_LIKE(5, 0) void end_row(struct status_view *v, struct tree *t,
				      struct json_object *array, const char *name, const char *fmt,
				      va_list args)
{
	AUTO(free) char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	tree_text(t, name, text);
	v->failed = !array || tree_end_in(t, array) < 0 || !text || v->failed;
}

void status_part(struct status_view *v, const char *part, const char *state, const char *fmt, ...)
{
	struct tree t = tree_new();
	va_list args;

	tree_text(&t, "part", part);
	tree_text(&t, "state", state);
	va_start(args, fmt);
	end_row(v, &t, v->parts, "about", fmt, args);
	va_end(args);
}

void status_problem(struct status_view *v, const char *level, const char *since, const char *part,
		    const char *fmt, ...)
{
	struct tree t = tree_new();
	va_list args;

	tree_text(&t, "level", level);
	tree_some_text(&t, "since", since);
	tree_text(&t, "part", part);
	va_start(args, fmt);
	end_row(v, &t, v->problems, "problem", fmt, args);
	va_end(args);
}

/* --- which part, how bad -------------------------------------------------------------------- */

const char *status_part_of(const char *health)
{
	/* Parts of the agent's health; with a slash at its end: all that begin so. */
	static const struct {
		const char *part, *health;
	} of[] = {
		{ "etcd", "etcd lease-server certificate/ status static-route-status" },
		{ "kernel", "kernel forward foreign-route/ links own-address/ route/ "
			    "blackhole/ static-route/ firewall "
			    "static-routes static-routes-kept" },
		{ "bird", "bird bird-config bird-protocols routing/ session/ sessions settling/ "
			  "neighbours/ peer/ filter/ node/" },
		{ "addresses", "refused-pods pool/ pool-full/ extent/ block/ host/ files drain" },
		{ "overlay",
		  "overlay/ overlay-pool/ overlay-route/ tunnel-device/ tunnel-address/" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		for (const char *word = of[i].health; *word; word += strspn(word, " ")) {
			size_t n = strcspn(word, " ");

			if (strncmp(word, health, n) == 0 && (word[n - 1] == '/' || !health[n]))
				return of[i].part;
			word += n;
		}
	return "agent";
}

static const char *worse(const char *a, const char *b)
{
	static const char *const levels[] = { "ok", SETTLING, "warning", "error" };
	size_t i = ARRAY_SIZE(levels), j = ARRAY_SIZE(levels);

	while (i > 0 && strcmp(levels[i - 1], a) != 0)
		i--;
	while (j > 0 && strcmp(levels[j - 1], b) != 0)
		j--;
	return j > i ? levels[j - 1] : a;
}

const char *status_view_state(const struct status_view *v)
{
	const char *state = "ok";

	for (size_t i = 0; i < json_object_array_length(v->problems); i++)
		state = worse(state, out_text(json_object_array_get_idx(v->problems, i), "level"));
	return state;
}

/* What needs a moment after a start or a change is neither a problem nor well. */
static const char *level_of(struct json_object *entry)
{
	const char *level = out_text(entry, "level");

	if (strncmp(out_text(entry, "part"), SETTLING "/", strlen(SETTLING "/")) == 0)
		return SETTLING;
	return *level ? level : "warning";
}

/* Of one part, by the agent's health. */
static const char *state_of(struct json_object *status, const char *part)
{
	struct json_object *health = out_at(status, "health");
	const char *state = "ok";

	if (!json_object_is_type(health, json_type_array))
		return state;
	for (size_t i = 0; i < json_object_array_length(health); i++) {
		struct json_object *entry = json_object_array_get_idx(health, i);

		if (strcmp(status_part_of(out_text(entry, "part")), part) == 0)
			state = worse(state, level_of(entry));
	}
	return state;
}

/* --- the agent's status --------------------------------------------------------------------- */

static const char *many(long long n)
{
	return n == 1 ? "" : "s";
}

static void part_agent(struct status_view *v, struct json_object *status)
{
	const char *address = out_text(status, "address"), *started = out_text(status, "started");
	bool ready = json_object_get_boolean(out_at(status, "ready"));

	/* The fraction of the second tells two starts apart, but nothing to people. */
	status_part(v, "agent", ready ? state_of(status, "agent") : "error",
		    "roostd %s since %.*s%s on node %s; %s", out_text(status, "version"),
		    (int)strcspn(started, "."), started, strchr(started, '.') ? "Z" : "",
		    out_text(status, "node"), *address ? address : "its address is not known yet");
	if (!ready)
		status_problem(v, "error", "", "agent", "not ready: %s",
			       out_text(status, "reason"));
}

static void part_etcd(struct status_view *v, struct json_object *status)
{
	bool connected = json_object_get_boolean(out_at(status, "etcd.connected"));
	const char *endpoint = out_text(status, "etcd.endpoint");
	const char *error = out_text(status, "etcd.error");
	const char *server = out_text(status, "etcd.server");
	const char *part = *server ? server : "etcd";

	if (connected)
		status_part(v, part, state_of(status, "etcd"), "connected to %s", endpoint);
	else
		status_part(v, part, worse("warning", state_of(status, "etcd")),
			    "not connected: %s", *error ? error : "it has not answered yet");
}

/* The firewall's: "; 12 packets dropped (loopback 2, vxlan 10)", or nothing. */
static char *drops_text(struct json_object *status)
{
	struct json_object *drops = out_at(status, "firewall.drops");
	AUTO(free) char *text = NULL;
	const char *between = "";
	size_t len;
	int64_t sum = 0;
	FILE *out;

	if (!json_object_is_type(drops, json_type_object))
		return strdup("");
	json_object_object_foreach(drops, reason_of, value) {
		(void)reason_of;
		sum += json_object_get_int64(value);
	}
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	if (sum)
		fprintf(out, "; %" PRId64 " packets dropped (", sum);
	json_object_object_foreach(drops, reason, n) {
		if (!json_object_get_int64(n))
			continue;
		fprintf(out, "%s%s %" PRId64, between, reason, json_object_get_int64(n));
		between = ", ";
	}
	fputs(sum ? ")" : "", out);
	return fclose(out) == 0 ? TAKE(text) : NULL;
}

static void part_kernel(struct status_view *v, struct json_object *status)
{
	long long links = out_number(status, "kernel.links"),
		  routes = out_number(status, "kernel.routes"),
		  repairs = out_number(status, "kernel.repairs");
	AUTO(free) char *drops = drops_text(status);

	if (!drops) {
		v->failed = true;
		return;
	}
	repairs += out_number(status, "firewall.repairs");
	status_part(v, "kernel", state_of(status, "kernel"),
		    "%lld pod link%s, %lld route%s%s; %lld repair%s, %lld refused%s", links,
		    many(links), routes, many(routes),
		    strcmp(out_text(status, "firewall.natOutgoing"), "set") == 0 ? ", NAT" : "",
		    repairs, many(repairs), out_number(status, "kernel.failures"), drops);
}

static void part_bird(struct status_view *v, struct json_object *status)
{
	const char *state = state_of(status, "bird"), *when = out_text(status, "bird.when");
	const char *protocol = out_text(status, "bird.protocol");
	AUTO(free) char *runs = NULL;

	if (!out_at(status, "bird")) {
		status_part(v, "bird", state, "not managed: --bird-config is none");
		return;
	}
	if (*protocol && strcmp(protocol, "bgp") != 0)
		runs = strdup(strcmp(protocol, "none") == 0 ? "no routing protocol" : protocol);
	else if (asprintf(&runs, "bgp, %lld of %lld sessions up",
			  out_number(status, "bird.established"),
			  out_number(status, "bird.sessions")) < 0)
		runs = NULL;
	if (!runs)
		v->failed = true;
	else if (json_object_get_boolean(out_at(status, "bird.connected")))
		status_part(v, "bird", state, "BIRD %s; %s; configuration %s%s%s",
			    out_text(status, "bird.version"), runs,
			    out_text(status, "bird.configuration"), *when ? " at " : "", when);
	else
		status_part(v, "bird", worse("warning", state), "not connected");
}

static void part_overlay(struct status_view *v, struct json_object *status)
{
	const char *state = state_of(status, "overlay");
	long long remotes = out_number(status, "overlay.remotes"),
		  missing = out_number(status, "overlay.missing");
	AUTO(free) char *addresses = NULL;

	if (!out_at(status, "overlay"))
		return;
	addresses = out_cell(out_at(status, "overlay.addresses"));
	if (!addresses) {
		v->failed = true;
		return;
	}
	status_part(v, "overlay", missing ? worse("warning", state) : state,
		    "VXLAN %lld, MTU %lld, tunnel address %s; %lld other node%s, their blocks: "
		    "%lld by tunnel, %lld direct, %lld missing",
		    out_number(status, "overlay.vni"), out_number(status, "overlay.mtu"), addresses,
		    remotes, many(remotes), out_number(status, "overlay.tunnel"),
		    out_number(status, "overlay.direct"), missing);
}

static void part_addresses(struct status_view *v, struct json_object *status)
{
	long long used = out_number(status, "total.used"), left = out_number(status, "total.free"),
		  blocks = out_number(status, "total.blocks"),
		  pods = out_number(status, "attachments");
	bool drained = json_object_get_boolean(out_at(status, "drained"));

	status_part(v, "addresses", state_of(status, "addresses"),
		    "%lld in use by %lld pod%s, %lld free, in %lld block%s%s", used, pods,
		    many(pods), left, blocks, many(blocks), drained ? "; drained" : "");
}

static void problem(struct status_view *v, struct json_object *entry, time_t now)
{
	const char *level = level_of(entry), *since = out_text(entry, "since");
	const char *part = out_text(entry, "part"), *reason = out_text(entry, "reason");
	struct tm t = { 0 };
	long long age;

	if (strcmp(level, SETTLING) != 0 || !strptime(since, "%Y-%m-%dT%H:%M:%S", &t)) {
		status_problem(v, level, since, part, "%s", reason);
		return;
	}
	age = (long long)(now - timegm(&t));
	status_problem(v, level, since, part, "settling for %lld s: %s", age > 0 ? age : 0, reason);
}

void status_view_agent(struct status_view *v, struct json_object *status, time_t now)
{
	struct json_object *health = out_at(status, "health");

	part_agent(v, status);
	part_etcd(v, status);
	part_kernel(v, status);
	part_bird(v, status);
	part_overlay(v, status);
	part_addresses(v, status);
	if (!json_object_is_type(health, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(health); i++)
		problem(v, json_object_array_get_idx(health, i), now);
}
