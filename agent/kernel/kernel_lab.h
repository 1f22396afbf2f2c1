/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a kernel of its own (a network namespace), a loop, and the state that the agent
 * would have. Somebody else's work is done by ip(8), as it would be in life.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/kernel/kernel.h"
#include "agent/kernel/kernel_private.h"
#include "lib/base/clock.h"

#define LAB_PODS     8
#define LAB_PATIENCE 60000 /* ms: against hangs alone */

struct lab {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	struct kernel *kernel;
	struct kernel_pod pods[LAB_PODS];
	size_t n_pods;
	struct kernel_block blocks[LAB_PODS];
	size_t n_blocks;
	struct kroute routes[LAB_PODS];
	size_t n_routes;
	struct kernel_tunnel tunnels[2];
	size_t n_tunnels;
	struct kernel_remote remotes[LAB_PODS];
	size_t n_remotes;
	struct kernel_remote_block remote_blocks[2 * LAB_PODS];
	size_t n_remote_blocks;
	struct prefixes protect;
	uint32_t export_table;
	bool ipv6;
	uint32_t minute;
	char gone[256];
	/* Instead of pods, if set. */
	int (*desire)(struct kernel_wants *ret);
};

static const struct mac lab_mac = { { 2, 0, 0, 0, 0, 1 } };

#define sh(...) assert_int_equal(lab_shell(__VA_ARGS__), 0)
__attribute__((format(printf, 1, 2))) static inline int lab_shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command); // NOLINT
}

/* What a command prints, without the blanks at its ends and with single ones between. */
__attribute__((format(printf, 1, 2))) static inline const char *lab_output(const char *fmt, ...)
{
	static char text[8192];
	char command[2048];
	size_t n = 0;
	va_list ap;
	FILE *f;
	int c;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	f = popen(command, "re"); // NOLINT
	assert_non_null(f);
	while ((c = fgetc(f)) != EOF && n < sizeof(text) - 1) {
		if (c == ' ' || c == '\t')
			c = ' ';
		if (c == ' ' && (n == 0 || text[n - 1] == ' ' || text[n - 1] == '\n'))
			continue;
		if (c == '\n' && n && text[n - 1] == ' ')
			n--;
		text[n++] = (char)c;
	}
	while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	text[n] = '\0';
	pclose(f);
	return text;
}

static inline struct address lab_address(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static inline struct prefix lab_prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p), 0);
	return p;
}

/* Warnings of the kernel's part, a line each. */
static char lab_warnings[16384];
static inline void lab_sink(const struct log_record *r)
{
	size_t n = strlen(lab_warnings);

	if (r->level <= LOG_LEVEL_WARNING && strcmp(r->part, "kernel") == 0)
		snprintf(lab_warnings + n, sizeof(lab_warnings) - n, "%s\n", r->text);
}

/* "roost000000000N", as the plugin makes it, with a peer "peerN" that stays here. */
static inline struct kernel_pod *lab_pod(struct lab *l, const char *a, const char *b)
{
	static char names[LAB_PODS][IF_NAME_TEXT];
	static struct address addresses[LAB_PODS][2];
	size_t i = l->n_pods++;

	snprintf(names[i], sizeof(names[i]), "roost%010zu", i);
	addresses[i][0] = lab_address(a);
	if (b)
		addresses[i][1] = lab_address(b);
	l->pods[i] = (struct kernel_pod){ .link = names[i],
					  .mac = lab_mac,
					  .addresses = addresses[i],
					  .n_addresses = b ? 2 : 1 };
	sh("ip link add %s address ee:ee:ee:ee:ee:ee up type veth peer name peer%zu && "
	   "ip link set peer%zu up",
	   names[i], i, i);
	return &l->pods[i];
}

static inline void lab_block(struct lab *l, const char *block)
{
	l->blocks[l->n_blocks++] = (struct kernel_block){ .block = lab_prefix(block) };
}

static inline int lab_desire(struct kernel_wants *ret, void *arg)
{
	const struct lab *l = arg;

	if (l->desire)
		return l->desire(ret);
	*ret = (struct kernel_wants){ .n_pods = l->n_pods,
				      .n_blocks = l->n_blocks,
				      .n_routes = l->n_routes,
				      .statics_known = true,
				      .export_table = l->export_table,
				      .ipv6 = l->ipv6 };
	ret->pods = calloc(l->n_pods + 1, sizeof(*ret->pods));
	ret->blocks = calloc(l->n_blocks + 1, sizeof(*ret->blocks));
	ret->routes = calloc(l->n_routes + 1, sizeof(*ret->routes));
	memcpy(ret->routes, l->routes, l->n_routes * sizeof(*ret->routes));
	memcpy(ret->pods, l->pods, l->n_pods * sizeof(*ret->pods));
	memcpy(ret->blocks, l->blocks, l->n_blocks * sizeof(*ret->blocks));
	ret->n_tunnels = l->n_tunnels;
	ret->tunnels = calloc(l->n_tunnels + 1, sizeof(*ret->tunnels));
	memcpy(ret->tunnels, l->tunnels, l->n_tunnels * sizeof(*ret->tunnels));
	ret->n_remotes = l->n_remotes;
	ret->remotes = calloc(l->n_remotes + 1, sizeof(*ret->remotes));
	memcpy(ret->remotes, l->remotes, l->n_remotes * sizeof(*ret->remotes));
	ret->n_remote_blocks = l->n_remote_blocks;
	ret->remote_blocks = calloc(l->n_remote_blocks + 1, sizeof(*ret->remote_blocks));
	memcpy(ret->remote_blocks, l->remote_blocks,
	       l->n_remote_blocks * sizeof(*ret->remote_blocks));
	return 0;
}

static inline int lab_protect(struct prefixes *ret, void *arg)
{
	const struct lab *l = arg;

	*ret = (struct prefixes){ .v = calloc(l->protect.n + 1, sizeof(*ret->v)),
				  .n = l->protect.n };
	if (l->protect.n)
		memcpy(ret->v, l->protect.v, l->protect.n * sizeof(*ret->v));
	return 0;
}

static inline void lab_link_gone(const char *name, void *arg)
{
	struct lab *l = arg;

	strncat(l->gone, name, sizeof(l->gone) - strlen(l->gone) - 2);
	strcat(l->gone, " ");
}

/* The agent starts. */
static inline void lab_start(struct lab *l)
{
	const struct kernel_options options = { .event = l->event,
						.timers = l->timers,
						.health = l->health,
						.minute = l->minute,
						.desire = lab_desire,
						.protect = lab_protect,
						.link_gone = lab_link_gone,
						.arg = l };
	struct err err = { 0 };

	if (kernel_new(&options, &l->kernel, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void lab_stop(struct lab *l)
{
	kernel_free(l->kernel);
	l->kernel = NULL;
}

typedef bool lab_condition(struct lab *l);

/* Runs the loop until it is so. */
static inline void lab_until(struct lab *l, lab_condition *is, const char *what)
{
	uint64_t end = clock_monotonic_us() + LAB_PATIENCE * 1000ull;

	while (!is(l)) {
		if (clock_monotonic_us() > end)
			fail_msg("never: %s", what);
		assert_true(sd_event_run(l->event, 20000) >= 0);
	}
}
#define until(l, condition) lab_until(l, condition, #condition)

static inline bool lab_quiet(struct lab *l)
{
	return kernel_ready(l->kernel, NULL) && !pass_stats(l->kernel->pass).dirty;
}

/* Everything that has happened so far is seen and dealt with. */
static inline void lab_settle(struct lab *l)
{
	uint64_t end = clock_monotonic_us() + LAB_PATIENCE * 1000ull;

	do {
		assert_true(clock_monotonic_us() < end);
		assert_true(sd_event_run(l->event, 1000) >= 0);
		kernel_drain(l->kernel);
	} while (sd_event_run(l->event, 0) > 0 || l->kernel->view.news ||
		 pass_stats(l->kernel->pass).dirty);
}

/* The agent starts and all is as it should be. */
static inline void lab_open(struct lab *l)
{
	lab_start(l);
	kernel_open(l->kernel);
	until(l, lab_quiet);
	lab_settle(l);
}

static inline int lab_set_up(void **state)
{
	static struct lab lab;

	lab = (struct lab){ .minute = 60000 };
	*state = &lab;
	log_set_level(LOG_LEVEL_WARNING);
	log_set_sink(lab_sink);
	lab_warnings[0] = '\0';
	if (unshare(CLONE_NEWNET) < 0)
		return 0; /* each test says that it is skipped */
	return sd_event_new(&lab.event) < 0 || timers_loop_new(lab.event, &lab.timers) < 0 ||
	       health_new(NULL, NULL, &lab.health) < 0 || lab_shell("ip link set lo up") != 0;
}

static inline int lab_tear_down(void **state)
{
	struct lab *l = *state;

	kernel_free(l->kernel);
	health_free(l->health);
	timers_loop_free(l->timers);
	sd_event_unref(l->event);
	return 0;
}

/* Without the right to a namespace nothing here can be tested. */
static inline struct lab *lab_of(void **state)
{
	struct lab *l = *state;

	if (!l->event) {
		print_message("no right to make a network namespace: skipped\n");
		skip();
	}
	return l;
}
