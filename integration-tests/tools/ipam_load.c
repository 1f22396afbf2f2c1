/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of one node's agent: workers that ADD, ADD again and DEL at random, half of the time by
 * running roost-ipam, half through the API, and a log of what they were told and when.
 *
 *   ipam-load NODE PLUGIN LOG SEED WORKERS SLOTS THINK
 *
 * Each worker holds at most SLOTS attachments and thinks for at most THINK ms before each step.
 * Each line of the log is one operation, with CLOCK_MONOTONIC in ns of its begin and of its
 * end, which all nodes of a lab share:
 *
 *   BEGIN END WORKER add|again|del exec|api NETWORK CONTAINER CODE ADDRESSES TEXT
 *
 * CODE 0 is a success, else what CNI calls it (-1: no answer); ADDRESSES is "10.1.0.5,..." or
 * "-". Commands come on stdin, one a line: "hold" ends the workers, who first DEL whatever
 * they are not sure to hold, and answers "held"; "drain" DELs all and answers "drained".
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/auto.h"
#include "lib/base/cni_code.h"
#include "lib/cni/local_client.h"
#include "lib/json/json.h"

#define SOCKET      "/run/roost/agent.sock"
#define NETNS       "/run/netns/load"
#define DEADLINE_MS 12000 /* the plugin's own is shorter */
#define NO_ANSWER   (-1)

/* What is asked for. A pool that is not there at the moment is one of two that take turns. */
static const struct kind {
	const char *network; /* the CNI network's name */
	const char *pools[2];
	const char *base; /* of addresses that are asked for by number, or NULL */
	unsigned numbers;
} kinds[] = {
	{ .network = "pods" },
	{ .network = "pods" },
	{ .network = "float", .pools = { "float-a", "float-b" } },
	{ .network = "float", .pools = { "float-a", "float-b" }, .base = "10.1.0.", .numbers = 64 },
};

enum slot_state { EMPTY, HELD, DOUBTFUL /* an ADD failed: it may hold something until its DEL */ };

struct slot {
	enum slot_state state;
	const struct kind *kind;
	unsigned generation, pool, number;
	char container[64];
};

struct worker {
	pthread_t thread;
	unsigned number;
	uint64_t random;
	struct slot *slots;
};

struct outcome {
	int code;
	char addresses[256], text[512];
};

static const char *node, *plugin;
static FILE *log_file;
static unsigned n_slots, think_ms;
static atomic_bool stopping;
static bool draining;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* xorshift64*: the same seed, the same wishes. */
static unsigned choose(struct worker *w, unsigned n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (unsigned)((w->random * 0x2545F4914F6CDD1DU) >> 33) % n;
}

/* --- what a reply says ---------------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_string(value) : "";
}

static int number_of(struct json_object *o, const char *name, int otherwise)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_int(value) : otherwise;
}

static void take_addresses(struct json_object *list, struct outcome *out)
{
	size_t n = 0;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *text = text_of(json_object_array_get_idx(list, i), "address");

		n += (size_t)snprintf(out->addresses + n, sizeof(out->addresses) - n, "%s%.*s",
				      n ? "," : "", (int)strcspn(text, "/"), text);
	}
}

/* Of the API ("addresses", "error") or of a plugin ("ips", "msg"). */
static void take_reply(struct json_object *reply, bool failed, struct outcome *out)
{
	struct json_object *list;
	const char *why;

	if (failed) {
		why = text_of(reply, "error");
		out->code = number_of(reply, "code", NO_ANSWER);
		snprintf(out->text, sizeof(out->text), "%s", *why ? why : text_of(reply, "msg"));
		return;
	}
	out->code = 0;
	if (json_object_object_get_ex(reply, "addresses", &list) ||
	    json_object_object_get_ex(reply, "ips", &list))
		take_addresses(list, out);
}

/* --- by the API ----------------------------------------------------------------------------- */

static void request_body(const struct slot *s, bool add, char *body, size_t room)
{
	size_t n = (size_t)snprintf(body, room,
				    "{\"network\":\"%s\",\"container\":\"%s\","
				    "\"interface\":\"eth0\"",
				    s->kind->network, s->container);

	if (add)
		n += (size_t)snprintf(body + n, room - n, ",\"netns\":\"" NETNS "\"");
	if (add && s->kind->pools[0])
		n += (size_t)snprintf(body + n, room - n, ",\"pools\":[\"%s\"]",
				      s->kind->pools[s->pool]);
	if (add && s->kind->base)
		n += (size_t)snprintf(body + n, room - n, ",\"addresses\":[\"%s%u\"]",
				      s->kind->base, s->number);
	snprintf(body + n, room - n, "}");
}

static void call_api(const struct slot *s, bool add, struct outcome *out)
{
	AUTO(json_put) struct json_object *reply = NULL;
	struct err err = { "" };
	unsigned status = 0;
	char body[512];
	int r;

	request_body(s, add, body, sizeof(body));
	r = local_call(SOCKET, "POST", add ? "/v1/ipam/assign" : "/v1/ipam/release", body,
		       DEADLINE_MS, &status, &reply, &err);
	if (r == 0)
		take_reply(reply, status != 200, out);
	else
		snprintf(out->text, sizeof(out->text), "%s", err.text);
}

/* --- by the plugin -------------------------------------------------------------------------- */

static void plugin_config(const struct slot *s, char *text, size_t room)
{
	size_t n = (size_t)snprintf(text, room,
				    "{\"cniVersion\":\"1.0.0\",\"name\":\"%s\",\"type\":\"x\","
				    "\"ipam\":{\"type\":\"roost-ipam\"",
				    s->kind->network);

	if (s->kind->pools[0])
		n += (size_t)snprintf(text + n, room - n, ",\"pool\":\"%s\"",
				      s->kind->pools[s->pool]);
	n += (size_t)snprintf(text + n, room - n, "}");
	if (s->kind->base)
		n += (size_t)snprintf(text + n, room - n,
				      ",\"runtimeConfig\":{\"ips\":[\"%s%u/32\"]}", s->kind->base,
				      s->number);
	snprintf(text + n, room - n, "}");
}

/* stdin and stdout of the plugin; ours are closed there by their flag. */
static int spawn(const struct slot *s, const char *command, int in, int out, pid_t *ret)
{
	char container[96], verb[32];
	char *const argv[] = { (char *)(uintptr_t)plugin, NULL };
	char *const env[] = { verb,
			      container,
			      (char *)(uintptr_t) "CNI_NETNS=" NETNS,
			      (char *)(uintptr_t) "CNI_IFNAME=eth0",
			      (char *)(uintptr_t) "CNI_PATH=/opt/cni/bin",
			      (char *)(uintptr_t) "CNI_ARGS=",
			      NULL };
	posix_spawn_file_actions_t actions;
	int r;

	snprintf(verb, sizeof(verb), "CNI_COMMAND=%s", command);
	snprintf(container, sizeof(container), "CNI_CONTAINERID=%s", s->container);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	r = posix_spawn(ret, plugin, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static size_t read_all(int fd, char *text, size_t room)
{
	size_t n = 0;
	ssize_t got;

	while (n < room - 1 && (got = read(fd, text + n, room - 1 - n)) != 0)
		if (got > 0)
			n += (size_t)got;
		else if (errno != EINTR)
			break;
	text[n] = '\0';
	return n;
}

static int run_plugin(const struct slot *s, const char *command, char *said, size_t room)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = -1;
	char config[512];
	pid_t pid = 0;

	plugin_config(s, config, sizeof(config));
	/* The configuration fits into the pipe, so nobody waits for anybody. */
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    write(in[1], config, strlen(config)) < 0 || spawn(s, command, in[0], out[1], &pid) < 0)
		pid = 0;
	close(in[0]);
	close(in[1]);
	close(out[1]);
	if (pid > 0) {
		read_all(out[0], said, room);
		waitpid(pid, &status, 0);
	}
	close(out[0]);
	return status;
}

static void call_plugin(const struct slot *s, bool add, struct outcome *out)
{
	AUTO(json_put) struct json_object *reply = NULL;
	char said[8192] = "";
	int status = run_plugin(s, add ? "ADD" : "DEL", said, sizeof(said));

	if (!add && status == 0) {
		out->code = 0;
		return;
	}
	reply = json_tokener_parse(said);
	if (reply && WIFEXITED(status))
		take_reply(reply, status != 0, out);
	else
		snprintf(out->text, sizeof(out->text), "status %#x: %.100s", (unsigned)status,
			 said);
}

/* --- operations ----------------------------------------------------------------------------- */

static void note(const struct worker *w, const struct slot *s, const char *verb, bool by_plugin,
		 uint64_t begin, struct outcome *out)
{
	for (char *p = out->text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	fprintf(log_file, "%llu %llu %u %s %s %s %s %d %s %s\n", (unsigned long long)begin,
		(unsigned long long)now_ns(), w->number, verb, by_plugin ? "exec" : "api",
		s->kind->network, s->container, out->code, out->addresses[0] ? out->addresses : "-",
		out->text);
}

static void wait_up_to(struct worker *w, unsigned ms)
{
	unsigned us = choose(w, ms * 1000 + 1);
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

static void add(struct worker *w, struct slot *s)
{
	struct outcome out = { .code = NO_ANSWER };
	const char *verb = s->state == EMPTY ? "add" : "again";
	bool by_plugin = choose(w, 2);
	uint64_t begin;

	if (s->state == EMPTY) {
		s->kind = &kinds[choose(w, ARRAY_SIZE(kinds))];
		s->number = s->kind->numbers ? choose(w, s->kind->numbers) : 0;
		/* The same name again, as if the pod's sandbox were made anew, or another. */
		s->generation += choose(w, 2);
		snprintf(s->container, sizeof(s->container), "%s-%u-%td-%u", node, w->number,
			 s - w->slots, s->generation);
	}
	begin = now_ns();
	(by_plugin ? call_plugin : call_api)(s, true, &out);
	note(w, s, verb, by_plugin, begin, &out);
	if (out.code == 0) {
		s->state = HELD;
		return;
	}
	if (s->state == EMPTY)
		s->state = DOUBTFUL;
	if (out.code == CNI_CODE_NO_ADDRESS)
		s->pool = !s->pool;
	/* Who is refused comes back a moment later. */
	wait_up_to(w, 100);
}

static void del(struct worker *w, struct slot *s)
{
	struct outcome out = { .code = NO_ANSWER };
	bool by_plugin = choose(w, 2);
	uint64_t begin = now_ns();

	(by_plugin ? call_plugin : call_api)(s, false, &out);
	/* The API may be away; the plugin then leaves a note. */
	if (out.code != 0 && !by_plugin)
		call_plugin(s, false, &out);
	out.addresses[0] = '\0';
	note(w, s, "del", by_plugin, begin, &out);
	s->state = EMPTY;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!stopping) {
		struct slot *s = &w->slots[choose(w, n_slots)];

		wait_up_to(w, think_ms);
		if (s->state == EMPTY || choose(w, 4) == 0)
			add(w, s);
		else
			del(w, s);
	}
	for (struct slot *s = w->slots; s < w->slots + n_slots; s++)
		if (s->state == DOUBTFUL || (draining && s->state == HELD))
			del(w, s);
	return NULL;
}

/* --- commands ------------------------------------------------------------------------------- */

static void start(struct worker *workers, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			abort();
}

static void finish(const struct worker *workers, unsigned n, const char *answer)
{
	stopping = true;
	for (unsigned i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	fflush(log_file);
	puts(answer);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	AUTO(free) struct worker *workers = NULL;
	char line[32];
	unsigned n;

	if (argc != 8)
		return 2;
	node = argv[1];
	plugin = argv[2];
	log_file = fopen(argv[3], "we");
	n = (unsigned)strtoul(argv[5], NULL, 10);
	n_slots = (unsigned)strtoul(argv[6], NULL, 10);
	think_ms = (unsigned)strtoul(argv[7], NULL, 10);
	workers = calloc(n ?: 1, sizeof(*workers));
	if (!log_file || !workers || !n || !n_slots)
		return 1;
	setvbuf(log_file, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct worker){ .number = i };
		workers[i].random = (strtoull(argv[4], NULL, 10) + i + 1) * 0x9E3779B97F4A7C15U;
		workers[i].slots = calloc(n_slots, sizeof(struct slot));
		if (!workers[i].slots)
			return 1;
	}
	start(workers, n);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "hold\n") == 0) {
			finish(workers, n, "held");
		} else if (strcmp(line, "drain\n") == 0) {
			draining = true;
			start(workers, n);
			finish(workers, n, "drained");
		}
	}
	for (unsigned i = 0; i < n; i++)
		free(workers[i].slots);
	fclose(log_file);
	return 0;
}
