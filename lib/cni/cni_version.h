/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions and verbs of CNI, and which verb exists since which version. Pure.
 */
#pragma once

#include <stdbool.h>

enum cni_verb { CNI_ADD, CNI_DEL, CNI_CHECK, CNI_GC, CNI_STATUS, CNI_VERSION };
#define CNI_VERBS 6

/* In the order of their age; the results of 0.1.0 and 0.2.0 look alike, as do 0.3.0 to 0.4.0. */
enum cni_version { CNI_0_1_0, CNI_0_2_0, CNI_0_3_0, CNI_0_3_1, CNI_0_4_0, CNI_1_0_0, CNI_1_1_0 };
#define CNI_VERSIONS       7
#define CNI_VERSION_NEWEST CNI_1_1_0

const char *cni_verb_name(enum cni_verb verb);
/* 0 or -EINVAL: verbs are upper case. */
int cni_verb_parse(const char *text, enum cni_verb *ret);
/* The first version that knows the verb. */
enum cni_version cni_verb_since(enum cni_verb verb);

const char *cni_version_name(enum cni_version version);
/* "" means 0.1.0. -EINVAL if it is none of ours. */
int cni_version_parse(const char *text, enum cni_version *ret);
/* Whether it is a version at all, ours or not: one to three numbers with dots between. */
bool cni_version_is_one(const char *text);
