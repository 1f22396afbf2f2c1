/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/refusals.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"

enum { NAMESPACE, POD, CONTAINER, INTERFACE, WORDS };

static void forget(struct refusal *f)
{
	for (size_t i = 0; i < WORDS; i++)
		free(f->who[i]);
	free(f->reason);
	*f = (struct refusal){ 0 };
}

void refusals_done(struct refusals *r)
{
	for (size_t i = 0; i < r->n; i++)
		forget(&r->v[i]);
	free(r->v);
	*r = (struct refusals){ 0 };
}

const char *refusal_remedy(enum cni_code code)
{
	switch (code) {
	case CNI_CODE_TRY_AGAIN:
		return "the runtime retries it; `roostctl status` shows what is missing";
	case CNI_CODE_CONFIG:
		return "correct the pod's annotations or the network configuration";
	case CNI_CODE_NO_ADDRESS:
		return "add a pool, or delete pods and nodes that are gone: `roostctl ipam show`";
	case CNI_CODE_ADDRESS_IN_USE:
		return "request another address, or delete its holder: `roostctl address show "
		       "ADDRESS`";
	case CNI_CODE_FOREIGN_ROUTE:
		return "remove the foreign route";
	case CNI_CODE_UNKNOWN_CONTAINER:
	case CNI_CODE_OTHER_ADDRESSES:
		return "delete the pod, so that its runtime creates it again";
	default:
		return "see `journalctl -u roostd` for the cause";
	}
}

const char *refused_pod_print(const struct refused_pod *pod, char text[REFUSED_TEXT])
{
	if (pod->pod[0])
		snprintf(text, REFUSED_TEXT, "%.150s/%.150s", pod->namespace, pod->pod);
	else
		snprintf(text, REFUSED_TEXT, "container %.300s", pod->container);
	return text;
}

int refusals_add(struct refusals *r, const struct refused_pod *pod, enum cni_code code,
		 const char *reason, bool expected, uint64_t now)
{
	const char *words[WORDS] = { pod->namespace, pod->pod, pod->container, pod->interface };
	struct refusal f = { .at = now, .code = code, .over = expected };
	bool failed;

	if (!r->v)
		r->v = calloc(REFUSALS_MAX, sizeof(*r->v));
	f.reason = strdup(reason);
	failed = !r->v || !f.reason;
	for (size_t i = 0; i < WORDS; i++) {
		f.who[i] = strdup(words[i]);
		failed = failed || !f.who[i];
	}
	if (failed) {
		forget(&f);
		return -ENOMEM;
	}
	clock_utc_text(f.time);
	forget(&r->v[r->next]);
	r->v[r->next] = f;
	r->next = (r->next + 1) % REFUSALS_MAX;
	r->n += r->n < REFUSALS_MAX;
	return 0;
}

/* A pod of Kubernetes has another container with each try. */
static bool is_of(const struct refusal *f, const struct refused_pod *pod)
{
	if (pod->pod[0])
		return strcmp(f->who[POD], pod->pod) == 0 &&
		       strcmp(f->who[NAMESPACE], pod->namespace) == 0;
	return !f->who[POD][0] && strcmp(f->who[CONTAINER], pod->container) == 0;
}

bool refusals_over(struct refusals *r, const struct refused_pod *pod)
{
	bool any = false;

	for (size_t i = 0; i < r->n; i++)
		if (!r->v[i].over && is_of(&r->v[i], pod)) {
			r->v[i].over = true;
			any = true;
		}
	return any;
}

/* The i-th from the newest on. */
static const struct refusal *newest(const struct refusals *r, size_t i)
{
	return &r->v[(r->next + REFUSALS_MAX - 1 - i) % REFUSALS_MAX];
}

static struct refused_pod pod_of(const struct refusal *f)
{
	return (struct refused_pod){ f->who[NAMESPACE], f->who[POD], f->who[CONTAINER],
				     f->who[INTERFACE] };
}

/* Whether a newer one than the i-th is of the same pod and counts as well. */
static bool repeats(const struct refusals *r, size_t i)
{
	const struct refused_pod pod = pod_of(newest(r, i));

	for (size_t k = 0; k < i; k++)
		if (!newest(r, k)->over && is_of(newest(r, k), &pod))
			return true;
	return false;
}

const struct refusal *refusals_recent(const struct refusals *r, uint64_t now, uint64_t window,
				      size_t *ret_pods)
{
	const struct refusal *first = NULL;

	*ret_pods = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct refusal *f = newest(r, i);

		if (f->over || now - f->at > window)
			continue;
		first = first ?: f;
		*ret_pods += !repeats(r, i);
	}
	return first;
}

static bool is_asked(const struct refusal *f, const char *pod)
{
	char text[REFUSED_TEXT];
	const struct refused_pod who = pod_of(f);

	return !pod || strcmp(pod, f->who[CONTAINER]) == 0 ||
	       strcmp(pod, refused_pod_print(&who, text)) == 0;
}

void refusals_write(const struct refusals *r, const char *pod, struct tree *t)
{
	tree_open(t, "refusals", '[');
	for (size_t i = 0; i < r->n; i++) {
		const struct refusal *f = newest(r, i);

		if (!is_asked(f, pod))
			continue;
		tree_open(t, NULL, '{');
		tree_text(t, "time", f->time);
		tree_text(t, "namespace", f->who[NAMESPACE]);
		tree_text(t, "pod", f->who[POD]);
		tree_text(t, "container", f->who[CONTAINER]);
		tree_text(t, "interface", f->who[INTERFACE]);
		tree_number(t, "code", (int64_t)f->code);
		tree_text(t, "reason", f->reason);
		tree_text(t, "remedy", refusal_remedy(f->code));
		tree_bool(t, "over", f->over);
		tree_close(t);
	}
	tree_close(t);
}
