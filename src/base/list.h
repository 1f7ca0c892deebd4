/* SPDX-License-Identifier: MIT */
/*
 * Intrusive doubly linked lists. A list is a ring of nodes through a head that
 * carries no element: an empty list is a head that points at itself, and so is
 * a node that stands on no list. All operations are O(1).
 */
#ifndef SLUICE_BASE_LIST_H
#define SLUICE_BASE_LIST_H

#include "base/types.h"
#include <assert.h>

struct list_node {
	struct list_node *next, *prev;
};

static inline void list_init(struct list_node *n)
{
	n->next = n->prev = n;
}

/* True for an empty list, and for a node that stands on no list. */
static inline bool list_empty(const struct list_node *head)
{
	return head->next == head;
}

/* Puts n, which stands on no list, right after `at`: at the front if `at` is the head. */
static inline void list_add(struct list_node *at, struct list_node *n)
{
	assert(!n->next || list_empty(n)); /* fresh, of zeros; or off every list */
	n->next = at->next;
	n->prev = at;
	at->next->prev = n;
	at->next = n;
}

/* Puts n, which stands on no list, at the back of the list. */
static inline void list_add_tail(struct list_node *head, struct list_node *n)
{
	list_add(head->prev, n);
}

static inline void list_del(struct list_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Moves every element of `from` to the front of `to`, in order; `from` ends empty. */
static inline void list_splice(struct list_node *to, struct list_node *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to;
	from->prev->next = to->next;
	to->next->prev = from->prev;
	to->next = from->next;
	list_init(from);
}

#define list_entry(node, type, field) container_of(node, type, field)
#define list_for_each(n, head)        for (n = (head)->next; n != (head); n = n->next)
/* As list_for_each; the loop may delete n. */
#define list_for_each_safe(n, tmp, head) \
	for (n = (head)->next, tmp = n->next; n != (head); n = tmp, tmp = n->next)

#endif
