/* SPDX-License-Identifier: Apache-2.0 */
/* The process that speaks to the network: this program again, as a child that has a user of its
 * own, no capabilities, few system calls and no files but the system's (common/sandbox.h). It looks
 * up names, connects, speaks TLS and HTTP; a flaw in these is not root's. It reads the certificates
 * to trust, --ca-file too, before its rights go, so that a file of root's will do; what names and
 * certificates need after that are files that everybody may read.
 *
 * The agent keeps what needs rights: it opens files, reads the spool and the token, and hands over
 * bytes. What comes back are an answer's status, some fields and at most HTTP_BODY_MAX bytes of its
 * body, which threads without rights read (thread.h). Requests of several clients run beside each
 * other, each with a connection of its own that is kept. */
#ifndef NODE_AGENT_NETWORK_NETWORK_H
#define NODE_AGENT_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct network_options {
	const char *server_url;
	const char *ca_file;    /* NULL: the system's certificates */
	const char *token_file; /* NULL: none; read again when it changes (token.h); borrowed */
	int timeout_ms;         /* connect, and each silence while sending or waiting */
};

struct network;

/* To be called first in main(): does the child's work when this process is one, and ends it. −1: it
 * is not, go on. */
int network_main(int argc, char **argv);

/* Waits until the child is ready. ERROR_OPTION: a bad address, or a token or certificates that
 * cannot be read. The thread that starts it is the one that keeps and interrupts it, and goes on
 * until then: the child ends with it. */
struct network *network_start(const struct network_options *options, struct error *err);

/* To be called now and then: a child that has ended, or says what a sound one does not, is replaced
 * by another, at once if it lived long, else after a pause that grows (back_off.h). Never waits. */
void network_keep(struct network *network);
uint64_t network_restarts(struct network *network);

/* The child is ended: what is under way fails with ERROR_BUSY, as all that comes; NULL too. */
void network_interrupt(struct network *network);
/* Its clients have gone; NULL too. */
void network_free(struct network *network);

/* --- for its clients (network_client.h), of any thread --- */

/* A socket of its own to the child, the caller's to close; −1: the child has ended. */
int network_channel(struct network *network, struct error *err);
/* False, with ERROR_BUSY when it is interrupted, else ERROR_REMOTE. */
bool network_say_ended(struct network *network, struct error *err);
/* What this child does is not what a sound one does: it is to be replaced. */
void network_suspect(struct network *network);
const char *network_token_file(const struct network *network);

#endif
