/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/addresses: the state of the allocator's host, and what its files call of each other. */
#pragma once

#include <sys/queue.h>

#include "agent/addresses/authority.h"
#include "agent/addresses/ipam.h"
#include "agent/addresses/recovery_decide.h"
#include "agent/addresses/refusals.h"
#include "agent/records/records.h"
#include "ipam/allocator/allocator.h"
#include "ipam/attachments/local_copy.h"
#include "ipam/behind.h"
#include "ipam/claims.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/base/pass.h"
#include "lib/cni/pod_link.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/store/store_stats.h"
#include "lib/store/txn.h"

/* What the allocator is configured from, all of one time; replaced as a whole. */
struct inputs {
	struct pool_input *views; /* their pools are kept records */
	struct err *invalid;
	char **names; /* of the views */
	size_t n_pools;
	const struct extent **extents; /* kept records */
	size_t n_extents;
	const struct node_spec *spec; /* a kept record, or NULL */
	struct label *labels;
	size_t n_labels;
	uint32_t reclaim_after, export_table;
	bool config_wrong; /* it cannot be read, and no good one is known: the promise stays */
	enum log_level log_level;
	bool has_log_level;
};

/* What is wanted of the records. */
enum input {
	INPUT_POOLS,
	INPUT_EXTENTS,
	INPUT_SPEC,
	INPUT_CONFIG,
	INPUT_HOST,
	INPUT_RECOVERY,
	INPUT_NODES,
	INPUTS
};

/* A block of ours beside the allocator's own_block: what etcd and the files have of it. */
struct owned {
	struct block_copy copy;
	int64_t revision; /* MOD revision of the block key; 0: not verified */
	bool indexed;     /* its index key is there */
	bool verify;      /* look at the block key */
	bool again;       /* the same, when the timer says so */
	bool restored;    /* we did not hold it when etcd went back: wait for the recovery's end */
	bool cut_apart; /* its key vanished, and another extent lies there: it cannot be claimed */
	bool damaged;   /* its key cannot be read: it serves nothing, and nobody can claim it */
	bool extent_asked; /* its pool's extent has vanished and is being written again */
	struct ipam *ipam;
	struct claims_call *call; /* its release, or a claim of it again */
	int64_t claimed; /* 0, or revision of a claim whose reply overtook that of the release */
};

/* Another node, or this one, by its record; of one that a restore took away, as it was before. */
struct known_node {
	char *name;
	char recovery[ID_TEXT]; /* it has spoken for this one */
	uint32_t promise;
	uint64_t machine; /* node_machine() of its record, and of that before etcd went back */
	uint64_t before;  /* 0: there was none */
	bool stands;
};

/* What is known of a recovery (recovery.c). */
struct recovering {
	bool noticed; /* etcd went back, and no recovery since then is known */
	bool present, readable, done;
	char id[ID_TEXT], by[NODE_NAME_TEXT], began[TIME_TEXT];
	uint32_t number, before; /* its number; the highest known before etcd went back */
	uint32_t longest;
	int64_t revision, newest; /* MOD of the record; what it says */
	int64_t knew;             /* the newest revision that we knew before etcd went back */
	bool unsettled;           /* there is, or may be, something to be done */
	int64_t since;            /* CLOCK_BOOTTIME, ns: first seen open */
	int64_t accepted_until; /* one that went on without us has ended; claims wait until then */
	bool witness;           /* our nodes are all that there were when etcd went back */
	ARRAY(struct known_node) nodes; /* sorted by name */
	struct store_call *call;
	struct timer timer;
};

struct ipam {
	struct ipam_options o;
	struct allocator *allocator;
	struct claims *claims;
	struct behind *behind;
	struct local_copy *copy;
	struct pass *pass;
	char fence_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT], removed_key[KEY_FULL_TEXT];
	/* inputs */
	struct record_want *wants[INPUTS];
	struct inputs inputs;
	bool stale;                            /* records changed since configured */
	bool self_known, self_ipv4, self_ipv6; /* which families this node has an address of */
	bool unsaved;                          /* records changed since written to the file */
	bool local;       /* the files of this boot let us serve without etcd */
	int64_t resuming; /* until then what an earlier agent of this boot served counts */
	bool damaged;     /* some of them cannot be read: etcd must tell what they held */
	bool host_listed; /* once: from then on our memory is right, whatever etcd has */
	/* blocks */
	ARRAY(struct owned *) owned;
	struct store_call *verifying;
	struct owned *looking[STORE_TXN_MAX]; /* at these; NULL: left the table meanwhile */
	size_t n_looking;
	struct texts give_back; /* networks the controller asked for; texts owned */
	int64_t modest_until;   /* it asked lately: no block is claimed ahead of need until then */
	struct store_call *answering;
	bool connected;
	/* what was proven */
	struct authority authority;
	int64_t void_before; /* the fence was lost then: what was sent earlier proves nothing */
	bool prove;          /* the next look shall bring a proof, also without blocks */
	uint32_t promised;   /* what the registration was given; 0: nothing yet */
	struct recovering recovery;
	int64_t newest;         /* revision that etcd has shown us */
	int64_t saved_revision; /* by an earlier agent of this boot; 0: none */
	uint64_t saved_cluster;
	/* requests */
	TAILQ_HEAD(waiting_list, waiting) waitings; /* first come, first served */
	struct refusals refused_pods;
	struct timer refused_old; /* when the last of them no longer counts */
	/* the overlay's end here, by family */
	struct {
		bool told, wanted[2];
		struct err refused[2];
	} tunnels;
	/*
	 * What etcd answers with an error is not repeated at once. Claims and releases rest while
	 * "refused" is set; address keys are written when "write" comes, looks when "again" does.
	 */
	struct err refusal; /* the last error about blocks; "": none since they went well */
	struct timer refused;
	unsigned refusals, write_refusals, look_failures; /* in a row */
	struct err unproven;                              /* why the last look failed */
	/* house-keeping */
	struct timer leaks, heard, start, ripe, mend, write, again, unplug;
	bool start_over; /* the grace for etcd at the start has passed */
	bool served;     /* addresses have been given since the start */
	bool known;      /* once: all inputs were read and all blocks verified */
	sd_event_source *spool;
	int spool_dir, released_dir;
};

/* Whom we get our blocks from, for sentences. */
static inline const char *ipam_server(const struct ipam *m)
{
	return store_server(m->o.store);
}

static inline int64_t ipam_now(void)
{
	return (int64_t)clock_boottime_ns();
}

/* ipam.c */
bool ipam_all_listed(const struct ipam *m);
/* An ADD may wait for a proof: one is due within moments. */
bool ipam_is_proving(const struct ipam *m);
/* ns: for so long the last proof counts. */
int64_t ipam_authority_left(const struct ipam *m);
/* A look that was sent then showed fence and status, and no removal. */
void ipam_proved(struct ipam *m, int64_t sent);
/* The sentence for a server out of reach, or a node that is not registered; with its cause. */
void ipam_unregistered(const struct ipam *m, struct err *why);
/* MOD revision of our node record; 0: not registered. */
int64_t ipam_fence_revision(const struct ipam *m);

/* ipam_inputs.c */
int ipam_inputs_start(struct ipam *m);
void ipam_inputs_done(struct ipam *m); /* ends the watches */
void ipam_inputs_free(struct ipam *m); /* after the allocator that reads them */
int ipam_configure(struct ipam *m);
int ipam_records_load(struct ipam *m);
int ipam_records_save(struct ipam *m);
const struct extent *ipam_extent(const struct ipam *m, const char *network, const char *pool,
				 int64_t *ret_created);

/* host_keys.c: own keys under host/<self>/ */
void ipam_host_put(struct ipam *m, const struct key *key, const struct store_kv *kv);
void ipam_host_deleted(struct ipam *m, const struct key *key, const char *relative,
		       int64_t revision);
void ipam_host_done(struct ipam *m);
/* Deletes the keys of requests that there is nothing more to give for. */
void ipam_answer_requests(struct ipam *m);
int ipam_wants_keys(struct ipam *m, const struct attachment *a, bool wanted);

/* own_blocks.c */
struct owned *ipam_owned_find(const struct ipam *m, const char *network,
			      const struct prefix *block);
/* NULL: out of memory. */
struct owned *ipam_owned_add(struct ipam *m, const char *network, const char *pool,
			     const struct prefix *block, const struct prefix *cidr);
void ipam_blocks_done(struct ipam *m);
/* Asks etcd about the blocks that are to be looked at, and for a proof. */
void ipam_look(struct ipam *m);
/* What was put off: claims that met something which we do not know yet, or cannot change. */
void ipam_on_again(void *ipam);
void ipam_restore_extents(struct ipam *m);
/* Which blocks get routes and NAT, as their pools say now; what a vanished pool said last stays. */
void ipam_learn_routed(struct ipam *m);
bool ipam_unrouted_at_first(const char *network);
bool ipam_can_claim(const struct ipam *m, struct err *why);
/* 0: under way or started; -EAGAIN: not possible now. */
int ipam_claim(struct ipam *m, const struct block_need *need);
void ipam_claim_ahead(struct ipam *m);
void ipam_give_back(struct ipam *m);
/* etcd refused to change a block, a pool or the recovery: it rests for a while. */
void ipam_refused(struct ipam *m, const char *text);
/* It changed one. */
void ipam_accepted(struct ipam *m);

/* recovery.c */
void ipam_recovery_init(struct ipam *m);
void ipam_recovery_free(struct ipam *m);
void ipam_recovery_work(struct ipam *m);
void ipam_went_back(struct ipam *m);
/* Whether blocks must not change hands now, and why. */
bool ipam_recovering(const struct ipam *m, struct err *why);
/* The highest number of one that this node has seen. */
uint32_t ipam_recovery_number(const struct ipam *m);
/* The id of the open recovery that we take part in; "": none. */
const char *ipam_recovery_id(const struct ipam *m);
void ipam_node_put(struct ipam *m, const char *name, const struct record_entry *e);
void ipam_node_deleted(struct ipam *m, const char *name);
void ipam_recovery_put(struct ipam *m, const struct store_kv *kv);
void ipam_recovery_deleted(struct ipam *m);

/* requests.c */
/* pool: whose claim has ended; NULL: something else has changed. failed: why it brought nothing. */
void ipam_retry_waiting(struct ipam *m, const char *pool, const char *failed);
void ipam_waiting_done(struct ipam *m);
/* Decodes the request's body into *q, or answers it: 0 or -errno. */
#define ipam_take(request, decode, q)                                                              \
	({                                                                                         \
		struct err err_ = { "" };                                                          \
		size_t len_;                                                                       \
		const char *body_ = serve_body((request), &len_);                                  \
		ipam_taken((request), decode(body_, len_, (q), &err_), &err_);                     \
	})
int ipam_taken(struct serve_request *request, int r, const struct err *err);
/* Of an assign or attach request. */
#define REFUSED_POD(q)                                                                             \
	(&(struct refused_pod){ (q)->namespace ?: "", (q)->pod ?: "", (q)->container,              \
				(q)->interface })
/*
 * Answers with the refusal, and notes it for log, health and GET /v1/refusals. expected: nobody
 * needs to act (a drain, a stop, a DEL that overtook).
 */
void ipam_refuse(struct ipam *m, struct serve_request *request, const struct refused_pod *pod,
		 enum cni_code code, bool expected, const char *fmt, ...) PRINTF_LIKE(6, 7);
/* The pod has got what it was refused before. */
void ipam_served(struct ipam *m, const struct refused_pod *pod);
/* 200 with what was written, which it takes. */
void ipam_reply(struct serve_request *request, struct tree *t);
/* "addresses" of an attachment, as replies have them. */
void ipam_write_addresses(struct tree *t, const struct attachment *a);
/* The file first, then etcd; if it cannot be written, nothing has happened. 0 or -errno. */
int ipam_keep(struct ipam *m, const struct assign_result *result);
/* Takes the attachment out of files, memory and etcd; its addresses go to ret, an open array, or
 * NULL. 0 or -errno. */
int ipam_drop(struct ipam *m, const struct attachment_key *key, struct tree *ret, struct err *err);
/* Gives its addresses back now, whatever its link. */
int ipam_free_addresses(struct ipam *m, const struct attachment_key *key, struct tree *ret,
			struct err *err);

/* pod_links.c */
/* Whether it stays in use for now: its link is taken out of routing and destroyed first. */
bool ipam_held_by_link(struct ipam *m, const struct attachment *a);
/* The link of such an interface is being destroyed; a new one would meet it. */
bool ipam_link_doomed(const struct ipam *m, const char *container, const char *interface);
/* 0: none, or nobody can tell. */
uint64_t ipam_netns_inode(const char *path);
/*
 * Takes the pod out of routing and has its link destroyed. true: the link is still there, and
 * ipam_link_gone() comes when it is not; false: it is gone, the address is free.
 */
bool ipam_unplug(struct ipam *m, struct kernel_pod pod, const char *container,
		 const char *interface);
void ipam_links_start(struct ipam *m);

/* desire.c */
/* As the kernel's part wants it; the addresses go to room, which has place for them. */
struct kernel_pod ipam_kernel_pod(const struct attachment *a, struct address *room);

/* tunnel_address.c */
void ipam_tunnel_work(struct ipam *m);
/* Whether pods of that pool are reached through the overlay. */
bool ipam_pool_encapsulates(const struct ipam *m, const char *name);

/* start.c */
int ipam_start(struct ipam *m, struct err *err);

/* notes.c: DELs that plugins left in spool/, and released addresses that etcd may still list */
int ipam_spool_start(struct ipam *m);
void ipam_spool_done(struct ipam *m);
int ipam_released_open(struct ipam *m); /* also again */
void ipam_released_close(struct ipam *m);
void ipam_released_note(struct ipam *m, const struct attachment *a);
bool ipam_released(const struct ipam *m, const char *network, const struct address *address);
void ipam_released_sweep(struct ipam *m); /* now and then */

/* show.c */
/* The part of health about refused pods follows what is noted of them. */
void ipam_tell_refused_pods(struct ipam *m);
timer_fn ipam_on_refused_old;
/* Full pools, the drain and what etcd refuses, in health. */
void ipam_tell(struct ipam *m);
const char *ipam_drained_text(const struct ipam *m, struct err *ret);
