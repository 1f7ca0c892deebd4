/* SPDX-License-Identifier: MIT */
/*
 * The names of fio 3.33's other options, those that the table does not have. They
 * are here only to be refused by name as what they are, instead of as misspelt.
 */
#include "job/options.h"
#include <string.h>

/* clang-format off */
static const char *const others[] = {
	"allow_file_create", "atomic", "bs_is_seq_rand", "cgroup_nodelete",
	"cgroup_weight", "cmdprio", "cmdprio_bssplit", "cmdprio_class", "exec_postrun",
	"exec_prerun", "file_append", "gid", "ignore_zone_limits", "job_max_open_zones",
	"latency_unit", "log_alternate_epoch", "log_alternate_epoch_clock_id",
	"log_compression_cpus", "max_open_zones", "merge_blktrace_file", "merge_blktrace_iters",
	"merge_blktrace_scalars", "nowait", "offset_align", "opendir", "profile", "rate_cycle",
	"rate_iops_min", "rate_min", "ratecycle", "ratemin", "read_beyond_wp", "read_iolog",
	"read_iolog_chunked", "replay_align", "replay_no_stall", "replay_redirect",
	"replay_scale", "replay_skip", "replay_time_scale", "serialize_overlap", "ss", "ss_dur",
	"ss_ramp", "steadystate", "steadystate_duration", "steadystate_ramp_time",
	"trim_backlog", "trim_backlog_batch", "trim_percentage", "trim_verify_zero", "uid",
	"write_iolog", "zone_reset_frequency", "zone_reset_threshold", "zonecapacity",
};
/* clang-format on */

bool options_is_fios(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}
