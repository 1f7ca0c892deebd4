/* SPDX-License-Identifier: MIT */
/* The heavy half of asymmetric fences, as liburcu has it since 2018: see fence.h. */
#include "world/fence.h"
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic bool world_fences_light;

#ifdef WORLD_TSAN

void world_fence_init(void)
{
}

void world_fence_heavy(void)
{
}

#else

static pthread_once_t once = PTHREAD_ONCE_INIT;

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* Who sees the flag finds the process registered. */
static void init(void)
{
	if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		atomic_store(&world_fences_light, true);
}

void world_fence_init(void)
{
	pthread_once(&once, init);
}

void world_fence_heavy(void)
{
	world_fence_init();
	if (!atomic_load(&world_fences_light) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		atomic_thread_fence(memory_order_seq_cst);
}

#endif
