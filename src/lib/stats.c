// SPDX-License-Identifier: MIT
/* The statistics of a cache, gathered from engine, device and paths, in bytes. */
#include "lib/inner.h"
#include <errno.h>
#include <string.h>

#define STATS_SIZE_MIN offsetof(struct sluice_stats, cached_bytes)

static u64 bytes(u64 pages)
{
	return pages * PAGE_SIZE;
}

static void of_memory(struct sluice *c, struct sluice_stats *s)
{
	struct engine_memory m;

	engine_memory(c->engine, &m);
	s->resident_bytes = m.arena_bytes;
	s->huge_bytes = m.arena_huge_bytes;
	s->overhead_bytes = m.table_bytes + m.index_bytes;
}

static void of_engine(struct sluice *c, struct sluice_stats *s)
{
	const struct ledger *l = &engine_writeback(c->engine)->cache->ledger;
	struct engine_stats e;

	engine_stats(c->engine, &e);
	s->memory_bytes = bytes(e.memory);
	s->cached_bytes = bytes(e.cached);
	s->free_bytes = bytes(e.free);
	s->debt_bytes = bytes(e.debt);
	s->in_flight_bytes = bytes(e.in_flight);
	s->folio_dirty_bytes = bytes(ledger_level(l, LEVEL_FOLIO_DIRTY));
	s->folio_writeback_bytes = bytes(ledger_level(l, LEVEL_FOLIO_WRITEBACK));
	s->pinned_bytes = bytes(e.pinned);
	s->dirty_bytes = bytes(e.dirty);
	s->writeback_bytes = bytes(e.writeback);
	s->background_thresh_bytes = bytes(e.background_thresh);
	s->freerun_bytes = bytes(e.freerun);
	s->setpoint_bytes = bytes(e.setpoint);
	s->dirty_thresh_bytes = bytes(e.thresh);
	s->dirty_limit_bytes = bytes(e.dirty_limit);
	s->dirtied_bytes = bytes(e.pages_dirtied);
	s->written_bytes = bytes(e.pages_written);
	s->cancelled_bytes = bytes(ledger_total(l, TOTAL_PAGES_CANCELLED));
	s->charged_bytes = bytes(e.charged);
	s->throttle_calls = e.throttle_calls;
	s->throttle_sleeps = e.throttle_sleeps;
	s->throttle_sleep_ns = e.throttle_sleep_ns;
	s->folios_reclaimed = e.folios_reclaimed;
	s->folios_split = e.folios_split;
	s->folios_shed = e.folios_shed;
	s->reclaim_waits = e.reclaim_waits;
	s->unsafe_bytes = bytes(e.unsafe);
	s->unsafe_files = e.unsafe_files;
}

static void of_device(struct sluice *c, struct sluice_stats *s)
{
	struct writeback *all = engine_writeback(c->engine);
	struct device_stats d;

	device_stats(c->device, &d);
	device_describe(c->device, s->device, sizeof(s->device));
	s->device_reads = d.reads;
	s->device_writes = d.writes;
	s->device_flushes = d.flushes;
	s->device_read_bytes = d.read_bytes;
	s->device_write_bytes = d.write_bytes;
	s->device_in_flight = d.in_flight;
	s->write_bandwidth = bytes(wb_avg_bandwidth(all->wb[0]));
	s->write_errors = atomic_load(&all->cache->failures);
}

static void of_recovery(struct sluice *c, struct sluice_stats *s)
{
	const struct recovery *r = &c->survival.recovery;

	s->recovered_files = r->files[RECOVERED_WRITTEN];
	s->recovered_bytes = r->bytes[RECOVERED_WRITTEN];
	s->aside_files = r->files[RECOVERED_ASIDE];
	s->aside_bytes = r->bytes[RECOVERED_ASIDE];
	s->dropped_files = r->files[RECOVERED_DROPPED];
	s->dropped_bytes = r->bytes[RECOVERED_DROPPED];
}

int sluice_stats(struct sluice *c, struct sluice_stats *out)
{
	struct sluice_stats s = { 0 };
	struct path_stats paths;
	u64 size = out->size;

	if (size < STATS_SIZE_MIN || size % sizeof(u64))
		return -EINVAL;
	of_memory(c, &s);
	of_engine(c, &s);
	of_device(c, &s);
	path_stats(c->paths, &paths);
	s.files_open = atomic_load(&c->files_open);
	s.files_idle = paths.idle_inodes;
	of_recovery(c, &s);
	s.size = min_u64(size, sizeof(s));
	memcpy(out, &s, s.size);
	return 0;
}
