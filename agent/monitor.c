/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/monitor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/api.h"

#define AGAIN_MS 15000
/* A few scrapers; whoever opens more waits. */
#define CONNECTIONS_MAX 32
#define IDLE_S          120

struct monitor {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	const char *address;
	void *agent;
	struct serve *serve;
	struct timer again;
};

static int start(struct monitor *m)
{
	struct serve_config config = {
		.arg = m->agent,
		.routes = api_monitor_routes(),
		.n_routes = api_n_monitor_routes(),
		.max_connections = CONNECTIONS_MAX,
		.idle_s = IDLE_S,
	};
	struct listen_address at;
	int r = listen_address_parse(m->address, &at, NULL);

	r = r ?: serve_listen_tcp(&at, &config.fd);
	if (r < 0)
		return r;
	r = serve_new(m->event, &config, &m->serve);
	if (r < 0)
		close(config.fd);
	return r;
}

static void try_start(void *arg)
{
	struct monitor *m = arg;
	int r = start(m);

	if (r == 0) {
		health_clear(m->health, "metrics");
		log_info("metrics", "served on %s", m->address);
		return;
	}
	health_set(
		m->health, "metrics", LOG_LEVEL_ERROR,
		"cannot listen on --metrics %s: %s; pods are not affected, it is tried again every "
		"%d s: free the port (`ss -ltnp`), or choose another one",
		m->address, strerrordesc_np(-r), AGAIN_MS / 1000);
	timer_set(m->timers, &m->again, AGAIN_MS, AGAIN_MS / 3);
}

int monitor_new(sd_event *event, struct timers *timers, struct health *health, const char *address,
		void *agent, struct monitor **ret)
{
	struct monitor *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = (struct monitor){ event, timers, health, address, agent, NULL, { .fn = try_start } };
	m->again.arg = m;
	try_start(m);
	*ret = m;
	return 0;
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	timer_clear(m->timers, &m->again);
	serve_free(m->serve);
	free(m);
}
