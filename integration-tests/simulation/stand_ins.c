/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs ask of the machine, replaced by name when the simulator is linked: each group
 * below stands for all of one file of the tree, or for a function of the C library.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "integration-tests/simulation/simulation.h"
#include "ipam/attachments/sighting.h"
#include "lib/netlink/netlink.h"

/* --- the C library: clocks and random numbers ----------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const struct machine *m = sim.current ? sim.current->machine : NULL;
	int64_t us = sim.now;

	if (clock == CLOCK_REALTIME)
		us += SIM_EPOCH * 1000000;
	else if (m)
		us -= m->booted + (clock == CLOCK_MONOTONIC ? m->slept : 0);
	/* Never 0: that means "none" to many. */
	us += 1000000;
	ret->tv_sec = us / 1000000;
	ret->tv_nsec = us % 1000000 * 1000;
	return 0;
}

time_t time(time_t *ret)
{
	time_t now = SIM_EPOCH + sim.now / 1000000;

	if (ret)
		*ret = now;
	return now;
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)chance_next(&sim.chance);
	return (ssize_t)n;
}

/* --- lib/base/pass.c: one quiet pass of each program, run by the scheduler ----------------------- */

int pass_new(sd_event *event, pass_fn *fn, void *arg, struct pass **ret)
{
	struct pass *p = memory_must(calloc(1, sizeof(*p)));

	p->fn = fn;
	p->arg = arg;
	sim.current->pass = p;
	*ret = p;
	return 0;
}

void pass_free(struct pass *p)
{
	free(p);
}

void pass_mark(struct pass *p)
{
	p->dirty = true;
}

void pass_open(struct pass *p, bool open)
{
	p->open = open;
}

struct pass_stats pass_stats(const struct pass *p)
{
	return (struct pass_stats){ .dirty = p->dirty };
}

/* --- ipam/attachments/local_copy.c: the files of this boot, in the machine ------------------------------ */

struct local_copy {
	struct machine *machine;
	struct process *process;
};

/* A program that was killed writes nothing more; one that lives may be stopped here. */
static bool writes(const struct local_copy *c)
{
	if (c->process->dying)
		return false;
	if (sim.interrupt && c->process->busy)
		world_interrupt();
	return true;
}

int local_copy_open(const char *run_dir, sd_event *event, local_copy_tampered_fn *tampered,
		    void *arg, struct local_copy **ret, struct err *err)
{
	struct local_copy *c = memory_must(calloc(1, sizeof(*c)));

	c->process = sim.current;
	c->machine = sim.current->machine;
	*ret = c;
	return 0;
}

void local_copy_close(struct local_copy *c)
{
	free(c);
}

int local_copy_read(struct local_copy *c, const struct local_copy_taker *taker, void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->machine->n_blocks; i++)
		r = taker->block(&c->machine->blocks[i], arg);
	for (size_t i = 0; r == 0 && i < c->machine->n_attachments; i++)
		r = taker->attachment(memory_must(attachment_copy(c->machine->attachments[i])),
				      arg);
	return r;
}

static size_t attachment_place(const struct machine *m, const struct attachment_key *key)
{
	size_t i = 0;

	while (i < m->n_attachments && strcmp(m->attachments[i]->container, key->container) != 0)
		i++;
	return i;
}

int local_copy_put_attachment(struct local_copy *c, const struct attachment *a)
{
	const struct attachment_key key = attachment_key(a);
	struct machine *m = c->machine;
	size_t i = attachment_place(m, &key);

	if (!writes(c))
		return 0;
	if (i == ARRAY_SIZE(m->attachments))
		return -ENOSPC;
	if (i == m->n_attachments)
		m->n_attachments++;
	else
		attachment_free(m->attachments[i]);
	m->attachments[i] = memory_must(attachment_copy(a));
	return 0;
}

int local_copy_remove_attachment(struct local_copy *c, const struct attachment_key *key)
{
	struct machine *m = c->machine;
	size_t i = attachment_place(m, key);

	if (!writes(c) || i == m->n_attachments)
		return 0;
	attachment_free(m->attachments[i]);
	m->attachments[i] = m->attachments[--m->n_attachments];
	return 0;
}

bool local_copy_has_attachment(struct local_copy *c, const struct attachment_key *key)
{
	return attachment_place(c->machine, key) < c->machine->n_attachments;
}

static size_t block_place(const struct machine *m, const char *network, const struct prefix *block)
{
	size_t i = 0;

	while (i < m->n_blocks && (strcmp(m->blocks[i].network, network) != 0 ||
				   prefix_compare(&m->blocks[i].block, block) != 0))
		i++;
	return i;
}

int local_copy_put_block(struct local_copy *c, const struct block_copy *block)
{
	size_t i = block_place(c->machine, block->network, &block->block);

	if (!writes(c))
		return 0;
	if (i == ARRAY_SIZE(c->machine->blocks))
		return -ENOSPC;
	c->machine->n_blocks += i == c->machine->n_blocks;
	c->machine->blocks[i] = *block;
	return 0;
}

int local_copy_remove_block(struct local_copy *c, const char *network, const struct prefix *block)
{
	size_t i = block_place(c->machine, network, block);

	if (writes(c) && i < c->machine->n_blocks)
		c->machine->blocks[i] = c->machine->blocks[--c->machine->n_blocks];
	return 0;
}

bool local_copy_has_block(struct local_copy *c, const char *network, const struct prefix *block)
{
	return block_place(c->machine, network, block) < c->machine->n_blocks;
}

int local_copy_reopen(struct local_copy *c)
{
	return 0;
}

int local_copy_put_records(struct local_copy *c, const char *text)
{
	if (!writes(c))
		return 0;
	free(c->machine->records);
	c->machine->records = memory_must(strdup(text));
	return 0;
}

int local_copy_get_records(struct local_copy *c, char **ret, size_t *ret_len)
{
	if (!c->machine->records)
		return -ENOENT;
	*ret = memory_must(strdup(c->machine->records));
	*ret_len = strlen(*ret);
	return 0;
}

/* --- agent/addresses/notes.c: notes --------------------------------------------------------- */

int ipam_released_open(struct ipam *m)
{
	return 0;
}

void ipam_released_close(struct ipam *m)
{
}

void ipam_released_note(struct ipam *m, const struct attachment *a)
{
	struct machine *on = sim.current->machine;

	for (size_t i = 0; i < a->addresses.n && !sim.current->dying; i++) {
		struct released_note *n = &on->released[on->n_released];

		if (!a->addresses.v[i].network[0] || on->n_released == ARRAY_SIZE(on->released))
			continue;
		on->n_released++;
		n->address = a->addresses.v[i].address;
		n->when = sim.now;
		snprintf(n->network, sizeof(n->network), "%s", a->addresses.v[i].network);
	}
}

bool ipam_released(const struct ipam *m, const char *network, const struct address *address)
{
	const struct machine *on = sim.current->machine;

	for (size_t i = 0; i < on->n_released; i++)
		if (strcmp(on->released[i].network, network) == 0 &&
		    address_compare(&on->released[i].address, address) == 0)
			return true;
	return false;
}

void ipam_released_sweep(struct ipam *m)
{
	struct machine *on = sim.current->machine;

	for (size_t i = on->n_released; i-- > 0;) {
		const struct released_note *n = &on->released[i];
		char relative[KEY_TEXT], key[KEY_FULL_TEXT];

		if (sim.now - n->when >= 60 * SEC &&
		    (key_address(relative, m->o.node, n->network, &n->address) < 0 ||
		     key_full(m->o.prefix, relative, key) < 0 || behind_told(m->behind, key)))
			on->released[i] = on->released[--on->n_released];
	}
}

int ipam_spool_start(struct ipam *m)
{
	struct machine *on = sim.current->machine;

	while (on->n_spool) {
		const struct attachment_key key = { "pods", on->spool[--on->n_spool], "eth0" };
		struct err err = { "" };

		ipam_drop(m, &key, NULL, &err);
	}
	return 0;
}

void ipam_spool_done(struct ipam *m)
{
}

/* --- ipam/attachments/sighting.c: no namespace is ever missing ------------------------------------------ */

struct sighting sighting_of(const struct attachment *a)
{
	return (struct sighting){ .attachment = a };
}

/* --- agent/kernel/kernel.c and reaper.c: no pod has a link ---------------------------------- */

int kernel_attach(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	return 0;
}

int kernel_detach(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	return -ENODEV;
}

int kernel_check(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	return 0;
}

bool kernel_ready(const struct kernel *k, struct err *why)
{
	return true;
}

void reaper_kick(struct reaper *r)
{
}

void reaper_adding(struct reaper *r)
{
}

void reaper_added(struct reaper *r)
{
}

/* --- lib/netlink/netlink.c: no route of ours is found at the start ------------------------------------- */

int netlink_open(int protocol, struct netlink **ret)
{
	*ret = NULL;
	return 0;
}

void netlink_close(struct netlink *k)
{
}

int netlink_dump(struct netlink *k, struct nl_msg *msg, netlink_restart_fn *restart,
		 netlink_message_fn *each, void *arg, struct err *err)
{
	nlmsg_free(msg);
	return 0;
}

/* --- lib/daemon/serve*.c: the local socket; wire.c has what only lease servers use ----------------- */

const char *serve_body(const struct serve_request *request, size_t *ret_len)
{
	*ret_len = strlen(request->body);
	return request->body;
}

static void answered(struct serve_request *request)
{
	if (request->waits)
		TAILQ_REMOVE(&request->process->waiting, request, entry);
	free(request);
}

void serve_reply_json(struct serve_request *request, unsigned status, struct json_object *object)
{
	struct json_object *list = NULL, *text = NULL;
	struct address address;

	if (status == 200 && !request->release && !request->process->dying &&
	    json_object_object_get_ex(object, "addresses", &list) &&
	    json_object_array_length(list) > 0 &&
	    json_object_object_get_ex(json_object_array_get_idx(list, 0), "address", &text) &&
	    address_parse(json_object_get_string(text), &address) == 0)
		judge_granted(request->machine, request->container, &address);
	answered(request);
}

void serve_reply(struct serve_request *request, unsigned status, const char *json)
{
	answered(request);
}

void serve_reply_error(struct serve_request *request, unsigned status, enum cni_code code,
		       const char *details, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (request->wire) {
		if (sim.verbose)
			world_say("  %s: %s %s of %s is refused (%u): %s", request->process->label,
				  request->method, request->path, request->machine->run_dir, status,
				  text);
		wire_reply(request, status, text);
		return;
	}
	if (sim.verbose)
		world_say("%s: %s %s is refused (%u, %d): %s", request->machine->run_dir,
			  request->release ? "DEL" : "ADD", request->container, status, code, text);
	answered(request);
}

int serve_wait(struct serve_request *request, uint64_t deadline_ms, serve_end_fn *on_end, void *arg)
{
	request->waits = true;
	request->deadline = deadline_ms == SERVE_FOREVER ? SIM_NEVER
							 : sim.now + (int64_t)deadline_ms * MS;
	request->on_end = on_end;
	request->arg = arg;
	TAILQ_INSERT_TAIL(&request->process->waiting, request, entry);
	return 0;
}
