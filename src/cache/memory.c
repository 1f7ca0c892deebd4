/* SPDX-License-Identifier: MIT */
/*
 * One reservation of addresses, made once, and never given back before the end: whoever has
 * an address in it may read there at any time, also when the memory behind it has gone back
 * to the system. The pages come with their first use. Before and behind the range lie
 * addresses that nobody may touch.
 *
 * Transparent huge pages are asked for only where a whole one lies in the part in use.
 * Otherwise the system could put 2 MiB behind a last page of 4 KiB, and the cache would take more
 * than it was given. Pages set aside by the administrator (hugetlb) must be mapped as such;
 * what of the size is no multiple of 2 MiB stays on small pages.
 */
#include "cache/memory.h"
#include "base/bits.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#define SMAPS_LINE 512

static u64 whole_huge(u64 bytes)
{
	return round_down(bytes, HUGE_PAGE_BYTES);
}

/* Tells the system what is to be on huge pages. That it may refuse is no error. */
static void advise(const struct memory *m)
{
	u64 huge = m->huge == HUGE_NEVER ? 0 : whole_huge(m->bytes);

	if (huge > m->set_aside_end)
		madvise(m->base + m->set_aside_end, huge - m->set_aside_end, MADV_HUGEPAGE);
	if (m->reserved_bytes > huge)
		madvise(m->base + huge, m->reserved_bytes - huge, MADV_NOHUGEPAGE);
}

/* Puts pages that were set aside behind all whole huge pages of the first `bytes`. */
static int take_set_aside(struct memory *m, u64 bytes)
{
	u64 end = whole_huge(bytes);
	void *at = m->base + m->set_aside_end;

	if (m->huge != HUGE_ALWAYS || end <= m->set_aside_end)
		return 0;
	if (mmap(at, end - m->set_aside_end, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -ENOMEM;
	m->set_aside_end = end;
	return 0;
}

int memory_init(struct memory *m, u64 bytes, u64 max_bytes, enum huge_pages huge)
{
	u64 reserve = round_up(max_bytes, HUGE_PAGE_BYTES);
	uintptr_t at;

	assert(bytes && bytes <= max_bytes);
	*m = (struct memory){ .huge = huge, .reserved_bytes = reserve };
	m->mapped_bytes = reserve + 2 * HUGE_PAGE_BYTES;
	m->mapping = mmap(NULL, m->mapped_bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->mapping == MAP_FAILED) {
		m->mapping = NULL;
		return -ENOMEM;
	}
	at = (uintptr_t)m->mapping;
	m->base = m->mapping + (round_up(at + 1, HUGE_PAGE_BYTES) - at);
	if (mprotect(m->base, reserve, PROT_READ | PROT_WRITE) || memory_grow(m, bytes)) {
		memory_finish(m);
		return -ENOMEM;
	}
	return 0;
}

void memory_adopt(struct memory *m, char *base, u64 bytes, u64 max_bytes, enum huge_pages huge)
{
	assert(bytes && bytes <= max_bytes && !((uintptr_t)base % HUGE_PAGE_BYTES));
	*m = (struct memory){ .base = base,
			      .reserved_bytes = round_up(max_bytes, PAGE_SIZE),
			      .bytes = bytes,
			      .adopted = true,
			      .huge = huge == HUGE_ALWAYS ? HUGE_AUTO : huge };
	advise(m);
}

void memory_finish(struct memory *m)
{
	if (m->mapping)
		munmap(m->mapping, m->mapped_bytes);
	m->mapping = m->base = NULL;
}

int memory_grow(struct memory *m, u64 bytes)
{
	assert(bytes >= m->bytes && bytes <= m->reserved_bytes);
	if (take_set_aside(m, bytes))
		return -ENOMEM;
	m->bytes = bytes;
	advise(m);
	return 0;
}

void memory_shrink(struct memory *m, u64 bytes)
{
	assert(bytes <= m->bytes);
	m->bytes = bytes;
	advise(m);
}

void memory_discard(struct memory *m, u64 from, u64 bytes)
{
	u64 end = from + bytes, cut;

	assert(end <= m->reserved_bytes);
	if (m->adopted)
		return;
	if (from < m->set_aside_end) { /* whole huge pages only */
		cut = end < m->set_aside_end ? whole_huge(end) : m->set_aside_end;
		from = round_up(from, HUGE_PAGE_BYTES);
		if (from < cut)
			madvise(m->base + from, cut - from, MADV_DONTNEED);
		from = m->set_aside_end;
	}
	if (from < end)
		madvise(m->base + from, end - from, MADV_DONTNEED);
}

/* Adds one line of /proc/self/smaps, of a mapping that is ours, to the sums. */
static void add_line(const char *line, struct memory_use *use)
{
	u64 kb;

	if (sscanf(line, "Rss: %" SCNu64, &kb) == 1)
		use->resident_bytes += kb << 10;
	else if (sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1 ||
		 sscanf(line, "ShmemPmdMapped: %" SCNu64, &kb) == 1)
		use->huge_bytes += kb << 10;
	else if (sscanf(line, "Private_Hugetlb: %" SCNu64, &kb) == 1 ||
		 sscanf(line, "Shared_Hugetlb: %" SCNu64, &kb) == 1) {
		use->resident_bytes += kb << 10; /* which Rss leaves out */
		use->huge_bytes += kb << 10;
	}
}

struct memory_use memory_use(const struct memory *m)
{
	uintptr_t base = (uintptr_t)m->base, end = base + m->reserved_bytes, first, last;
	FILE *f = m->base ? fopen("/proc/self/smaps", "re") : NULL;
	struct memory_use use = { 0 };
	char line[SMAPS_LINE];
	bool ours = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
			ours = m->adopted ? first < end && last > base
					  : first >= base && last <= end;
		else if (ours)
			add_line(line, &use);
	}
	if (f)
		fclose(f);
	if (m->adopted) { /* it has all of its memory, touched or not; more than ours is mapped */
		use.resident_bytes = m->reserved_bytes;
		use.huge_bytes = min_u64(use.huge_bytes, m->reserved_bytes);
	}
	return use;
}
