/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One resource at work: its keys are watched, its file follows.
 *
 *   etcd -> tree -> renderer -> publish, or a diff on standard output
 *
 * Nothing is rendered before every key and prefix has been listed once. What goes wrong is logged
 * once, with the file and the reason, and again only when it becomes another thing. What may pass
 * by itself (the disk, a reload, a daemon that is not there) is tried again after a while.
 *
 * After etcd went back the file is kept: until no key is lost any more (kept.h), or the keys give
 * just what the file is, because they returned or because another process was told to accept them.
 */
#pragma once

#include "confd/publish.h"
#include "confd/resource.h"
#include "lib/store/store.h"

#define JOB_RETRY_MS 10000

struct job;

struct job_context {
	sd_event *event;
	struct store *store; /* NULL: data */
	struct json_object *data;
	const char *prefix, *template_dir, *state_dir;
	bool dry_run;
	bool accept; /* etcd's keys are right, whatever was before this start */
	/* An outcome is there: the first, or another one. */
	void (*told)(struct job *job, void *arg);
	void *arg;
};

/* context and what it points to are borrowed; what is in *resource is taken over on success. 0 or
 * -errno with a sentence. */
int job_new(const struct job_context *context, struct resource *resource, struct job **ret,
	    struct err *err);
void job_free(struct job *j);
AUTO_DEFINE(struct job *, job_free)

const struct resource *job_resource(const struct job *j);
/* Look again: templates may have been edited, what failed may go well now. */
void job_again(struct job *j);
/* Another etcd answers, or an older state of it; before its keys come. */
void job_went_back(struct job *j);

enum job_state {
	JOB_WAITING, /* for etcd, or for the first outcome */
	JOB_GOOD,
	JOB_DIFFERENT, /* dry run: something would change */
	JOB_FAILED
};
enum job_state job_state(const struct job *j);
/* Its file is not what etcd's keys say, because etcd went back. */
bool job_keeps(const struct job *j);
/* What went wrong, without the resource's name; "": nothing. */
const char *job_reason(const struct job *j);
/* Not of a dry run. */
const struct publish_stats *job_stats(const struct job *j);
/* All its keys have been listed. */
bool job_ready(const struct job *j);
