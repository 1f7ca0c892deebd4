/* SPDX-License-Identifier: MIT */
/*
 * Checking what was written: fio's verify options, where contents are real.
 *
 * What a block holds can be told from the block itself. Every verify_interval bytes of it (or
 * the whole block) begin with a header: the offset, the number of the write, a hash of the
 * file's name, and a sum over these; the bytes behind it follow from the header, or from
 * verify_pattern. So any reader can check a block it has not written, stronger than with
 * any of fio's sums, which therefore are all this one. verify=pattern has no headers.
 *
 * A job that writes remembers its writes, and when it is done (or after every verify_backlog
 * blocks) syncs its files, drops them from the cache, reads the blocks back, and expects
 * them with the numbers of its writes: a write that got lost is found, too. Blocks that a
 * later write touched are not read back: only the whole can be checked.
 */
#include "job/verify.h"
#include "base/bits.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x736c75696365f10aull

struct header {
	u64 magic, offset, sequence, name, sum;
};

static u64 name_of(const struct clone_file *f)
{
	u64 hash = 0;

	for (const char *p = f->plan->path; *p; p++)
		hash = seed_mix(hash, (u8)*p);
	return hash;
}

static u64 sum_of(const struct header *h)
{
	return seed_mix(seed_mix(seed_mix(h->magic, h->offset), h->sequence), h->name);
}

bool verify_wanted(const struct clone *c)
{
	const struct job_options *o = &c->job->o;

	return (o->verify == VERIFY_SUMS || o->verify == VERIFY_PATTERN) && c->run->options &&
	       c->run->options->contents && o->ioengine != IO_NULL;
}

/* The byte of a pattern at `at` bytes into a block that begins at `offset`. */
static u8 pattern_byte(const struct pattern *p, u64 at, u64 offset)
{
	u32 i = (u32)(at % p->length);

	for (u32 back = 0; back < sizeof(u64) && back <= i; back++)
		if (p->offset_at[i - back])
			return (u8)(offset >> 8 * back);
	return p->byte[i];
}

/* Byte `at` of a chunk with this header; headers have their place before. */
static u8 body_byte(const struct job_options *o, const struct header *h, u64 at)
{
	if (o->verify_pattern.length)
		return pattern_byte(&o->verify_pattern, at, h->offset);
	return (u8)(seed_mix(h->sum, at / sizeof(u64)) >> 8 * (at % sizeof(u64)));
}

static u64 chunk_length(const struct job_options *o, u64 length, u64 at)
{
	u64 interval = o->verify_interval ? o->verify_interval : length;

	return min_u64(interval, length - at);
}

/* How much of a chunk its header takes: nothing where it does not fit. */
static u64 header_length(const struct job_options *o, u64 length)
{
	return o->verify == VERIFY_SUMS && length >= sizeof(struct header) ? sizeof(struct header)
									   : 0;
}

static struct header make_header(const struct clone_file *f, u64 offset, u64 sequence)
{
	struct header h = {
		.magic = MAGIC, .offset = offset, .sequence = sequence, .name = name_of(f)
	};

	h.sum = sum_of(&h);
	return h;
}

void verify_fill(const struct clone *c, const struct io *io, u8 *buffer)
{
	const struct job_options *o = &c->job->o;

	for (u64 at = 0, length; at < io->length; at += length) {
		struct header h;
		u64 head;

		length = chunk_length(o, io->length, at);
		head = header_length(o, length);
		h = make_header(io->file, io->offset + at, head ? io->sequence : VERIFY_ANY);
		memcpy(buffer + at, &h, head);
		for (u64 i = head; i < length; i++)
			buffer[at + i] = body_byte(o, &h, i);
	}
}

/* NULL, or what is wrong with one chunk. */
static const char *check_chunk(const struct job_options *o, const struct clone_file *f,
			       const u8 *chunk, u64 offset, u64 length, u64 sequence)
{
	u64 head = header_length(o, length);
	struct header h = make_header(f, offset, VERIFY_ANY), found;

	if (head) {
		memcpy(&found, chunk, sizeof(found));
		h = make_header(f, offset, found.sequence);
		if (found.magic != MAGIC)
			return "no header is there";
		if (found.offset != offset || found.name != h.name)
			return "it belongs somewhere else";
		if (found.sum != h.sum)
			return "the header is damaged";
		if (sequence != VERIFY_ANY && found.sequence != sequence)
			return "it is of another write";
	}
	for (u64 i = head; i < length; i++)
		if (chunk[i] != body_byte(o, &h, i))
			return "the contents are damaged";
	return NULL;
}

int verify_check(const struct clone *c, const struct clone_file *f, const u8 *buffer, u64 offset,
		 u64 length, u64 sequence, struct err *e)
{
	const struct job_options *o = &c->job->o;

	for (u64 at = 0, chunk; at < length; at += chunk) {
		const char *wrong;

		chunk = chunk_length(o, length, at);
		wrong = check_chunk(o, f, buffer + at, offset + at, chunk, sequence);
		if (!wrong)
			continue;
		err_set(e, NULL, 0, "verify %s at %llu: %s", f->plan->path,
			(unsigned long long)(offset + at), wrong);
		return -EILSEQ;
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct write_record *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static int by_time(const void *a, const void *b)
{
	const struct write_record *x = a, *y = b;

	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Of records of one place, sorted so, only the last counts: a job may write there for hours. */
static void drop_rewritten(struct written *w)
{
	size_t kept = 0;

	if (w->count)
		qsort(w->record, w->count, sizeof(*w->record), by_place);
	for (size_t i = 0; i < w->count; i++) {
		const struct write_record *r = &w->record[i], *next = r + 1;

		if (i + 1 == w->count || next->file != r->file || next->offset != r->offset ||
		    next->length != r->length)
			w->record[kept++] = *r;
	}
	w->count = kept;
}

/*
 * Drops records of which a later write took a part: sorted by place, each is held against
 * those before it that reach so far. Those behind `first` may.
 */
static void drop_overwritten(struct written *w)
{
	size_t kept = 0, first = 0;

	drop_rewritten(w);
	for (size_t i = 0; i < w->count; i++) {
		struct write_record *r = &w->record[i];

		while (first < i &&
		       (w->record[first].file != r->file ||
			w->record[first].offset + w->record[first].length <= r->offset))
			first++;
		for (size_t j = first; j < i; j++) {
			struct write_record *other = &w->record[j];

			if (other->file != r->file || other->offset + other->length <= r->offset)
				continue;
			if (other->sequence > r->sequence)
				r->damaged = true;
			else
				other->damaged = true;
		}
	}
	for (size_t i = 0; i < w->count; i++)
		if (!w->record[i].damaged)
			w->record[kept++] = w->record[i];
	w->count = kept;
	if (kept)
		qsort(w->record, kept, sizeof(*w->record), by_time);
}

/* Room for another record. */
static int make_room(struct written *w)
{
	size_t room = max_u64(256, 2 * w->room);
	struct write_record *record;

	if (w->count < w->room)
		return 0;
	drop_rewritten(w);
	if (w->count < w->room / 2)
		return 0;
	record = reallocarray(w->record, room, sizeof(*record));
	if (!record)
		return -ENOMEM;
	w->record = record;
	w->room = room;
	return 0;
}

void verify_remember(struct clone *c, const struct io *io)
{
	struct written *w = &c->written;

	if (make_room(w)) {
		clone_fail(c, -ENOMEM, "no memory to remember what to verify");
		return;
	}
	w->record[w->count++] = (struct write_record){ .file = io->file,
						       .offset = io->offset,
						       .length = io->length,
						       .sequence = io->sequence };
}

/* So that what is read comes from the device. */
static int settle_files(struct clone *c)
{
	for (u32 i = 0; i < c->plans.count; i++) {
		struct clone_file *f = &c->files[i];
		int rc;

		if (!f->handle && clone_open_file(c, f))
			return -EIO;
		rc = c->run->engine->fsync(f->handle, false);
		if (rc) {
			clone_fail(c, rc, "fsync %s: %s", f->plan->path, strerror(-rc));
			return rc;
		}
		clone_drop_cached(c, f);
	}
	return 0;
}

static int read_back(struct clone *c, const struct write_record *r, u8 *buffer, struct err *e)
{
	u64 done = 0;

	while (done < r->length) {
		ssize_t got = c->run->engine->pread(r->file->handle, buffer + done,
						    r->length - done, r->offset + done);

		if (got <= 0) {
			err_set(e, NULL, 0, "verify %s at %llu: %s", r->file->plan->path,
				(unsigned long long)(r->offset + done),
				got ? strerror((int)-got) : "the file ended");
			return got ? (int)got : -EIO;
		}
		done += (u64)got;
	}
	return verify_check(c, r->file, buffer, r->offset, r->length, r->sequence, e);
}

void verify_failed(struct clone *c, int error, const char *why)
{
	if (clone_goes_on(c, error == -EILSEQ ? ERROR_VERIFY : ERROR_READ, error, why))
		return;
	if (!c->verify_errors++)
		snprintf(c->verify_text, sizeof(c->verify_text), "%s", why);
	if (c->job->o.verify_fatal)
		clone_fail(c, error, "%s", why);
}

void verify_end(struct clone *c)
{
	if (c->verify_errors > 1)
		clone_fail(c, -EILSEQ, "%.120s; %llu blocks in all", c->verify_text,
			   (unsigned long long)c->verify_errors);
	else if (c->verify_errors)
		clone_fail(c, -EILSEQ, "%s", c->verify_text);
}

/* Reads back `most` records, the oldest first, and forgets them. */
static void read_back_all(struct clone *c, u8 *buffer, size_t most)
{
	struct job_dir_stats *s = &c->dir[JOB_DIR_READ];
	struct written *w = &c->written;
	size_t n = min_u64(most, w->count);

	for (size_t i = 0; i < n && !c->error; i++) {
		u64 start = world_now(), end;
		struct err e = { "" };
		int rc = read_back(c, &w->record[i], buffer, &e);

		end = world_now();
		if (rc)
			verify_failed(c, rc, e.text);
		if (rc || c->ramping)
			continue;
		s->ios++;
		s->bytes += w->record[i].length;
		hist_add(&s->clat, end - start);
		c->verify_ns += end - start;
	}
	memmove(w->record, w->record + n, (w->count - n) * sizeof(*w->record));
	w->count -= n;
}

void verify_backlog(struct clone *c, u8 *buffer)
{
	const struct job_options *o = &c->job->o;
	u64 batch = o->verify_backlog_batch ? o->verify_backlog_batch : o->verify_backlog;

	if (!o->verify_backlog || c->written.count < o->verify_backlog || c->error)
		return;
	drop_overwritten(&c->written);
	if (!settle_files(c))
		read_back_all(c, buffer, batch);
}

void verify_written(struct clone *c)
{
	u8 *buffer;

	if (!c->job->o.do_verify || c->error || !c->written.count)
		return;
	buffer = aligned_alloc(PAGE_SIZE, round_up(job_max_bs(&c->job->o), PAGE_SIZE));
	drop_overwritten(&c->written);
	if (!buffer)
		clone_fail(c, -ENOMEM, "no memory for a block to verify");
	else if (!settle_files(c))
		read_back_all(c, buffer, SIZE_MAX);
	free(buffer);
}

bool verify_pass(struct clone *c)
{
	u64 before = world_now(), took;

	if (!c->verifies_passes || c->done_files < c->plans.count)
		return false;
	verify_written(c);
	took = world_now() - before;
	c->between_ns += took;
	clone_shift_rates(c, took);
	return !c->stop && !c->verify_errors && clone_next_pass(c);
}
