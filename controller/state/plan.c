/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void free_text(const char *text)
{
	free((char *)(uintptr_t)text);
}

static void plan_done(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_compares; i++) {
		free_text(plan->compares[i].key);
		free_text(plan->compares[i].range_end);
	}
	for (size_t i = 0; i < plan->n_ops; i++) {
		free_text(plan->ops[i].key);
		free_text(plan->ops[i].value);
	}
	free(plan->compares);
	free(plan->ops);
	free(plan->subject);
	free(plan->sentence);
	*plan = (struct plan){ 0 };
}

void plans_done(struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		plan_done(&p->v[i]);
	free(p->v);
	*p = (struct plans){ 0 };
}

struct plan *plans_add(struct plans *p, const char *subject)
{
	static struct plan nobody;
	struct plan *more = reallocarray(p->v, p->n + 1, sizeof(*more));

	if (!more) {
		p->failed = true;
		plan_done(&nobody);
		return &nobody;
	}
	p->v = more;
	more[p->n] = (struct plan){ .subject = strdup(subject), .sentence = strdup("") };
	p->failed = p->failed || !more[p->n].subject || !more[p->n].sentence;
	return &more[p->n++];
}

void plan_says(struct plans *p, struct plan *plan, const char *fmt, ...)
{
	va_list args;

	free(plan->sentence);
	va_start(args, fmt);
	if (vasprintf(&plan->sentence, fmt, args) < 0) {
		plan->sentence = NULL;
		p->failed = true;
	}
	va_end(args);
}

/* Arrays grow by doubling, by the bits of the number that is there. */
static bool grow(struct plans *p, void **v, size_t n, size_t size)
{
	void *more;

	if (n & (n - 1))
		return true;
	more = reallocarray(*v, n ? n * 2 : 1, size);
	p->failed = p->failed || !more;
	if (more)
		*v = more;
	return more;
}

void plan_if(struct plans *p, struct plan *plan, const struct store_compare *compare)
{
	struct store_compare c = *compare;

	if (!grow(p, (void **)&plan->compares, plan->n_compares, sizeof(c)))
		return;
	c.key = strdup(compare->key);
	c.range_end = compare->range_end ? strdup(compare->range_end) : NULL;
	p->failed = p->failed || !c.key || (compare->range_end && !c.range_end);
	plan->compares[plan->n_compares++] = c;
}

void plan_if_same(struct plans *p, struct plan *plan, const char *key, int64_t mod_revision)
{
	plan_if(p, plan,
		&(struct store_compare){
			.key = key, .target = STORE_MOD_REVISION, .number = mod_revision });
}

void plan_if_absent(struct plans *p, struct plan *plan, const char *key)
{
	plan_if(p, plan, &(struct store_compare){ .key = key, .target = STORE_CREATE_REVISION });
}

void plan_if_no_newer(struct plans *p, struct plan *plan, const char *beginning, int64_t revision)
{
	AUTO(free) char *end = store_prefix_end(beginning);

	p->failed = p->failed || !end;
	if (end)
		plan_if(p, plan,
			&(struct store_compare){ .key = beginning,
						 .range_end = end,
						 .target = STORE_CREATE_REVISION,
						 .relation = STORE_LESS,
						 .number = revision + 1 });
}

static void add_op(struct plans *p, struct plan *plan, struct store_op op)
{
	if (!op.key || !grow(p, (void **)&plan->ops, plan->n_ops, sizeof(op))) {
		p->failed = true;
		free_text(op.key);
		free_text(op.value);
		return;
	}
	plan->ops[plan->n_ops++] = op;
}

void plan_delete(struct plans *p, struct plan *plan, const char *key)
{
	add_op(p, plan, (struct store_op){ .kind = STORE_DELETE, .key = strdup(key) });
}

void plan_get(struct plans *p, struct plan *plan, const char *key)
{
	add_op(p, plan, (struct store_op){ .kind = STORE_GET, .key = strdup(key) });
}

void plan_put(struct plans *p, struct plan *plan, const char *key, const char *value)
{
	char *copy = value ? strdup(value) : NULL;

	if (!copy) {
		p->failed = true;
		return;
	}
	add_op(p, plan,
	       (struct store_op){ .kind = STORE_PUT,
				  .key = strdup(key),
				  .value = copy,
				  .value_len = strlen(copy) });
}

bool plan_has_room(const struct plan *plan, size_t compares, size_t ops)
{
	return plan->n_compares + compares <= PLAN_MAX && plan->n_ops + ops <= PLAN_MAX;
}

/* --- for tests ------------------------------------------------------------------------------ */

static void print_compare(FILE *out, const struct store_compare *c)
{
	if (c->range_end)
		fprintf(out, "if %s* before %" PRId64 "\n", c->key, c->number);
	else if (c->number == 0)
		fprintf(out, "if %s absent\n", c->key);
	else
		fprintf(out, "if %s = %" PRId64 "\n", c->key, c->number);
}

char *plans_print(const struct plans *p)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan *plan = &p->v[i];

		fprintf(out, "%s:\n", plan->subject);
		for (size_t j = 0; j < plan->n_compares; j++)
			print_compare(out, &plan->compares[j]);
		for (size_t j = 0; j < plan->n_ops; j++)
			fprintf(out, "%s %s%s%s\n",
				plan->ops[j].kind == STORE_DELETE ? "delete"
				: plan->ops[j].kind == STORE_GET  ? "get"
								  : "put",
				plan->ops[j].key, plan->ops[j].value ? " " : "",
				plan->ops[j].value ?: "");
	}
	fclose(out);
	return text;
}
