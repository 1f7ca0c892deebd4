/* SPDX-License-Identifier: MIT */
/*
 * The other ranks of a sweep: the same program, started together on one or several
 * machines, exchanging lines of text with rank 0. Nothing here blocks. A program that
 * was not started with others, or built without MPI, is rank 0 of one.
 *
 * Only the thread that opened them may use them.
 */
#ifndef SLUICE_LAB_SWEEP_PEERS_H
#define SLUICE_LAB_SWEEP_PEERS_H

#include "base/err.h"

struct peer_message;

struct peers {
	unsigned rank, size;
	unsigned here;             /* ranks on this machine, this one included */
	bool lost;                 /* some rank does not answer any more: said by who noticed */
	struct peer_message *sent; /* private: what may still be under way */
};

/* 0, or a negative errno when the others cannot be reached. */
int peers_open(struct peers *p, struct err *e);
/* Takes what has come: a string of malloc's in *text and its sender. False: nothing there. */
bool peers_receive(struct peers *p, unsigned *from, char **text);
/* Sends a copy. 0, or a negative errno: -EIO when the other cannot be reached. */
int peers_send(struct peers *p, unsigned to, const char *text);
/* Whether anything sent is still under way. */
bool peers_sending(struct peers *p);
/*
 * Ends the exchange. If a rank was lost and cannot be waited for, all are ended by force and
 * this does not return; the exit status is `status`.
 */
void peers_close(struct peers *p, int status);

#endif
