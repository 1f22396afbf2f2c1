/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BIRD configuration of many BGP peers: eight variables and three sections for each, as
 * a partial. The data is made once; loading and parsing of the templates is measured apart.
 *
 *   mustache-bench [PEERS]        prints one JSON object; times in ms
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "confd/mustache/mustache.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"

#define ROUNDS 41
#define MIDDLE 20

static const char config[] = "router id {{router_id}};\n"
			     "log syslog all;\n"
			     "{{#peers}}\n"
			     "{{>peer}}\n"
			     "{{/peers}}\n";
static const char peer[] = "protocol bgp {{name}} {\n"
			   "\tdescription \"{{description}}\";\n"
			   "\tlocal {{local_address}} as {{local_as}};\n"
			   "\tneighbor {{address}} as {{as}};\n"
			   "{{#password}}\n"
			   "\tpassword \"{{password}}\";\n"
			   "{{/password}}\n"
			   "{{#bfd}}\n"
			   "\tbfd on;\n"
			   "{{/bfd}}\n"
			   "\thold time {{hold_time}};\n"
			   "{{^passive}}\n"
			   "\tpassive off;\n"
			   "{{/passive}}\n"
			   "\tipv4 { import all; export filter to_peers; };\n"
			   "}\n";

static int load(const char *name, char **ret_text, size_t *ret_len, void *arg, struct err *err)
{
	const char *text = strcmp(name, "peer") == 0 ? peer : config;

	*ret_text = strdup(text);
	*ret_len = strlen(text);
	return *ret_text ? 0 : -ENOMEM;
}

PRINTF_LIKE(3, 4)
static void add_text(struct json_object *o, const char *name, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_object_add(o, name, json_object_new_string(text));
}

static struct json_object *make_peer(size_t i)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", "peer_%zu_%zu", i / 250, i % 250 + 1);
	add_text(o, "description", "rack %zu, machine %zu", i / 250, i % 250 + 1);
	add_text(o, "address", "10.3.%zu.%zu", i / 250, i % 250 + 1);
	json_object_object_add(o, "as", json_object_new_int64((int64_t)(4200000000 + i)));
	json_object_object_add(o, "hold_time", json_object_new_int(90));
	json_object_object_add(o, "bfd", json_object_new_boolean(i % 2));
	if (i % 3 == 0)
		add_text(o, "password", "secret-%zu-%zu", i / 250, i % 250 + 1);
	return o;
}

static struct json_object *make_data(size_t n)
{
	struct json_object *data = json_object_new_object(), *peers = json_object_new_array();

	json_object_object_add(data, "router_id", json_object_new_string("10.0.0.1"));
	json_object_object_add(data, "local_address", json_object_new_string("10.0.0.1"));
	json_object_object_add(data, "local_as", json_object_new_int64(64512));
	for (size_t i = 0; i < n; i++)
		json_object_array_add(peers, make_peer(i));
	json_object_object_add(data, "peers", peers);
	return data;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int measure(struct json_object *data, uint64_t *parse_us, uint64_t *render_us,
		   size_t *ret_len)
{
	const struct mustache_options o = { .strict = true };
	AUTO(mustache_set_free) struct mustache_set *set = NULL;
	AUTO(free) char *text = NULL;
	uint64_t start = clock_monotonic_us();
	struct err err = { "out of memory" };
	int r = mustache_set_new(load, NULL, &set);

	if (r == 0)
		r = mustache_check(set, "config", &err);
	*parse_us = clock_monotonic_us() - start;
	start = clock_monotonic_us();
	if (r == 0)
		r = mustache_render(set, "config", data, &o, &text, ret_len, &err);
	*render_us = clock_monotonic_us() - start;
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	return r;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 5000, len = 0;
	AUTO(json_put) struct json_object *data = make_data(n);
	uint64_t parse[ROUNDS], render[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		if (measure(data, &parse[i], &render[i], &len) < 0)
			return 1;
	qsort(parse, ROUNDS, sizeof(parse[0]), by_value);
	qsort(render, ROUNDS, sizeof(render[0]), by_value);
	printf("{\"peers\": %zu, \"bytes\": %zu, \"parse_p50\": %.3f, \"render_min\": %.3f, "
	       "\"render_p50\": %.3f, \"render_max\": %.3f}\n",
	       n, len, (double)parse[MIDDLE] / 1e3, (double)render[0] / 1e3,
	       (double)render[MIDDLE] / 1e3, (double)render[ROUNDS - 1] / 1e3);
	return 0;
}
