/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deterministic simulation: several machines, two controllers and one etcd in this process, on a
 * clock of their own.
 *
 *   seed ─> plan of faults ─┐
 *   seed ─> scheduler ──────┴> one step of one program at a time ─> judge: two holders? a leak?
 *
 * The programs are the real ones: registration, report, addresses with their claims, election and
 * keeper. What they would ask of the machine is replaced when the simulator is linked
 * (stand_ins.c): clocks, random numbers, files, the local socket, the kernel's routes, the loop.
 * Etcd is lib/store/memory_etcd, shared by the stores of all programs (sim_store.c). In some runs there
 * are machines over leases: their agents have the real lease store and its client, controllers the
 * real lease server, and what lies between them is wire.c.
 *
 * A run follows from its seed alone. A plan of faults is a list, so a failing run can be repeated
 * with fewer of them until each one left is needed (main.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/addresses/ipam_state.h"
#include "agent/node/identity.h"
#include "agent/node/register.h"
#include "agent/node/report.h"
#include "controller/keeper.h"
#include "controller/leases/lease_server.h"
#include "controller/state/elect.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/lease/lease_store.h"
#include "lib/store/store_memory.h"

#define SIM_PREFIX      "/roost/"
#define SIM_MACHINES    8
#define SIM_CONTROLLERS 2
#define SIM_NEVER       INT64_MAX
#define SIM_EPOCH       INT64_C(1790000000) /* CLOCK_REALTIME at the beginning, less 1 s */

#define MS  INT64_C(1000)
#define SEC (1000 * MS)
#define MIN (60 * SEC)

/* --- time and chance ------------------------------------------------------------------------ */

struct chance {
	uint64_t state;
};
uint64_t chance_next(struct chance *c);
/* 0 to n - 1. */
uint64_t chance_below(struct chance *c, uint64_t n);
/* Once in n. */
bool chance_once_in(struct chance *c, uint64_t n);

/* --- a store of its own for each program ---------------------------------------------------- */

struct process;

enum net {
	NET_WHOLE,
	NET_CUT,
	NET_QUIET, /* cut, and the program has not noticed yet */
	NET_DEAF   /* requests arrive, replies and events do not */
};

struct sim_store {
	struct memory memory;
	struct process *process;
	struct memory_task news;
	unsigned era;    /* of etcd, as this store knows it */
	int64_t known;   /* the newest revision seen */
	int64_t resumes; /* when its watches have found etcd again; SIM_NEVER: they follow */
	enum net net;
};
struct sim_store *sim_store_new(struct process *p);
/* One step; false: nothing to do. */
bool sim_store_step(struct sim_store *s);
bool sim_store_has_work(const struct sim_store *s);
void sim_store_connect(struct sim_store *s, enum net net);
/* Etcd was exchanged: its watches are broken, and find it again after a while. */
void sim_store_break(struct sim_store *s);
/* A member that was stopped wakes and applies what it was sent; or it is gone for good. */
void sim_members_wake(bool apply);

/* --- programs ------------------------------------------------------------------------------- */

struct pass {
	pass_fn *fn;
	void *arg;
	bool open, dirty;
	int64_t not_before;
};

struct serve_request {
	TAILQ_ENTRY(serve_request) entry;
	struct machine *machine;
	struct process *process; /* that has taken it */
	bool release, waits;
	char container[24], body[512];
	/* To a lease server. */
	bool wire;
	struct http_call *call; /* NULL: nobody waits for the answer any more */
	char method[8], path[64], next[32];
	int64_t deadline;
	serve_end_fn *on_end;
	void *arg;
};
TAILQ_HEAD(requests, serve_request);

struct process {
	char label[32];
	struct machine *machine; /* NULL: a controller */
	struct sim_store *store; /* NULL: an agent over leases */
	struct store *leases;
	struct timers timers;
	struct health *health;
	struct pass *pass; /* its only one */
	/* an agent */
	struct records *records;
	struct registration *registration;
	struct report *report;
	struct ipam *ipam;
	struct requests waiting; /* taken, not answered yet */
	LIST_HEAD(sim_sources, sd_event_source) sources;
	LIST_HEAD(sim_calls, http_call) calls; /* to lease servers, under way */
	/* a controller */
	struct elect *elect;
	struct keeper *keeper;
	struct lease_server *lease_server;
	serve_handler_fn *handler;
	void *handler_arg;
	struct requests inbox; /* from machines over leases */
	char id[32];
	bool stopped; /* SIGSTOP, or its machine sleeps */
	bool dying;   /* killed: what it does from now on reaches nobody */
	bool busy;    /* in the middle of a step */
	unsigned turns[8];
};

struct released_note {
	char network[NAME_TEXT];
	struct address address;
	int64_t when;
};

/* As etcd has it. */
struct held_lease {
	struct prefix block;
	int64_t expires; /* world */
};
#define SIM_LEASES 16

struct machine {
	char name[16], id[24], boot[24], mac[HARDWARE_TEXT];
	char run_dir[8];
	unsigned index, boots;
	bool off;        /* for good: its pods are dead */
	int64_t booted;  /* world time at CLOCK_BOOTTIME 0 */
	int64_t slept;   /* what CLOCK_MONOTONIC has missed */
	int64_t restart; /* when its agent comes up again */
	enum net net;
	bool sleeps;
	struct process *agent;
	struct requests socket; /* sent by clients, not taken yet */
	int64_t client_due;
	unsigned target; /* pods that its clients want */
	bool over_leases;
	bool pinned;                 /* its address is known since an earlier start on this boot */
	char holder[NODE_NAME_TEXT]; /* its name in etcd */
	/* what survives the agent on this boot */
	struct attachment *attachments[64];
	size_t n_attachments;
	struct block_copy blocks[64];
	size_t n_blocks;
	char *records;
	struct released_note released[128];
	size_t n_released;
	char spool[64][24]; /* containers */
	size_t n_spool;
	/* for the judge */
	bool alive;         /* etcd has its status */
	int64_t last_alive; /* or had it then */
	int64_t forfeit;    /* pods given before may rightly lose their addresses */
	bool condemned;     /* removed, replaced, or etcd went back */
	uint32_t promise;   /* s: what its record said last */
	struct held_lease held[SIM_LEASES];
	size_t n_held;
};

struct controller_place {
	struct process *process;
	int64_t restart;
	enum net net;
};

/* --- the world ------------------------------------------------------------------------------ */

enum fault_kind {
	FAULT_CUT,
	FAULT_QUIET_CUT, /* noticed after some seconds */
	FAULT_DEAF,      /* one way */
	FAULT_STOP,
	FAULT_SLEEP, /* suspend */
	FAULT_KILL,
	FAULT_REBOOT,
	FAULT_REPLACE, /* another machine of the same name */
	FAULT_CLONE,   /* and with the same machine id */
	FAULT_RENAME,
	FAULT_OFF,
	FAULT_REMOVE,
	FAULT_TAKE_BACK, /* removed/ is deleted */
	FAULT_SNAPSHOT,
	FAULT_RESTORE,
	FAULT_WIPE,
	FAULT_CONFIG,
	FAULT_BROKEN_CONFIG,
	FAULT_POOL,
	FAULT_LATE, /* the next writes of a program stay in a stopped member */
	FAULT_WAKE,
	FAULT_LOSE, /* the next replies are lost */
	FAULT_CONTROLLER_KILL,
	FAULT_CONTROLLER_CUT,
	FAULT_CONTROLLER_STOP,
	FAULT_BURST,     /* of ADDs */
	FAULT_INTERRUPT, /* a stop in the middle of an ADD */
	FAULT_COMPACT,
	FAULT_KINDS
};

struct fault {
	enum fault_kind kind;
	int64_t at, lasts;
	unsigned who;
	uint64_t number;
	bool left_out;
};

struct pod {
	struct machine *machine;
	char container[24];
	struct address address;
	int64_t since;
	bool live, forfeited;
};

#define SIM_FAULTS 40
#define SIM_PODS   4096

struct simulation {
	uint64_t seed;
	struct chance chance; /* the scheduler's */
	int64_t now;          /* us */
	uint64_t steps;
	struct memory_etcd etcd;
	struct memory members; /* applies what a stopped member was sent */
	struct memory_request *late_requests[32];
	size_t n_late_requests;
	unsigned era;
	int64_t exchanged; /* when that began */
	int64_t spread;    /* the revision that all watches have heard of */
	unsigned spread_era;
	struct memory_etcd snapshots[4];
	bool has_snapshot[4];
	struct machine machines[SIM_MACHINES];
	size_t n_machines, n_first; /* those of the beginning */
	struct controller_place controllers[SIM_CONTROLLERS];
	struct fault faults[SIM_FAULTS];
	size_t n_faults, next_fault;
	struct fault ends[SIM_FAULTS * 2]; /* what is under way, by when it ends */
	size_t n_ends;
	struct pod pods[SIM_PODS];
	size_t n_pods;
	unsigned containers;
	uint32_t lose, late; /* so many of the next writes */
	uint32_t lease_ttl;  /* s; 0: nobody is over leases */
	bool quiescent;      /* no fault any more */
	bool interrupt;      /* the next file that is written is interrupted */
	unsigned depth;      /* of interrupted steps */
	bool verbose;
	char *wrong; /* what the judge has found; NULL: nothing */
	struct process *current;
};
extern struct simulation sim;

/* world.c */
/* One whole run; true: nothing was wrong. left_out: faults of the plan not to be done. */
bool world_run(uint64_t seed, const bool *left_out, bool tell, bool verbose, uint64_t *ret_steps);
/* Only these faults from now on, by their words; false: there is no such one. */
bool world_allow(const char *words);
/* Some machines are over leases in every run from now on. */
void world_with_leases(void);
void world_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
void world_wrong(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The story so far; free() it. */
char *world_story(void);
/* Others go on for a while, as if the running program were stopped here. */
void world_interrupt(void);

/* loop.c: stands in for sd-event */
/* When the next source is due, by the world's time. */
int64_t loop_due(const struct process *p);
void loop_step(struct process *p);
int64_t loop_clock(const struct process *p, clockid_t clock);
int64_t loop_world_time(const struct process *p, clockid_t clock, int64_t us);

/* wire.c: between machines over leases and the lease servers */
int64_t wire_due(const struct process *p);
void wire_step(struct process *p);
/* The machine's connections break. */
void wire_cut(struct process *client);
void wire_reply(struct serve_request *q, unsigned status, const char *body);
/* Its deadline is over. */
void wire_late(struct serve_request *q);

/* programs.c */
struct process *process_agent(struct machine *m);
struct process *process_controller(unsigned which);
void process_kill(struct process *p);
void process_enter(struct process *p, struct process **ret_before);
void process_leave(struct process *before);
/* A DEL that found no agent leaves a note. */
void machine_spool(struct machine *m, const char *container);
/* The socket's oldest request is taken. */
void process_take_request(struct process *p);

/* judge.c */
void judge_granted(struct machine *m, const char *container, const struct address *address);
/* Etcd has changed. */
void judge_changed(void);
/* A lease server has answered a machine that it holds its lease; it had asked then. */
void judge_confirmed(struct machine *m, int64_t sent);
/* Whom a name of etcd means. */
bool machine_is(const struct machine *m, const char *node);
/* At the end: everything is served, and nothing is held for nobody. */
void judge_end(void);
