/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes of CNI errors. Every HTTP API of roost answers with the same codes, so that a plugin
 * passes on what the agent said (docs/API.md). 0 to 99 are the specification's, from 100 on ours.
 */
#pragma once

enum cni_code {
	CNI_CODE_VERSION = 1,           /* cniVersion not supported, or too old for the verb */
	CNI_CODE_FIELD = 2,             /* a field's value is not supported */
	CNI_CODE_UNKNOWN_CONTAINER = 3, /* no such attachment: nothing to clean up */
	CNI_CODE_ENVIRONMENT = 4,       /* a CNI_* variable is missing or invalid */
	CNI_CODE_IO = 5,                /* stdin, files, memory, the agent's reply */
	CNI_CODE_DECODE = 6,            /* not JSON, or a value of another type */
	CNI_CODE_CONFIG = 7,            /* well-formed but invalid */
	CNI_CODE_NETNS = 8,             /* known to libcni only */
	CNI_CODE_TRY_AGAIN = 11,        /* the agent is away or busy */
	CNI_CODE_UNAVAILABLE = 50,      /* STATUS: an ADD would fail */
	CNI_CODE_IMPAIRED = 51,         /* the same, and running pods suffer */
	CNI_CODE_NO_ADDRESS = 100,      /* every pool that fits is full */
	CNI_CODE_ATTACHED = 101,        /* the interface already carries its addresses */
	CNI_CODE_ADDRESS_IN_USE = 102,  /* the requested one */
	CNI_CODE_OTHER_ADDRESSES = 103, /* CHECK: the attachment holds others */
	CNI_CODE_FOREIGN_ROUTE = 104,   /* attach: a foreign route has the pod's prefix */
};
