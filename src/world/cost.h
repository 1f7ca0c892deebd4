/* SPDX-License-Identifier: MIT */
/*
 * What the engine's steps cost in CPU time, in nanoseconds a unit. A machine
 * model may replace every one of them ([cpu] section, key = name).
 *
 * The defaults of what a process can measure of itself, but for copying, are what `sluice
 * calibrate` found on a virtual machine with Linux 6.18 on x86-64, rounded. The others are round
 * numbers of the usual size: a copied page is rarely as warm as there (160 ns), and on that machine
 * I/O and waking were mostly exits to the hypervisor (17 us). An I/O's completion is charged to
 * who submits it, since no interrupt is simulated.
 */
#ifndef SLUICE_WORLD_COST_H
#define SLUICE_WORLD_COST_H

/*	name, default ns, unit */
#define COSTS(X)                                                                               \
	X(SYSCALL, syscall_ns, 150, "entering and leaving one call of a job")                  \
	X(LOOKUP, lookup_ns, 430, "finding one cached folio")                                  \
	X(ALLOC, alloc_ns, 1050, "allocating a folio and putting it into the cache")           \
	X(PAGE, page_ns, 220, "making one page of memory ready for a new folio")               \
	X(FETCH, fetch_ns, 0, "getting one page of memory back from a host")                   \
	X(COPY, copy_ns, 400, "copying one page")                                              \
	X(DIRTY, dirty_ns, 215, "making a clean folio dirty")                                  \
	X(SPLIT, split_ns, 3000, "splitting a folio")                                          \
	X(EVICT, evict_ns, 800, "dropping a folio from the cache")                             \
	X(ACTIVATE, activate_ns, 0, "moving a folio that is used again to the active list")    \
	X(BEGIN, begin_ns, 0, "what a write does for a folio besides finding and dirtying it") \
	X(SUBMIT, submit_ns, 3000, "submitting one I/O")                                       \
	X(COMPLETE, complete_ns, 2000, "completing one I/O")                                   \
	X(ESTIMATE, estimate_ns, 3000, "updating a device's bandwidth and pace")               \
	X(WAKE, wake_ns, 3000, "a task's way from woken to running")

enum cost {
#define COST_ENUM(name, key, ns, text) COST_##name,
	COSTS(COST_ENUM)
#undef COST_ENUM
		COST_MAX
};

#endif
