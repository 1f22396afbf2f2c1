/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPAM plugins as a container runtime runs them, two in turn in one run, and the agent behind ours.
 *
 *   cni-bench --ours PLUGIN --ours-conf FILE --theirs PLUGIN --theirs-conf FILE --netns PATH
 *             [--rounds N] [--batches N] [--at-once N] [--socket PATH]
 *             [--only exec|one|many|interfaces|share]               prints one JSON object
 *
 * The time of an exec is from posix_spawn() to the end of the process, its output read:
 * what a runtime waits for. Both plugins get the same environment, pipes and treatment,
 * and go first in turn. Every ADD is followed by its DEL before the next round, which keeps
 * the table of a plugin that searches it small.
 *
 * The agent's share of an ADD is a request over its socket less the same request to a
 * server that reads it and has the reply ready: what is left is reading, deciding, the
 * file, and writing. All times in ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/auto.h"
#include "lib/json.h"

#define AT_ONCE_MAX 1000
#define OUTPUT_MAX  8192
#define INTERFACES  10

struct plugin {
	const char *path;
	char *conf;
	char variables[5][256];
	char *env[7];
};

/* One exec under way. */
struct run {
	pid_t pid;
	int out;
	double start, ms;
	size_t len;
	char output[OUTPUT_MAX];
};

struct bench {
	struct plugin plugins[2]; /* ours, theirs */
	const char *netns, *socket;
	size_t rounds, batches, at_once;
	struct json_object *result;
};

static const char *const names[2] = { "ours", "theirs" };

static void die(const char *what)
{
	fprintf(stderr, "cni-bench: %s: %m\n", what);
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- one exec ------------------------------------------------------------------------------- */

static void set_variables(const struct bench *b, struct plugin *p, const char *verb,
			  const char *container, const char *interface)
{
	size_t n = 0;

	snprintf(p->variables[0], sizeof(p->variables[0]), "CNI_COMMAND=%s", verb);
	snprintf(p->variables[1], sizeof(p->variables[1]), "CNI_CONTAINERID=%s", container);
	snprintf(p->variables[2], sizeof(p->variables[2]), "CNI_IFNAME=%s", interface);
	snprintf(p->variables[3], sizeof(p->variables[3]), "CNI_NETNS=%s", b->netns);
	snprintf(p->variables[4], sizeof(p->variables[4]), "CNI_PATH=/opt/cni/bin");
	for (; n < ARRAY_SIZE(p->variables); n++)
		p->env[n] = p->variables[n];
	p->env[n] = NULL;
}

/* The configuration fits into the pipe, so it is there before the plugin asks for it. */
static void begin(struct plugin *p, struct run *run)
{
	char *path = strdup(p->path);
	char *argv[] = { path, NULL };
	posix_spawn_file_actions_t actions;
	int in[2], out[2], r;
	size_t len = strlen(p->conf);

	run->start = now_ms();
	run->len = 0;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || !path)
		die("pipe");
	if (write(in[1], p->conf, len) != (ssize_t)len)
		die("write");
	close(in[1]);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	r = posix_spawn(&run->pid, p->path, &actions, NULL, argv, p->env);
	posix_spawn_file_actions_destroy(&actions);
	free(path);
	if (r != 0) {
		errno = r;
		die(p->path);
	}
	close(in[0]);
	close(out[1]);
	run->out = out[0];
}

/* false: there is more to come. */
static bool read_some(struct run *run)
{
	ssize_t n = read(run->out, run->output + run->len, sizeof(run->output) - 1 - run->len);
	int status;

	if (n < 0)
		die("read");
	run->len += (size_t)n;
	if (n > 0)
		return false;
	close(run->out);
	run->out = -1;
	if (waitpid(run->pid, &status, 0) != run->pid)
		die("waitpid");
	run->ms = now_ms() - run->start;
	run->output[run->len] = '\0';
	if (status != 0) {
		fprintf(stderr, "cni-bench: a plugin failed: %s\n", run->output);
		exit(1);
	}
	return true;
}

static double call(const struct bench *b, size_t which, const char *verb, const char *container,
		   const char *interface)
{
	struct plugin p = b->plugins[which];
	struct run run;

	set_variables(b, &p, verb, container, interface);
	begin(&p, &run);
	while (!read_some(&run))
		;
	return run.ms;
}

/* --- figures -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *figures(size_t n)
{
	double *v = calloc(n, sizeof(*v));

	if (!v)
		die("calloc");
	return v;
}

static double percentile(double *v, size_t n, double p)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[(size_t)((double)(n - 1) * p)];
}

static void add(const struct bench *b, const char *what, const char *who, const char *which,
		double value)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s%s_%s", what, *who ? "_" : "", who, which);
	json_object_object_add(b->result, name, json_object_new_double(value));
}

/* The median of the pairs' ratios first: sorting for the percentiles parts the pairs. */
static void add_pairs(const struct bench *b, const char *what, double *const v[2], size_t n)
{
	AUTO(free) double *ratio = figures(n);

	for (size_t i = 0; i < n; i++)
		ratio[i] = v[0][i] / v[1][i];
	add(b, what, "", "ratio", percentile(ratio, n, 0.5));
	for (size_t which = 0; which < 2; which++) {
		add(b, what, names[which], "p50", percentile(v[which], n, 0.5));
		add(b, what, names[which], "p99", percentile(v[which], n, 0.99));
	}
}

/* --- one at a time -------------------------------------------------------------------------- */

/* VERSION: the exec and nothing else. */
static void bench_exec(const struct bench *b)
{
	AUTO(free) double *ours = figures(b->rounds);
	AUTO(free) double *theirs = figures(b->rounds);
	double *const v[2] = { ours, theirs };

	for (size_t i = 0; i < b->rounds; i++)
		for (size_t turn = 0; turn < 2; turn++) {
			size_t which = (i + turn) % 2;

			v[which][i] = call(b, which, "VERSION", "none", "eth0");
		}
	add_pairs(b, "exec", v, b->rounds);
}

static void bench_one(const struct bench *b)
{
	AUTO(free) double *add_ours = figures(b->rounds);
	AUTO(free) double *add_theirs = figures(b->rounds);
	AUTO(free) double *del_ours = figures(b->rounds);
	AUTO(free) double *del_theirs = figures(b->rounds);
	double *const adds[2] = { add_ours, add_theirs }, *const dels[2] = { del_ours, del_theirs };
	char container[64];

	for (size_t i = 0; i < b->rounds; i++) {
		snprintf(container, sizeof(container), "one-%zu", i);
		for (size_t turn = 0; turn < 4; turn++) {
			size_t which = (i + turn) % 2;

			if (turn < 2)
				adds[which][i] = call(b, which, "ADD", container, "eth0");
			else
				dels[which][i] = call(b, which, "DEL", container, "eth0");
		}
	}
	add_pairs(b, "add", adds, b->rounds);
	add_pairs(b, "del", dels, b->rounds);
}

/* --- many at once --------------------------------------------------------------------------- */

/* Starts them all, then sees to their ends as they come; the time of the whole. */
static double batch(const struct bench *b, size_t which, const char *verb, size_t round,
		    struct run *runs)
{
	struct plugin p = b->plugins[which];
	AUTO(free) struct pollfd *fds = calloc(b->at_once, sizeof(*fds));
	size_t left = b->at_once;
	char container[64];
	double start = now_ms();

	if (!fds)
		die("calloc");
	for (size_t i = 0; i < b->at_once; i++) {
		snprintf(container, sizeof(container), "many-%zu-%zu", round, i);
		set_variables(b, &p, verb, container, "eth0");
		begin(&p, &runs[i]);
		fds[i] = (struct pollfd){ .fd = runs[i].out, .events = POLLIN };
	}
	while (left) {
		if (poll(fds, b->at_once, -1) < 0)
			die("poll");
		for (size_t i = 0; i < b->at_once; i++)
			if (fds[i].revents && read_some(&runs[i])) {
				fds[i].fd = -1;
				fds[i].revents = 0;
				left--;
			}
	}
	return now_ms() - start;
}

static void bench_many(const struct bench *b)
{
	size_t n = b->batches * b->at_once;
	AUTO(free) struct run *runs = calloc(b->at_once, sizeof(*runs));
	AUTO(free) double *batch_ours = figures(b->batches);
	AUTO(free) double *batch_theirs = figures(b->batches);
	AUTO(free) double *each_ours = figures(n);
	AUTO(free) double *each_theirs = figures(n);
	double *const batches[2] = { batch_ours, batch_theirs };
	double *const each[2] = { each_ours, each_theirs };

	if (!runs)
		die("calloc");
	for (size_t i = 0; i < b->batches; i++)
		for (size_t turn = 0; turn < 2; turn++) {
			size_t which = (i + turn) % 2;

			batches[which][i] = batch(b, which, "ADD", i, runs);
			for (size_t k = 0; k < b->at_once; k++)
				each[which][i * b->at_once + k] = runs[k].ms;
			batch(b, which, "DEL", i, runs);
		}
	add_pairs(b, "many", batches, b->batches);
	add_pairs(b, "many_each", each, n);
}

/* --- ten interfaces ------------------------------------------------------------------------- */

/* A pod with ten interfaces against ten pods with one, both ours. */
static void bench_interfaces(const struct bench *b)
{
	size_t n = b->rounds / INTERFACES ?: 1;
	AUTO(free) double *one_pod = figures(n);
	AUTO(free) double *ten_pods = figures(n);
	double *const v[2] = { one_pod, ten_pods };
	char container[64], interface[16];

	for (size_t i = 0; i < n; i++)
		for (size_t turn = 0; turn < 2; turn++) {
			size_t which = (i + turn) % 2;

			for (size_t k = 0; k < 2 * INTERFACES; k++) {
				size_t j = k % INTERFACES;
				double ms;

				snprintf(container, sizeof(container), "pod-%zu-%zu", i,
					 which == 0 ? 0 : j + 1);
				snprintf(interface, sizeof(interface), "net%zu",
					 which == 0 ? j : 0);
				ms = call(b, 0, k < INTERFACES ? "ADD" : "DEL", container,
					  interface);
				v[which][i] += k < INTERFACES ? ms : 0;
			}
		}
	add_pairs(b, "ten_interfaces", v, n);
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
	while ((n = recv(fd, reply + len, OUTPUT_MAX - 1 - len, 0)) > 0)
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
	char request[OUTPUT_MAX];

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

static void bench_share(const struct bench *b)
{
	static const char *const ready = "/run/cni-bench.sock";
	AUTO(free) double *agent = figures(b->rounds);
	AUTO(free) double *floor_ms = figures(b->rounds);
	AUTO(free) double *share = figures(b->rounds);
	char assign[2048], release[2048], reply[OUTPUT_MAX];
	pid_t pid = -1;
	double ms;

	for (size_t i = 0; i < b->rounds; i++) {
		print_request(assign, "assign", i, b->netns);
		print_request(release, "release", i, b->netns);
		if (i % 2 && pid > 0)
			ask(ready, assign, reply, &floor_ms[i]);
		ms = (double)ask(b->socket, assign, reply, &agent[i]);
		if (pid < 0)
			pid = start_ready(ready, reply, (size_t)ms);
		if (i % 2 == 0)
			ask(ready, assign, reply, &floor_ms[i]);
		share[i] = agent[i] - floor_ms[i];
		ask(b->socket, release, reply, &ms);
	}
	add(b, "request", "", "p50", percentile(agent, b->rounds, 0.5));
	add(b, "request", "", "p99", percentile(agent, b->rounds, 0.99));
	add(b, "floor", "", "p50", percentile(floor_ms, b->rounds, 0.5));
	add(b, "share", "", "p50", percentile(share, b->rounds, 0.5));
	add(b, "share", "", "p99", percentile(share, b->rounds, 0.99));
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	unlink(ready);
}

/* ---------------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	char *text = calloc(1, OUTPUT_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (!text || fd < 0 || read(fd, text, OUTPUT_MAX - 1) < 0)
		die(path);
	close(fd);
	return text;
}

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
			b.plugins[0].conf = read_file(optarg);
		else if (c == 't')
			b.plugins[1].path = optarg;
		else if (c == 'T')
			b.plugins[1].conf = read_file(optarg);
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
