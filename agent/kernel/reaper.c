/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/reaper.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cni/pod_link.h"
#include "lib/netlink/request.h"

/* Links that go at once: see docs/BENCHMARKS.md for what another number costs. */
#define AT_ONCE 16

#define LATE_MS  60000 /* a child that says nothing for so long is given up */
#define AGAIN_MS 1000
#define ADD_MS   40 /* one that takes longer, or was never ours to attach, holds up nobody */
#define HELD_MS  60 /* and many that follow each other no group for longer than this */

struct reaper {
	pid_t child, ended; /* 0: none */
	int socket;
	sd_event *event;
	sd_event_source *io;
	struct timers *timers;
	struct timer late, again, held;
	unsigned adding;          /* pods that have an address and no routes yet */
	uint64_t add_ends, begin; /* when to wait no longer: for those, for any */
	struct health *health;
	bool busy, wanted; /* a request is under way; another has come meanwhile */
	struct reaper_stats stats;
};

/* --- the child's work ------------------------------------------------------------------------ */

struct round {
	uint32_t doomed[AT_ONCE];
	size_t n;
	bool foreign; /* another program's link is in our group: no deletion by group */
};

static int see_link(const struct nlmsghdr *hdr, void *arg)
{
	struct round *round = arg;
	struct klink l;
	bool ours;

	if (hdr->nlmsg_type != RTM_NEWLINK || klink_read(hdr, &l) < 0 ||
	    !pod_link_is_doomed(l.group))
		return 0;
	ours = l.veth && pod_link_is_ours(l.name);
	round->foreign |= !ours && l.group == GOING_GROUP;
	if (ours && round->n < AT_ONCE)
		round->doomed[round->n++] = l.index;
	return 0;
}

static void start_over(void *arg)
{
	*(struct round *)arg = (struct round){ 0 };
}

/* A link may vanish by itself, with its pod's namespace. */
static int done_or_gone(int r)
{
	return r == -ENODEV ? 0 : r;
}

static int destroy(struct netlink *nl, const struct round *round, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < round->n; i++)
		r = done_or_gone(netlink_request(
			nl,
			round->foreign ? request_link_delete(round->doomed[i], NULL)
				       : request_link_group(round->doomed[i], GOING_GROUP),
			err));
	if (r == 0 && !round->foreign)
		r = done_or_gone(netlink_request(nl, request_group_delete(GOING_GROUP), err));
	return r;
}

void reap(struct reaped *ret)
{
	AUTO(netlink_close) struct netlink *nl = NULL;
	struct round round = { 0 };
	struct err err = { "" };
	int r = netlink_open(NETLINK_ROUTE, &nl);

	r = r ?: netlink_dump(nl, ask_link(0, NULL), start_over, see_link, &round, &err);
	if (r == 0 && round.n > 0)
		r = destroy(nl, &round, &err);
	*ret = (struct reaped){ .result = r, .destroyed = r == 0 ? (uint32_t)round.n : 0 };
	ret->more = ret->destroyed == AT_ONCE;
	ret->why = err;
	if (r < 0 && !err.text[0])
		err_set(&ret->why, r, "%s", strerror(-r));
}

_Noreturn static void serve(int socket)
{
	char request;

	while (TEMP_FAILURE_RETRY(recv(socket, &request, 1, 0)) == 1) {
		struct reaped reply;

		reap(&reply);
		if (send(socket, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* --- the child ------------------------------------------------------------------------------ */

/* The agent's lock, its sockets and its signals are not the child's. */
_Noreturn static void become_child(pid_t parent, int socket)
{
	sigset_t none;

	prctl(PR_SET_NAME, "roostd-reaper");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || dup2(socket, 3) < 0)
		_exit(1);
	close_range(4, ~0U, 0);
	signal(SIGTERM, SIG_IGN); /* the agent ends it */
	signal(SIGINT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	serve(3);
}

static int make_child(struct reaper *r)
{
	pid_t parent = getpid(), child;
	int pair[2];

	if (r->ended && waitpid(r->ended, NULL, WNOHANG) == r->ended)
		r->ended = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	child = fork();
	if (child == 0)
		become_child(parent, pair[1]);
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return -errno;
	}
	r->child = child;
	r->socket = pair[0];
	return 0;
}

static void end_child(struct reaper *r)
{
	r->io = sd_event_source_disable_unref(r->io);
	if (r->socket >= 0)
		close(r->socket);
	r->socket = -1;
	if (r->child > 0)
		kill(r->child, SIGKILL);
	/* In the middle of a deletion it ends only with that: nobody waits for it here. */
	r->ended = r->child ?: r->ended;
	r->child = 0;
	r->busy = false;
}

/* --- requests ------------------------------------------------------------------------------- */

static int on_reply(sd_event_source *source, int fd, uint32_t events, void *arg);

static void trouble(struct reaper *r, const char *why)
{
	r->stats.failures++;
	health_set(r->health, "links", LOG_LEVEL_ERROR,
		   "cannot delete links of released pods: %s; their addresses stay in use", why);
	timer_set(r->timers, &r->again, AGAIN_MS, AGAIN_MS);
}

static int ready_child(struct reaper *r)
{
	int rc = r->child ? 0 : make_child(r);

	if (rc == 0 && !r->io)
		rc = sd_event_add_io(r->event, &r->io, r->socket, EPOLLIN, on_reply, r);
	return rc < 0 ? rc : 0;
}

static int ask(struct reaper *r)
{
	int rc = ready_child(r);

	if (rc == 0 && send(r->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		rc = -errno;
	if (rc < 0)
		end_child(r);
	return rc;
}

static void request(struct reaper *r)
{
	int rc = ask(r);

	/* Somebody has killed it while it was idle. */
	if (rc < 0)
		rc = ask(r);
	r->wanted = false;
	timer_clear(r->timers, &r->held);
	if (rc < 0) {
		trouble(r, strerror(-rc));
		return;
	}
	r->busy = true;
	timer_set(r->timers, &r->late, LATE_MS, LATE_MS);
}

/* At once, or when nobody is being added, or when that has taken too long. */
static void go(struct reaper *r)
{
	uint64_t now, end;

	if (!r->wanted || r->busy || !r->event)
		return;
	now = timers_now(r->timers);
	end = r->add_ends < r->begin ? r->add_ends : r->begin;
	if (r->adding && now < end)
		timer_set(r->timers, &r->held, end - now, 1);
	else
		request(r);
}

static void want(struct reaper *r)
{
	if (!r->wanted && r->event)
		r->begin = timers_now(r->timers) + HELD_MS;
	r->wanted = true;
	go(r);
}

static int on_reply(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct reaper *r = arg;
	struct reaped reply;
	bool asked = r->busy;
	ssize_t n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	timer_clear(r->timers, &r->late);
	r->busy = false;
	if (n != sizeof(reply)) {
		end_child(r);
		/* Without a request nothing is left undone; the next one makes another. */
		if (asked)
			trouble(r, "the child process for it died");
		return 0;
	}
	r->stats.rounds++;
	r->stats.destroyed += reply.destroyed;
	if (reply.result < 0)
		trouble(r, reply.why.text);
	else
		health_clear(r->health, "links");
	if (reply.more)
		want(r);
	else
		go(r);
	return 0;
}

static void on_late(void *arg)
{
	struct reaper *r = arg;

	end_child(r);
	trouble(r, "the child process for it does not answer");
}

static void on_again(void *arg)
{
	reaper_kick(arg);
}

static void on_held(void *arg)
{
	go(arg);
}

void reaper_kick(struct reaper *r)
{
	want(r);
}

void reaper_adding(struct reaper *r)
{
	uint64_t now = timers_now(r->timers);

	if (now >= r->add_ends)
		r->adding = 0;
	r->adding++;
	r->add_ends = now + ADD_MS;
}

void reaper_added(struct reaper *r)
{
	if (r->adding > 0 && --r->adding == 0)
		go(r);
}

/* --- life ----------------------------------------------------------------------------------- */

int reaper_new(struct reaper **ret)
{
	AUTO(reaper_free) struct reaper *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->socket = -1;
	r->late = (struct timer){ .fn = on_late, .arg = r };
	r->again = (struct timer){ .fn = on_again, .arg = r };
	r->held = (struct timer){ .fn = on_held, .arg = r };
	rc = make_child(r);
	if (rc < 0)
		return rc;
	*ret = TAKE(r);
	return 0;
}

int reaper_start(struct reaper *r, sd_event *event, struct timers *timers, struct health *health)
{
	r->event = event;
	r->timers = timers;
	r->health = health;
	/* What an earlier agent left half done. */
	reaper_kick(r);
	return 0;
}

void reaper_free(struct reaper *r)
{
	if (!r)
		return;
	if (r->timers) {
		timer_clear(r->timers, &r->late);
		timer_clear(r->timers, &r->again);
		timer_clear(r->timers, &r->held);
	}
	end_child(r);
	free(r);
}

pid_t reaper_pid(const struct reaper *r)
{
	return r->child;
}

struct reaper_stats reaper_stats(const struct reaper *r)
{
	return r->stats;
}
