/* SPDX-License-Identifier: MIT */
/*
 * What a file may hold after its process was killed at any moment: what calls that returned have
 * made of it, and of each call that had not, for each byte, what was before or what is after. A
 * task notes what it is about to do, does it, enters what became of it, and takes the note away.
 */
#ifndef SLUICE_TESTS_ACCEPTED_H
#define SLUICE_TESTS_ACCEPTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ACCEPTED_MOST (160u << 10) /* bytes of a file */

enum accepted_kind { NOTHING, WRITE, APPEND, TRUNCATE, ZERO, RENAME, REMOVE, CREATE };

struct accepted_note {
	_Atomic unsigned kind; /* set last */
	unsigned slot, version;
	uint64_t from, to, old_size, new_size;
};

struct accepted_slot {
	unsigned exists, name;
	uint64_t size;
	uint8_t bytes[ACCEPTED_MOST];
};

/* The next note about a slot from *next on, or NULL. */
static inline const struct accepted_note *
accepted_next(const struct accepted_note *notes, unsigned count, unsigned slot, unsigned *next)
{
	for (; *next < count; ++*next)
		if (notes[*next].kind != NOTHING && notes[*next].slot == slot)
			return &notes[(*next)++];
	return NULL;
}

/* `byte` is rig_byte(). */
static inline bool accepted_byte(const struct accepted_note *notes, unsigned count, unsigned slot,
				 const struct accepted_slot *s, uint64_t at, uint8_t found,
				 uint8_t (*byte)(uint64_t offset, unsigned version))
{
	const struct accepted_note *n;

	if (found == (at < s->size ? s->bytes[at] : 0))
		return true;
	for (unsigned next = 0; (n = accepted_next(notes, count, slot, &next));) {
		bool grown = !found && at >= n->old_size;

		if (n->kind == TRUNCATE && grown)
			return true;
		if (at < n->from || at >= n->to)
			continue;
		if ((n->kind == WRITE || n->kind == APPEND) &&
		    (found == byte(at, n->version) || grown))
			return true;
		if (n->kind == ZERO && !found)
			return true;
	}
	return false;
}

static inline bool accepted_size(const struct accepted_note *notes, unsigned count, unsigned slot,
				 const struct accepted_slot *s, uint64_t found)
{
	const struct accepted_note *n;

	if (found == s->size)
		return true;
	for (unsigned next = 0; (n = accepted_next(notes, count, slot, &next));) {
		if (n->kind == TRUNCATE && (found == n->old_size || found == n->new_size))
			return true;
		if ((n->kind == WRITE || n->kind == APPEND) && found >= n->old_size &&
		    found <= n->new_size)
			return true;
	}
	return false;
}

/* A call is about to begin. */
static inline void accepted_begin(struct accepted_note *n, const struct accepted_slot *s,
				  enum accepted_kind kind, unsigned slot, uint64_t from,
				  uint64_t to)
{
	n->slot = slot;
	n->from = from;
	n->to = to;
	n->old_size = n->new_size = s->size;
	if ((kind == WRITE || kind == APPEND) && to > s->size)
		n->new_size = to;
	if (kind == TRUNCATE)
		n->new_size = to;
	atomic_store(&n->kind, (unsigned)kind);
}

/* It returned, and its note can go when this has. `bytes` are those of a write. */
static inline void accepted_enter(const struct accepted_note *n, struct accepted_slot *s,
				  const uint8_t *bytes)
{
	uint64_t end = n->to < s->size ? n->to : s->size;

	switch (atomic_load(&n->kind)) {
	case WRITE:
	case APPEND:
		if (n->from > s->size)
			memset(s->bytes + s->size, 0, n->from - s->size);
		memcpy(s->bytes + n->from, bytes, n->to - n->from);
		s->size = n->to > s->size ? n->to : s->size;
		break;
	case TRUNCATE:
		if (n->to > s->size)
			memset(s->bytes + s->size, 0, n->to - s->size);
		s->size = n->to;
		break;
	case ZERO:
		if (n->from < end)
			memset(s->bytes + n->from, 0, end - n->from);
		break;
	}
}

#endif
