/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/metrics_daemon.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void metrics_etcd(struct metrics *m, const struct store_stats *stats, bool connected,
		  uint64_t silence_us)
{
	metrics_one(m, "roost_etcd_connected", METRIC_GAUGE,
		    "1 while the watches on etcd's keys are confirmed.", connected);
	metrics_one(m, "roost_etcd_silence_seconds", METRIC_GAUGE,
		    "Since etcd last said anything: how old, at most, what is known of it may be.",
		    silence_us == UINT64_MAX ? INFINITY : (double)silence_us / 1e6);
	metrics_family(m, "roost_etcd_requests_total", METRIC_COUNTER,
		       "Requests to a member of etcd, by outcome.");
	for (unsigned o = 0; o < SERVER_OUTCOMES; o++)
		metrics_count(m, LABELS({ "outcome", server_outcome_name(o) }), stats->outcomes[o]);
	metrics_family(m, "roost_etcd_request_duration_seconds", METRIC_HISTOGRAM,
		       "Duration of requests to a member of etcd, failed ones included.");
	metrics_histogram(m, NULL, &stats->duration);
	metrics_family(m, "roost_etcd_reconnects_total", METRIC_COUNTER,
		       "How often the watch stream was lost and opened again.");
	metrics_count(m, NULL, stats->reconnects);
	metrics_family(m, "roost_etcd_events_total", METRIC_COUNTER,
		       "Changes of keys that the watches brought.");
	metrics_count(m, NULL, stats->events);
}

struct metrics_pass metrics_pass_of(const char *name, struct pass_stats stats)
{
	return (struct metrics_pass){ name, stats.passes - stats.failures, stats.failures,
				      stats.duration };
}

void metrics_passes(struct metrics *m, const struct metrics_pass *passes, size_t n)
{
	metrics_family(m, "roost_passes_total", METRIC_COUNTER,
		       "Comparisons of what should be with what is, by what and outcome.");
	for (size_t i = 0; i < n; i++) {
		metrics_count(m, LABELS({ "pass", passes[i].name }, { "outcome", "ok" }),
			      passes[i].ok);
		metrics_count(m, LABELS({ "pass", passes[i].name }, { "outcome", "failed" }),
			      passes[i].failed);
	}
	metrics_family(m, "roost_pass_duration_seconds", METRIC_HISTOGRAM,
		       "How long such a pass took, with what it changed.");
	for (size_t i = 0; i < n; i++)
		metrics_histogram(m, LABELS({ "pass", passes[i].name }), &passes[i].duration);
}

void metrics_problems(struct metrics *m, const struct health *health)
{
	size_t n;
	const struct health_entry *entries = health_list(health, &n);

	metrics_family(
		m, "roost_health_problem", METRIC_GAUGE,
		"1 for each part that is not well at the moment; the status has the reason.");
	for (size_t i = 0; i < n; i++)
		metrics_count(m,
			      LABELS({ "part", entries[i].part },
				     { "level", log_level_name(entries[i].level) }),
			      1);
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct process {
	unsigned long long started, virtual; /* ticks since boot, bytes */
	long resident;                       /* pages */
};

static bool read_process(struct process *ret)
{
	AUTO(fclose) FILE *f = fopen("/proc/self/stat", "re");
	char line[1024];
	const char *rest;

	if (!f || !fgets(line, sizeof(line), f))
		return false;
	/* The name of the program may hold anything but ends here. */
	rest = strrchr(line, ')');
	return rest &&
	       sscanf(rest + 1,
		      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		      "%*d %*d %llu %llu %ld",
		      &ret->started, &ret->virtual, &ret->resident) == 3;
}

static unsigned count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!dir)
		return 0;
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* the folder's own */
}

void metrics_process(struct metrics *m)
{
	struct rlimit limit = { 0 };
	struct process p;

	metrics_one(m, "process_cpu_seconds_total", METRIC_COUNTER,
		    "Processor time in user and system mode.", seconds(CLOCK_PROCESS_CPUTIME_ID));
	metrics_one(m, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", count_files());
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_one(m, "process_max_fds", METRIC_GAUGE,
			    "How many file descriptors may be open.", (double)limit.rlim_cur);
	if (!read_process(&p))
		return;
	metrics_one(m, "process_resident_memory_bytes", METRIC_GAUGE, "Memory that is in use.",
		    (double)p.resident * (double)sysconf(_SC_PAGESIZE));
	metrics_one(m, "process_virtual_memory_bytes", METRIC_GAUGE, "Memory that is mapped.",
		    (double)p.virtual);
	metrics_one(m, "process_start_time_seconds", METRIC_GAUGE,
		    "When the process began, in seconds since 1970.",
		    seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME) +
			    (double)p.started / (double)sysconf(_SC_CLK_TCK));
}
