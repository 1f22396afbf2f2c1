/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay of a large cluster into the kernel: the agent's own core against a command.
 *
 *   overlay-bench REMOTES BLOCKS ROUNDS COMMAND [ARGUMENT...]
 *
 * Works in the network namespace that it is started in, which needs an address 192.0.2.7. In turn
 * the core and COMMAND make the device and all on it, and it is removed again. One JSON
 * object: scratch_* (figures.h) of both, and of the core what comes after: a pass with nothing to
 * do, what should be as it is computed, one node more, its messages, and the memory in all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/kernel/desired_kernel.h"
#include "agent/kernel/kernel_private.h"
#include "integration-tests/bench/figures.h"

#define HANG_MS 60000.0
#define REPEATS 20

struct cluster {
	uint32_t remotes, blocks; /* each has so many */
	sd_event *event;
	struct timers *timers;
	struct health *health;
	struct kernel *kernel;
	bool gone;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	errno = -r;
	die(what);
}

/* --- what should be ------------------------------------------------------------------------- */

static struct address ipv4(uint32_t number)
{
	struct address a = { .family = AF_INET };
	const uint32_t bytes = htonl(number);

	memcpy(a.bytes, &bytes, sizeof(bytes));
	return a;
}

/* As the command's own files have it: 10.64.0.0 and up in /26, the underlay in 172.16.0.0/12. */
static struct kernel_remote remote(const struct cluster *c, uint32_t i)
{
	return (struct kernel_remote){ .underlay = ipv4(0xac100001u + i),
				       .mac = { { 2, 0, 0, 1, (uint8_t)(i >> 8), (uint8_t)i } },
				       .vtep = { ipv4(0x0a400000u + i * c->blocks * 64) } };
}

static struct kernel_remote_block block(const struct cluster *c, uint32_t i, uint32_t j)
{
	const struct address base = ipv4(0x0a400000u + (i * c->blocks + j) * 64);

	return (struct kernel_remote_block){ .block = prefix_of(&base, 26), .remote = i };
}

static int desire(struct kernel_wants *ret, void *arg)
{
	const struct cluster *c = arg;

	*ret = (struct kernel_wants){ 0 };
	if (c->gone)
		return 0;
	ret->tunnels = zeroed(1, sizeof(*ret->tunnels));
	ret->n_tunnels = 1;
	ret->tunnels[0] = (struct kernel_tunnel){ .local = ipv4(0xc0000207u),
						  .mac = { { 2, 0, 0, 0, 9, 9 } },
						  .vni = 4096,
						  .port = 4789,
						  .mtu = 1450,
						  .checksum_offload = true,
						  .addresses = { ipv4(0x0a000001u) },
						  .n_addresses = 1 };
	ret->remotes = zeroed(c->remotes, sizeof(*ret->remotes));
	ret->remote_blocks = zeroed((size_t)c->remotes * c->blocks, sizeof(*ret->remote_blocks));
	for (uint32_t i = 0; i < c->remotes; i++) {
		ret->remotes[ret->n_remotes++] = remote(c, i);
		for (uint32_t j = 0; j < c->blocks; j++)
			ret->remote_blocks[ret->n_remote_blocks++] = block(c, i, j);
	}
	return 0;
}

/* --- the core ------------------------------------------------------------------------------- */

static bool is_done(const struct cluster *c)
{
	const struct kernel_stats s = kernel_stats(c->kernel);
	const size_t n = c->gone ? 0 : c->remotes;

	return s.fdb == n && s.neighbours == n && s.routes == n * c->blocks &&
	       kernel_ready(c->kernel, NULL) && !pass_stats(c->kernel->pass).dirty;
}

static void run_until_done(struct cluster *c)
{
	const double until = now_ms() + HANG_MS;
	struct err why = { 0 };

	while (!is_done(c)) {
		must(sd_event_run(c->event, 10000), "loop");
		if (now_ms() > until) {
			kernel_ready(c->kernel, &why);
			fprintf(stderr, "overlay-bench: stuck: %s\n", why.text);
			exit(1);
		}
	}
}

static double pass_ms(struct cluster *c)
{
	const double before = now_ms();

	kernel_mark(c->kernel);
	kernel_now(c->kernel);
	run_until_done(c);
	return now_ms() - before;
}

static void start(struct cluster *c)
{
	const struct kernel_options options = { .event = c->event,
						.timers = c->timers,
						.health = c->health,
						.minute = 600000,
						.desire = desire,
						.arg = c };
	struct err err = { 0 };

	if (kernel_new(&options, &c->kernel, &err) < 0) {
		fprintf(stderr, "overlay-bench: %s\n", err.text);
		exit(1);
	}
	kernel_open(c->kernel);
}

static double from_scratch(struct cluster *c)
{
	const double before = now_ms();

	start(c);
	run_until_done(c);
	return now_ms() - before;
}

static void remove_all(struct cluster *c)
{
	c->gone = true;
	pass_ms(c);
	c->gone = false;
	kernel_free(c->kernel);
	c->kernel = NULL;
}

/* Of this process alone: what others do on the machine does not count. */
static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double compute_ms(struct cluster *c)
{
	struct kernel_wants state;
	struct desired_kernel d;
	double before;

	must(desire(&state, c), "state");
	before = cpu_ms();
	for (int i = 0; i < REPEATS; i++) {
		must(desired_kernel(&state, &c->kernel->view, NULL, &d), "what should be");
		desired_kernel_done(&d);
	}
	before = cpu_ms() - before;
	free(state.tunnels);
	free(state.remotes);
	free(state.remote_blocks);
	return before / REPEATS;
}

/* A pass that finds nothing to do. */
static double idle_ms(struct cluster *c)
{
	double before;

	pass_ms(c); /* the kernel's word of what was made is read by this one */
	before = cpu_ms();
	for (int i = 0; i < REPEATS; i++)
		pass_ms(c);
	return (cpu_ms() - before) / REPEATS;
}

/* --- what a change costs -------------------------------------------------------------------- */

static int count_event(const struct nlmsghdr *hdr, void *arg)
{
	++*(unsigned *)arg;
	return 0;
}

struct change_cost {
	double ms;
	unsigned messages;
};

static struct change_cost one_node_more(struct cluster *c)
{
	static const unsigned groups[] = { RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_NEIGH, 0 };
	AUTO(netlink_close) struct netlink *events = NULL;
	struct change_cost cost = { 0 };

	must(netlink_events_open(NETLINK_ROUTE, groups, 0, &events), "events");
	c->remotes++;
	cost.ms = pass_ms(c);
	must(netlink_events_read(events, count_event, &cost.messages), "events");
	c->remotes--;
	pass_ms(c);
	return cost;
}

static void tell(struct json_object *result, const char *name, double value)
{
	json_object_object_add(result, name, json_object_new_double(value));
}

/* --- the command ---------------------------------------------------------------------------- */

static void run(char *const *argv)
{
	pid_t pid;
	int status;

	errno = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (errno != 0)
		die(argv[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "overlay-bench: %s failed\n", argv[0]);
		exit(1);
	}
}

struct mishap {
	const char *name, *command;
};

/* From the end of the command until all is there again; the kernel's events alone tell of it. */
static double repair_ms(struct cluster *c, const struct mishap *m)
{
	char sh[] = "sh", option[] = "-c";
	char command[128];
	char *const argv[] = { sh, option, command, NULL };
	double before;

	snprintf(command, sizeof(command), "%s", m->command);
	run(argv);
	before = now_ms();
	kernel_drain(c->kernel);
	run_until_done(c);
	return now_ms() - before;
}

static void tell_repairs(struct cluster *c, struct json_object *result)
{
	static const struct mishap mishaps[] = {
		{ "device_deleted_ms", "ip link del roost.vxlan" },
		{ "link_flap_ms", "ip link set roost.vxlan down && ip link set roost.vxlan up" },
		{ "fdb_flushed_ms", "bridge fdb flush dev roost.vxlan self" },
		{ "neighbours_flushed_ms", "ip neigh flush dev roost.vxlan nud permanent" },
		{ "routes_flushed_ms", "ip route flush proto 114" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(mishaps); i++)
		tell(result, mishaps[i].name, repair_ms(c, &mishaps[i]));
}

/* What the command made is all there is to be: the core finds nothing to do, and removes it. */
static double by_command(struct cluster *c, char *const *argv)
{
	const double before = now_ms();
	double took;

	run(argv);
	took = now_ms() - before;
	start(c);
	run_until_done(c);
	remove_all(c);
	return took;
}

/* -------------------------------------------------------------------------------------------- */

/* At most; getrusage() would count who started us as well. */
static double memory_mb(void)
{
	AUTO(fclose) FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	double kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtod(line + 6, NULL);
	return kb / 1024;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "ours", "theirs" };
	AUTO(figures_free) struct figures *f = figures_new(2);
	struct json_object *result = json_object_new_object();
	struct cluster c = { 0 };
	struct change_cost cost;

	if (argc < 5) {
		fputs("usage: see the head of overlay_bench.c\n", stderr);
		return 2;
	}
	c.remotes = (uint32_t)strtoul(argv[1], NULL, 10);
	c.blocks = (uint32_t)strtoul(argv[2], NULL, 10);
	log_set_level(LOG_LEVEL_ERROR);
	must(sd_event_new(&c.event), "loop");
	must(timers_loop_new(c.event, &c.timers), "loop");
	must(health_new(NULL, NULL, &c.health), "health");
	for (unsigned long i = strtoul(argv[3], NULL, 10); i > 0; i--) {
		figures_push(f, 0, from_scratch(&c));
		if (i == 1) {
			tell(result, "compute_ms", compute_ms(&c));
			tell(result, "idle_pass_ms", idle_ms(&c));
			cost = one_node_more(&c);
			tell(result, "change_ms", cost.ms);
			tell(result, "change_messages", cost.messages);
			tell_repairs(&c, result);
			tell(result, "memory_mb", memory_mb());
		}
		remove_all(&c);
		figures_push(f, 1, by_command(&c, argv + 4));
	}
	figures_tell(f, "scratch", names, result);
	puts(json_object_to_json_string_ext(result, JSON_C_TO_STRING_PLAIN));
	json_object_put(result);
	health_free(c.health);
	timers_loop_free(c.timers);
	sd_event_unref(c.event);
	return 0;
}
