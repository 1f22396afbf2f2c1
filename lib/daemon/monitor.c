/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/monitor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_MS 15000
/* A few scrapers and the kubelet. Silent connections, however many, cannot keep a probe out: a new
 * one takes the place of the quietest. */
#define CONNECTIONS_MAX 32
#define PER_ADDRESS     8
#define HEAD_S          10
#define IDLE_S          120

struct monitor {
	struct monitor_options o;
	struct serve *serve;
	struct timer again;
};

static int start(struct monitor *m)
{
	struct serve_config config = {
		.arg = m->o.arg,
		.routes = m->o.routes,
		.n_routes = m->o.n_routes,
		.max_connections = CONNECTIONS_MAX,
		.per_address = PER_ADDRESS,
		.replace_quiet = true,
		.head_s = HEAD_S,
		.idle_s = IDLE_S,
	};
	struct listen_address at;
	int r = listen_address_parse(m->o.address, &at, NULL);

	r = r ?: serve_listen_tcp(&at, &config.fd);
	if (r < 0)
		return r;
	r = serve_new(m->o.event, &config, &m->serve);
	if (r < 0)
		close(config.fd);
	return r;
}

static void try_start(void *arg)
{
	struct monitor *m = arg;
	int r = start(m);

	if (r == 0) {
		health_clear(m->o.health, m->o.flag);
		log_info(m->o.flag, "served on %s", m->o.address);
		return;
	}
	health_set(m->o.health, m->o.flag, LOG_LEVEL_ERROR,
		   "cannot listen on --%s %s: %s; nothing else is affected, it is tried again "
		   "every "
		   "%d s: free the port (`ss -ltnp`), or choose another one",
		   m->o.flag, m->o.address, strerrordesc_np(-r), AGAIN_MS / 1000);
	timer_set(m->o.timers, &m->again, AGAIN_MS, AGAIN_MS / 3);
}

int monitor_new(const struct monitor_options *options, struct monitor **ret)
{
	struct monitor *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->o = *options;
	m->o.flag = options->flag ?: "metrics";
	m->again = (struct timer){ .fn = try_start, .arg = m };
	try_start(m);
	*ret = m;
	return 0;
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	timer_clear(m->o.timers, &m->again);
	serve_free(m->serve);
	free(m);
}
