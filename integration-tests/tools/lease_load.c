/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many clients of a lease server at once, by plain sockets and one epoll.
 *
 *   lease_load ADDRESS PORT ACQUIRERS POLLS
 *
 * First every acquirer asks for a lease. Then POLLS connections read all leases and wait for the
 * next change; when all requests are out it says {"waiting": n} and reads a line. Then one more
 * lease is acquired, and all of them must hear of it. Last line: the figures, as JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX  1024
#define TAIL_MAX  96
#define SUBNET    24
#define READ_SIZE 65536

struct client {
	int fd;
	bool connected, done;
	char request[512];
	size_t n_request, sent;
	char head[HEAD_MAX]; /* the first bytes of an answer: head and the begin of its body */
	size_t n_head, got;
	size_t whole;        /* of head and body; 0: not known yet */
	char tail[TAIL_MAX]; /* the last bytes, where the cursor is */
	double began, took;
	int status;
};

static struct sockaddr_in server;
static struct client *clients;
static int loop;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	fprintf(stderr, "lease_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(struct client *c, int op, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (epoll_ctl(loop, op, c->fd, &e) < 0)
		fail("epoll");
}

static void ask(struct client *c, const char *method, const char *path, const char *body)
{
	int n = snprintf(c->request, sizeof(c->request),
			 "%s %s HTTP/1.1\r\nHost: lease\r\nContent-Length: %zu\r\n\r\n%s", method,
			 path, strlen(body), body);

	if (n < 0 || (size_t)n >= sizeof(c->request))
		fail("request");
	c->n_request = (size_t)n;
	c->sent = c->n_head = c->got = c->whole = 0;
	c->done = false;
	c->status = 0;
	c->began = now();
	if (c->fd < 0) {
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (c->fd < 0)
			fail("socket");
		if (connect(c->fd, (struct sockaddr *)&server, sizeof(server)) < 0 &&
		    errno != EINPROGRESS)
			fail("connect");
		watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
	} else {
		watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
	}
}

static void keep_tail(struct client *c, const char *data, size_t n)
{
	if (n >= TAIL_MAX) {
		memcpy(c->tail, data + n - TAIL_MAX, TAIL_MAX);
		return;
	}
	memmove(c->tail, c->tail + n, TAIL_MAX - n);
	memcpy(c->tail + TAIL_MAX - n, data, n);
}

static void take(struct client *c, const char *data, size_t n)
{
	size_t room = HEAD_MAX - 1 - c->n_head, some = n < room ? n : room;
	const char *end, *length;

	memcpy(c->head + c->n_head, data, some);
	c->n_head += some;
	c->head[c->n_head] = '\0';
	keep_tail(c, data, n);
	c->got += n;
	end = strstr(c->head, "\r\n\r\n");
	if (!c->whole && end) {
		length = strcasestr(c->head, "\r\nContent-Length:");
		if (!length || length > end)
			fail("an answer without its length");
		c->whole = (size_t)(end - c->head) + 4 + strtoul(length + 17, NULL, 10);
		c->status = atoi(c->head + 9);
	}
	if (c->whole && c->got >= c->whole) {
		c->done = true;
		c->took = now() - c->began;
	}
}

static void on_writable(struct client *c)
{
	ssize_t n = send(c->fd, c->request + c->sent, c->n_request - c->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		fail("send");
	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->n_request)
		watch(c, EPOLL_CTL_MOD, EPOLLIN);
}

static void on_readable(struct client *c)
{
	static char buffer[READ_SIZE];
	ssize_t n = recv(c->fd, buffer, sizeof(buffer), 0);

	if (n == 0)
		errno = ECONNRESET;
	if (n == 0 || (n < 0 && errno != EAGAIN))
		fail("recv");
	if (n > 0)
		take(c, buffer, (size_t)n);
}

/* One turn; how many have become done. */
static size_t turn(int timeout_ms)
{
	struct epoll_event events[256];
	int n = epoll_wait(loop, events, 256, timeout_ms);
	size_t done = 0;

	for (int i = 0; i < n; i++) {
		struct client *c = events[i].data.ptr;
		bool before = c->done;

		if (events[i].events & EPOLLOUT)
			on_writable(c);
		else
			on_readable(c);
		done += c->done && !before;
	}
	return done;
}

static void finish(size_t n)
{
	double until = now() + 120;

	for (size_t done = 0; done < n;) {
		done += turn(1000);
		if (now() > until) {
			fprintf(stderr, "lease_load: %zu of %zu answers within two minutes\n", done,
				n);
			exit(1);
		}
	}
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void tell_times(const char *name, size_t n, double whole)
{
	double *v = calloc(n ? n : 1, sizeof(*v));
	size_t wrong = 0;

	if (!v)
		fail("memory");
	for (size_t i = 0; i < n; i++) {
		v[i] = clients[i].took * 1000;
		wrong += clients[i].status != 200;
	}
	qsort(v, n, sizeof(*v), by_time);
	printf("\"%s\":{\"n\":%zu,\"wrong\":%zu,\"seconds\":%.3f,\"p50_ms\":%.1f,\"p99_ms\":%.1f,"
	       "\"max_ms\":%.1f},",
	       name, n, wrong, whole, n ? v[n / 2] : 0, n ? v[n * 99 / 100] : 0, n ? v[n - 1] : 0);
	free(v);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static size_t count_distinct(size_t n)
{
	char(*subnets)[SUBNET] = calloc(n ? n : 1, SUBNET);
	size_t distinct = 0;

	if (!subnets)
		fail("memory");
	for (size_t i = 0; i < n; i++) {
		const char *at = strstr(clients[i].head, "\"Subnet\":\"");

		if (at)
			sscanf(at + 10, "%23[^\"]", subnets[i]);
	}
	qsort(subnets, n, SUBNET, by_text);
	for (size_t i = 0; i < n; i++)
		distinct += subnets[i][0] && (i == 0 || strcmp(subnets[i - 1], subnets[i]) != 0);
	free(subnets);
	return distinct;
}

static void acquire(size_t i)
{
	char body[160];

	snprintf(body, sizeof(body),
		 "{\"PublicIP\":\"172.%zu.%zu.%zu\",\"BackendType\":\"vxlan\",\"BackendData\":"
		 "{\"VNI\":1,\"VtepMAC\":\"02:00:00:%02zx:%02zx:%02zx\"}}",
		 16 + (i >> 16), i >> 8 & 255, i & 255, i >> 16, i >> 8 & 255, i & 255);
	ask(&clients[i], "POST", "/v1/_/leases", body);
}

static void wait_for_next(struct client *c)
{
	char tail[TAIL_MAX + 1], path[64], cursor[24] = "";
	const char *at;

	memcpy(tail, c->tail, TAIL_MAX);
	tail[TAIL_MAX] = '\0';
	for (char *p = tail; p < tail + TAIL_MAX; p++)
		*p = *p ? *p : ' ';
	at = strstr(tail, "\"cursor\":\"");
	if (!at || sscanf(at + 10, "%23[0-9]", cursor) != 1)
		fail("no cursor");
	snprintf(path, sizeof(path), "/v1/_/leases?next=%s", cursor);
	ask(c, "GET", path, "");
}

/* Until all requests are on their way. */
static void send_all(size_t n)
{
	for (bool all = false; !all;) {
		all = true;
		turn(10);
		for (size_t i = 0; i < n; i++)
			all = all && clients[i].sent == clients[i].n_request;
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };
	size_t acquirers, polls, most, distinct;
	double began;
	char line[16];

	if (argc != 5) {
		fprintf(stderr, "usage: lease_load ADDRESS PORT ACQUIRERS POLLS\n");
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	server.sin_family = AF_INET;
	server.sin_port = htons((uint16_t)atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &server.sin_addr);
	acquirers = strtoul(argv[3], NULL, 10);
	polls = strtoul(argv[4], NULL, 10);
	most = (acquirers > polls ? acquirers : polls) + 1;
	clients = calloc(most, sizeof(*clients));
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (!clients || loop < 0)
		fail("memory");
	for (size_t i = 0; i < most; i++)
		clients[i].fd = -1;

	began = now();
	for (size_t i = 0; i < acquirers; i++)
		acquire(i);
	finish(acquirers);
	printf("{");
	tell_times("acquire", acquirers, now() - began);
	distinct = count_distinct(acquirers);

	began = now();
	for (size_t i = 0; i < polls; i++)
		ask(&clients[i], "GET", "/v1/_/leases", "");
	finish(polls);
	tell_times("snapshot", polls, now() - began);
	printf("\"snapshot_bytes\":%zu,", polls ? clients[0].whole : 0);

	for (size_t i = 0; i < polls; i++)
		wait_for_next(&clients[i]);
	send_all(polls);
	fprintf(stderr, "{\"waiting\":%zu}\n", polls);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	began = now();
	for (size_t i = 0; i < polls; i++)
		clients[i].began = began;
	acquire(most - 1);
	finish(polls + 1);
	tell_times("wake", polls, now() - began);
	printf("\"distinct\":%zu}\n", distinct);
	return 0;
}
