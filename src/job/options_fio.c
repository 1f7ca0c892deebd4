/* SPDX-License-Identifier: MIT */
/*
 * The names of fio 3.33's other options, those that the table does not have. They
 * are here only to be refused by name as what they are, instead of as misspelt.
 */
#include "job/options.h"
#include <string.h>

/* clang-format off */
static const char *const others[] = {
	"allow_file_create", "atomic", "bs_is_seq_rand", "cmd_type", "cmdprio",
	"cmdprio_bssplit", "cmdprio_class", "exec_postrun", "exec_prerun", "file_append",
	"gid", "latency_unit", "merge_blktrace_file", "merge_blktrace_iters",
	"merge_blktrace_scalars", "nowait", "opendir", "profile", "rate_cycle",
	"rate_iops_min", "rate_min", "ratecycle", "ratemin", "read_iolog",
	"read_iolog_chunked", "thp", "trim_percentage", "uid", "write_iolog",
};
/* clang-format on */

bool options_is_fios(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}
