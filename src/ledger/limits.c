// SPDX-License-Identifier: MIT
/*
 * Limits of dirty memory.
 *
 * Only memory that could be cleaned and given away counts as dirtyable: free
 * pages beyond the reserve, and file pages, dirty ones included. The two limits
 * are parts of it, in 4096ths, so 20 % is really 819/4096. A tenant's dirtyable
 * memory is what it has in files plus what it could still get: no more than its
 * own headroom, nor than the clean file memory others hold.
 *
 * Dirtyable memory can shrink at once, when a program takes memory; pages that
 * are dirty already cannot be cleaned at once. If the limit followed, every
 * writer would stand still until they were. So the limit in force is a slower
 * copy of thresh, which jumps up with it but comes down by 1/32 of the distance
 * per 200 ms, and not below what is dirty: writers are slowed, not stopped.
 *
 * Linux writeback reference, sections 4.1 to 4.5.
 */
#include "ledger/limits.h"

#include "base/bits.h"
#include "ledger/bandwidth.h"

#define RATIO_SCALE 4096u        /* the limits are this many parts of memory */
#define LIMIT_MAX   UINT32_MAX   /* pages: 16 TiB, as in Linux */
#define PAGES_MAX   (1ull << 50) /* no count of pages comes near */
#define SLIDE_SHIFT 5            /* dirty_limit falls by 1/32 of the gap */

u64 limits_avail(u64 free, u64 reserve, u64 file_inactive, u64 file_active)
{
	u64 spare = free > reserve ? free - reserve : 0;

	return spare + file_inactive + file_active + 1;
}

u64 limits_tenant_avail(u64 file_pages, u64 headroom, u64 tenant_dirty, u64 avail, u64 dirty)
{
	u64 clean = file_pages - min_u64(file_pages, tenant_dirty);
	u64 all_clean = avail - min_u64(avail, dirty);
	u64 others_clean = all_clean - min_u64(all_clean, clean);

	return file_pages + min_u64(headroom, others_clean);
}

static struct limits limits_bounded(u64 thresh, u64 bg, bool realtime, u64 dirty_limit)
{
	struct limits l;

	if (realtime) {
		thresh += thresh / 4 + dirty_limit / 32;
		bg += bg / 4 + dirty_limit / 32;
	}
	l.thresh = min_u64(thresh, LIMIT_MAX);
	l.bg = bg < l.thresh ? bg : l.thresh / 2;
	assert(l.bg < l.thresh || !l.thresh);
	return l;
}

/* A percentage in 4096ths; above 100 % means nothing. */
static u64 ratio_of_percent(u32 percent)
{
	assert(percent <= 100);
	return (u64)percent * RATIO_SCALE / 100;
}

/* A number of bytes in 4096ths of `avail` pages. */
static u64 ratio_of_bytes(u64 bytes, u64 avail)
{
	_Static_assert(RATIO_SCALE == PAGE_SIZE, "bytes per page are 4096ths");
	return min_u64(div_roundup(bytes, avail), RATIO_SCALE);
}

static u64 part_of(u64 avail, u64 ratio)
{
	assert(avail <= PAGES_MAX && ratio <= RATIO_SCALE);
	return ratio * avail / RATIO_SCALE;
}

struct limits limits_of(const struct limits_config *config, u64 avail, bool realtime,
			u64 dirty_limit)
{
	u64 thresh = config->dirty_bytes ? div_roundup(config->dirty_bytes, PAGE_SIZE)
					 : part_of(avail, ratio_of_percent(config->dirty_ratio));
	u64 bg = config->dirty_background_bytes
			 ? div_roundup(config->dirty_background_bytes, PAGE_SIZE)
			 : part_of(avail, ratio_of_percent(config->dirty_background_ratio));

	return limits_bounded(thresh, bg, realtime, dirty_limit);
}

struct limits limits_of_tenant(const struct limits_config *config, u64 tenant_avail, u64 avail,
			       bool realtime, u64 dirty_limit)
{
	u64 ratio = config->dirty_bytes ? ratio_of_bytes(config->dirty_bytes, avail)
					: ratio_of_percent(config->dirty_ratio);
	u64 bg_ratio = config->dirty_background_bytes
			       ? ratio_of_bytes(config->dirty_background_bytes, avail)
			       : ratio_of_percent(config->dirty_background_ratio);

	assert(avail);
	return limits_bounded(part_of(tenant_avail, ratio), part_of(tenant_avail, bg_ratio),
			      realtime, dirty_limit);
}

void hard_limit_init(struct hard_limit *h, u64 thresh, u64 now)
{
	h->dirty_limit = thresh;
	h->stamp_jiffies = now;
}

void hard_limit_update(struct hard_limit *h, u64 thresh, u64 dirty, u64 now, u32 hz)
{
	u64 target = max_u64(thresh, dirty);

	if (now < h->stamp_jiffies + bandwidth_interval(hz))
		return;
	h->stamp_jiffies = now;
	if (h->dirty_limit < thresh)
		h->dirty_limit = thresh;
	else if (h->dirty_limit > target)
		h->dirty_limit -= (h->dirty_limit - target) >> SLIDE_SHIFT;
}
