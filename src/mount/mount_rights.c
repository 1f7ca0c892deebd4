// SPDX-License-Identifier: MIT
/*
 * What the daemon is allowed. First it takes what only root may have: no limits on locked memory
 * and on the size of files, which are its callers' business, and never to wait for write-out of the
 * source's file system to get memory, since that may wait for us.
 *
 * Then it gives up the rest. Of root's capabilities it keeps those that acting for others on
 * files takes, and CAP_SYS_ADMIN, which trusted attributes and unmounting do; programs that it
 * runs get no more rights than it has, and nobody may look into its memory. Without
 * CAP_SYS_RESOURCE, quotas hold for what it writes. A daemon of another user has no capabilities,
 * and keeps the way to fusermount3, which is set-user-id: without that he could not unmount.
 */
#include "mount/mount_inner.h"
#include <linux/capability.h>
#include <linux/prctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int kept[] = {
	CAP_CHOWN,     CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
	CAP_FSETID,    CAP_SETGID,       CAP_SETUID,          CAP_LINUX_IMMUTABLE,
	CAP_SYS_ADMIN, CAP_MKNOD,        CAP_SETFCAP,         CAP_MAC_ADMIN,
};

static bool keeps(int capability)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (kept[i] == capability)
			return true;
	return false;
}

/* Of the calling thread, and of threads that it begins. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, sets))
		return;
	for (int c = 0; c < 32 * _LINUX_CAPABILITY_U32S_3; c++) {
		u32 bit = keeps(c) ? 0 : 1u << c % 32;

		sets[c / 32].effective &= ~bit;
		sets[c / 32].permitted &= ~bit;
		sets[c / 32].inheritable = 0;
		if (bit)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0); /* fails for those there are not */
	}
	syscall(SYS_capset, &head, sets);
}

void rights_drop(const struct mount *m)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!m->root_user)
		return;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	drop_capabilities();
}
