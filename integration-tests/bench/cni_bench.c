/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPAM plugins as a container runtime runs them, two in turn in one run, and the agent behind ours.
 *
 *   cni-bench --ours PLUGIN --ours-conf FILE --theirs PLUGIN --theirs-conf FILE --netns PATH
 *             [--rounds N] [--batches N] [--at-once N] [--socket PATH]
 *             [--only exec|one|many|interfaces|share]               prints one JSON object
 *
 * Both plugins go first in turn. Every ADD is followed by its DEL before the next round, which
 * keeps the table of a plugin that searches it small.
 *
 * The agent's share of an ADD is a request over its socket less the same request to a
 * server that reads it and has the reply ready: what is left is reading, deciding, the
 * file, and writing. All times in ms.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "integration-tests/bench/figures.h"
#include "integration-tests/bench/plugin_run.h"
#include "lib/base/auto.h"
#include "lib/json/json.h"

#define AT_ONCE_MAX 1000
#define REPLY_MAX   8192
#define INTERFACES  10

struct bench {
	struct plugin plugins[2]; /* ours, theirs */
	const char *netns, *socket;
	size_t rounds, batches, at_once;
	struct json_object *result;
};

static const char *const names[2] = { "ours", "theirs" };

static double call(const struct bench *b, size_t which, const char *verb, const char *container,
		   const char *interface)
{
	const struct call c = { verb, container, interface, b->netns };

	return plugin_call(&b->plugins[which], &c);
}

/* --- one at a time -------------------------------------------------------------------------- */

/* VERSION: the exec and nothing else. */
static void bench_exec(const struct bench *b)
{
	AUTO(figures_free) struct figures *f = figures_new(2);

	for (size_t i = 0; i < b->rounds; i++)
		for (size_t turn = 0; turn < 2; turn++) {
			size_t which = (i + turn) % 2;

			figures_push(f, which, call(b, which, "VERSION", "none", "eth0"));
		}
	figures_tell(f, "exec", names, b->result);
}

static void bench_one(const struct bench *b)
{
	AUTO(figures_free) struct figures *adds = figures_new(2);
	AUTO(figures_free) struct figures *dels = figures_new(2);
	char container[64];

	for (size_t i = 0; i < b->rounds; i++) {
		snprintf(container, sizeof(container), "one-%zu", i);
		for (size_t turn = 0; turn < 4; turn++) {
			size_t which = (i + turn) % 2;
			double ms = call(b, which, turn < 2 ? "ADD" : "DEL", container, "eth0");

			figures_push(turn < 2 ? adds : dels, which, ms);
		}
	}
	figures_tell(adds, "add", names, b->result);
	figures_tell(dels, "del", names, b->result);
}

/* --- many at once --------------------------------------------------------------------------- */

struct batch {
	struct figures *each; /* NULL: nobody asks */
	size_t which;
};

static void batch_ended(size_t tag, double ms, void *arg)
{
	const struct batch *batch = arg;

	if (batch->each)
		figures_push(batch->each, batch->which, ms);
}

/* Starts them all, then sees to their ends as they come; the time of the whole. */
static double run_batch(const struct bench *b, struct crowd *crowd, const char *verb, size_t round,
			struct batch *batch)
{
	double start = now_ms();

	for (size_t i = 0; i < b->at_once; i++) {
		char container[64];

		snprintf(container, sizeof(container), "many-%zu-%zu", round, i);
		crowd_begin(crowd, &b->plugins[batch->which],
			    &(struct call){ verb, container, "eth0", b->netns }, i);
	}
	while (crowd_busy(crowd))
		crowd_wait(crowd, -1, -1, batch_ended, batch);
	return now_ms() - start;
}

static void bench_many(const struct bench *b)
{
	AUTO(crowd_free) struct crowd *crowd = crowd_new(b->at_once);
	AUTO(figures_free) struct figures *batches = figures_new(2);
	AUTO(figures_free) struct figures *each = figures_new(2);

	for (size_t i = 0; i < b->batches; i++)
		for (size_t turn = 0; turn < 2; turn++) {
			struct batch add = { each, (i + turn) % 2 }, del = { NULL, add.which };

			figures_push(batches, add.which, run_batch(b, crowd, "ADD", i, &add));
			run_batch(b, crowd, "DEL", i, &del);
		}
	figures_tell(batches, "many", names, b->result);
	figures_tell(each, "many_each", names, b->result);
}

/* --- ten interfaces ------------------------------------------------------------------------- */

/* All ADDs' time, of one pod with ten interfaces or of ten pods with one; DELs follow. */
static double add_ten(const struct bench *b, size_t round, bool one_pod)
{
	char container[64], interface[16];
	double sum = 0;

	for (size_t k = 0; k < 2 * INTERFACES; k++) {
		size_t j = k % INTERFACES;
		double ms;

		snprintf(container, sizeof(container), "pod-%zu-%zu", round, one_pod ? 0 : j + 1);
		snprintf(interface, sizeof(interface), "net%zu", one_pod ? j : 0);
		ms = call(b, 0, k < INTERFACES ? "ADD" : "DEL", container, interface);
		sum += k < INTERFACES ? ms : 0;
	}
	return sum;
}

/* A pod with ten interfaces against ten pods with one, both ours. */
static void bench_interfaces(const struct bench *b)
{
	AUTO(figures_free) struct figures *f = figures_new(2);

	for (size_t i = 0; i < (b->rounds / INTERFACES ?: 1); i++)
		for (size_t turn = 0; turn < 2; turn++) {
			size_t which = (i + turn) % 2;

			figures_push(f, which, add_ten(b, i, which == 0));
		}
	figures_tell(f, "ten_interfaces", names, b->result);
}

/* --- the agent's share ---------------------------------------------------------------------- */

static int connect_to(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		die(path);
	return fd;
}

/* As the plugin does it, from connect() to the whole reply; returns its length. */
static size_t ask(const char *path, const char *request, char *reply, double *ret_ms)
{
	double start = now_ms();
	int fd = connect_to(path);
	size_t len = 0;
	ssize_t n;

	if (send(fd, request, strlen(request), 0) < 0)
		die("send");
	/* The agent closes, as it was asked to. */
	while ((n = recv(fd, reply + len, REPLY_MAX - 1 - len, 0)) > 0)
		len += (size_t)n;
	*ret_ms = now_ms() - start;
	close(fd);
	reply[len] = '\0';
	if (strncmp(reply, "HTTP/1.1 200", 12) != 0) {
		fprintf(stderr, "cni-bench: the agent says: %s\n", reply);
		exit(1);
	}
	return len;
}

static void print_request(char *text, const char *verb, size_t i, const char *netns)
{
	char body[1024];

	snprintf(body, sizeof(body),
		 "{\"network\":\"bench\",\"container\":\"share-%zu\",\"interface\":\"eth0\","
		 "\"netns\":\"%s\",\"namespace\":\"prod\",\"pod\":\"web-%zu\"}",
		 i, netns, i);
	snprintf(text, 2048,
		 "POST /v1/ipam/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 verb, strlen(body), body);
}

/* The floor: accept, read, write what is ready, close. */
static void serve_ready(int listener, const char *reply, size_t len)
{
	char request[REPLY_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		int fd;

		/* The agent waits for all its descriptors, and only then accepts. */
		if (poll(&p, 1, -1) < 0)
			_exit(1);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || recv(fd, request, sizeof(request), 0) <= 0 ||
		    send(fd, reply, len, MSG_NOSIGNAL) != (ssize_t)len)
			_exit(1);
		close(fd);
	}
}

static pid_t start_ready(const char *path, const char *reply, size_t len)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 100) < 0)
		die(path);
	pid = fork();
	if (pid == 0)
		serve_ready(fd, reply, len);
	close(fd);
	return pid;
}

enum { REQUEST, READY, SHARE };

/* One request to the agent and the same to the server that is ready, which of them first in turn.
 */
static void share_round(const struct bench *b, const char *ready, size_t i, pid_t *pid,
			struct figures *f)
{
	char assign[2048], release[2048], reply[REPLY_MAX];
	double agent, floor_ms = 0, ignored;
	size_t len;

	print_request(assign, "assign", i, b->netns);
	print_request(release, "release", i, b->netns);
	if (i % 2)
		ask(ready, assign, reply, &floor_ms);
	len = ask(b->socket, assign, reply, &agent);
	if (*pid < 0)
		*pid = start_ready(ready, reply, len);
	if (i % 2 == 0)
		ask(ready, assign, reply, &floor_ms);
	ask(b->socket, release, reply, &ignored);
	figures_push(f, REQUEST, agent);
	figures_push(f, READY, floor_ms);
	figures_push(f, SHARE, agent - floor_ms);
}

static void bench_share(const struct bench *b)
{
	static const char *const ready = "/run/cni-bench.sock";
	AUTO(figures_free) struct figures *f = figures_new(3);
	pid_t pid = -1;

	for (size_t i = 0; i < b->rounds; i++)
		share_round(b, ready, i, &pid, f);
	figures_tell_one(b->result, "request", "", "p50", figures_percentile(f, REQUEST, 0.5));
	figures_tell_one(b->result, "request", "", "p99", figures_percentile(f, REQUEST, 0.99));
	figures_tell_one(b->result, "floor", "", "p50", figures_percentile(f, READY, 0.5));
	figures_tell_one(b->result, "share", "", "p50", figures_percentile(f, SHARE, 0.5));
	figures_tell_one(b->result, "share", "", "p99", figures_percentile(f, SHARE, 0.99));
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	unlink(ready);
}

/* -------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(const struct bench *b);
} benches[] = {
	{ "exec", bench_exec },   { "one", bench_one },
	{ "many", bench_many },   { "interfaces", bench_interfaces },
	{ "share", bench_share },
};

int main(int argc, char **argv)
{
	static const struct option options[] = { { "ours", required_argument, NULL, 'o' },
						 { "ours-conf", required_argument, NULL, 'O' },
						 { "theirs", required_argument, NULL, 't' },
						 { "theirs-conf", required_argument, NULL, 'T' },
						 { "netns", required_argument, NULL, 'n' },
						 { "socket", required_argument, NULL, 's' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "batches", required_argument, NULL, 'b' },
						 { "at-once", required_argument, NULL, 'a' },
						 { "only", required_argument, NULL, 'w' },
						 { NULL, 0, NULL, 0 } };
	struct bench b = { .rounds = 300,
			   .batches = 10,
			   .at_once = 100,
			   .netns = "/run/netns/bench",
			   .socket = "/run/roost/agent.sock" };
	const char *only = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'o')
			b.plugins[0].path = optarg;
		else if (c == 'O')
			b.plugins[0].conf = plugin_conf_read(optarg);
		else if (c == 't')
			b.plugins[1].path = optarg;
		else if (c == 'T')
			b.plugins[1].conf = plugin_conf_read(optarg);
		else if (c == 'n')
			b.netns = optarg;
		else if (c == 's')
			b.socket = optarg;
		else if (c == 'r')
			b.rounds = strtoul(optarg, NULL, 10);
		else if (c == 'b')
			b.batches = strtoul(optarg, NULL, 10);
		else if (c == 'a')
			b.at_once = strtoul(optarg, NULL, 10);
		else if (c == 'w')
			only = optarg;
	}
	if (!b.plugins[0].conf || !b.plugins[1].conf || !b.plugins[0].path || !b.plugins[1].path ||
	    !b.rounds || !b.batches || !b.at_once || b.at_once > AT_ONCE_MAX) {
		fputs("usage: see the head of cni_bench.c\n", stderr);
		return 2;
	}
	b.result = json_object_new_object();
	for (size_t i = 0; i < ARRAY_SIZE(benches); i++)
		if (!only || strcmp(only, benches[i].name) == 0)
			benches[i].run(&b);
	puts(json_object_to_json_string(b.result));
	json_object_put(b.result);
	free(b.plugins[0].conf);
	free(b.plugins[1].conf);
	return 0;
}
