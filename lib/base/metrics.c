/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/array.h"

/* --- histograms ----------------------------------------------------------------------------- */

static const struct {
	uint64_t us;
	const char *le; /* the same in seconds */
} buckets[HISTOGRAM_BUCKETS] = {
	{ 100, "0.0001" },  { 250, "0.00025" }, { 500, "0.0005" },  { 1000, "0.001" },
	{ 2500, "0.0025" }, { 5000, "0.005" },  { 10000, "0.01" },  { 25000, "0.025" },
	{ 50000, "0.05" },  { 100000, "0.1" },  { 250000, "0.25" }, { 500000, "0.5" },
	{ 1000000, "1" },   { 2500000, "2.5" }, { 5000000, "5" },   { 10000000, "10" },
};

void histogram_add(struct histogram *h, uint64_t us)
{
	size_t i = 0;

	while (i < HISTOGRAM_BUCKETS && us > buckets[i].us)
		i++;
	h->counts[i]++;
	h->sum_us += us;
}

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t n = 0;

	for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
		n += h->counts[i];
	return n;
}

/* --- text ----------------------------------------------------------------------------------- */

void metrics_done(struct metrics *m)
{
	free(m->text);
	*m = (struct metrics){ 0 };
}

static void put_bytes(struct metrics *m, const char *text, size_t n)
{
	m->err = m->err ?: array_make_room(&m->text, m->len, &m->room, 1, n + 1);
	if (m->err)
		return;
	memcpy(m->text + m->len, text, n);
	m->len += n;
	m->text[m->len] = '\0';
}

static void put(struct metrics *m, const char *text)
{
	put_bytes(m, text, strlen(text));
}

/* In a label's value a quote too; in a HELP line only the other two. */
static void put_escaped(struct metrics *m, const char *text, bool quoted)
{
	for (; *text; text++) {
		if (*text == '\n')
			put(m, "\\n");
		else if (*text == '\\' || (quoted && *text == '"'))
			put_bytes(m, (const char[]){ '\\', *text }, 2);
		else
			put_bytes(m, text, 1);
	}
}

static bool is_name(const char *name)
{
	if (!*name || strspn(name, "0123456789"))
		return false;
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };

	if (!is_name(name) || strlen(name) >= sizeof(m->family) ||
	    ends_in(name, "_total") != (type == METRIC_COUNTER)) {
		m->err = m->err ?: -EINVAL;
		return;
	}
	memcpy(m->family, name, strlen(name) + 1);
	m->type = type;
	put(m, "# HELP ");
	put(m, name);
	put(m, " ");
	put_escaped(m, help, false);
	put(m, "\n# TYPE ");
	put(m, name);
	put(m, " ");
	put(m, types[type]);
	put(m, "\n");
}

static void put_label(struct metrics *m, bool first, const char *name, const char *value)
{
	if (!is_name(name)) {
		m->err = m->err ?: -EINVAL;
		return;
	}
	put(m, first ? "{" : ",");
	put(m, name);
	put(m, "=\"");
	put_escaped(m, value, true);
	put(m, "\"");
}

/* le NULL: no bucket. */
static void put_line(struct metrics *m, const char *suffix, const struct metric_label *labels,
		     const char *le, const char *value)
{
	bool first = true;

	if (!m->family[0])
		m->err = m->err ?: -EINVAL;
	put(m, m->family);
	put(m, suffix);
	for (; labels && labels->name; labels++, first = false)
		put_label(m, first, labels->name, labels->value);
	if (le) {
		put_label(m, first, "le", le);
		first = false;
	}
	put(m, first ? " " : "} ");
	put(m, value);
	put(m, "\n");
}

static void put_count(struct metrics *m, const char *suffix, const struct metric_label *labels,
		      const char *le, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_line(m, suffix, labels, le, text);
}

static void put_number(struct metrics *m, const char *suffix, const struct metric_label *labels,
		       double value)
{
	char text[40];

	if (isnan(value))
		snprintf(text, sizeof(text), "NaN");
	else if (isinf(value))
		snprintf(text, sizeof(text), value > 0 ? "+Inf" : "-Inf");
	else
		snprintf(text, sizeof(text), "%.15g", value);
	put_line(m, suffix, labels, NULL, text);
}

void metrics_count(struct metrics *m, const struct metric_label *labels, uint64_t value)
{
	put_count(m, "", labels, NULL, value);
}

void metrics_number(struct metrics *m, const struct metric_label *labels, double value)
{
	put_number(m, "", labels, value);
}

void metrics_histogram(struct metrics *m, const struct metric_label *labels,
		       const struct histogram *h)
{
	uint64_t n = 0;

	if (m->type != METRIC_HISTOGRAM)
		m->err = m->err ?: -EINVAL;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		n += h->counts[i];
		put_count(m, "_bucket", labels, buckets[i].le, n);
	}
	n += h->counts[HISTOGRAM_BUCKETS];
	put_count(m, "_bucket", labels, "+Inf", n);
	put_number(m, "_sum", labels, (double)h->sum_us / 1e6);
	put_count(m, "_count", labels, NULL, n);
}

void metrics_one(struct metrics *m, const char *name, enum metric_type type, const char *help,
		 double value)
{
	metrics_family(m, name, type, help);
	metrics_number(m, NULL, value);
}
