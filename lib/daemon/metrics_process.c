/* SPDX-License-Identifier: Apache-2.0 */
/* The process by the names that every Prometheus client gives it. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/daemon/metrics_daemon.h"

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
