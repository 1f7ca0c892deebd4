/* SPDX-License-Identifier: MIT */
/*
 * What a clone does next. The order of the questions is fio's: is the time over, or
 * all data done? Which file is next (round robin: the one after the last)? Is a sync
 * due (after every Nth write; it goes to the file whose turn it is)? Else, which
 * direction (drawn by rwmixread)? Is it due by its rate, or how long to sleep? Where
 * in the file: behind the last I/O of that direction, or at a random block; and how
 * much. A file with nothing left is done for this pass; when all are, the pass is over.
 *
 * A random job may go on sequentially for a while: percentage_random draws each time
 * whether to, and rw=randread:8 draws an offset for every eighth I/O only. With zones, a
 * file's I/Os stay within a zone until zonesize bytes were transferred, and then move to
 * the next, zoneskip further on.
 */
#include "job/clone.h"
#include <errno.h>

static bool time_is_over(const struct clone *c, u64 now)
{
	u64 runtime = c->job->o.runtime_ns;

	return runtime && !c->ramping && now - c->epoch_ns >= runtime;
}

static bool data_is_done(const struct clone *c)
{
	const struct job_options *o = &c->job->o;
	u64 ios = c->issued_ios[JOB_DIR_READ] + c->issued_ios[JOB_DIR_WRITE];

	if (o->time_based)
		return false;
	if (o->number_ios && ios / o->loops >= o->number_ios)
		return true;
	return c->issued_bytes[JOB_DIR_READ] + c->issued_bytes[JOB_DIR_WRITE] >= c->limit_bytes;
}

static void begin_file_anew(struct clone_file *f)
{
	f->done = false;
	f->idle = true;
	f->zone = 0;
	for (int dir = 0; dir < JOB_DIRS; dir++)
		f->position[dir] = f->last[dir] = 0;
	if (f->blocks) {
		blocks_restart(&f->blocks[0]);
		blocks_restart(&f->blocks[1]);
	}
}

bool clone_next_pass(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	u64 issued = c->issued_bytes[JOB_DIR_READ] + c->issued_bytes[JOB_DIR_WRITE];

	if (c->done_files < c->plans.count || !c->pass_issued)
		return false;
	c->passes++;
	if (!o->time_based) {
		bool by_size = o->io_size.bytes || o->io_size.percent;

		if (issued >= c->limit_bytes || c->limit_bytes - issued < job_max_bs(o))
			return false;
		if (!by_size && c->passes >= o->loops)
			return false;
	}
	clone_close_files(c);
	if (o->unlink_each_loop)
		clone_unlink_files(c);
	for (u32 i = 0; i < c->plans.count; i++)
		begin_file_anew(&c->files[i]);
	c->done_files = 0;
	c->next_file = 0;
	c->service_left = 0;
	c->zone_bytes = 0;
	c->pass_issued = false;
	return true;
}

/* False for a file that would have to be opened when no more may be open. */
static bool may_use(const struct clone *c, const struct clone_file *f)
{
	return !f->done && (f->handle || c->open_files < c->job->o.openfiles);
}

/* Round robin, over the files that are open when no more may be. */
static struct clone_file *turn(struct clone *c)
{
	for (u32 looked_at = 0;; looked_at++) {
		struct clone_file *f = &c->files[c->next_file];

		if (++c->next_file == c->plans.count)
			c->next_file = 0;
		/* all that are open may be done, but in use by others: then open one more */
		if (may_use(c, f) || (looked_at >= c->plans.count && !f->done))
			return f;
	}
}

static struct clone_file *draw_file(struct clone *c)
{
	bool even = c->job->o.file_service == SERVICE_RANDOM;

	for (u32 attempt = 0; attempt < 8 || even; attempt++) {
		u64 number = even ? rng_below(&c->mix, c->plans.count)
				  : distribution_next(&c->file_skew, &c->mix);
		struct clone_file *f = &c->files[number];

		if (may_use(c, f))
			return f;
		if (even && attempt > 64 * c->plans.count)
			break;
	}
	return turn(c); /* what is left may be out of reach of the draws */
}

static struct clone_file *next_file(struct clone *c)
{
	struct clone_file *f = &c->files[c->current_file];

	if (c->done_files == c->plans.count)
		return NULL;
	if (c->job->o.file_service == SERVICE_SEQUENTIAL) {
		while (c->files[c->next_file].done)
			c->next_file++;
		return &c->files[c->next_file];
	}
	if (c->service_left && !f->done) {
		c->service_left--;
		return f;
	}
	f = c->job->o.file_service == SERVICE_ROUNDROBIN ? turn(c) : draw_file(c);
	c->current_file = (u32)(f - c->files);
	c->service_left = c->job->o.file_service_nr - 1;
	return f;
}

/* True if it is time to sync, after so many writes and no other sync since. */
static bool sync_is_due(const struct clone *c, enum io_kind *kind)
{
	const struct job_options *o = &c->job->o;
	u64 writes = c->issued_ios[JOB_DIR_WRITE];

	if (c->last_was_sync || !writes)
		return false;
	if (o->fsync && writes % o->fsync == 0)
		*kind = IO_FSYNC;
	else if (o->fdatasync && writes % o->fdatasync == 0)
		*kind = IO_FDATASYNC;
	else if (o->sync_range && writes % o->sync_range == 0)
		*kind = IO_SYNC_RANGE;
	else
		return false;
	return true;
}

static void make_sync(struct clone *c, struct clone_file *f, enum io_kind kind, struct io *io)
{
	*io = (struct io){ .kind = kind, .file = f };
	c->last_was_sync = true;
	if (kind != IO_SYNC_RANGE)
		return;
	io->offset = f->plan->start + f->unsynced_from;
	io->length = f->unsynced_to - f->unsynced_from;
	f->unsynced_from = f->unsynced_to = 0;
}

static enum job_dir draw_direction(struct clone *c)
{
	const struct job_options *o = &c->job->o;

	if (!(o->rw & RW_WRITE))
		return JOB_DIR_READ;
	if (!(o->rw & RW_READ))
		return JOB_DIR_WRITE;
	return rng_below(&c->mix, 100) < o->rwmixread ? JOB_DIR_READ : JOB_DIR_WRITE;
}

static struct blocks *blocks_of(const struct clone_file *f, enum job_dir dir)
{
	return &f->blocks[f->blocks[1].count ? dir : 0];
}

/* A file that a job by time has read or written to its end begins anew. */
static void rewind_file(struct clone *c, struct clone_file *f, enum job_dir dir)
{
	f->position[dir] = f->zone;
	if (f->blocks)
		blocks_restart(blocks_of(f, dir));
	if (c->job->o.invalidate && !c->job->o.direct && f->handle)
		clone_drop_cached(c, f);
}

static u64 part_end(const struct clone_file *f)
{
	return f->plan->size - f->plan->start;
}

/* Moves on to the next zone when enough was transferred in this one. */
static void choose_zone(struct clone *c, struct clone_file *f, enum job_dir dir)
{
	const struct job_options *o = &c->job->o;
	u64 bs = o->bs_bytes[dir], room;

	if (c->zone_bytes >= o->zonesize_bytes) {
		c->zone_bytes = 0;
		f->zone += o->zonerange_bytes + o->zoneskip_bytes;
		if (f->zone + bs > part_end(f))
			f->zone = 0;
		f->position[dir] = f->zone;
	}
	if (f->position[dir] >= f->zone + o->zonerange_bytes)
		f->position[dir] = f->zone;
	assert(o->zonerange_bytes);
	if (!f->blocks || c->zone_bytes % o->zonerange_bytes)
		return;
	room = min_u64(o->zonerange_bytes, part_end(f) - f->zone);
	blocks_init(blocks_of(f, dir), o, dir, room / o->ba_bytes[dir],
		    seed_mix(c->seed, 1000 + c->sequence));
}

/* True if the next offset is to be drawn. */
static bool draws_offset(struct clone *c, const struct clone_file *f, enum job_dir dir)
{
	const struct job_options *o = &c->job->o;
	u64 percent = o->percentage_random[dir];

	if (!f->blocks)
		return false;
	if (o->rw_burst > 1) {
		if (--c->burst_left)
			return false;
		c->burst_left = o->rw_burst;
	}
	return percent == 100 || rng_below(&c->randomness, 100) < percent;
}

static int random_position(struct clone *c, struct clone_file *f, enum job_dir dir, u64 *position)
{
	u64 block;

	if (blocks_next(blocks_of(f, dir), &block))
		return -ENODATA;
	*position = f->zone + block * c->job->o.ba_bytes[dir];
	return 0;
}

/*
 * Behind the last I/O, and rw_skip further; holes wrap at the end of the file, and
 * going backwards wraps at its beginning, as fio does.
 */
static int sequential_position(struct clone *c, struct clone_file *f, enum job_dir dir,
			       u64 *position)
{
	s64 skip = c->job->o.rw_skip;
	u64 at = f->position[dir], end = part_end(f);

	if (at >= end)
		return -ENODATA;
	if (skip && at > f->zone) {
		at += (u64)skip;
		if (at >= end && skip > 0)
			at = f->zone;
		else if (at >= end) /* below 0 */
			at = min_u64(end, f->plan->length) + (u64)skip;
		if (at >= end)
			return -ENODATA;
	}
	*position = at;
	return 0;
}

static int choose_position(struct clone *c, struct clone_file *f, enum job_dir dir, bool draw,
			   u64 *position)
{
	const struct job_options *o = &c->job->o;

	if (draw)
		return random_position(c, f, dir, position);
	if (f->blocks && o->rw_burst > 1 && o->rw_identical && !f->idle) {
		*position = f->last[dir];
		return 0;
	}
	if (!sequential_position(c, f, dir, position))
		return 0;
	return f->blocks ? random_position(c, f, dir, position) : -ENODATA;
}

/* Draws among the parts of a bssplit that fit, by their shares. */
static u64 draw_split(struct clone *c, const struct splits *s, u64 room, u64 smallest)
{
	u64 sum = 0, draw;

	for (u32 i = 0; i < s->count; i++)
		sum += s->part[i].bytes <= room ? s->part[i].percent : 0;
	if (!sum)
		return smallest;
	draw = rng_below(&c->sizes, sum);
	for (u32 i = 0;; i++) {
		const struct split *p = &s->part[i];

		assert(i < s->count);
		if (p->bytes > room)
			continue;
		if (draw < p->percent)
			return p->bytes;
		draw -= p->percent;
	}
}

/* How much to transfer at a position; 0: nothing fits. */
static u64 choose_length(struct clone *c, struct clone_file *f, enum job_dir dir, u64 position)
{
	const struct job_options *o = &c->job->o;
	u64 low = o->bs_bytes[dir], high = o->bs_max_bytes[dir], room, length;

	if (low == high)
		return position + low > part_end(f) ? 0 : low;
	room = f->plan->length - position;
	if (low > room)
		return 0;
	if (o->splits[dir].count)
		return draw_split(c, &o->splits[dir], room, low);
	do {
		length = low + rng_below(&c->sizes, high);
		if (!o->bs_unaligned)
			length -= length % low;
		length = min_u64(length, high);
	} while (length > room);
	return length;
}

static int place_io(struct clone *c, struct clone_file *f, enum job_dir dir, u64 *position,
		    u64 *length)
{
	u64 visited;
	bool draw;

	if (c->job->o.zonemode == ZONE_STRIDED)
		choose_zone(c, f, dir);
	draw = draws_offset(c, f, dir);
	for (int attempt = 0; attempt < 2; attempt++) {
		*length = 0;
		/* fio goes on as long as a block begins within the part and fits into the file */
		if (!choose_position(c, f, dir, draw, position) && *position < f->plan->length)
			*length = choose_length(c, f, dir, *position);
		if (*length || !c->rewinds)
			break;
		rewind_file(c, f, dir);
	}
	if (f->blocks && *length) {
		visited = blocks_visit(blocks_of(f, dir), *position, *length);
		*length = draw ? visited : *length;
	}
	return *length ? 0 : -ENODATA;
}

static void issue_io(struct clone *c, struct clone_file *f, enum job_dir dir, u64 position,
		     u64 length, struct io *io)
{
	f->last[dir] = position;
	f->position[dir] = position + length;
	f->idle = false;
	c->issued_ios[dir]++;
	c->issued_bytes[dir] += length;
	c->zone_bytes += length;
	c->think_count += c->job->o.thinktime_at_issue;
	clone_pace(c, dir);
	if (dir == JOB_DIR_WRITE && c->job->o.sync_range) {
		bool first = f->unsynced_to == f->unsynced_from;

		f->unsynced_from = first ? position : min_u64(f->unsynced_from, position);
		f->unsynced_to = max_u64(f->unsynced_to, position + length);
	}
	c->pass_issued = true;
	c->last_was_sync = false;
	*io = (struct io){
		.kind = (enum io_kind)dir,
		.file = f,
		.offset = f->plan->start + position,
		.length = length,
		.sequence = c->sequence++,
	};
}

/*
 * The next I/O of the file. Its place is chosen before the wait until it is due, so that
 * whoever does it has time to fetch what it takes. 1; 0: the time is over; -ENODATA.
 */
static int next_io(struct clone *c, struct clone_file *f, enum job_dir dir, u64 now, struct io *io)
{
	u64 due = clone_due_ns(c, &dir, now), position, length;
	const struct job_engine *e = c->run->engine;
	int rc = place_io(c, f, dir, &position, &length);

	if (!rc && e->expect && f->handle)
		e->expect(f->handle, f->plan->start + position);
	if (due && !clone_wait_for_rate(c, due))
		return 0;
	if (!rc)
		issue_io(c, f, dir, position, length, io);
	return rc ? rc : 1;
}

static void file_is_done(struct clone *c, struct clone_file *f)
{
	const struct job_options *o = &c->job->o;

	f->done = true;
	c->done_files++;
	/* so that another may be opened */
	if (o->openfiles < c->plans.count && f->handle && !c->shared)
		clone_close_file(c, f);
}

int clone_next(struct clone *c, struct io *io)
{
	for (;;) {
		u64 now = world_now();
		struct clone_file *f;
		enum io_kind sync;
		enum job_dir dir;
		int rc;

		if (c->stop || atomic_load(&c->terminate) || time_is_over(c, now) ||
		    data_is_done(c))
			return 0;
		if (c->flow && !clone_flows(c))
			continue;
		f = next_file(c);
		if (!f) {
			if (c->verifies_passes || !clone_next_pass(c))
				return 0;
			continue;
		}
		if (unlikely(!f->handle) && clone_open_file(c, f))
			return 0;
		if (sync_is_due(c, &sync)) {
			make_sync(c, f, sync, io);
			return 1;
		}
		dir = draw_direction(c);
		if (c->job->o.thinktime_at_issue)
			clone_think_if_due(c);
		rc = next_io(c, f, dir, now, io);
		if (rc >= 0)
			return rc;
		file_is_done(c, f);
	}
}
